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

/// Returns whether something is removed. `is_owner_gone`: that is certain.
pub fn is_to_remove(found: &Found, is_owner_gone: bool, with_kept: bool) -> bool {
    found.kept == Some(Kept::Over) || (is_owner_gone && depends_on_owner(found, with_kept))
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
        //  kept, owner gone, --kept -> goes
        let rows = [
            (None, false, false, false),
            (None, true, false, true),
            (past, false, false, true),
            (future, true, false, false),
            (future, true, true, true),
            (future, false, true, false),
            (unknown, true, false, false),
            (unknown, true, true, true),
        ];
        for (kept, is_owner_gone, with_kept, goes) in rows {
            assert_eq!(is_to_remove(&found(kept), is_owner_gone, with_kept), goes, "{kept:?} {is_owner_gone} {with_kept}");
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
