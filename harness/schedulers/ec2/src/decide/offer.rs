//! Decides on the next request after EC2 has refused one.

use crate::{
    cloud::Kind,
    plan::{Bought, Offer},
};
use muster_core::{decisions::backoff::Backoff, error::Class};
use std::{collections::BTreeMap, time::Duration};

/// A refusal, by what helps against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is none of this type in this subnet now.
    NoCapacity,
    /// The account may not have more now. With the number of processors that it may have, if EC2 says so.
    Quota(Option<u32>),
    /// The account may not have more spot instances.
    SpotQuota,
    /// EC2 is busy: nothing is wrong with the request.
    Busy,
    /// A new instance profile is not known everywhere at once.
    ProfileUnknown,
    /// The credentials do not allow it.
    Forbidden,
    /// Another request had this token.
    TokenReused,
    /// What this token has launched has ended.
    TokenSpent,
    Wrong,
}

/// What EC2 has answered to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The position of the offer.
    pub offer: usize,
    pub code: String,
    pub message: String,
    /// The status of HTTP.
    pub status: u16,
}

/// What to do after the refusals so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for this offer, with a new token.
    Try(usize),
    /// Send the same request again, with the same token.
    Again(Duration),
    /// Ask for the same offer with a new token: nothing that had this one is there any more.
    Renew(usize),
    /// There is no room now, and why.
    Wait(String),
    /// It cannot work.
    Fail { class: Class, why: String },
}

/// The reason of an instance that ended because there was no room for it when it was to start.
pub(crate) const NO_ROOM_AT_START: &str = "Server.InsufficientInstanceCapacity";

/// How often a request is sent again while EC2 is busy, where it is asked too often, and until a profile is known.
const BUSY_TRIES: usize = 8;
const THROTTLED_TRIES: usize = 4;
const PROFILE_TRIES: usize = 11;
const BUSY_PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
/// How often another token is taken, because another process had this one.
const TOKENS: usize = 3;

impl Refused {
    pub(crate) fn kind(&self) -> Refusal {
        match self.code.as_str() {
            "InsufficientInstanceCapacity"
            | "InsufficientHostCapacity"
            | "InsufficientFreeAddressesInSubnet"
            | "InsufficientCapacityOnHost"
            | "ReservationCapacityExceeded"
            | "UnfulfillableCapacity"
            | "InsufficientVolumeCapacity"
            | "Unsupported"
            | NO_ROOM_AT_START => Refusal::NoCapacity,
            "MaxSpotInstanceCountExceeded" => Refusal::SpotQuota,
            "VcpuLimitExceeded" => Refusal::Quota(number_in(&self.message)),
            code if is_quota(code) => Refusal::Quota(None),
            "OptInRequired" | "PendingVerification" => Refusal::Forbidden,
            "IdempotentParameterMismatch" => Refusal::TokenReused,
            "IdempotentInstanceTerminated" => Refusal::TokenSpent,
            "InvalidParameterValue" if self.message.contains("IAM Instance Profile") => Refusal::ProfileUnknown,
            code => match Kind::of(code) {
                Kind::Throttled => Refusal::Busy,
                Kind::Forbidden | Kind::UnknownCaller => Refusal::Forbidden,
                Kind::Other if self.status >= 500 => Refusal::Busy,
                Kind::Other => Refusal::Wrong,
            },
        }
    }
}

/// Limits of one resource, which nobody else uses up: `SecurityGroupsPerInstanceLimitExceeded`.
const OWN_LIMITS: [&str; 4] = ["Per", "Tag", "Attachment", "Filter"];

/// Whether others use up what this account may have: of processors, volumes, groups, addresses.
pub(crate) fn is_quota(code: &str) -> bool {
    code.ends_with("LimitExceeded") && Kind::of(code) == Kind::Other && !OWN_LIMITS.iter().any(|own| code.contains(own))
}

/// The families that count against one quota of processors, as the names of EC2's quotas have them.
fn quota_of(instance_type: &str) -> &str {
    let letters = instance_type.find(|c: char| !c.is_ascii_alphabetic()).map_or(instance_type, |end| &instance_type[..end]);
    match letters {
        "a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z" => "standard",
        "g" | "gr" | "vt" => "g",
        other => other,
    }
}

