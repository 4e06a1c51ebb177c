//! `muster sweep`: stops and removes what abandoned sessions left, wherever the schedulers find it.
//!
//! ```text
//! jobs of the database, partitions of the system -inventory of each scheduler-> Found -owners, is_to_remove-> claim -> cleanup -> Removed
//! ```

use crate::{
    args::{Cli, SweepArgs},
    inputs::selection,
    session::{
        claims::{Claims, Verdicts},
        early::Early,
    },
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        database,
        owners::{Owners, Wait},
        patience,
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
        inventory::{Found, Inventory, JobId, Removed},
        scheduler::{Disposition, Job, Scheduler},
    },
};
use muster_session::runtime;
use muster_store::{Reader, Store};
use muster_text::time::format_duration;
use std::{collections::BTreeSet, fmt::Write, sync::Arc};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many jobs of a scheduler are removed at once.
const AT_ONCE: usize = 16;

/// Removes what is left, or only lists it.
pub fn sweep(cli: &Cli, args: &SweepArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build()?;
    let early = Early::listen(&runtime, "the sweep has not ended, and leftovers may stay", terminal)?;
    let sweep = async |claims: &mut Claims| swept(cli, args, &BTreeSet::new(), Wait::UnlessDated, claims, terminal).await;
    let swept = runtime.block_on(early.holding(sweep))?;
    terminal.print(&swept.text);
    Ok(u8::from(!swept.is_all))
}

pub struct Summary {
    pub text: String,
    /// Everything was looked at, and nothing is left that should be removed.
    is_all: bool,
}

/// Sweeps, except for the sessions in `spared`: another command may still finish them. If this is dropped, `claims` are to be given
/// back.
pub async fn swept(
    cli: &Cli,
    args: &SweepArgs,
    spared: &BTreeSet<SessionId>,
    wait: Wait,
    claims: &mut Claims,
    terminal: Terminal,
) -> anyhow::Result<Summary> {
    let database = Places::of(cli).database;
    let reader = match (muster_store::exists(&database)?, args.dry_run) {
        (false, _) => None,
        (true, true) => Some(Reader::open(&database).await?),
        (true, false) => Some(database::reader_of_writer(&database).await?),
    };
    let open = match &reader {
        Some(reader) => reader.open_jobs().await?,
        None => Vec::new(),
    };
    // Who names a system does not want another one swept.
    let (site, broken) = selection::site_without_broken_files(&cli.files, terminal.live)?;
    if let Some(mistakes) = &broken {
        terminal.note(&format!("warning: a site file has mistakes, and its system is not swept:\n{}", mistakes.trim_end()));
    }
    let Scoped { schedulers, unreachable } = scope::in_scope_of(cli, Some(&site), &open);
    let mut inventories = inventories(&schedulers, terminal).await;
    inventories.push(Inventory { blind: unreachable, ..Inventory::default() });
    let looked = Looked {
        open: open.iter().filter(|job| !spared.contains(&job.session)).collect(),
        inventories,
        kept: args.kept,
        ids: &args.id,
    };
    let owners = Owners { reader: reader.as_ref(), schedulers: &schedulers, terminal };
    let mut verdicts = looked.verdicts(spared, &owners, wait).await;
    let mut text = String::new();
    let mut is_all = report_unseen(&looked.inventories, &mut text) && broken.is_none();
    if args.dry_run {
        is_all &= looked.report_named(&verdicts, &mut text);
        report_dry_run(&looked.removed(&verdicts), &mut text);
        for (session, attach) in unfinished(&verdicts, cli).await {
            let _ = writeln!(text, "note: session {session} is not finished: `{attach}` continues it with all that still runs");
        }
        return Ok(Summary { text, is_all });
    }
    let concerned = looked.concerned(&verdicts);
    let needs_store = !open.is_empty() || verdicts.may_be_taken_over(&concerned);
    let store = if needs_store { Some(Store::open(&database).await?) } else { None };
    for error in verdicts.claim(&concerned, &owners, store.as_ref(), claims).await {
        let _ = writeln!(text, "error: {error:#}");
        is_all = false;
    }
    is_all &= looked.report_named(&verdicts, &mut text);
    let removed = looked.remove(&verdicts, &schedulers, store.as_ref(), terminal).await;
    claims.give_back().await;
    is_all &= report_ends(&removed, &mut text);
    for (session, attach) in unfinished(&verdicts, cli).await {
        let _ = writeln!(text, "note: session {session} is not finished: `{attach}` runs the rest of it");
    }
    if let Some(store) = store
        && let Err(error) = store.close().await
    {
        let _ = writeln!(text, "error: {}", chain(&error));
        is_all = false;
    }
    Ok(Summary { text, is_all })
}

