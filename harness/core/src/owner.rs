//! Who holds a session. Plain data: looking whether that process still lives is the caller's business, because only
//! the caller may ask an operating system.

use serde::{Deserialize, Serialize};

/// The process that began a session, exactly enough to tell it from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The machine, for people: two may have the same name, and one may change its.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// When that process started, in the operating system's own unit (on Linux: clock ticks since boot).
    pub start_time: u64,
    /// Which boot of the machine.
    pub boot_id: String,
    /// Which PID namespace of that boot: another container's process ids are others. Empty: an older muster did not say.
    pub pid_namespace: String,
}
