//! The grace periods of states that may pass by themselves. Each period starts with the state.

use std::time::Duration;

/// Without any change for so long, events and Kueue's Workload are requested.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(10);
/// A "not found" or "denied" of a registry is final after this, or after `IMAGE_PULL_FAILURES`.
pub(super) const IMAGE_PULL_LIMIT: Duration = Duration::from_mins(2);
/// See `IMAGE_PULL_LIMIT`; counted from events.
pub(super) const IMAGE_PULL_FAILURES: u32 = 3;
/// Other errors of a registry are final after this.
pub(super) const REGISTRY_LIMIT: Duration = Duration::from_mins(10);
/// A missing ConfigMap, Secret or ServiceAccount may still be created.
pub(super) const CONFIG_GRACE: Duration = Duration::from_secs(30);
/// A webhook that refuses the pods of an owner may change its answer: Kueue's does not know a Job for a while after an
/// API server's restart.
pub(super) const WEBHOOK_GRACE: Duration = Duration::from_mins(2);
/// A container that is restarted counts as not startable after so many failures.
pub(super) const START_FAILURES: u32 = 3;
/// A pod of an owner that shows no end counts as crashed after so many restarts.
pub(super) const CRASH_RESTARTS: u32 = 3;
/// All pods have ended, and the workload does not show its end.
pub(super) const SETTLE: Duration = Duration::from_secs(15);
/// All pods have ended, and neither rule for success or failure holds.
pub(super) const RULE_SILENT: Duration = Duration::from_mins(1);
/// The deciding containers have ended and another keeps the pod running.
pub(super) const SIDECAR_GRACE: Duration = Duration::from_secs(30);
/// No scheduler has looked at a pod.
pub(super) const SCHEDULER_SILENT: Duration = Duration::from_secs(30);
/// Deletion is due and something holds the object.
pub(super) const FINALIZER: Duration = Duration::from_mins(1);
/// As `FINALIZER`, where the pod's node is known to be lost.
pub(super) const LOST_NODE: Duration = Duration::from_secs(20);
/// Kueue reports that it will never admit the workload.
pub(super) const KUEUE_GRACE: Duration = Duration::from_secs(10);
/// The end of the owner may be seen before that of its pods: they are different watches.
pub(super) const WATCH_LAG: Duration = Duration::from_secs(5);
/// How long the events of a pod that has ended are waited for, where only they say how it ended.
pub(super) const EVENTS: Duration = Duration::from_secs(30);
/// A pod that does not end by itself and was deleted so long before the end of its workload, or later, was cleaned up.
pub(super) const CLEANUP_BEFORE_END: Duration = Duration::from_secs(30);
