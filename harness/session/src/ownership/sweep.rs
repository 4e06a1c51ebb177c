//! Stops and removes what abandoned sessions left, wherever the schedulers find it.
//!
//! ```text
//! jobs of the database, partitions of the system -inventory of each scheduler-> Found -owners, why_it_stays-> claim -> cleanup -> Removed
//! ```

use crate::{
    ownership::{
        Owners, OwnershipNote, Wait,
        claims::{Claims, Verdicts},
    },
    patience,
};
use futures_util::stream::{self, StreamExt};
use muster_core::{
    case::SessionId,
    decisions::sweep::{Stays, depends_on_owner, needless_leases, why_it_stays},
    error::chain,
    job::{
        inventory::{Found, Inventory, JobId, Removed},
        scheduler::{Disposition, Job, Scheduler},
    },
};
use muster_store::{Location, Store, StoreError};
use std::collections::BTreeSet;

/// The number of jobs of a scheduler that are removed at once.
pub const AT_ONCE: usize = 16;

/// The scope of a sweep.
pub struct SweepOrder<'a> {
    /// The jobs of which the database says that something may be left.
    pub open: &'a [Job],
    /// Sessions that another command may still finish.
    pub spared: &'a BTreeSet<SessionId>,
    /// Jobs that are kept for inspection are removed, too.
    pub kept: bool,
    /// The identifiers of jobs; none: all.
    pub ids: &'a [String],
    pub wait: Wait,
    /// The database in which it is stored what is removed; `None`: nothing is removed.
    pub remove_in: Option<&'a Location>,
}

/// The result of a sweep.
#[derive(Default)]
pub struct Swept {
    /// The findings of each scheduler.
    pub inventories: Vec<Inventory>,
    /// The sessions that could not be claimed: nothing of them is removed.
    pub unclaimed: Vec<(SessionId, StoreError)>,
    /// The identifiers of the order that nothing has.
    pub not_found: Vec<String>,
    /// The jobs of the order that are not removed. Empty if the order is for all.
    pub stays: Vec<(Found, Stays)>,
    /// Without a database: what would be removed.
    pub removed: Vec<Removed>,
    /// The sessions that need not end as abandoned: they can be finished from this machine.
    pub unfinished: Vec<SessionId>,
    /// The database could not be closed.
    pub unclosed: Option<StoreError>,
}

impl Swept {
    /// Everything was looked at, and nothing is left that should be removed.
    pub fn is_all(&self) -> bool {
        self.inventories.iter().all(|inventory| inventory.blind.is_empty())
            && self.unclaimed.is_empty()
            && self.not_found.is_empty()
            && self.stays.is_empty()
            && self.removed.iter().all(|removed| removed.left.is_empty())
            && self.unclosed.is_none()
    }
}

/// Sweeps. If this is dropped, `claims` are to be given back.
///
/// # Errors
/// The database cannot be opened.
pub async fn sweep(owners: &Owners<'_>, order: SweepOrder<'_>, claims: &mut Claims) -> Result<Swept, StoreError> {
    let looked = Looked { owners, order: &order, inventories: inventories(owners).await };
    let mut verdicts = looked.verdicts().await;
    let listed = |found: &Found| Removed { found: found.clone(), left: Vec::new() };
    let swept = match order.remove_in {
        Some(database) => looked.remove_in(database, &mut verdicts, claims).await?,
        None => Swept { removed: looked.removed(&verdicts).map(listed).collect(), ..Swept::default() },
    };
    let has = |id: &String| looked.found().any(|found| *id == *found.job.identifier.as_str());
    let named = looked.found().filter(|_| !order.ids.is_empty());
    Ok(Swept {
        not_found: order.ids.iter().filter(|id| !has(id)).cloned().collect(),
        stays: named.filter_map(|found| Some((found.clone(), looked.why_it_stays(found, &verdicts)?))).collect(),
        unfinished: verdicts.unfinished().await,
        inventories: looked.inventories,
        ..swept
    })
}

/// What there is.
struct Looked<'a> {
    owners: &'a Owners<'a>,
    order: &'a SweepOrder<'a>,
    /// What each scheduler finds.
    inventories: Vec<Inventory>,
}

