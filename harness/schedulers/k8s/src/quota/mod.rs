//! Quotas: what a refusal says, whether waiting helps, and which case may try next.
//!
//! ```text
//! message (403 of a create, FailedCreate event) -read-> Refusal -decide-> Never | Wait
//! pod templates -demand-> Together  -fit(quota, reserved)-> Now | Later | Never, before anything exists
//! Reservations: workloads that are launched and not counted yet, so that two do not get the same capacity
//! WaitQueue: a later small case does not overtake an earlier big one that waits for the same resource
//! ```
//! The sentences are those of the API server's resourcequota admission (`controller.go`). Only the first quota that
//! refuses is named there, and of it only the resources that do not fit.

mod demand;
mod fit;
mod message;
mod queue;

pub(crate) use demand::{Demand, QuotaStatus, amounts, demand};
pub(crate) use fit::{Fit, Together, fit};
pub(crate) use message::read;
pub(crate) use queue::{Reservations, WaitQueue};

use crate::api::Quantity;
use std::fmt;

/// The refusal of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `exceeded quota`: these resources of it do not fit now.
    Exceeded {
        /// The quota.
        quota: String,
        /// At least one.
        shortages: Vec<Shortage>,
    },
    /// `failed quota`: the quota demands a request or limit that the pod does not have.
    MustSpecify {
        /// The quota.
        quota: String,
        /// `limits.cpu for: main`
        what: String,
    },
    /// `status unknown for quota`: it has just been created.
    NotReady {
        /// The quota.
        quota: String,
    },
    /// `insufficient quota to ...`: the cluster allows this only where a quota covers it, and none does.
    NotCovered {
        /// `consume: requests.nvidia.com/gpu`
        what: String,
    },
    /// The server took too long to evaluate its quotas.
    TimedOut,
}

/// One resource that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The name in quotas: `requests.nvidia.com/gpu`.
    pub resource: String,
    pub requested: Quantity,
    /// The amount that others have.
    pub used: Quantity,
    /// The amount that the quota allows.
    pub limited: Quantity,
}

/// What to do about a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// More than there is at all, or against the rules of the cluster: an error at once.
    Never(String),
    /// Others have it.
    Wait(String),
}

impl Refusal {
    /// Whether waiting helps, with the sentence that says so.
    pub(crate) fn decide(&self) -> Decision {
        match self {
            Self::Exceeded { quota, shortages } => {
                match shortages.iter().find(|shortage| shortage.requested > shortage.limited) {
                    Some(shortage) => Decision::Never(too_much(quota, &shortage.resource, shortage.requested, shortage.limited)),
                    None => Decision::Wait(self.to_string()),
                }
            }
            Self::MustSpecify { .. } | Self::NotCovered { .. } => Decision::Never(self.to_string()),
            Self::NotReady { .. } | Self::TimedOut => Decision::Wait(self.to_string()),
        }
    }

    /// The resources that are waited for, as quotas name them.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &str> {
        let shortages = match self {
            Self::Exceeded { shortages, .. } => shortages.as_slice(),
            _ => &[],
        };
        shortages.iter().map(|shortage| shortage.resource.as_str())
    }
}

/// `quota compute: requests.nvidia.com/gpu requested 4, used 6, limited 8`
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded { quota, shortages } => {
                write!(f, "quota {quota}: ")?;
                for (index, Shortage { resource, requested, used, limited }) in shortages.iter().enumerate() {
                    let comma = if index > 0 { "; " } else { "" };
                    write!(f, "{comma}{resource} requested {requested}, used {used}, limited {limited}")?;
                }
                Ok(())
            }
            Self::MustSpecify { quota, what } => {
                write!(f, "quota {quota} requires the manifest to set {what}")
            }
            Self::NotReady { quota } => write!(f, "quota {quota} has not been counted yet"),
            Self::NotCovered { what } => write!(f, "no quota of the namespace covers this: insufficient quota to {what}"),
            Self::TimedOut => f.write_str("the API server's quota evaluation timed out"),
        }
    }
}

fn too_much(quota: &str, resource: &str, requested: Quantity, limited: Quantity) -> String {
    format!("{resource} requested {requested}, but quota {quota} has {limited} at all: ask for less, or have the quota raised")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(message: &str) -> String {
        format!("{:?}", read(message).map(|refusal| refusal.decide()))
    }

    #[test]
    fn a_full_quota_is_waited_for_and_a_too_small_one_is_not() {
        let exceeded = |requested, used, limited| {
            decide(&format!(
                "pods \"x\" is forbidden: exceeded quota: compute, requested: limits.memory={requested}, used: \
                 limits.memory={used}, limited: limits.memory={limited}"
            ))
        };
        insta::assert_snapshot!(exceeded("1Gi", "1536Mi", "2Gi"), @r#"Some(Wait("quota compute: limits.memory requested 1Gi, used 1536Mi, limited 2Gi"))"#);
        insta::assert_snapshot!(exceeded("4Gi", "0", "2Gi"), @r#"Some(Never("limits.memory requested 4Gi, but quota compute has 2Gi at all: ask for less, or have the quota raised"))"#);
        insta::assert_snapshot!(exceeded("1Gi", "0", "0.9G"), @r#"Some(Never("limits.memory requested 1Gi, but quota compute has 900M at all: ask for less, or have the quota raised"))"#);
    }

    #[test]
    fn every_other_refusal_says_whether_waiting_helps() {
        insta::assert_snapshot!(decide("pods \"x\" is forbidden: failed quota: mem: must specify limits.cpu for: main; limits.memory for: main,side"), @r#"Some(Never("quota mem requires the manifest to set limits.cpu for: main; limits.memory for: main,side"))"#);
        insta::assert_snapshot!(decide("pods \"x\" is forbidden: status unknown for quota: compute, resources: pods"), @r#"Some(Wait("quota compute has not been counted yet"))"#);
        insta::assert_snapshot!(decide("pods \"x\" is forbidden: insufficient quota to consume: requests.nvidia.com/gpu"), @r#"Some(Never("no quota of the namespace covers this: insufficient quota to consume: requests.nvidia.com/gpu"))"#);
        insta::assert_snapshot!(decide("pods \"x\" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]"), @r#"Some(Never("no quota of the namespace covers this: insufficient quota to match these scopes: [{PriorityClass In [high]}]"))"#);
        insta::assert_snapshot!(decide("Internal error occurred: resource quota evaluation timed out"), @r#"Some(Wait("the API server's quota evaluation timed out"))"#);
    }
}
