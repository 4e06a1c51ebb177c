//! What EC2 had no capacity for, so that not every job asks again.

use crate::{
    decide::offer::Refused,
    plan::{Bought, Offer},
};
use muster_core::job::inventory::JobId;
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// For how long.
const REMEMBERED: Duration = Duration::from_mins(3);

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
    at: Instant,
    /// So many instances were asked for.
    instances: u32,
    code: String,
    message: String,
}

/// How often a job was tried.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempts {
    /// Requests that were sent: each needs a token of its own.
    pub requests: u32,
    /// How often there was no room at all.
    pub rounds: u32,
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
    pub(super) fn refuse(&self, wanted: Wanted, instances: u32, refused: &Refused) {
        let Refused { code, message, .. } = refused.clone();
        self.refused.lock().insert(wanted, Remembered { at: Instant::now(), instances, code, message });
    }

    /// What EC2 would say, and for how long it is believed.
    pub(super) fn refusal(&self, wanted: &Wanted, instances: u32, offer: usize) -> Option<(Refused, Duration)> {
        let all = self.refused.lock();
        let known = all.get(wanted).filter(|known| known.instances <= instances)?;
        let left = REMEMBERED.checked_sub(known.at.elapsed()).filter(|left| !left.is_zero())?;
        let refused = Refused { offer, code: known.code.clone(), message: known.message.clone(), status: 500 };
        Some((refused, left))
    }

    pub(super) fn attempts(&self, id: &JobId) -> Attempts {
        self.attempts.lock().get(id).copied().unwrap_or_default()
    }

    pub(super) fn set_attempts(&self, id: JobId, attempts: Attempts) {
        self.attempts.lock().insert(id, attempts);
    }
}
