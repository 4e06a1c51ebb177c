//! How long a state that may pass by itself is waited for before it counts. Each period starts with the state.

use std::time::Duration;

/// Nothing has moved for so long: ask for events and Kueue's Workload.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(10);
/// A registry that says "not found" or "denied" is believed after this, or after `image_pull_failures`.
pub(super) const IMAGE_PULL_LIMIT: Duration = Duration::from_mins(2);
/// See `image_pull_limit`; counted from events.
pub(super) const IMAGE_PULL_FAILURES: u32 = 3;
/// A registry that fails in other ways is given up.
pub(super) const REGISTRY_LIMIT: Duration = Duration::from_mins(10);
/// A missing ConfigMap, Secret or ServiceAccount: another may be creating it.
pub(super) const CONFIG_GRACE: Duration = Duration::from_secs(30);
/// A webhook that refuses the pods of an owner may look at something that comes: Kueue's does not know a Job for a while after an
/// API server's restart.
pub(super) const WEBHOOK_GRACE: Duration = Duration::from_mins(2);
/// A container that cannot be started where it is started again.
pub(super) const START_FAILURES: u32 = 3;
/// A pod of an owner that never says how it ended counts as crashed after so many restarts.
pub(super) const CRASH_RESTARTS: u32 = 3;
/// All pods have ended and nobody else says that the workload has.
pub(super) const SETTLE: Duration = Duration::from_secs(15);
/// All pods have ended and the rule for success or failure still holds off.
pub(super) const RULE_SILENT: Duration = Duration::from_mins(1);
/// The deciding containers have ended and another keeps the pod running.
pub(super) const SIDECAR_GRACE: Duration = Duration::from_secs(30);
/// No scheduler has looked at a pod.
pub(super) const SCHEDULER_SILENT: Duration = Duration::from_secs(30);
/// Deletion is due and something holds the object.
pub(super) const FINALIZER: Duration = Duration::from_mins(1);
/// As `finalizer`, where the pod's node is known to be lost.
pub(super) const LOST_NODE: Duration = Duration::from_secs(20);
/// Kueue says that it will never admit.
pub(super) const KUEUE_GRACE: Duration = Duration::from_secs(10);
/// The owner's end is seen before its pods': two watches.
pub(super) const WATCH_LAG: Duration = Duration::from_secs(5);
