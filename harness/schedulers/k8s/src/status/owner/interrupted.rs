//! Finds pods on which a success does not rest: those that were told to end before their end, and those whose end nobody saw.

use super::Pods;
use crate::{
    job::{JobState, counted::Counts},
    status::{
        grace,
        pod::{PodState, disruption::Disrupted},
    },
};
use muster_core::job::scheduler::{Disruption, JobPod, JobStatus};
use muster_text::time::Timestamp;

impl Pods<'_> {
    /// The end of a success that rests on a pod that was told to end before its end, whatever it ended with. What is told when the
    /// workload has succeeded is only cleaned up. `at`: when that was, if it is known.
    pub(super) fn interrupted(&self, at: Option<Timestamp>, counts: &[Counts]) -> Option<JobState> {
        let disrupted = self.all.iter().find_map(|pod| {
            let disrupted = match &pod.state {
                PodState::Disrupted(disrupted) => disrupted.clone(),
                PodState::Ended { disruption, cause, .. } => {
                    Disrupted { why: *disruption, cause: cause.clone().unwrap_or_default() }
                }
                PodState::Waiting(_) | PodState::Running | PodState::Removed | PodState::Hopeless(_) | PodState::Broken(_) => {
                    return None;
                }
            };
            let in_time = pod.told.is_some_and(|told| at.is_none_or(|at| told < at));
            let counts = counts[pod.place];
            // Pods that do not end by themselves their owner may delete shortly before its end, as Spark does with its executors.
            let is_late = || pod.told.zip(at).is_some_and(|(told, at)| at.since(told) <= grace::CLEANUP_BEFORE_END);
            let is_cleanup = counts == Counts::LogOnly && disrupted.why == Some(Disruption::Deleted) && is_late();
            (in_time && counts != Counts::Not && disrupted.why.is_some() && !is_cleanup).then_some(disrupted)
        })?;
        let (exits, notes) = (self.exits(), self.attempts().into_iter().collect());
        let exits = if exits.is_empty() { self.with_a_bad_one(exits) } else { exits };
        Some(self.ended(at, exits, disrupted.why, Some(disrupted.cause), notes))
    }

    /// The same end, of which pods succeeded that were not seen to: one stands for their logs, and nothing of it was read.
    pub(super) fn with_unseen(&self, mut state: JobState) -> JobState {
        if let JobState::Status(JobStatus::Ended(ending)) = &mut state {
            let name = self.view.title();
            ending.pods.push(JobPod { uid: format!("unseen pods of {name}"), name, later: 0, judged: true });
        }
        state
    }
}
