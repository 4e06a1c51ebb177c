//! A workload of several pods: its own state first, that of its pods second.
//!
//! ```text
//! Succeeded --> Ended: the pods that succeeded; disrupted if one that counts was told to end before
//! Failed -----> Ended: every pod's exit; a disruption if every failed pod was disrupted; never without a bad exit
//! Going ------> Running once a deciding container has started, else Pending by what blocks its pods
//! ```

mod counts;
pub(super) mod custom;
mod interrupted;
pub(super) mod job;

use super::{
    View, cause, grace,
    pod::{self, PodAssessment, PodState, Restarts},
    sooner,
    trouble::Blocked,
};
use crate::{
    api::Resource,
    job::{
        JobState, Seen, SeenPod,
        counted::{Counts, End},
        replaced_pods,
    },
};
use muster_core::job::scheduler::{Disruption, Ending, JobStatus, SectionExit};
use muster_text::{Value, time::Timestamp};
use std::time::Duration;

/// The status of a workload object, without its pods.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::status) enum Owner {
    Succeeded {
        at: Option<Timestamp>,
    },
    Failed {
        cause: String,
        at: Option<Timestamp>,
        disruptable: bool,
    },
    Going,
    /// A state that its pods cannot change.
    Says(JobState),
}

impl Owner {
    /// It failed, and a disruption of its pods may be why.
    pub(in crate::status) fn failed(cause: String, at: Option<Timestamp>) -> Self {
        Self::Failed { cause, at, disruptable: true }
    }
}

/// The pods of a workload, judged, in the order of their sections.
pub(in crate::status) struct Pods<'a> {
    pub(in crate::status) view: View<'a>,
    /// Those that count.
    pub(in crate::status) all: Vec<PodAssessment>,
    /// Those that others have replaced.
    superseded: Vec<PodAssessment>,
}

