//! How long what may be passing is waited for before it counts.

use std::time::Duration;

/// The limits of patience. Each starts with the state that it waits out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// Nothing has moved for so long: ask for events and Kueue's Workload.
    pub stuck_after: Duration,
    /// A registry that says "not found" or "denied" is believed after this, or after `image_pull_failures`.
    pub image_pull_limit: Duration,
    /// See `image_pull_limit`; counted from events.
    pub image_pull_failures: u32,
    /// A registry that fails in other ways is given up.
    pub registry_limit: Duration,
    /// A missing ConfigMap, Secret or ServiceAccount: another may be creating it.
    pub config_grace: Duration,
    /// A webhook that refuses the pods of an owner may look at something that comes: Kueue's does not know a Job for a while after an
    /// API server's restart.
    pub webhook_grace: Duration,
    /// A container that cannot be started where it is started again.
    pub start_failures: u32,
    /// A pod of an owner that never says how it ended counts as crashed after so many restarts.
    pub crash_restarts: u32,
    /// All pods have ended and nobody else says that the workload has.
    pub settle: Duration,
    /// All pods have ended and the rule for success or failure still holds off.
    pub rule_silent: Duration,
    /// The deciding containers have ended and another keeps the pod running.
    pub sidecar_grace: Duration,
    /// No scheduler has looked at a pod.
    pub scheduler_silent: Duration,
    /// Deletion is due and something holds the object.
    pub finalizer: Duration,
    /// As `finalizer`, where the pod's node is known to be lost.
    pub lost_node: Duration,
    /// Kueue says that it will never admit.
    pub kueue_grace: Duration,
    /// The owner's end is seen before its pods': two watches.
    pub watch_lag: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            stuck_after: seconds(10),
            image_pull_limit: seconds(120),
            image_pull_failures: 3,
            registry_limit: seconds(600),
            config_grace: seconds(30),
            webhook_grace: seconds(120),
            start_failures: 3,
            crash_restarts: 3,
            settle: seconds(15),
            rule_silent: seconds(60),
            sidecar_grace: seconds(30),
            scheduler_silent: seconds(30),
            finalizer: seconds(60),
            lost_node: seconds(20),
            kueue_grace: seconds(10),
            watch_lag: seconds(5),
        }
    }
}