impl Looked<'_> {
    /// The jobs that the database knows and nobody else may still finish.
    fn open(&self) -> impl Iterator<Item = &Job> {
        self.order.open.iter().filter(|job| !self.order.spared.contains(&job.session))
    }

    fn found(&self) -> impl Iterator<Item = &Found> {
        self.inventories.iter().flat_map(|inventory| &inventory.found).filter(|found| self.is_named(found))
    }

    fn is_named(&self, found: &Found) -> bool {
        self.order.ids.is_empty() || self.order.ids.iter().any(|id| *id == *found.job.identifier.as_str())
    }

    fn why_it_stays(&self, found: &Found, verdicts: &Verdicts) -> Option<Stays> {
        why_it_stays(found, verdicts.state(&found.job.session), self.order.kept)
    }

    fn is_removed(&self, found: &Found, verdicts: &Verdicts) -> bool {
        self.is_named(found) && self.why_it_stays(found, verdicts).is_none()
    }

    fn removed(&self, verdicts: &Verdicts) -> impl Iterator<Item = &Found> {
        self.found().filter(|found| self.is_removed(found, verdicts))
    }

    fn is_absent(&self, job: &Job) -> bool {
        self.inventories.iter().any(|inventory| inventory.absent.contains(&job.id()))
    }

    /// The sessions of what was found, where it depends on their owners whether that is removed.
    fn in_question(&self) -> impl Iterator<Item = &SessionId> {
        self.found().filter(|found| depends_on_owner(found, self.order.kept)).map(|found| &found.job.session)
    }

    /// Looks at the owners. Only those of what was found are waited for.
    async fn verdicts(&self) -> Verdicts {
        let in_question: BTreeSet<_> = self.in_question().filter(|session| !self.order.spared.contains(session)).collect();
        let rest = self.open().map(|job| &job.session).filter(|session| !in_question.contains(session)).collect();
        let mut verdicts = Verdicts::default();
        verdicts.add(&rest, self.owners, Wait::No).await;
        verdicts.add(&in_question, self.owners, self.order.wait).await;
        verdicts
    }

    /// Claims the sessions whose owners are gone and of which something is removed, or is known to be absent; removes that, and gives
    /// the sessions back.
    async fn remove_in(&self, database: &Location, verdicts: &mut Verdicts, claims: &mut Claims) -> Result<Swept, StoreError> {
        let absent = self.open().filter(|job| self.is_absent(job)).map(|job| &job.session);
        let concerned = self.in_question().chain(absent).filter(|session| verdicts.is_gone(session)).collect();
        let needs_store = !self.order.open.is_empty() || verdicts.may_be_taken_over(&concerned);
        let store = if needs_store { Some(Store::open(database).await?) } else { None };
        let unclaimed = verdicts.claim(&concerned, self.owners, store.as_ref(), claims).await;
        let removed = self.remove(verdicts, store.as_ref()).await;
        claims.give_back().await;
        let unclosed = match store {
            Some(store) => store.close().await.err(),
            None => None,
        };
        Ok(Swept { unclaimed, removed, unclosed, ..Swept::default() })
    }

    /// Removes what abandoned sessions have left, and stores that.
    async fn remove(&self, verdicts: &Verdicts, store: Option<&Store>) -> Vec<Removed> {
        let mut removed = match store {
            Some(store) => self.store_swept(verdicts, store).await,
            None => Vec::new(),
        };
        let not_stored: BTreeSet<JobId> = removed.iter().map(|one| one.found.job.id()).collect();
        let is_removed = |found: &&Found| self.is_removed(found, verdicts) && !not_stored.contains(&found.job.id());
        for (one, inventory) in self.owners.schedulers.iter().zip(&self.inventories) {
            let removal = remove(&*one.scheduler, inventory.found.iter().filter(is_removed));
            let ended = patience::told(|| (self.owners.tell)(OwnershipNote::Removes(one)), removal).await;
            delete_leases(&*one.scheduler, inventory, &ended, verdicts).await;
            removed.extend(ended);
        }
        if let Some(store) = store {
            let was_removed = |job: &Job| removed.iter().any(|one| one.left.is_empty() && one.found.job.is_same(job));
            let is_over = |job: &&Job| was_removed(job) || (verdicts.is_gone(&job.session) && self.is_absent(job));
            self.open().filter(is_over).for_each(|job| store.cleaned(job));
        }
        removed
    }

    /// Stores which jobs are removed before they have ended: the way in which they end then is not a result. Returns those whose
    /// removal could not be stored: they stay.
    async fn store_swept(&self, verdicts: &Verdicts, store: &Store) -> Vec<Removed> {
        let (removed, mut stay) = (self.removed(verdicts).collect::<Vec<_>>(), Vec::new());
        for job in self.open() {
            let Some(found) = removed.iter().find(|found| found.job.is_same(job) && !found.has_ended) else { continue };
            if let Err(error) = store.swept(job).await {
                stay.push(Removed { found: (*found).clone(), left: vec![chain(&error)] });
            }
        }
        stay
    }
}

async fn inventories(owners: &Owners<'_>) -> Vec<Inventory> {
    let mut inventories = Vec::new();
    for one in owners.schedulers {
        let asked = one.scheduler.inventory(&one.scope);
        let found = patience::told(|| (owners.tell)(OwnershipNote::NoInventory(one)), asked).await;
        inventories.push(found.unwrap_or_else(|error| Inventory { blind: vec![error], ..Inventory::default() }));
    }
    inventories
}

/// Deletes the Leases of abandoned sessions of which nothing is left.
async fn delete_leases(scheduler: &dyn Scheduler, inventory: &Inventory, removed: &[Removed], verdicts: &Verdicts) {
    for lease in needless_leases(inventory, removed, |lease| verdicts.state(&lease.session)) {
        if let Err(error) = scheduler.delete_lease(lease).await {
            tracing::debug!(error = %chain(&error), "the Lease of an abandoned session stays");
        }
    }
}

/// Removes what was found, sorted as it was found.
async fn remove(scheduler: &dyn Scheduler, found: impl Iterator<Item = &Found>) -> Vec<Removed> {
    let removals = found.map(async |found| Removed { found: found.clone(), left: deleted(scheduler, &found.job).await });
    let mut removed: Vec<Removed> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
    removed.sort_by(|one, other| one.found.job.identifier.cmp(&other.found.job.identifier));
    removed
}

/// Removes a job. Returns what is left of it, one line each.
pub async fn deleted(scheduler: &dyn Scheduler, job: &Job) -> Vec<String> {
    match scheduler.cleanup(job, Disposition::Delete).await {
        Ok(leftovers) => leftovers.items,
        Err(error) => vec![chain(&error)],
    }
}
