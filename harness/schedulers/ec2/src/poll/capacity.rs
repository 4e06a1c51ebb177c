//! The refusals for lack of room, and who asks next: one job at a time, and nearly in the order in which they began to wait.
//!
//! ```text
//! refused --a minute, or an end of own instances--> may be asked --the next job--> asked --launched--> may be asked
//!    ^                                                                               |
//!    +-------------------------------------- refused --------------------------------+
//! ```

use crate::{
    decide::offer::Refused,
    plan::{Bought, Offer},
};
use muster_core::job::inventory::JobId;
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// A refusal is believed for so long.
const REMEMBERED: Duration = Duration::from_mins(1);
/// A job that waits looks again after this time whether it may ask.
pub(crate) const TURN: Duration = Duration::from_secs(15);
/// Who has asked, and has no answer in this time, is not waited for.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// The next is one of the first of those that wait: who comes first of these, so that nobody waits for one that sleeps.
const FIRST: usize = 8;

/// What is asked for: a type, a zone, and how it is bought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    instance_type: String,
    zone: String,
    bought: &'static str,
}

impl Wanted {
    /// `zone`: that of its subnet, or the subnet.
    pub(crate) fn new(offer: &Offer, zone: &str) -> Self {
        let Offer { instance_type, bought, .. } = offer;
        let bought: Bought = *bought;
        Self { instance_type: instance_type.clone(), zone: zone.to_owned(), bought: bought.word() }
    }
}

/// A refusal.
#[derive(Debug, Clone)]
struct Remembered {
    /// `None`: it may be otherwise now.
    at: Option<Instant>,
    /// Since when a job asks again.
    asked: Option<Instant>,
    /// The jobs that wait, in the order in which they came, and when they looked last.
    waiting: Vec<(JobId, Instant)>,
    /// The fewest instances that were refused.
    instances: u32,
    code: String,
    message: String,
}

/// How often a job was tried.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempts {
    /// Requests that were sent: each needs a token of its own.
    pub requests: u32,
    /// The time when this process first looked for what others have launched.
    pub looked: Option<Instant>,
    pub asked: Asked,
}

/// What this process knows of the requests for the instances of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// Another process may have sent some.
    #[default]
    Elsewhere,
    /// This process launches it, and each of its requests was answered.
    Answered,
    /// An answer was lost: that request may have launched something.
    Doubtful,
}

#[derive(Debug, Default)]
pub(super) struct Capacity {
    refused: Mutex<BTreeMap<Wanted, Remembered>>,
    attempts: Mutex<BTreeMap<JobId, Attempts>>,
}

impl Capacity {
    pub(super) fn refuse(&self, wanted: Wanted, instances: u32, refused: &Refused, job: &JobId) {
        let Refused { code, message, .. } = refused.clone();
        let now = Instant::now();
        let mut all = self.refused.lock();
        let known = all.remove(&wanted);
        let instances = known.as_ref().map_or(instances, |known| known.instances.min(instances));
        let mut waiting = known.map(|known| known.waiting).unwrap_or_default();
        if !waiting.iter().any(|(id, _)| id == job) {
            waiting.push((job.clone(), now));
        }
        all.insert(wanted, Remembered { at: Some(now), asked: None, waiting, instances, code, message });
    }

    /// What EC2 would say. `None`: it is asked.
    pub(super) fn refusal(&self, wanted: &Wanted, instances: u32, offer: usize, job: &JobId) -> Option<Refused> {
        let mut all = self.refused.lock();
        let known = all.get_mut(wanted).filter(|known| known.instances <= instances)?;
        let now = Instant::now();
        known.waiting.retain(|(id, looked)| id == job || now - *looked < 2 * TURN);
        let place = known.waiting.iter().position(|(id, _)| id == job).unwrap_or(known.waiting.len());
        match known.waiting.get_mut(place) {
            Some((_, looked)) => *looked = now,
            None => known.waiting.push((job.clone(), now)),
        }
        let is_believed = known.at.is_some_and(|at| now - at < REMEMBERED);
        let is_asked = known.asked.is_some_and(|at| now - at < ANSWERED_WITHIN);
        if !is_believed && !is_asked && place < FIRST {
            known.asked = Some(now);
            return None;
        }
        Some(Refused { offer, code: known.code.clone(), message: known.message.clone(), status: 500 })
    }

    /// There was room: perhaps there is more.
    pub(super) fn launched(&self, wanted: &Wanted, job: &JobId) {
        let mut all = self.refused.lock();
        if let Some(known) = all.get_mut(wanted) {
            (known.at, known.asked) = (None, None);
        }
        // It waits for nothing any more.
        all.values_mut().for_each(|known| known.waiting.retain(|(id, _)| id != job));
        all.retain(|_, known| known.at.is_some() || !known.waiting.is_empty());
    }

    /// Instances have ended: there may be room for others.
    pub(super) fn freed(&self) {
        self.refused.lock().values_mut().for_each(|known| known.at = None);
    }

    pub(super) fn attempts(&self, id: &JobId) -> Attempts {
        self.attempts.lock().get(id).copied().unwrap_or_default()
    }

    pub(super) fn set_attempts(&self, id: JobId, attempts: Attempts) {
        self.attempts.lock().insert(id, attempts);
    }
}