/// Whether two offers count against the same quota.
pub(crate) fn share_a_quota(one: &Offer, other: &Offer) -> bool {
    let of = |offer: &Offer| (offer.bought == Bought::Spot, quota_of(&offer.instance_type).to_owned());
    of(one) == of(other)
}

/// `... your current vCPU limit of 384 allows ...`
fn number_in(message: &str) -> Option<u32> {
    let after = message.split_once("limit of ")?.1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// What to ask for. `vcpus`: what all instances of the job need together, of each offer, where that is known.
pub(crate) fn next_offer(offers: &[Offer], refused: &[Refused], vcpus: &[Option<u32>]) -> Next {
    let Some(last) = refused.last() else { return Next::Try(0) };
    let said = format!("{}: {}", last.code, last.message);
    let fail = |class, why: String| Next::Fail { class, why };
    let is_throttled = Kind::of(&last.code) == Kind::Throttled;
    let same = refused.iter().rev().take_while(|one| one.kind() == last.kind() && one.offer == last.offer).count();
    match last.kind() {
        Refusal::NoCapacity | Refusal::SpotQuota | Refusal::Quota(_) => {
            let needs = |at: usize| vcpus.get(at).copied().flatten();
            let needs_less = |at: usize, than: usize| needs(at).zip(needs(than)).is_some_and(|(one, other)| one < other);
            let is_open = |at: usize| {
                let mut used_up = refused.iter().filter(|one| matches!(one.kind(), Refusal::SpotQuota | Refusal::Quota(_)));
                used_up.all(|one| !share_a_quota(&offers[one.offer], &offers[at]) || needs_less(at, one.offer))
            };
            match (last.offer + 1..offers.len()).find(|at| is_open(*at)) {
                Some(at) => Next::Try(at),
                None => never(refused, vcpus).map_or_else(|| no_room(offers, refused), |why| fail(Class::Config, why)),
            }
        }
        Refusal::Busy if is_throttled && same >= THROTTLED_TRIES => {
            Next::Wait(format!("EC2 takes no more requests now ({said})"))
        }
        Refusal::Busy if same < BUSY_TRIES => Next::Again(BUSY_PAUSES.after(u32::try_from(same).unwrap_or(u32::MAX))),
        Refusal::Busy => fail(Class::Outage, format!("EC2 did not take the request in {BUSY_TRIES} tries: {said}")),
        Refusal::ProfileUnknown if same < PROFILE_TRIES => Next::Again(Duration::from_secs(5)),
        Refusal::ProfileUnknown | Refusal::Wrong | Refusal::Forbidden => fail(Class::Config, said),
        Refusal::TokenReused | Refusal::TokenSpent if same <= TOKENS => Next::Renew(last.offer),
        Refusal::TokenReused => fail(Class::Infra, format!("another request had its token: {said}")),
        Refusal::TokenSpent => fail(Class::Infra, format!("what its token has launched has ended: {said}")),
    }
}

/// Why no offer can ever be launched: each that was asked for needs more than its quota, and the others of that quota need no less.
fn never(refused: &[Refused], vcpus: &[Option<u32>]) -> Option<String> {
    let of = |one: &Refused| match (one.kind(), vcpus.get(one.offer).copied().flatten()) {
        (Refusal::Quota(Some(limit)), Some(needed)) if needed > limit => Some(format!(
            "it needs {needed} vCPUs and the quota of this account is {limit}, so that it can never run ({})",
            one.code
        )),
        _ => None,
    };
    refused.iter().map(of).collect::<Option<Vec<String>>>()?.into_iter().next()
}

/// No offer is left: what each that was asked for got.
fn no_room(offers: &[Offer], refused: &[Refused]) -> Next {
    let mut counts: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for one in refused {
        *counts.entry((one.offer, one.code.as_str())).or_default() += 1;
    }
    let row = |((at, code), count): ((usize, &str), usize)| {
        let Offer { instance_type, subnet, .. } = offers.get(at)?;
        let times = if count > 1 { format!(" x{count}") } else { String::new() };
        Some(format!("{instance_type} in {subnet}: {code}{times}"))
    };
    let rows: Vec<String> = counts.into_iter().filter_map(row).collect();
    Next::Wait(format!("no capacity ({})", rows.join("; ")))
}