/// What there is.
struct Looked<'a> {
    /// What the database knows and nobody else may still finish.
    open: Vec<&'a Job>,
    /// Of each scheduler, and one of those that were not looked at.
    inventories: Vec<Inventory>,
    /// `--kept`
    kept: bool,
    /// `--id`; none: all.
    ids: &'a [String],
}

impl Looked<'_> {
    fn found(&self) -> impl Iterator<Item = &Found> {
        self.inventories.iter().flat_map(|inventory| &inventory.found).filter(|found| self.is_named(found))
    }

    fn is_named(&self, found: &Found) -> bool {
        self.ids.is_empty() || self.ids.iter().any(|id| *id == *found.job.identifier.as_str())
    }

    fn is_removed(&self, found: &Found, verdicts: &Verdicts) -> bool {
        self.is_named(found) && is_to_remove(found, verdicts.is_gone(&found.job.session), self.kept)
    }

    fn removed(&self, verdicts: &Verdicts) -> Vec<&Found> {
        self.found().filter(|found| self.is_removed(found, verdicts)).collect()
    }

    fn is_absent(&self, job: &Job) -> bool {
        self.inventories.iter().any(|inventory| inventory.absent.contains(&job.id()))
    }

    /// Looks at the owners. Only those of what was found are waited for.
    async fn verdicts(&self, spared: &BTreeSet<SessionId>, owners: &Owners<'_>, wait: Wait) -> Verdicts {
        let in_question = self.found().filter(|found| depends_on_owner(found, self.kept)).map(|found| &found.job.session);
        let in_question: BTreeSet<_> = in_question.filter(|session| !spared.contains(session)).collect();
        let rest = self.open.iter().map(|job| &job.session).filter(|session| !in_question.contains(session)).collect();
        let mut verdicts = Verdicts::default();
        verdicts.add(&rest, owners, Wait::No).await;
        verdicts.add(&in_question, owners, wait).await;
        verdicts
    }

    /// The sessions whose owners are gone and of which something is removed, or is known to be absent.
    fn concerned(&self, verdicts: &Verdicts) -> BTreeSet<&SessionId> {
        let found = self.found().filter(|found| depends_on_owner(found, self.kept)).map(|found| &found.job.session);
        let absent = self.open.iter().filter(|job| self.is_absent(job)).map(|job| &job.session);
        found.chain(absent).filter(|session| verdicts.is_gone(session)).collect()
    }

    /// Removes what abandoned sessions have left, and stores that.
    async fn remove(
        &self,
        verdicts: &Verdicts,
        schedulers: &[InScope],
        store: Option<&Store>,
        terminal: Terminal,
    ) -> Vec<Removed> {
        let mut removed = match store {
            Some(store) => store_swept(store, &self.open, &self.removed(verdicts)).await,
            None => Vec::new(),
        };
        let not_stored: BTreeSet<JobId> = removed.iter().map(|one| one.found.job.id()).collect();
        let is_removed = |found: &&Found| self.is_removed(found, verdicts) && !not_stored.contains(&found.job.id());
        for (InScope { name, scheduler, .. }, inventory) in schedulers.iter().zip(&self.inventories) {
            let limit = format_duration(scheduler.limits().cleanup);
            let told = || format!("{name}: each removal takes {limit} at most, and {AT_ONCE} are under way at once");
            let removal = remove(scheduler, inventory.found.iter().filter(is_removed));
            let ended = patience::told(terminal, told, removal).await;
            delete_leases(scheduler, inventory, &ended, verdicts).await;
            removed.extend(ended);
        }
        if let Some(store) = store {
            let was_removed = |job: &Job| removed.iter().any(|one| one.left.is_empty() && one.found.job.is_same(job));
            let is_over = |job: &Job| was_removed(job) || (verdicts.is_gone(&job.session) && self.is_absent(job));
            self.open.iter().filter(|job| is_over(job)).for_each(|job| store.cleaned(job));
        }
        removed
    }

    /// Reports what was named with `--id` and is not removed. True if all of it is.
    fn report_named(&self, verdicts: &Verdicts, text: &mut String) -> bool {
        let before = text.len();
        for id in self.ids {
            if !self.found().any(|found| *id == *found.job.identifier.as_str()) {
                let _ =
                    writeln!(text, "nothing that was found has the identifier `{id}`: `muster sweep --dry-run --kept` lists all");
            }
        }
        let named = self.found().filter(|_| !self.ids.is_empty());
        for found in named.filter(|found| !self.is_removed(found, verdicts)) {
            let why = match (found.kept, verdicts.state(&found.job.session)) {
                (Some(_), _) if !self.kept => "it is kept, and only `--kept` removes it",
                (_, Some(OwnerState::Alive)) => "its session runs",
                _ => "it is not certain that its session has ended",
            };
            let _ = writeln!(text, "not removed: {}: {why}", found.line());
        }
        text.len() == before
    }
}

