//! An inventory of a scheduler. It holds what has our label, whosever it is, for `muster sweep` and for takeovers; and what exists
//! for cases that are not launched yet.

use crate::{
    case::{Identifier, SessionId},
    error::SchedulerError,
    job::{scheduler::Job, workload::Workload},
};
use muster_text::Value;
use serde_json::Map;
use std::{collections::BTreeSet, time::Duration};

/// The places to look at, beside those that a scheduler knows by itself.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Jobs of this scheduler in the database, of any host and age: in their places, and for kinds of objects like theirs.
    pub jobs: Vec<Job>,
    /// The `sched_options` of each partition of the system that this scheduler serves.
    pub partitions: Vec<Value>,
}

/// The nodes for copies of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodes {
    pub names: Vec<String>,
    /// The nodes that would take it if they were available, each with its state and the reason: `n3 mixed+drain (bad gpu)`.
    pub left_out: Vec<String>,
}

impl Nodes {
    pub fn of(names: Vec<String>) -> Self {
        Self { names, left_out: Vec::new() }
    }
}

/// A partition for `muster doctor`, and what would run there.
#[derive(Clone, Copy)]
pub struct Examined<'a> {
    /// The partition's `sched_options`.
    pub options: &'a Value,
    /// Its keys that several schedulers have.
    pub shared: &'a Map<String, Value>,
    pub workloads: &'a dyn Workloads,
}

/// The workloads of the selected cases. They are rendered one after the other, as often as they are asked for: there may be ten
/// thousand.
pub trait Workloads: Sync {
    fn all(&self) -> Box<dyn Iterator<Item = Workload> + Send + '_>;
}

/// The result of a look. The caller decides what is removed.
#[derive(Debug, Default)]
pub struct Inventory {
    /// One for each attempt of a case, sorted by identifier.
    pub found: Vec<Found>,
    /// The jobs of the scope of which certainly nothing is left.
    pub absent: BTreeSet<JobId>,
    /// One for each session and place.
    pub leases: Vec<Lease>,
    /// The things that were left out and need not be looked at, one sentence each.
    pub notes: Vec<String>,
    /// The errors of places that could not be looked at: something may be there.
    pub blind: Vec<SchedulerError>,
}

/// Two sessions may draw the same identifier.
pub type JobId = (SessionId, Identifier);

/// The remains of one attempt of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Enough for `cleanup`.
    pub job: Job,
    /// The objects, their place and the end of their time, as a fragment: `pods rfm-x in namespace n`, `process 12 (sleep 60)`.
    pub what: String,
    /// The resources that it takes from others while it exists, as a fragment: `4 nvidia.com/gpu`.
    pub cost: Option<String>,
    /// The remains were stopped and kept to be looked at.
    pub kept: Option<Kept>,
    /// The place, in the form of [`Lease::place`].
    pub place: String,
    /// The job has ended by itself, and this is what it left running.
    pub has_ended: bool,
}

/// The end of the time for which something is kept, by the clock of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The time has come.
    Over,
    /// The time is to come.
    Still,
    /// The time is not recorded.
    Unknown,
}

/// A sign of life that the owner of a session renews, where the scheduler keeps one. As it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub session: SessionId,
    /// The place of the Lease. Only its scheduler reads this.
    pub place: String,
    /// It has another version after each renewal.
    pub version: String,
    /// An owner that has not renewed it for longer is gone.
    pub limit: Duration,
    /// Time since the last renewal by the clock of its place; `None`: that sends no dates.
    pub age: Option<Duration>,
}

/// A thing that was to be removed, and what is left of it.
#[derive(Debug, Clone)]
pub struct Removed {
    pub found: Found,
    /// One line each; none if all of it is gone.
    pub left: Vec<String>,
}

impl Found {
    /// One line for people: the case, whose it is, what of it is there and what it costs.
    pub fn line(&self) -> String {
        let Job { case, identifier, session, .. } = &self.job;
        let cost = self.cost.as_ref().map_or_else(String::new, |cost| format!(", {cost}"));
        format!("{case} ({identifier}, session {session}): {}{cost}", self.what)
    }
}

impl Job {
    pub fn id(&self) -> JobId {
        (self.session.clone(), self.identifier.clone())
    }
}
