//! The process that owns a session, and whether it runs, where this process can see that.

use crate::process::{Machine, Process};
use serde::{Deserialize, Serialize};

/// The process that started a session, with what distinguishes it from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The machine, for people: two may have the same name, and one may change its.
    pub host: String,
    pub pid: u32,
    /// The start of that process, in the operating system's own unit (on Linux: clock ticks since boot).
    pub start_time: u64,
    /// The boot of the machine.
    pub boot_id: String,
    /// The PID namespace of that boot: another container's process ids are others. Empty: an older muster did not store it.
    pub pid_namespace: String,
}

/// This process, as the owner of a session.
pub fn this_owner() -> Owner {
    let (here, this) = (Machine::here(), Process::this());
    Owner {
        host: here.host,
        pid: this.pid.unsigned_abs(),
        start_time: this.start_time,
        boot_id: here.boot_id,
        pid_namespace: here.pid_namespace,
    }
}

/// Returns whether the owner of a session runs; `None` if this process cannot see it. A process id is proof within one PID
/// namespace of one boot only; a host's name is none, for two containers may have the same.
pub fn is_alive(owner: &Owner) -> Option<bool> {
    let here = Machine::here();
    let is_here = owner.boot_id == here.boot_id && owner.pid_namespace == here.pid_namespace;
    let process = Process { pid: i32::try_from(owner.pid).ok()?, start_time: owner.start_time };
    if is_here { process.runs() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_session_is_known_only_within_its_boot_and_namespace() {
        let owner = this_owner();
        let rows = [
            (owner.clone(), Some(true)),
            (Owner { start_time: 1, ..owner.clone() }, Some(false)),
            (Owner { host: "renamed".into(), ..owner.clone() }, Some(true)),
            (Owner { boot_id: "another".into(), ..owner.clone() }, None),
            (Owner { pid_namespace: "pid:[1]".into(), ..owner.clone() }, None),
            (Owner { host: "another".into(), boot_id: "another".into(), ..owner }, None),
        ];
        for (owner, alive) in rows {
            assert_eq!(is_alive(&owner), alive, "{owner:?}");
        }
    }
}
