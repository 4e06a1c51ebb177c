//! Checks before the first launch: credentials, images, types, subnets, the bucket, rights and quotas.
//!
//! ```text
//! mod     the requests of a preflight of one region, and what follows for which workload
//! facts   what they have answered
//! wrong   what follows from that, without I/O
//! doctor  what `muster doctor` asks beside that
//! ```
//! It finds what would certainly fail, all at once. Problems that may pass, and unanswered questions, are left to the launch.

pub(crate) mod doctor;
mod facts;
#[cfg(test)]
mod tests;
mod wrong;

use crate::{cloud::Cloud, plan::Handle, resolve::Resolver};
use facts::Facts;
pub(crate) use facts::Writes;
use muster_core::job::scheduler::Finding;
use muster_text::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use wrong::{Mistake, Wrong};

/// What workloads would fail of, as far as their places have answered.
#[derive(Debug, Default)]
pub(crate) struct Preflight {
    pub findings: Vec<Finding>,
    pub answered: Answered,
}

/// What was answered in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answered {
    #[default]
    Everything,
    /// What else is wrong is not known.
    NotAll,
}

/// What is tried with the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    /// An object, too, which is deleted.
    ReadsAndWrites,
}

impl Extend<Self> for Preflight {
    fn extend<I: IntoIterator<Item = Self>>(&mut self, others: I) {
        for other in others {
            self.findings.extend(other.findings);
            self.answered = self.answered.max(other.answered);
        }
    }
}

/// What the workloads of one place would fail of, each by its position and its plan. It answers within `probe::PART`.
pub(crate) async fn findings(
    cloud: &dyn Cloud,
    resolver: &Resolver,
    planned: &[(usize, &Handle)],
    now: Timestamp,
    writes: Writes<'_>,
) -> Preflight {
    let facts = Facts::ask(cloud, resolver, planned.iter().map(|(_, handle)| *handle), writes, now).await;
    let mut wrong: BTreeMap<Mistake, BTreeSet<usize>> = BTreeMap::new();
    let mut rights: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (at, handle) in planned {
        for mistake in wrong::wrong(&facts, handle, now) {
            match mistake {
                Wrong::Mistake(mistake) => drop(wrong.entry(mistake).or_default().insert(*at)),
                Wrong::Right(right) => drop(rights.entry(*at).or_default().insert(right)),
            }
        }
    }
    for (at, rights) in rights {
        wrong.entry(wrong::missing_rights(&rights)).or_default().insert(at);
    }
    let finding = |(Mistake { what, hint }, workloads): (Mistake, BTreeSet<usize>)| Finding {
        workloads: workloads.into_iter().collect(),
        what,
        hint,
    };
    let mut findings: Vec<Finding> = wrong.into_iter().map(finding).collect();
    findings.sort_by(|a, b| a.workloads.cmp(&b.workloads).then_with(|| a.what.cmp(&b.what)));
    let answered = if facts.are_all_answered() { Answered::Everything } else { Answered::NotAll };
    Preflight { findings, answered }
}
