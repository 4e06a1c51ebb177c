//! Leases: who owns a session, and whether that process still runs.

use super::process::{Machine, Process};
use muster_store::Owner;

/// This process, as the owner of a session's lease.
pub fn this_owner() -> Owner {
    let (here, this) = (Machine::here(), Process::this());
    Owner { host: here.host, pid: this.pid.unsigned_abs(), start_time: this.start_time, boot_id: here.boot_id }
}

/// Whether the owner of a lease still runs; `None` if that cannot be seen from this machine.
pub fn is_alive(owner: &Owner) -> Option<bool> {
    let here = Machine::here();
    match (owner.boot_id == here.boot_id, owner.host == here.host) {
        (true, true) => {
            let pid = i32::try_from(owner.pid).ok()?;
            Some(Process { pid, start_time: owner.start_time }.lives())
        }
        (false, true) => Some(false),
        // Another host, or another container of this one.
        (_, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_lease_is_dead_after_a_reboot_and_unknown_elsewhere() {
        let owner = this_owner();
        let rows = [
            (owner.clone(), Some(true)),
            (Owner { start_time: 1, ..owner.clone() }, Some(false)),
            (Owner { boot_id: "another".into(), ..owner.clone() }, Some(false)),
            (Owner { host: "another".into(), ..owner.clone() }, None),
            (Owner { host: "another".into(), boot_id: "another".into(), ..owner }, None),
        ];
        for (owner, alive) in rows {
            assert_eq!(is_alive(&owner), alive, "{owner:?}");
        }
    }
}
