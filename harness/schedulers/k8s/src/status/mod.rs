//! The meaning of an observation: the state of the owner first, that of its pods second.
//!
//! ```text
//! Observed + now -> Pod:    pod                         the pod is its own owner
//!                   Job:    job     -> owner            conditions Complete, Failed; suspended: kueue
//!                   others: custom  -> owner            rules > conditions > phases > pods that have settled
//! ```
//! Pure: grace periods are measured against `now`, and `recheck_in` is the time after which the answer may change by itself. The
//! machines' clocks differ: a wait never counts from before `Observed::since`, so that one that is slower than ours costs nothing and
//! one ahead of ours only delays.

mod cause;
mod grace;
mod kueue;
mod owner;
mod pod;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod trouble;

pub(crate) use kueue::queue;
pub(crate) use owner::job::CONTROLLER;
pub(crate) use pod::{
    disruption::node_is_silent,
    ends::{has_run, last_start},
    placement::is_hopeless,
    waiting::lacks_image,
};

use crate::{
    api::{Resource, clock},
    job::{Assessment, Deadline, Handle, JobState, LiveObject, Observed, Seen, SeenPod, replaced_pods},
    manifest::runs_at_once,
};
use k8s_openapi::api::core::v1::Pod;
use muster_core::job::{
    scheduler::{Disruption, Ending, JobStatus, SectionExit},
    workload::Clock,
};
use muster_text::{
    Value,
    time::{Timestamp, format_duration},
};
use owner::{Owner, Pods, custom, job};
use pod::{PodAssessment, PodState, Restarts, kills};
use std::{sync::Arc, time::Duration};

/// What a job is now.
pub(crate) fn assess(handle: &Handle, observed: &Observed, now: Timestamp) -> Assessment {
    let view = View { handle, observed, now };
    let mut recheck_in = None;
    let state = view.state(&mut recheck_in);
    let (state, awaits_events) = view.until_events(state, &mut recheck_in);
    let waits = matches!(state, JobState::Status(JobStatus::NotSeen | JobStatus::Pending { .. }));
    let last = replaced_pods::are_of_last_life(&observed.pods, handle);
    let ever = observed.pods.iter().zip(last).filter(|(_, is_last)| *is_last).count();
    let is_gang = !view.is(Resource::is_pod) && view.needs_all();
    let incomplete = is_gang && handle.expected_pods.is_some_and(|expected| ever < expected as usize) && !is_final(&state);
    // It runs, and a container waits for its image: the events say why.
    let pulls = !is_final(&state) && observed.pods.iter().any(|seen| !seen.gone && lacks_image(&seen.pod));
    // An incomplete gang may look as if it ran: nothing else would cause another assessment.
    let left = (waits || incomplete || pulls).then(|| view.left(observed.since, grace::STUCK_AFTER));
    let stuck = left == Some(None) || awaits_events;
    if let Some(left) = left.flatten() {
        sooner(&mut recheck_in, left);
    }
    let recheck_in = recheck_in.filter(|_| !is_final(&state));
    Assessment { state, recheck_in, stuck }
}

fn is_final(state: &JobState) -> bool {
    !matches!(state, JobState::Status(JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. }))
}

/// Everything that an assessment depends on.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    handle: &'a Handle,
    observed: &'a Observed,
    now: Timestamp,
}

impl<'a> View<'a> {
    fn state(self, recheck_in: &mut Option<Duration>) -> JobState {
        match (self.is(Resource::is_pod), custom::has_rules(self)) {
            (true, false) => self.own_pod(recheck_in),
            (true, true) if self.object().is_none() => self.pod_with_rules(recheck_in),
            _ => self.owned(recheck_in),
        }
    }