impl<'a> Pods<'a> {
    pub(in crate::status) fn of(view: View<'a>) -> Self {
        let observed = &view.observed.pods;
        let (later, last) = (replaced_pods::later(observed, view.handle), replaced_pods::are_of_last_life(observed, view.handle));
        let mut seen: Vec<(usize, &SeenPod)> = observed.iter().enumerate().collect();
        seen.sort_by_cached_key(|(_, seen)| {
            let origin = crate::job::sections::origin(&seen.pod, "", view.handle);
            (origin.role, origin.index, origin.created, origin.name)
        });
        let judge =
            |(place, seen): (usize, &SeenPod)| PodAssessment { place, ..pod::assess(view, seen, Restarts::Owners, later[place]) };
        let (all, superseded): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(place, _)| last[*place]);
        let [all, superseded] = [all, superseded].map(|pods| pods.into_iter().map(judge).collect());
        Self { view, all, superseded }
    }

    fn ever(&self) -> impl Iterator<Item = &PodAssessment> {
        self.superseded.iter().chain(&self.all)
    }

    /// The workload has succeeded, whichever of its pods it needed.
    pub(in crate::status) fn succeeded(
        &self,
        at: Option<Timestamp>,
        expected: Option<u32>,
        recheck_in: &mut Option<Duration>,
    ) -> JobState {
        let good = |pod: &&PodAssessment| matches!(pod.state, PodState::Ended { failed: false, .. });
        let ended = self.all.iter().filter(good).count();
        let awaited = expected.map_or(0, |expected| usize::try_from(expected).unwrap_or(usize::MAX));
        let lively = self.all.iter().any(|pod| !pod.gone && matches!(pod.state, PodState::Running | PodState::Waiting(_)));
        if (ended < awaited || lively) && self.may_lag(at, recheck_in) {
            return self.going_on();
        }
        let end = End::Succeeded { pods: expected };
        let counts = self.counts(end, at);
        if let Some(interrupted) = self.interrupted(at.filter(|_| expected.is_none()), &counts) {
            return interrupted;
        }
        let counted: Vec<_> = self.all.iter().filter(good).filter(|pod| counts[pod.place] != Counts::Not).collect();
        let mut exits: Vec<_> = counted.iter().flat_map(|pod| pod.exits.clone()).collect();
        let mut notes: Vec<_> = counted.iter().flat_map(|pod| pod.notes.clone()).collect();
        notes.extend(self.attempts());
        let vanished: Vec<_> =
            self.all.iter().filter(|pod| pod.gone && !matches!(pod.state, PodState::Ended { .. } | PodState::Removed)).collect();
        let mut cause = counted.iter().find_map(|pod| pod.cause());
        if self.all.is_empty() {
            if let Some(note) = self.no_pods() {
                notes.push(note);
            } else {
                let name = self.view.title();
                cause = Some(format!("{name} reports success, but no pod of it was ever seen"));
                exits.push(self.unknown());
            }
        } else if ended < awaited {
            let missed = cause::count(awaited - ended, "pod");
            notes.push(format!("{missed} of {} succeeded, and Muster did not see it", self.view.title()));
        }
        if !vanished.is_empty() && ended < awaited.max(1) {
            let names = cause::names(vanished.iter().map(|pod| pod.name.as_str()));
            notes.push(format!("{} vanished before the end was seen: {names}", cause::count(vanished.len(), "pod")));
        }
        let state = self.ended_with(end, at, exits, None, cause, notes);
        let observed = &self.view.observed.pods;
        let mut full = observed.iter().zip(&counts).filter(|(_, counts)| **counts == Counts::Fully).map(|(seen, _)| seen);
        let is_short = full.clone().count() < awaited || self.all.len() < self.all_there_are();
        let has_unseen = is_short || full.any(|seen| !replaced_pods::has_started(seen, self.view.handle));
        if has_unseen { self.with_unseen(state) } else { state }
    }

    /// How many pods it has had at least, whatever was seen: a `JobSet` starts all that its manifest names, unless some are enough.
    fn all_there_are(&self) -> usize {
        let Some(spec) = self.view.object().and_then(|object| object.get("spec")) else { return 0 };
        let jobs = spec.get("replicatedJobs").and_then(Value::as_array).into_iter().flatten();
        let are_some_enough = spec.pointer("/successPolicy/operator").is_some_and(|operator| operator != "All")
            || jobs.into_iter().any(|job| job.pointer("/template/spec/successPolicy").is_some());
        let needs_all = self.view.is(Resource::is_job_set) && !are_some_enough;
        self.view.handle.expected_pods.filter(|_| needs_all).map_or(0, |expected| usize::try_from(expected).unwrap_or(usize::MAX))
    }

    /// The workload has failed, whatever its pods show.
    pub(in crate::status) fn failed(
        &self,
        why: &str,
        at: Option<Timestamp>,
        disruptable: bool,
        recheck_in: &mut Option<Duration>,
    ) -> JobState {
        let over = |pod: &PodAssessment| {
            pod.gone || matches!(pod.state, PodState::Ended { .. } | PodState::Disrupted(_) | PodState::Removed)
        };
        if !self.all.iter().all(over) && self.may_lag(at, recheck_in) {
            return self.going_on();
        }
        let exits = self.exits();
        let mut failures: Vec<_> = self.all.iter().filter_map(PodAssessment::failure).collect();
        if failures.is_empty() && disruptable && self.view.is(Resource::is_job) {
            // A Job that no pod of its own failed: its count of failures went up because pods were deleted.
            failures.extend(self.all.iter().filter_map(PodAssessment::deletion));
        }
        let disruption = failures.first().and_then(|(_, why)| *why).filter(|_| disruptable);
        let disruption = disruption.filter(|_| failures.iter().all(|(_, why)| why.is_some()));
        let cause = match first_cause(&failures, disruption) {
            Some(cause) => format!("{why}; {cause}"),
            None => why.to_owned(),
        };
        let notes = self.all.iter().flat_map(|pod| pod.notes.clone()).collect();
        self.ended(at, self.with_a_bad_one(exits), disruption, Some(cause), notes)
    }

    /// The workload shows no end.
    pub(in crate::status) fn going(&self, expected: Option<u32>, gang: bool, recheck_in: &mut Option<Duration>) -> JobState {
        for pod in self.all.iter().filter(|pod| !pod.gone) {
            if let Some(left) = pod.recheck_in {
                sooner(recheck_in, left);
            }
        }
        for pod in self.all.iter().filter(|pod| !pod.gone) {
            match &pod.state {
                PodState::Hopeless(why) => return JobState::Hopeless(why.clone()),
                PodState::Broken(why) => return JobState::Broken(why.clone()),
                _ => {}
            }
        }
        let expected = expected.map_or(0, |expected| usize::try_from(expected).unwrap_or(usize::MAX));
        let there = self.all.iter().filter(|pod| !pod.gone).count();
        // A gang that was complete once has started; what vanishes later is its owner's to replace.
        let is_empty = self.view.is(Resource::is_job) && there == 0;
        let incomplete = is_empty || gang && self.all.len() < expected.max(1);
        if incomplete && let Some(blocked) = self.view.events().refused_pods() {
            return self.blocked(blocked, there, expected, recheck_in);
        }
        self.going_on()
    }

    /// Running or pending, by the pods alone.
    pub(in crate::status) fn going_on(&self) -> JobState {
        let started = self.ever().filter_map(|pod| pod.started).min();
        if let Some(since) = started {
            let mut nodes: Vec<_> = self.all.iter().filter(|pod| !pod.gone).filter_map(|pod| pod.node.clone()).collect();
            nodes.sort();
            nodes.dedup();
            let partly_ended = self.all.iter().filter(|pod| !pod.gone).find_map(|pod| pod.partly_ended.clone());
            return JobState::Status(JobStatus::Running { since, nodes, partly_ended, has_ended: false });
        }
        let waiting: Vec<_> = self
            .all
            .iter()
            .filter(|pod| !pod.gone)
            .filter_map(|pod| match &pod.state {
                PodState::Waiting(why) => Some(why),
                _ => None,
            })
            .collect();
        let why = match waiting.as_slice() {
            [] => self.no_pod_waits(),
            [one] => (*one).clone(),
            [first, more @ ..] => format!("{first} (and {} wait)", cause::count(more.len(), "more pod")),
        };
        JobState::Status(JobStatus::Pending { why })
    }

    /// It was deleted before its end was seen.
    pub(in crate::status) fn vanished(&self) -> JobState {
        let name = self.view.title();
        if self.all.iter().any(|pod| matches!(pod.state, PodState::Removed))
            || self.view.observed.pods.iter().any(|pod| pod.deleted_by_us)
        {
            return self.ended_badly(None, format!("Muster deleted {name} before it ended"));
        }
        let disrupted = self.all.iter().find_map(|pod| match &pod.state {
            PodState::Disrupted(disrupted) if disrupted.why.is_some_and(|why| why != Disruption::Deleted) => Some(disrupted),
            _ => None,
        });
        let cause = match disrupted {
            Some(disrupted) => format!("{name} was deleted before it ended; {}", disrupted.cause),
            None => format!("{name} was deleted by another user or program before it ended"),
        };
        JobState::Status(JobStatus::Gone { why: Disruption::Deleted, cause })
    }

    /// An end that only the pods show.
    pub(in crate::status) fn ended_by_pods(&self) -> JobState {
        let exits = self.exits();
        let failures: Vec<_> = self.all.iter().filter_map(PodAssessment::failure).collect();
        let notes = self.all.iter().flat_map(|pod| pod.notes.clone()).collect();
        let end = End::Succeeded { pods: None };
        let counts = self.counts(end, None);
        if let Some(interrupted) = self.interrupted(None, &counts).filter(|_| failures.is_empty()) {
            return interrupted;
        }
        let Some((_, disruption)) = failures.first() else {
            // Other pods may have done the work of a deleted pod, but at least one must have.
            if let Some((cause, why)) = self.all.iter().find_map(PodAssessment::deletion).filter(|_| exits.is_empty()) {
                return self.ended(None, self.with_a_bad_one(exits), why, cause.map(str::to_owned), notes);
            }
            let counted = self.all.iter().filter(|pod| counts[pod.place] != Counts::Not);
            return self.ended_with(end, None, counted.flat_map(|pod| pod.exits.clone()).collect(), None, None, notes);
        };
        let disruption = disruption.filter(|_| failures.iter().all(|(_, why)| why.is_some()));
        let cause = first_cause(&failures, disruption).map(str::to_owned);
        self.ended(None, self.with_a_bad_one(exits), disruption, cause, notes)
    }

    /// An end that is no success.
    pub(in crate::status) fn ended(
        &self,
        at: Option<Timestamp>,
        exits: Vec<SectionExit>,
        disruption: Option<Disruption>,
        cause: Option<String>,
        notes: Vec<String>,
    ) -> JobState {
        self.ended_with(End::Other, at, exits, disruption, cause, notes)
    }

    fn ended_with(
        &self,
        end: End,
        at: Option<Timestamp>,
        exits: Vec<SectionExit>,
        disruption: Option<Disruption>,
        cause: Option<String>,
        mut notes: Vec<String>,
    ) -> JobState {
        let (observed, counts) = (&self.view.observed.pods, self.counts(end, at));
        let later = replaced_pods::later(observed, self.view.handle);
        notes.extend(self.replacements(&later));
        notes.extend(self.left_out(&later, &counts, end));
        let pods = replaced_pods::at_the_end(observed, self.view.handle, &counts);
        let superseded = self.ever().filter(|pod| counts[pod.place] == Counts::Not).flat_map(|pod| pod.exits.clone()).collect();
        let last = self.all.iter().filter_map(|pod| pod.ended).max().or(at);
        let started = self.ever().filter_map(|pod| pod.started).min();
        self.view.ended(started, last, Ending { exits, pods, superseded, disruption, cause, notes, ..Ending::default() })
    }

    /// An end that is a failure, with every exit that is known.
    pub(in crate::status) fn ended_badly(&self, disruption: Option<Disruption>, cause: String) -> JobState {
        self.ended(None, self.with_a_bad_one(self.exits()), disruption, Some(cause), Vec::new())
    }

    fn exits(&self) -> Vec<SectionExit> {
        self.all.iter().flat_map(|pod| pod.exits.clone()).collect()
    }

    /// The workload failed, so at least one exit must be a failure.
    pub(in crate::status) fn with_a_bad_one(&self, mut exits: Vec<SectionExit>) -> Vec<SectionExit> {
        if exits.iter().all(|exit| exit.exit.status() == Some(0)) {
            exits.push(self.unknown());
        }
        exits
    }

    fn unknown(&self) -> SectionExit {
        let section = self.view.handle.workload().map(|object| object.name.clone()).unwrap_or_default();
        SectionExit { section, ..SectionExit::default() }
    }

    /// Why there are no pods, if none are expected.
    fn no_pods(&self) -> Option<String> {
        let object = self.view.object()?;
        let spec = object.get("spec")?;
        let manager = spec.get("managedBy").and_then(Value::as_str);
        if let Some(manager) = manager.filter(|manager| *manager != job::CONTROLLER) {
            return Some(format!(
                "{} is managed by {manager}, which runs its pods elsewhere: their logs are not available",
                self.view.title()
            ));
        }
        let none = self.view.handle.expected_pods == Some(0) || spec.get("completions") == Some(&0.into());
        none.then(|| format!("{} has no pods to run", self.view.title()))
    }

    /// No pod runs and none waits.
    fn no_pod_waits(&self) -> String {
        let name = self.view.title();
        let there = || self.all.iter().filter(|pod| !pod.gone);
        if let Some((cause, _)) = there().rev().find_map(PodAssessment::failure) {
            return format!("{name} has not started another pod yet{}", cause::detail(cause));
        }
        if there().next().is_some() {
            return format!("the pods of {name} have ended, and it does not report so yet");
        }
        match self.view.events().newest_warning_of_owners() {
            Some(event) => {
                let detail = cause::reason_and(event.reason.as_deref(), event.message.as_deref());
                format!("{name} has no pod yet ({detail})")
            }
            None if !self.view.observed.trouble.denied.is_empty() => format!(
                "{name} has no pod yet, and why cannot be seen without the right to {}",
                self.view.observed.trouble.denied.join(", ")
            ),
            None => format!("{name} has no pod yet"),
        }
    }

    fn blocked(&self, blocked: Blocked, there: usize, expected: usize, recheck_in: &mut Option<Duration>) -> JobState {
        let some = |why: String| match there {
            0 => why,
            there => format!("{there} of {expected} pods exist, {} blocked: {why}", expected.saturating_sub(there)),
        };
        match blocked {
            Blocked::Hopeless(why) => JobState::Hopeless(some(why)),
            Blocked::Broken(why) => JobState::Broken(some(why)),
            Blocked::Waits(why) => JobState::Status(JobStatus::Pending { why: some(why) }),
            Blocked::Missing(why) => self.pending_for(self.view.observed.since, grace::CONFIG_GRACE, some(why), recheck_in),
            Blocked::Denied { why, since } => {
                let since = since.unwrap_or(self.view.observed.since);
                self.pending_for(since, grace::WEBHOOK_GRACE, some(why), recheck_in)
            }
        }
    }

    /// Pending for the period, then hopeless.
    fn pending_for(&self, since: Timestamp, period: Duration, why: String, recheck_in: &mut Option<Duration>) -> JobState {
        if self.view.is_within(since, period, recheck_in) {
            JobState::Status(JobStatus::Pending { why })
        } else {
            JobState::Hopeless(why)
        }
    }

    /// The last states of the pods may arrive after the owner's, by another watch. Only while the owner exists, and
    /// not with clocks that differ by minutes.
    fn may_lag(&self, at: Option<Timestamp>, recheck_in: &mut Option<Duration>) -> bool {
        let (Some(at), Seen::Present(_)) = (at, &self.view.observed.workload) else { return false };
        at.since(self.view.now) <= grace::WATCH_LAG && self.view.is_within(at, grace::WATCH_LAG, recheck_in)
    }
}

/// The first cause that counts: a disrupted pod is not the cause if the workload was not disrupted.
fn first_cause<'p>(failures: &[(Option<&'p str>, Option<Disruption>)], disruption: Option<Disruption>) -> Option<&'p str> {
    let counts = failures.iter().filter(|(_, why)| disruption.is_some() || why.is_none());
    counts.into_iter().find_map(|(cause, _)| *cause)
}
