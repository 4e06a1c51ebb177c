//! `muster sweep`: stops and removes what abandoned sessions left, wherever the schedulers find it.
//!
//! ```text
//! jobs of the database, partitions of the system -inventory of each scheduler-> Found -owners, is_to_remove-> cleanup -> Removed
//! ```

use crate::{
    args::{Cli, SweepArgs},
    settings::Places,
    terminal::Terminal,
    wiring::{
        owners::{Owners, Wait},
        scope::{self, InScope, Scoped},
    },
};
use muster_core::{
    case::SessionId,
    decisions::{
        liveness::OwnerState,
        sweep::{depends_on_owner, is_to_remove, needless_leases},
    },
    error::chain,
    job::{
        inventory::{Found, Inventory, Removed},
        scheduler::{Disposition, Job, Scheduler},
    },
};
use muster_host::owner;
use muster_session::runtime;
use muster_store::{Reader, SessionState, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many jobs of a scheduler are removed at once.
const AT_ONCE: usize = 16;

/// Removes what is left, or only lists it.
pub fn sweep(cli: &Cli, args: &SweepArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let swept = runtime::build()?.block_on(swept(cli, args, &BTreeSet::new(), terminal))?;
    terminal.print(&swept.text);
    Ok(u8::from(!swept.is_all))
}

/// What is known of the owners of sessions.
type OwnerStates = BTreeMap<SessionId, OwnerState>;

pub struct Summary {
    pub text: String,
    /// Everything was looked at, and nothing is left that should be removed.
    is_all: bool,
}

/// Sweeps, except for the sessions in `spared`: another command may still finish them.
pub async fn swept(cli: &Cli, args: &SweepArgs, spared: &BTreeSet<SessionId>, terminal: Terminal) -> anyhow::Result<Summary> {
    let database = Places::of(cli).database;
    let reader = match (database.exists(), args.dry_run) {
        (false, _) => None,
        (true, true) => Some(Reader::open(&database).await?),
        (true, false) => Some(Reader::of_writer(&database).await?),
    };
    let open = match &reader {
        Some(reader) => reader.open_jobs().await?,
        None => Vec::new(),
    };
    let Scoped { schedulers, unreachable } = scope::in_scope(cli, &open);
    let mut inventories = inventories(&schedulers).await;
    inventories.push(Inventory { blind: unreachable, ..Inventory::default() });
    let found = || inventories.iter().flat_map(|inventory| &inventory.found);
    let in_question = found().filter(|found| depends_on_owner(found, args.kept)).map(|found| &found.job.session);
    let in_question = in_question.filter(|session| !spared.contains(session)).collect();
    let states = owner_states(&in_question, reader.as_ref(), &schedulers, Wait::UnlessDated, terminal).await?;
    let is_owner_gone = |job: &Job| states.get(&job.session) == Some(&OwnerState::Gone);
    let is_removed = |found: &&Found| is_to_remove(found, is_owner_gone(&found.job), args.kept);
    let mut text = String::new();
    let is_incomplete = report_unseen(&inventories, &mut text);
    if args.dry_run {
        report_dry_run(&found().filter(is_removed).collect::<Vec<_>>(), &mut text);
        return Ok(Summary { text, is_all: !is_incomplete });
    }
    let store = if open.is_empty() { None } else { Some(Store::open(&database).await?) };
    if let Some(store) = &store {
        store_swept(store, &open, &found().filter(is_removed).collect::<Vec<_>>()).await?;
    }
    let mut removed = Vec::new();
    for (InScope { scheduler, .. }, inventory) in schedulers.iter().zip(&inventories) {
        let ended = remove(scheduler, inventory.found.iter().filter(is_removed)).await;
        delete_leases(scheduler, inventory, &ended, &states).await;
        removed.extend(ended);
    }
    let left = report_ends(&removed, &mut text);
    if let Some(store) = store {
        let jobs: Vec<&Job> = open.iter().filter(|job| !spared.contains(&job.session)).collect();
        let states = with_rest(&jobs, states, reader.as_ref(), &schedulers, terminal).await?;
        store_cleaned(&store, &jobs, &states, &inventories, &removed);
        store.close().await?;
    }
    Ok(Summary { text, is_all: left == 0 && !is_incomplete })
}

/// What each scheduler finds.
async fn inventories(schedulers: &[InScope]) -> Vec<Inventory> {
    let mut inventories = Vec::new();
    for InScope { scheduler, scope, .. } in schedulers {
        let looked = scheduler.inventory(scope).await;
        inventories.push(looked.unwrap_or_else(|error| Inventory { blind: vec![error], ..Inventory::default() }));
    }
    inventories
}

/// Deletes the Leases of abandoned sessions of which nothing is left.
async fn delete_leases(scheduler: &Arc<dyn Scheduler>, inventory: &Inventory, removed: &[Removed], states: &OwnerStates) {
    for lease in needless_leases(inventory, removed, |lease| states.get(&lease.session).copied()) {
        if let Err(error) = scheduler.delete_lease(lease).await {
            tracing::debug!(error = %chain(&error), "the Lease of an abandoned session stays");
        }
    }
}

/// Removes what was found, sorted as it was found.
async fn remove(scheduler: &Arc<dyn Scheduler>, found: impl Iterator<Item = &Found>) -> Vec<Removed> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for found in found.cloned() {
        let (scheduler, slots) = (Arc::clone(scheduler), Arc::clone(&slots));
        tasks.spawn(async move {
            let _slot = slots.acquire_owned().await.ok();
            let left = match scheduler.cleanup(&found.job, Disposition::Delete).await {
                Ok(leftovers) => leftovers.items,
                Err(error) => vec![chain(&error)],
            };
            Removed { found, left }
        });
    }
    let mut removed = tasks.join_all().await;
    removed.sort_by(|one, other| one.found.job.identifier.cmp(&other.found.job.identifier));
    removed
}