/// What each scheduler finds.
async fn inventories(schedulers: &[InScope], terminal: Terminal) -> Vec<Inventory> {
    let mut inventories = Vec::new();
    for InScope { name, scheduler, scope } in schedulers {
        let limit = format_duration(scheduler.limits().answer);
        let told = || format!("{name}: the sweep waits for it, {limit} for each place that does not answer");
        let looked = patience::told(terminal, told, scheduler.inventory(scope)).await;
        inventories.push(looked.unwrap_or_else(|error| Inventory { blind: vec![error], ..Inventory::default() }));
    }
    inventories
}

/// Deletes the Leases of abandoned sessions of which nothing is left.
async fn delete_leases(scheduler: &Arc<dyn Scheduler>, inventory: &Inventory, removed: &[Removed], verdicts: &Verdicts) {
    for lease in needless_leases(inventory, removed, |lease| verdicts.state(&lease.session)) {
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

/// Stores which jobs are removed before they have ended: the way in which they end then is not a result. Returns those whose removal
/// could not be stored: they stay.
async fn store_swept(store: &Store, open: &[&Job], removed: &[&Found]) -> Vec<Removed> {
    let mut stay = Vec::new();
    for job in open {
        let Some(found) = removed.iter().find(|found| found.job.is_same(job) && !found.has_ended) else { continue };
        if let Err(error) = store.swept(job).await {
            stay.push(Removed { found: (*found).clone(), left: vec![chain(&error)] });
        }
    }
    stay
}

/// Reports what was not looked at. True if nothing is there that could not be.
fn report_unseen(inventories: &[Inventory], text: &mut String) -> bool {
    for note in inventories.iter().flat_map(|inventory| &inventory.notes) {
        let _ = writeln!(text, "note: {note}");
    }
    for error in inventories.iter().flat_map(|inventory| &inventory.blind) {
        let _ = writeln!(text, "not swept: {}", chain(error));
    }
    inventories.iter().all(|inventory| inventory.blind.is_empty())
}

fn report_dry_run(found: &[&Found], text: &mut String) {
    for found in found {
        let _ = writeln!(text, "would remove {}", found.line());
    }
    let _ = writeln!(text, "{} job(s) would be removed", found.len());
}

/// The sessions that need not end as abandoned, each with the command that finishes it.
async fn unfinished<'a>(verdicts: &'a Verdicts, cli: &Cli) -> Vec<(&'a SessionId, String)> {
    let attach = |session| (session, settings::on_this_database(cli, &format!("attach {session}")));
    verdicts.unfinished().await.into_iter().map(attach).collect()
}

/// Reports what was removed. True if nothing is left of it.
fn report_ends(removed: &[Removed], text: &mut String) -> bool {
    for Removed { found, left } in removed {
        let word = if left.is_empty() { "removed" } else { "could not remove" };
        let _ = writeln!(text, "{word} {}", found.line());
        for line in left {
            let _ = writeln!(text, "  {line}");
        }
    }
    let left = removed.iter().filter(|removed| !removed.left.is_empty()).count();
    let not = if left > 0 { format!(", {left} could not be removed") } else { String::new() };
    let _ = writeln!(text, "{} job(s) removed{not}", removed.len() - left);
    left == 0
}
