//! `Job` of batch/v1: over when a condition says so, whatever its pods look like.

use crate::job::JobState;
use crate::status::{
    View, cause, grace,
    kueue::{self, Admission},
    owner::{Owner, Pods},
    pod::PodState,
    text, transition,
};
use muster_core::job::{
    scheduler::{Disruption, Ending, JobStatus},
    workload::Clock,
};
use muster_text::Value;
use std::time::Duration;

/// The manager of a Job without `managedBy`.
pub(crate) const CONTROLLER: &str = "kubernetes.io/job-controller";

/// The status of the Job.
pub(in crate::status) fn owner(job: &Value) -> Owner {
    if let Some(complete) = crate::status::condition(job, "Complete") {
        let completed = job.pointer("/status/completionTime").and_then(crate::status::time);
        return Owner::Succeeded { at: completed.or_else(|| transition(complete)) };
    }
    let Some(failed) = crate::status::condition(job, "Failed") else { return Owner::Going };
    let text = |field: &str| text(failed, field);
    let spec = |field: &str| job.pointer(&format!("/spec/{field}")).map_or_else(|| "?".to_owned(), ToString::to_string);
    let status = |field: &str| job.pointer(&format!("/status/{field}")).and_then(Value::as_str).unwrap_or("none");
    let indexes = || format!("indexes {} failed, {} completed", status("failedIndexes"), status("completedIndexes"));
    let name = job.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let why = match text("reason") {
        "BackoffLimitExceeded" => format!("more pods failed than its backoffLimit of {} allows", spec("backoffLimit")),
        "DeadlineExceeded" => format!("it ran longer than its activeDeadlineSeconds of {} s", spec("activeDeadlineSeconds")),
        "PodFailurePolicy" => format!("its podFailurePolicy ended it{}", cause::detail(Some(text("message")))),
        "FailedIndexes" => format!("not every index succeeded ({})", indexes()),
        "MaxFailedIndexesExceeded" => {
            format!("more indexes failed than its maxFailedIndexes of {} allows ({})", spec("maxFailedIndexes"), indexes())
        }
        _ => cause::of_condition(failed),
    };
    let disruptable = text("reason") != "DeadlineExceeded";
    Owner::Failed { cause: format!("Job {name} failed: {why}"), at: transition(failed), disruptable }
}

/// How many pods will have succeeded when it is Complete.
pub(in crate::status) fn succeeded(job: &Value) -> Option<u32> {
    job.pointer("/status/succeeded").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok())
}

/// Another controller runs it on another cluster: there will be no pods here.
pub(in crate::status) fn runs_elsewhere(job: &Value) -> Option<JobStatus> {
    let manager = job.pointer("/spec/managedBy").and_then(Value::as_str)?;
    let since = job.pointer("/status/startTime").and_then(crate::status::time)?;
    let active = job.pointer("/status/active").and_then(Value::as_u64).is_some_and(|active| active > 0);
    (manager != CONTROLLER && active).then(|| JobStatus::Running {
        since,
        nodes: Vec::new(),
        partly_ended: None,
        has_ended: false,
    })
}

/// Suspended: by Kueue, by a manifest that nothing will resume, or by another user while it ran.
pub(in crate::status) fn suspended(
    view: View<'_>,
    object: &Value,
    pods: &Pods<'_>,
    recheck_in: &mut Option<Duration>,
) -> Option<JobState> {
    let is_suspended = |object: &Value| object.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let pending = |why: String| Some(JobState::Status(JobStatus::Pending { why }));
    let idle = pods.all.iter().all(|pod| pod.started.is_none());
    match kueue::admission(view, recheck_in) {
        Some(Admission::Deactivated { cause, own_limit }) => return Some(deactivated(pods, cause, own_limit)),
        Some(Admission::Never(why)) if idle => return Some(JobState::Hopeless(why)),
        Some(Admission::Stopped(why)) if idle => return Some(JobState::Broken(why)),
        Some(Admission::Waits(why) | Admission::Never(why) | Admission::Stopped(why)) if is_suspended(object) => {
            return pending(why);
        }
        _ => {}
    }
    if !is_suspended(object) {
        return None;
    }
    let name = view.title();
    let queue = kueue::queue(object);
    if let Some(queue) = queue {
        return pending(format!("{name} is suspended {}", kueue::queued(view, Some(queue))));
    }
    if object.pointer("/spec/managedBy").is_some() {
        return pending(format!("{name} is suspended"));
    }
    if !pods.all.is_empty() {
        let cause = format!("{name} was suspended by another user or program while it ran");
        return Some(pods.ended(None, pods.with_a_bad_one(Vec::new()), Some(Disruption::Evicted), Some(cause), Vec::new()));
    }
    if view.handle.workload().is_some_and(|own| is_suspended(&own.manifest)) {
        return Some(JobState::Hopeless(format!(
            "{name} has `suspend: true` and no label kueue.x-k8s.io/queue-name, so nothing will ever start it: remove the one or add the other"
        )));
    }
    if view.is_within(view.observed.since, grace::CONFIG_GRACE, recheck_in) {
        return pending(format!("{name} was suspended when it was created"));
    }
    Some(JobState::Hopeless(format!(
        "{name} was suspended when it was created and is in no queue: the cluster wants a label kueue.x-k8s.io/queue-name"
    )))
}

/// Kueue has deactivated the workload.
fn deactivated(pods: &Pods<'_>, cause: String, own_limit: bool) -> JobState {
    if pods.all.iter().all(|pod| pod.started.is_none()) {
        return JobState::Broken(cause);
    }
    match pods.ended_badly((!own_limit).then_some(Disruption::Evicted), cause) {
        JobState::Status(JobStatus::Ended(ending)) if own_limit => {
            JobState::Status(JobStatus::Ended(Ending { limit: Some(Clock::Run), ..ending }))
        }
        state => state,
    }
}

/// Every pod has done its work, but containers beside it keep the pods and so the Job running for ever.
pub(in crate::status) fn held(view: View<'_>, pods: &Pods<'_>) -> Option<JobState> {
    let over = |state: &PodState| matches!(state, PodState::Ended { .. });
    let holder = pods.all.iter().find(|pod| pod.held_by.is_some() && !pod.gone)?;
    if !pods.all.iter().all(|pod| pod.gone || over(&pod.state)) {
        return None;
    }
    let done = pods.all.iter().filter(|pod| matches!(pod.state, PodState::Ended { failed: false, .. })).count();
    if done >= view.handle.expected_pods.map_or(1, |expected| expected as usize) {
        return Some(pods.ended_by_pods());
    }
    let container = holder.held_by.as_deref().unwrap_or_default();
    let cause = format!(
        "container {container} keeps pod {} running after its work has ended, so {} never goes on: make it a native sidecar",
        holder.name,
        view.title()
    );
    Some(pods.ended_badly(None, cause))
}