    /// A job has not ended until the events that say how its pods ended are read.
    fn until_events(self, state: JobState, recheck_in: &mut Option<Duration>) -> (JobState, bool) {
        let is_over = matches!(state, JobState::Status(JobStatus::Ended(_) | JobStatus::Gone { .. }));
        if !is_over || !kills::are_awaited(self, recheck_in) {
            return (state, false);
        }
        let starts = self.observed.pods.iter().filter_map(|seen| seen.pod.status.as_ref()?.start_time.as_ref());
        let since = starts.map(|time| clock::of(time.0)).min().unwrap_or(self.observed.since);
        let running = JobStatus::Running { since, nodes: Vec::new(), partly_ended: None, has_ended: true };
        (JobState::Status(running), true)
    }

    /// A Pod that only its own watch has shown so far, for rules that read `self`.
    fn pod_with_rules(self, recheck_in: &mut Option<Duration>) -> JobState {
        let Some(seen) = self.own_seen() else { return JobState::Status(JobStatus::NotSeen) };
        let object = LiveObject::of(Arc::clone(&seen.pod));
        let workload = if seen.gone { Seen::Gone(object) } else { Seen::Present(object) };
        let observed = Observed { workload, ..self.observed.clone() };
        View { observed: &observed, ..self }.owned(recheck_in)
    }

