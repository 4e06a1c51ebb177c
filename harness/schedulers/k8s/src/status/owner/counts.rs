//! Decides which pods the end of a workload counts, by what is known of each.

use super::Pods;
use crate::{
    job::{
        counted::{Counts, End, PodEnd, counted},
        replaced_pods,
    },
    status::{
        cause,
        pod::{PodAssessment, PodState},
    },
};
use muster_core::job::scheduler::Exit;
use muster_text::time::Timestamp;

impl Pods<'_> {
    /// In the order of the observed pods. `at`: when the workload ended, if it says so.
    pub(super) fn counts(&self, end: End, at: Option<Timestamp>) -> Vec<Counts> {
        // Of a Job its number of successes decides: a node and a controller may be quicker than their clocks show.
        let at = at.filter(|_| !matches!(end, End::Succeeded { pods: Some(_) }));
        let mut ends = vec![PodEnd::Open; self.view.observed.pods.len()];
        for pod in self.ever() {
            ends[pod.place] = self.pod_end(pod, at);
        }
        counted(self.view.handle, &self.view.observed.pods, &ends, end)
    }

    fn pod_end(&self, pod: &PodAssessment, at: Option<Timestamp>) -> PodEnd {
        let seen = &self.view.observed.pods[pod.place];
        let after = |told: Timestamp| at.is_some_and(|at| told >= at);
        match &pod.state {
            PodState::Ended { failed: false, .. } => PodEnd::Succeeded,
            PodState::Ended { failed: true, .. } => PodEnd::Failed,
            PodState::Disrupted(_) if pod.told.is_some_and(after) => PodEnd::Open,
            PodState::Disrupted(_) if seen.phase() == "Succeeded" => PodEnd::ToldToEnd,
            // One that was not told to end while it was seen may have started since.
            PodState::Disrupted(_) if seen.gone && (pod.started.is_some() || seen.told.is_none()) => PodEnd::Vanished,
            PodState::Disrupted(_)
            | PodState::Waiting(_)
            | PodState::Running
            | PodState::Removed
            | PodState::Hopeless(_)
            | PodState::Broken(_) => PodEnd::Open,
        }
    }

    /// The pods that were replaced under the same name.
    pub(super) fn replacements(&self, later: &[u32]) -> Option<String> {
        let mut names: Vec<_> = self.superseded.iter().filter(|pod| later[pod.place] > 0).map(|pod| pod.name.as_str()).collect();
        let replaced = cause::count(names.len(), "pod");
        let verb = if names.len() == 1 { "was" } else { "were" };
        names.sort_unstable();
        names.dedup();
        let list = cause::names(names.iter().copied());
        (!names.is_empty())
            .then(|| format!("{replaced} {verb} replaced under the same name, and only the last is judged: {list}"))
    }

    /// The attempts that failed before the one that succeeded.
    pub(super) fn attempts(&self) -> Option<String> {
        let failed: Vec<_> = self.ever().filter(|pod| pod.failure().is_some()).collect();
        let restarts: u32 = self.all.iter().filter(|pod| pod.failure().is_none()).map(|pod| pod.restarts).sum();
        let attempts = failed.len() + usize::try_from(restarts).unwrap_or(0);
        let how = |pod: &PodAssessment| {
            let place = cause::Place { pod: &pod.name, node: pod.node.as_deref() };
            let exit = pod.exits.iter().map(|exit| exit.exit).find(|exit| exit.status() != Some(0));
            match (exit, &pod.state) {
                (Some(Exit::Code(code)), _) => format!("{place} exited with {code}"),
                (Some(Exit::Signal(signal)), _) => format!("{place} was killed by signal {signal}"),
                (_, PodState::Ended { cause: Some(cause), .. }) => cause.clone(),
                _ => format!("{place} failed"),
            }
        };
        let restarted = self.all.iter().filter(|pod| pod.failure().is_none() && pod.restarts > 0);
        let restarted =
            restarted.map(|pod| format!("pod {} was restarted {}", pod.name, cause::count(pod.restarts as usize, "time")));
        let list: Vec<_> = failed.iter().map(|pod| how(pod)).chain(restarted).collect();
        let shown = cause::names(list.iter().map(String::as_str));
        (attempts > 0).then(|| format!("{} before: {shown}", cause::count(attempts, "failed attempt")))
    }

    /// Other pods that wrote a log that is not judged. Failed attempts before a success have a note of their own.
    pub(super) fn left_out(&self, later: &[u32], counts: &[Counts], end: End) -> Option<String> {
        let observed = &self.view.observed.pods;
        let has_note = |pod: &PodAssessment| matches!(end, End::Succeeded { .. }) && pod.failure().is_some();
        let left_out = self.ever().filter(|pod| counts[pod.place] == Counts::Not && later[pod.place] == 0 && !has_note(pod));
        let left_out = left_out.filter(|pod| replaced_pods::has_started(&observed[pod.place], self.view.handle));
        let names: Vec<_> = left_out.map(|pod| pod.name.as_str()).collect();
        let (verb, they) = if names.len() == 1 { ("does", "it") } else { ("do", "they") };
        let count = cause::count(names.len(), "pod");
        let list = cause::names(names.iter().copied());
        (!names.is_empty()).then(|| format!("{count} {verb} not count for the end, and what {they} wrote is not judged: {list}"))
    }
}
