//! The deadline in the cluster: it ends a workload even if the harness is gone.
//!
//! ```text
//! the kind's own field (table: `deadline`) | else the pod templates | `deadline: none`, helpers: none, `muster sweep` removes them
//! ```
//! A Pod counts from its start on a node and a Job from its creation: what waits for a node for ever is left to `muster sweep`.

use crate::{
    job::Deadline,
    kind::Kinds,
    manifest::{Document, at, each_pod_of, set},
};
use muster_core::job::workload::Limits;
use muster_text::Value;
use std::time::Duration;

/// The cluster's own limit is longer than ours by this: a Job's deadline takes its pods away, and their logs with them, so
/// that the harness has to come first.
const SLACK: Duration = Duration::from_mins(5);
/// The default for a workload without a time limit.
pub(super) const MAX_LIFETIME: Duration = Duration::from_hours(24);
/// A kind whose pods must not have one either.
const NOWHERE: &str = "none";
/// Of a pod.
const FIELD: &str = "spec.activeDeadlineSeconds";
/// The API takes no more.
const MAX_SECONDS: u64 = i32::MAX as u64;

/// How long the cluster lets a workload live; `None`: as long as it likes.
pub(super) fn deadline(limits: &Limits, max_lifetime: Option<Duration>) -> Option<Deadline> {
    let (length, from) = match limits.run {
        Some(run) => {
            let waiting = limits.pending.or(max_lifetime)?;
            let key = if limits.pending.is_some() { "max_pending_time" } else { "sched_options.max_lifetime" };
            (waiting.saturating_add(run).saturating_add(SLACK), format!("{key} + time_limit + 5m"))
        }
        None => (max_lifetime?, "sched_options.max_lifetime, for there is no time_limit".to_owned()),
    };
    Some(Deadline { seconds: length.as_secs().clamp(1, MAX_SECONDS), from })
}

/// Gives it to all documents that can have it and have none; `true`: the one at `main` has it now.
pub(super) fn give(deadline: &Deadline, documents: &mut [Document], main: usize, kinds: &Kinds) -> bool {
    let mut is_given = false;
    for (index, document) in documents.iter_mut().enumerate() {
        let kind = kinds.find(&document.resource);
        let has_it = match kind.and_then(|kind| kind.deadline.as_deref()) {
            Some(NOWHERE) => false,
            Some(path) => give_at(&mut document.value, path, deadline.seconds),
            // What runs until it is deleted (a Deployment, say) restarts its pods, and may not give them one.
            None if kind.is_some_and(|kind| kind.helper) && index != main => false,
            None => give_pods(&mut document.value, deadline.seconds),
        };
        is_given |= has_it && index == main;
    }
    is_given
}

fn give_at(value: &mut Value, path: &str, seconds: u64) -> bool {
    let is_free = at(value, path).is_none();
    if is_free {
        set(value, path, seconds.into());
    }
    is_free
}

fn give_pods(value: &mut Value, seconds: u64) -> bool {
    // Controllers of this group refuse pods with a deadline, and may stand inside other kinds.
    let can_have = |value: &Value| !value.get("apiVersion").and_then(Value::as_str).is_some_and(|api| api.starts_with("apps/"));
    let mut is_given = false;
    each_pod_of(value, &can_have, &mut |pod| is_given |= give_at(pod, FIELD, seconds));
    is_given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_deadline_unless_the_site_wants_none() {
        let hours = |hours: u64| Some(Duration::from_hours(hours));
        let minutes = |minutes: u64| Some(Duration::from_mins(minutes));
        // max_pending_time, time_limit, max_lifetime, the deadline in minutes.
        let rows = [
            (hours(2), minutes(10), hours(24), Some(135)),
            (hours(2), minutes(10), None, Some(135)),
            (hours(12), None, hours(24), Some(24 * 60)),
            (hours(12), None, hours(1), Some(60)),
            (None, None, hours(24), Some(24 * 60)),
            (None, minutes(10), hours(24), Some(24 * 60 + 15)),
            (None, minutes(10), None, None),
            (hours(2), None, None, None),
        ];
        for (pending, run, lifetime, expected) in rows {
            let limits = Limits { pending, run, judge: Duration::ZERO };
            let minutes = deadline(&limits, lifetime).map(|deadline| deadline.seconds / 60);
            assert_eq!(minutes, expected, "{pending:?} {run:?} {lifetime:?}");
        }
        let long = Limits { pending: Some(Duration::MAX), run: Some(Duration::MAX), judge: Duration::ZERO };
        assert_eq!(deadline(&long, None).map(|deadline| deadline.seconds), Some(MAX_SECONDS));
    }
}