    /// A Pod that is the workload itself.
    fn own_pod(self, recheck_in: &mut Option<Duration>) -> JobState {
        let Some(seen) = self.own_seen() else { return JobState::Status(JobStatus::NotSeen) };
        let pod = pod::assess(self, &seen, Restarts::Never, 0);
        if let Some(left) = pod.recheck_in {
            sooner(recheck_in, left);
        }
        let gates =
            seen.pod.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()));
        if let Some(state) = gates.then(|| self.not_admitted(recheck_in)).flatten() {
            return state;
        }
        match pod.state {
            PodState::Waiting(why) => JobState::Status(JobStatus::Pending { why }),
            PodState::Running => {
                let since = pod.started.unwrap_or(self.observed.since);
                let partly_ended = pod.partly_ended;
                JobState::Status(JobStatus::Running {
                    since,
                    nodes: pod.node.into_iter().collect(),
                    partly_ended,
                    has_ended: false,
                })
            }
            PodState::Hopeless(why) => JobState::Hopeless(why),
            PodState::Broken(why) => JobState::Broken(why),
            PodState::Disrupted(disrupted) => {
                JobState::Status(JobStatus::Gone { why: disrupted.why.unwrap_or(Disruption::Deleted), cause: disrupted.cause })
            }
            PodState::Removed => {
                let cause = format!("Muster deleted pod {} before it ended", pod.name);
                self.ended_pod(&seen, pod, true, Some(cause), None)
            }
            PodState::Ended { failed, ref cause, disruption } => {
                let cause = cause.clone();
                self.ended_pod(&seen, pod, failed, cause, disruption)
            }
        }
    }

    /// The state of a gated pod in Kueue, if it is more than waiting.
    fn not_admitted(self, recheck_in: &mut Option<Duration>) -> Option<JobState> {
        match kueue::admission(self, recheck_in)? {
            kueue::Admission::Waits(_) => None,
            kueue::Admission::Never(why) => Some(JobState::Hopeless(why)),
            kueue::Admission::Stopped(why) | kueue::Admission::Deactivated { cause: why, .. } => Some(JobState::Broken(why)),
        }
    }

    fn ended_pod(
        self,
        seen: &SeenPod,
        pod: PodAssessment,
        failed: bool,
        cause: Option<String>,
        disruption: Option<Disruption>,
    ) -> JobState {
        let mut exits = pod.exits;
        if failed && exits.iter().all(|exit| exit.exit.status() == Some(0)) {
            exits.push(SectionExit { section: pod.name, section_id: pod.uid, node: pod.node, ..SectionExit::default() });
        }
        let pods = replaced_pods::of_one_pod(&self.observed.pods, seen, self.handle);
        self.ended(pod.started, pod.ended, Ending { exits, pods, disruption, cause, notes: pod.notes, ..Ending::default() })
    }

    /// The end, with its times. A failure may be the doing of the cluster's deadline.
    fn ended(self, started: Option<Timestamp>, last: Option<Timestamp>, mut ending: Ending) -> JobState {
        ending.notes.extend(self.foreign_pods());
        let ended = last.or(started).unwrap_or(self.observed.since);
        let failed = ending.exits.iter().any(|exit| exit.exit.status() != Some(0));
        let clock = if started.is_some() { Clock::Run } else { Clock::Pending };
        let over = if failed { deadline_over(self, clock) } else { Deadlines::InTime };
        let (limit, cause) = match over {
            Deadlines::InTime => (None, ending.cause),
            Deadlines::Own => (Some(clock), ending.cause),
            Deadlines::Planned(cause) => (Some(clock), Some(cause)),
        };
        let started = started.unwrap_or(ended);
        JobState::Status(JobStatus::Ended(Ending { started, ended: ended.max(started), limit, cause, ..ending }))
    }

    fn foreign_pods(self) -> Option<String> {
        let foreign = &self.observed.foreign;
        let (title, names) = (self.title(), cause::names(foreign.iter().map(String::as_str)));
        (!foreign.is_empty())
            .then(|| format!("pods with the labels of {title} and another owner, or none, were ignored: {names}"))
    }

    /// A workload that owns pods, or a Pod with rules of its own.
    fn owned(self, recheck_in: &mut Option<Duration>) -> JobState {
        let pods = Pods::of(self);
        let Some(object) = self.object() else {
            if pods.all.is_empty() {
                return JobState::Status(JobStatus::NotSeen);
            }
            return pods.going(self.handle.expected_pods, false, recheck_in);
        };
        let (is_job, by_rules) = (self.is(Resource::is_job), custom::has_rules(self));
        let owner = if is_job && !by_rules { job::owner(object) } else { custom::owner(self, object) };
        match owner {
            Owner::Succeeded { at } => {
                let expected = if is_job { job::succeeded(object) } else { None };
                return pods.succeeded(at, expected.filter(|_| object.pointer("/spec/managedBy").is_none()), recheck_in);
            }
            Owner::Failed { cause, at, disruptable } => return pods.failed(&cause, at, disruptable, recheck_in),
            Owner::Says(state) => return state,
            Owner::Going => {}
        }
        if matches!(self.observed.workload, Seen::Gone(_)) {
            return pods.vanished();
        }
        if let Some(state) = job::suspended(self, object, &pods, recheck_in) {
            return state;
        }
        if is_job
            && pods.all.is_empty()
            && let Some(status) = job::runs_elsewhere(object)
        {
            return JobState::Status(status);
        }
        if is_job && let Some(state) = job::held(self, &pods) {
            return state;
        }
        if !is_job && let Some(state) = custom::settled(self, &pods, recheck_in) {
            return state;
        }
        pods.going(self.handle.expected_pods, self.needs_all(), recheck_in)
    }

    /// Its pods may need each other: while one is missing, the workload may not make progress.
    fn needs_all(self) -> bool {
        !self.is(Resource::is_job) || self.handle.workload().is_some_and(|job| runs_at_once(&job.manifest))
    }

    fn is(self, kind: fn(&Resource) -> bool) -> bool {
        self.handle.workload().is_some_and(|object| kind(&object.resource))
    }

    /// The workload as it is, or was last.
    fn object(self) -> Option<&'a Value> {
        self.observed.workload.object()
    }

    /// The workload as a pod, from whichever watch has shown it.
    fn own_seen(self) -> Option<SeenPod> {
        let name = self.handle.workload().map(|object| object.name.as_str());
        let mut pods = self.observed.pods.iter().rev();
        let gone = matches!(self.observed.workload, Seen::Gone(_));
        let seen = pods.find(|seen| seen.pod.metadata.name.as_deref() == name).cloned().or_else(|| self.as_pod());
        seen.map(|seen| SeenPod { gone: seen.gone || gone, ..seen })
    }

    fn as_pod(self) -> Option<SeenPod> {
        let pod = serde_json::from_value(self.object()?.clone()).ok()?;
        Some(SeenPod::new(Arc::new(pod)))
    }

    /// `Job rfm-x`
    fn title(self) -> String {
        self.handle.workload().map_or_else(String::new, |object| format!("{} {}", object.resource.kind, object.name))
    }

    fn events(self) -> trouble::Events<'a> {
        trouble::Events::of(&self.observed.trouble)
    }

    /// What is left of a period that started then; `None`: nothing.
    fn left(self, from: Timestamp, period: Duration) -> Option<Duration> {
        period.checked_sub(self.now.since(from)).filter(|left| !left.is_zero())
    }

    /// Whether a period that started then still lasts. If so, the next assessment is due at its end.
    fn is_within(self, from: Timestamp, period: Duration, recheck_in: &mut Option<Duration>) -> bool {
        let left = self.left(from, period);
        if let Some(left) = left {
            sooner(recheck_in, left);
        }
        left.is_some()
    }
}