/// Adds the sessions of the other jobs to `states`, without waiting.
async fn with_rest(
    jobs: &[&Job],
    mut states: OwnerStates,
    reader: Option<&Reader>,
    schedulers: &[InScope],
    terminal: Terminal,
) -> anyhow::Result<OwnerStates> {
    let rest = jobs.iter().map(|job| &job.session).filter(|session| !states.contains_key(session)).collect();
    states.extend(owner_states(&rest, reader, schedulers, Wait::No, terminal).await?);
    Ok(states)
}

/// Looks at the owners of sessions.
async fn owner_states(
    sessions: &BTreeSet<&SessionId>,
    reader: Option<&Reader>,
    schedulers: &[InScope],
    wait: Wait,
    terminal: Terminal,
) -> anyhow::Result<OwnerStates> {
    let (mut states, mut open) = (BTreeMap::new(), Vec::new());
    for &session in sessions {
        let held = match reader {
            Some(reader) => match reader.session(&session.0, &owner::is_alive).await {
                Ok(row) if row.state == SessionState::Ended => {
                    states.insert(session.clone(), OwnerState::Gone);
                    continue;
                }
                Ok(row) => Some(row.held),
                // It may be another user's, or another database's.
                Err(StoreError::NoSession { .. }) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        open.push((session.clone(), held));
    }
    let findings = Owners { reader, schedulers, terminal }.find(open, wait).await;
    states.extend(findings.into_iter().map(|(session, finding)| (session, finding.life)));
    Ok(states)
}

/// Stores which jobs are removed before they have ended: the way in which they end then is not a result.
async fn store_swept(store: &Store, open: &[Job], removed: &[&Found]) -> anyhow::Result<()> {
    for job in open {
        if removed.iter().any(|found| found.job.is_same(job) && !found.has_ended) {
            store.swept(job).await?;
        }
    }
    Ok(())
}

/// Reports what was not looked at. True if something is there that could not be.
fn report_unseen(inventories: &[Inventory], text: &mut String) -> bool {
    for note in inventories.iter().flat_map(|inventory| &inventory.notes) {
        let _ = writeln!(text, "note: {note}");
    }
    for error in inventories.iter().flat_map(|inventory| &inventory.blind) {
        let _ = writeln!(text, "could not look: {}", chain(error));
    }
    inventories.iter().any(|inventory| !inventory.blind.is_empty())
}

fn report_dry_run(found: &[&Found], text: &mut String) {
    for found in found {
        let _ = writeln!(text, "would remove {}", found.line());
    }
    let _ = writeln!(text, "{} job(s) of abandoned sessions would be ended", found.len());
}

fn report_ends(removed: &[Removed], text: &mut String) -> usize {
    for Removed { found, left } in removed {
        let word = if left.is_empty() { "removed" } else { "could not remove" };
        let _ = writeln!(text, "{word} {}", found.line());
        for line in left {
            let _ = writeln!(text, "  {line}");
        }
    }
    let left = removed.iter().filter(|removed| !removed.left.is_empty()).count();
    let _ = writeln!(text, "{} job(s) of abandoned sessions ended, {left} left", removed.len() - left);
    left
}

/// Stores the jobs of which nothing is left.
fn store_cleaned(store: &Store, jobs: &[&Job], states: &OwnerStates, inventories: &[Inventory], removed: &[Removed]) {
    let was_removed = |job: &Job| removed.iter().any(|removed| removed.left.is_empty() && removed.found.job.is_same(job));
    let is_absent = |job: &Job| {
        let is_owner_gone = states.get(&job.session) == Some(&OwnerState::Gone);
        is_owner_gone && inventories.iter().any(|inventory| inventory.absent.contains(&job.id()))
    };
    jobs.iter().filter(|job| was_removed(job) || is_absent(job)).for_each(|job| store.cleaned(job));
}
