//! The deadline that the plan gave the workload: whether it is what ended it, and the sentence.
//!
//! One that the manifest has itself is the check's own: reaching it is a failure of the workload.

use super::{View, condition, text};
use crate::job::Deadline;
use k8s_openapi::api::core::v1::Pod;
use muster_core::job::workload::Clock;
use muster_text::{Value, time::format_duration};
use std::time::Duration;

const REASON: &str = "DeadlineExceeded";
/// Conditions with which the controllers that know a deadline say that the workload failed.
const FAILED: [&str; 2] = ["Failed", "JobFailed"];

/// If the cluster enforced the plan's deadline on a workload that failed: the limit that it enforces, and the cause.
pub(super) fn enforced(view: View<'_>, has_started: bool) -> Option<(Clock, String)> {
    let deadline = view.handle.deadline.as_ref()?;
    let by_owner = view.object().is_some_and(owner_says);
    if !by_owner && !view.observed.pods.iter().any(|seen| pod_says(&seen.pod, deadline)) {
        return None;
    }
    let clock = if has_started { Clock::Run } else { Clock::Pending };
    let what = if has_started { "still running" } else { "still waiting" };
    let length = format_duration(Duration::from_secs(deadline.seconds));
    Some((clock, format!("{} was {what} at its deadline in the cluster, {length} ({})", view.title(), deadline.from)))
}

fn owner_says(object: &Value) -> bool {
    FAILED.iter().filter_map(|kind| condition(object, kind)).any(|condition| {
        text(condition, "reason") == REASON || text(condition, "message").contains("longer than specified deadline")
    })
}

/// A pod may have another deadline than its owner, from the manifest.
fn pod_says(pod: &Pod, deadline: &Deadline) -> bool {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    let own = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    reason == Some(REASON) && own.and_then(|seconds| u64::try_from(seconds).ok()) == Some(deadline.seconds)
}
