//! The owner of a session, as plain data. Only the caller can ask the operating system whether that process still runs.

use serde::{Deserialize, Serialize};

/// The process that started a session, with what distinguishes it from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The machine, for people: two may have the same name, and one may change its.
    pub host: String,
    pub pid: u32,
    /// When that process started, in the operating system's own unit (on Linux: clock ticks since boot).
    pub start_time: u64,
    /// Which boot of the machine.
    pub boot_id: String,
    /// Which PID namespace of that boot: another container's process ids are others. Empty: an older muster did not say.
    pub pid_namespace: String,
}
