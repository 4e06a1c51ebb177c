//! The policy of a site for all jobs of a partition: `sched_options.policy`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which cluster it is, and from where it is asked. Jobs with the same place share one instance and one squeue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The words before each command: `[ssh, login1]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// `-M`, where several clusters share commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// The pause between two looks at the queue after something has changed.
    pub poll_min: Duration,
    /// The longest pause while nothing changes and something runs.
    pub poll_max: Duration,
    /// The longest time until files that a node has written are seen here.
    pub file_latency: Duration,
    /// Slurm may run a job again that it took away.
    pub requeue: bool,
    /// Reasons for waiting that never pass here.
    pub never: Vec<String>,
    /// One sbatch.
    pub submit_limit: Duration,
    /// The messages of sbatch after which it is asked again later.
    pub resubmit: Vec<String>,
}

impl Policy {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            poll_min: Duration::from_secs(1),
            poll_max: Duration::from_secs(10),
            file_latency: Duration::from_mins(1),
            requeue: false,
            never: Vec::new(),
            submit_limit: Duration::from_mins(1),
            resubmit: Vec::new(),
        }
    }
}
