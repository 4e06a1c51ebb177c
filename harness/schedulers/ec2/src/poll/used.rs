//! Counts how long the instances of jobs were there, as looks have shown.

use crate::{cloud::Instance, decide::seen::State, poll::state};
use muster_core::job::inventory::JobId;
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};

/// Those of all jobs that nobody has asked for yet.
#[derive(Default)]
pub(crate) struct Used(Mutex<HashMap<JobId, BTreeMap<String, Life>>>);

struct Life {
    instance_type: String,
    launched: Timestamp,
    /// When it was first seen to have ended.
    ended: Option<Timestamp>,
}

impl Used {
    /// A look has shown instances of a job.
    pub(crate) fn saw(&self, job: JobId, instances: &[Instance], now: Timestamp) {
        if instances.is_empty() {
            return;
        }
        let mut jobs = self.0.lock();
        let lives = jobs.entry(job).or_default();
        for instance in instances {
            let Some(launched) = instance.launched else { continue };
            let life = lives.entry(instance.id.clone()).or_insert_with(|| Life {
                instance_type: instance.instance_type.clone(),
                launched,
                ended: None,
            });
            if life.ended.is_none() && state(&instance.state) == State::Ended {
                life.ended = Some(now);
            }
        }
    }

    /// Type and seconds of each instance of a job, until now. It is asked once.
    pub(crate) fn take(&self, job: &JobId, now: Timestamp) -> Vec<(String, u64)> {
        let lives = self.0.lock().remove(job).unwrap_or_default();
        let time = |life: Life| (life.instance_type, life.ended.unwrap_or(now).since(life.launched).as_secs());
        lives.into_values().map(time).collect()
    }
}