/// Keeps the shorter time.
fn sooner(recheck_in: &mut Option<Duration>, left: Duration) {
    *recheck_in = Some(recheck_in.map_or(left, |known| known.min(left)));
}

/// An object's conditions.
fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}

/// A condition that is True.
fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    conditions(object).find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind) && is_true(condition))
}

/// A text of an untyped object; empty if it has none.
fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// When a condition last changed.
fn transition(condition: &Value) -> Option<Timestamp> {
    condition.get("lastTransitionTime").and_then(time)
}

/// A time of the API in an untyped object.
fn time(value: &Value) -> Option<Timestamp> {
    clock::parse(value.as_str()?)
}

const DEADLINE_REASON: &str = "DeadlineExceeded";
/// Conditions with which the controllers that know a deadline say that the workload failed.
const DEADLINE_CONDITIONS: [&str; 2] = ["Failed", "JobFailed"];

/// Whether a deadline of the cluster ended a workload.
enum Deadlines {
    InTime,
    /// One that the manifest has itself: the cause names it already.
    Own,
    /// That of the plan, and the cause.
    Planned(String),
}

/// A pod's deadline counts if no pod failed for another reason.
fn deadline_over(view: View<'_>, clock: Clock) -> Deadlines {
    let by_owner = view.object().is_some_and(owner_names_deadline);
    let pods = || view.observed.pods.iter().map(|seen| &*seen.pod);
    if let Some(deadline) = &view.handle.deadline
        && (by_owner || pods().any(|pod| pod_names_deadline(pod, deadline)))
    {
        let what = match clock {
            Clock::Run => "still running",
            Clock::Pending => "still waiting",
        };
        let (title, length) = (view.title(), format_duration(Duration::from_secs(deadline.seconds)));
        return Deadlines::Planned(format!("{title} was {what} at its deadline in the cluster, {length} ({})", deadline.from));
    }
    let failed: Vec<&Pod> = pods().filter(|pod| phase(pod) == Some("Failed")).collect();
    let by_pods = !failed.is_empty() && failed.iter().all(|pod| reason(pod) == Some(DEADLINE_REASON));
    if by_owner || by_pods { Deadlines::Own } else { Deadlines::InTime }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn reason(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.reason.as_deref()
}

fn owner_names_deadline(object: &Value) -> bool {
    DEADLINE_CONDITIONS.iter().filter_map(|kind| condition(object, kind)).any(|condition| {
        text(condition, "reason") == DEADLINE_REASON || text(condition, "message").contains("longer than specified deadline")
    })
}

/// A pod may have another deadline than its owner, from the manifest.
fn pod_names_deadline(pod: &Pod, deadline: &Deadline) -> bool {
    let own = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    reason(pod) == Some(DEADLINE_REASON) && own.and_then(|seconds| u64::try_from(seconds).ok()) == Some(deadline.seconds)
}
