//! Decides what `muster sweep` removes of what schedulers have found: one decision for all of them.
//!
//! ```text
//! kept for inspection:          removed when its time is over, with --kept when its owner is gone
//! left by an abandoned session: removed; if nothing is known of the owner, it stays
//! ```

use crate::{
    decisions::liveness::{Evidence, Heartbeat, OwnerState, owner_state},
    job::inventory::{Found, Inventory, Kept, Lease, Removed},
};
use std::time::Duration;

/// Returns whether the removal depends on the owner.
pub fn depends_on_owner(found: &Found, with_kept: bool) -> bool {
    match found.kept {
        None => true,
        Some(Kept::Over) => false,
        Some(Kept::Still | Kept::Unknown) => with_kept,
    }
}

/// The reason for which something that was found is not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// It is kept for inspection.
    Kept,
    /// The owner of its session lives.
    Owned,
    /// Its owner may live.
    Uncertain,
}

/// Returns why something is not removed; `None`: it is. `owner`: what is known of the owner of its session.
pub fn why_it_stays(found: &Found, owner: Option<OwnerState>, with_kept: bool) -> Option<Stays> {
    match (depends_on_owner(found, with_kept), owner) {
        (false, _) => (found.kept != Some(Kept::Over)).then_some(Stays::Kept),
        (true, Some(OwnerState::Gone)) => None,
        (true, Some(OwnerState::Alive)) => Some(Stays::Owned),
        (true, Some(OwnerState::Silent { .. } | OwnerState::Unknown) | None) => Some(Stays::Uncertain),
    }
}

/// The Leases that nothing needs: of sessions whose owner is gone and of which nothing runs in that place.
/// `owner`: what is known of the owner of a session beside its Leases.
pub fn needless_leases<'a>(
    inventory: &'a Inventory,
    removed: &[Removed],
    owner: impl Fn(&Lease) -> Option<OwnerState>,
) -> Vec<&'a Lease> {
    let is_gone = |found: &Found| removed.iter().any(|one| one.left.is_empty() && one.found.job.is_same(&found.job));
    let is_needless = |lease: &&Lease| {
        let by_lease = || {
            let leases = vec![Heartbeat::of(lease, lease, Duration::ZERO)];
            owner_state(&Evidence { leases, ..Evidence::default() })
        };
        let is_here = |found: &&Found| found.place == lease.place && found.job.session == lease.session;
        owner(lease).unwrap_or_else(by_lease) == OwnerState::Gone
            && inventory.found.iter().filter(is_here).all(|found| found.kept.is_some() || is_gone(found))
    };
    inventory.leases.iter().filter(is_needless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        case::{Identifier, SessionId},
        decisions::liveness::LastHeartbeat,
        job::scheduler::Job,
    };
    use muster_text::Value;

    fn found(kept: Option<Kept>) -> Found {
        let job = Job {
            identifier: Identifier::from_letters([0; 8]),
            session: SessionId("s".into()),
            case: "case".into(),
            scheduler: "fake".into(),
            stage: "stage".into(),
            handle: Value::Null.into(),
        };
        Found { job, what: String::new(), cost: None, kept, place: "here".into(), has_ended: false }
    }

    #[test]
    fn only_what_is_overdue_or_whose_owner_is_gone_is_removed() {
        let (past, future, unknown) = (Some(Kept::Over), Some(Kept::Still), Some(Kept::Unknown));
        let (gone, alive) = (Some(OwnerState::Gone), Some(OwnerState::Alive));
        let silent = Some(OwnerState::Silent { left: Duration::ZERO, last: LastHeartbeat::Expired });
        //  kept, owner, --kept -> why it stays
        let rows = [
            (None, alive, false, Some(Stays::Owned)),
            (None, silent, false, Some(Stays::Uncertain)),
            (None, None, true, Some(Stays::Uncertain)),
            (None, gone, false, None),
            (past, alive, false, None),
            (future, gone, false, Some(Stays::Kept)),
            (future, gone, true, None),
            (future, alive, true, Some(Stays::Owned)),
            (unknown, gone, false, Some(Stays::Kept)),
            (unknown, gone, true, None),
        ];
        for (kept, owner, with_kept, expected) in rows {
            assert_eq!(why_it_stays(&found(kept), owner, with_kept), expected, "{kept:?} {owner:?} {with_kept}");
        }
    }

    #[test]
    fn a_lease_goes_when_its_owner_is_gone_and_nothing_of_it_runs_in_its_place() {
        let lease = |place: &str| Lease {
            session: SessionId("s".into()),
            place: place.into(),
            version: "1".into(),
            limit: Duration::from_mins(8),
            age: Some(Duration::ZERO),
        };
        let inventory =
            |kept| Inventory { found: vec![found(kept)], leases: vec![lease("here"), lease("there")], ..Inventory::default() };
        let places = |kept, removed: &[Removed], owner: Option<OwnerState>| {
            let inventory = inventory(kept);
            let leases = needless_leases(&inventory, removed, |_| owner);
            leases.into_iter().map(|lease| lease.place.clone()).collect::<Vec<_>>().join(",")
        };
        let removed =
            |left: &[&str]| [Removed { found: found(None), left: left.iter().map(|line| (*line).to_owned()).collect() }];
        let gone = Some(OwnerState::Gone);
        //  kept, removed, owner -> places of the Leases that go
        let rows = [
            (None, &removed(&[])[..], gone, "here,there"),
            (None, &removed(&["pods x"])[..], gone, "there"),
            (None, &[][..], gone, "there"),
            (Some(Kept::Still), &[][..], gone, "here,there"),
            (None, &removed(&[])[..], Some(OwnerState::Alive), ""),
            // A fresh Lease is proof enough.
            (None, &removed(&[])[..], None, ""),
        ];
        for (kept, removed, owner, expected) in rows {
            assert_eq!(places(kept, removed, owner), expected, "{kept:?} {removed:?} {owner:?}");
        }
    }
}
