//! The states of Slurm, as squeue and sacct call them.

/// What a state means for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    /// Its nodes are being started.
    Starting,
    Running,
    Suspended,
    /// Its processes end, or its epilogue runs.
    Completing,
    Completed,
    Failed,
    OutOfMemory,
    Timeout,
    Deadline,
    Preempted,
    NodeLost,
    Cancelled,
}

const STATES: &[(&str, State)] = &[
    ("PENDING", State::Pending),
    ("REQUEUED", State::Pending),
    ("REQUEUE_HOLD", State::Pending),
    ("REQUEUE_FED", State::Pending),
    ("RESV_DEL_HOLD", State::Pending),
    ("SPECIAL_EXIT", State::Pending),
    ("POWER_UP_NODE", State::Pending),
    ("RECONFIG_FAIL", State::Pending),
    ("REVOKED", State::Pending),
    ("CONFIGURING", State::Starting),
    ("SUSPENDED", State::Suspended),
    ("COMPLETING", State::Completing),
    ("COMPLETED", State::Completed),
    ("FAILED", State::Failed),
    ("OUT_OF_MEMORY", State::OutOfMemory),
    ("TIMEOUT", State::Timeout),
    ("DEADLINE", State::Deadline),
    ("PREEMPTED", State::Preempted),
    ("NODE_FAIL", State::NodeLost),
    ("BOOT_FAIL", State::NodeLost),
    ("LAUNCH_FAILED", State::NodeLost),
    ("CANCELLED", State::Cancelled),
];

impl State {
    /// `RUNNING`, `CANCELLED by 7001`. RESIZING, SIGNALING, `STAGE_OUT`, STOPPED and what newer versions add run.
    pub(crate) fn of(text: &str) -> Self {
        let word = text.split([' ', '+']).next().unwrap_or_default();
        STATES.iter().find(|(name, _)| *name == word).map_or(Self::Running, |(_, state)| *state)
    }

    /// Whether it is the last one.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Starting | Self::Running | Self::Suspended | Self::Completing)
    }

    /// Its processes were ended, whatever their status is.
    pub(crate) fn is_taken_away(self) -> bool {
        matches!(self, Self::Preempted | Self::NodeLost | Self::Cancelled)
    }

    /// Slurm may run it again, if it is allowed to.
    pub(crate) fn may_be_requeued(self) -> bool {
        matches!(self, Self::Preempted | Self::NodeLost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_not_known_runs() {
        let rows = [
            ("PENDING", State::Pending, false),
            ("REVOKED", State::Pending, false),
            ("CONFIGURING", State::Starting, false),
            ("RUNNING", State::Running, false),
            ("STAGE_OUT", State::Running, false),
            ("EXPEDITING", State::Running, false),
            ("COMPLETING", State::Completing, false),
            ("CANCELLED by 7001", State::Cancelled, true),
            ("CANCELLED+", State::Cancelled, true),
            ("NODE_FAIL", State::NodeLost, true),
            ("TIMEOUT", State::Timeout, true),
        ];
        for (text, state, is_final) in rows {
            assert_eq!((State::of(text), State::of(text).is_final()), (state, is_final), "{text}");
        }
    }
}
