//! `muster sweep`: stops and removes what abandoned sessions left, on this machine and on the clusters that it knows.

mod clusters;

use crate::{
    args::{Cli, SweepArgs},
    settings::Places,
    terminal::Terminal,
    wiring::owners::{Owners, Wait},
};
use clusters::{Clusters, Ended};
use muster_core::{
    case::SessionId,
    decisions::liveness::OwnerState,
    error::chain,
    job::{scheduler::Job, scheduler_kind::SchedulerKind},
};
use muster_host::owner;
use muster_k8s::{Found, Handle};
use muster_local::inventory::{self, Swept};
use muster_session::runtime;
use muster_store::{Reader, SessionState, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// Ends what is left, or only lists it.
pub fn sweep(cli: &Cli, args: &SweepArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let swept = runtime::build()?.block_on(swept(cli, args, &BTreeSet::new(), terminal))?;
    terminal.print(&swept.text);
    Ok(u8::from(!swept.is_all))
}

/// What is known of the owners of sessions.
type OwnerStates = BTreeMap<SessionId, OwnerState>;

pub struct Summary {
    pub text: String,
    /// Every cluster was listed, and nothing is left that should be removed.
    is_all: bool,
}

/// Sweeps, except for the sessions in `spared`: another command may still finish them.
pub async fn swept(cli: &Cli, args: &SweepArgs, spared: &BTreeSet<SessionId>, terminal: Terminal) -> anyhow::Result<Summary> {
    let database = Places::of(cli).database;
    let reader = if database.exists() { Some(Reader::of_writer(&database).await?) } else { None };
    let open = match &reader {
        Some(reader) => reader.open_jobs().await?,
        None => Vec::new(),
    };
    let jobs: Vec<&Job> = open.iter().collect();
    let mut found = inventory::find(jobs.iter().copied(), |_| false);
    let clusters = clusters::look(cli, &jobs).await?;
    let on_clusters = clusters.iter().flat_map(|clusters| clusters.in_question(args.kept));
    let sessions = found.iter().map(|found| &found.session).chain(on_clusters);
    let sessions = sessions.filter(|session| !spared.contains(session)).collect();
    let states = owner_states(&sessions, reader.as_ref(), clusters.as_ref(), Wait::UnlessDated, terminal).await?;
    found.retain(|found| states.get(&found.session) == Some(&OwnerState::Gone));
    let to_delete = clusters.as_ref().map(|clusters| clusters.to_delete(&states, args.kept)).unwrap_or_default();
    let mut text = String::new();
    let is_incomplete = report_clusters(clusters.as_ref(), &jobs, &mut text);
    if args.dry_run {
        report_dry_run(&found, &to_delete, &mut text);
        return Ok(Summary { text, is_all: !is_incomplete });
    }
    let store = if open.is_empty() { None } else { Some(Store::open(&database).await?) };
    if let Some(store) = &store {
        store_swept(store, &open, &found, &to_delete).await?;
    }
    let swept = inventory::end(found).await;
    let ended = match &clusters {
        Some(clusters) => clusters.end(to_delete, &states).await,
        None => Vec::new(),
    };
    let left = report_ends(&swept, &ended, &mut text);
    if let Some(store) = store {
        let jobs: Vec<&Job> = jobs.into_iter().filter(|job| !spared.contains(&job.session)).collect();
        let states = with_rest(&jobs, states, reader.as_ref(), clusters.as_ref(), terminal).await?;
        store_cleaned(&store, &jobs, &states, &swept, clusters.as_ref(), &ended);
        store.close().await?;
    }
    Ok(Summary { text, is_all: left == 0 && !is_incomplete })
}

/// Adds the sessions of the other jobs to `states`, without waiting.
async fn with_rest(
    jobs: &[&Job],
    mut states: OwnerStates,
    reader: Option<&Reader>,
    clusters: Option<&Clusters>,
    terminal: Terminal,
) -> anyhow::Result<OwnerStates> {
    let rest = jobs.iter().map(|job| &job.session).filter(|session| !states.contains_key(session)).collect();
    states.extend(owner_states(&rest, reader, clusters, Wait::No, terminal).await?);
    Ok(states)
}

/// Looks at the owners of sessions.
async fn owner_states(
    sessions: &BTreeSet<&SessionId>,
    reader: Option<&Reader>,
    clusters: Option<&Clusters>,
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
    let kubernetes = clusters.map(Clusters::kubernetes);
    let findings = Owners { reader, kubernetes, terminal }.find(open, wait).await;
    states.extend(findings.into_iter().map(|(session, finding)| (session, finding.life)));
    Ok(states)
}

/// Stores which jobs are removed before they have ended: the way in which they end then is not a result.
async fn store_swept(store: &Store, open: &[Job], found: &[inventory::Found], to_delete: &[Found]) -> anyhow::Result<()> {
    for job in open {
        let is_found = found.iter().any(|found| is_of(found, job)) && !inventory::has_ended(job);
        if is_found || to_delete.iter().any(|found| found.job.is_same(job)) {
            store.swept(job).await?;
        }
    }
    Ok(())
}

/// Reports the clusters that could not be listed. True if one of them did not answer.
fn report_clusters(clusters: Option<&Clusters>, jobs: &[&Job], text: &mut String) -> bool {
    let Some(Clusters { inventory, .. }) = clusters else { return false };
    for note in &inventory.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for place in &inventory.unknown {
        let is_there = |job: &&&Job| Handle::of(job).is_ok_and(|handle| handle.place == *place);
        let sessions: BTreeSet<&str> = jobs.iter().filter(is_there).map(|job| &*job.session.0).collect();
        let sessions = sessions.into_iter().collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "note: not looked at: {place}, for this kubeconfig has no such context; jobs of {sessions} may be left there"
        );
    }
    for (_, error) in &inventory.blind {
        let _ = writeln!(text, "could not look: {}", chain(error));
    }
    !inventory.blind.is_empty()
}

fn report_dry_run(found: &[inventory::Found], to_delete: &[Found], text: &mut String) {
    for found in found {
        let _ = writeln!(text, "would end {}", described(found));
    }
    for found in to_delete {
        let _ = writeln!(text, "would delete {}", found.line());
    }
    let _ = writeln!(text, "{} job(s) of abandoned sessions would be ended", found.len() + to_delete.len());
}

fn report_ends(swept: &[Swept], ended: &[Ended], text: &mut String) -> usize {
    let mut left = 0;
    for swept in swept {
        let word = if swept.left.is_empty() { "ended" } else { "could not end" };
        left += usize::from(!swept.left.is_empty());
        let _ = writeln!(text, "{word} {}", described(&swept.found));
    }
    for ended in ended {
        let word = if ended.left.is_empty() { "deleted" } else { "could not delete" };
        left += usize::from(!ended.left.is_empty());
        let _ = writeln!(text, "{word} {}", ended.found.line());
        for line in &ended.left {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "{} job(s) of abandoned sessions ended, {left} left", swept.len() + ended.len() - left);
    left
}

fn described(found: &inventory::Found) -> String {
    let case = found.case.as_deref().unwrap_or("a job that no database knows");
    let pids: Vec<String> = found.processes.iter().map(|process| process.pid.to_string()).collect();
    format!(
        "{case} ({}, session {}): process {} ({})",
        found.identifier,
        found.session,
        pids.join(", "),
        found.commands.join("; ")
    )
}

fn is_of(found: &inventory::Found, job: &Job) -> bool {
    found.identifier == job.identifier && found.session == job.session
}

/// Stores the jobs of which nothing is left.
fn store_cleaned(
    store: &Store,
    jobs: &[&Job],
    states: &OwnerStates,
    swept: &[Swept],
    clusters: Option<&Clusters>,
    ended: &[Ended],
) {
    let is_left = |job: &Job| swept.iter().any(|swept| is_of(&swept.found, job) && !swept.left.is_empty());
    let is_owner_gone = |job: &Job| states.get(&job.session) == Some(&OwnerState::Gone);
    let was_deleted = |job: &Job| ended.iter().any(|ended| ended.found.job.is_same(job) && ended.left.is_empty());
    let is_absent = |job: &Job| is_owner_gone(job) && clusters.is_some_and(|clusters| clusters.has_nothing_of(job));
    let is_gone = |job: &Job| match job.scheduler {
        SchedulerKind::Local => is_owner_gone(job) && !is_left(job) && inventory::is_seen(job),
        SchedulerKind::Fake => is_owner_gone(job),
        kind if kind.is_kubernetes() => was_deleted(job) || is_absent(job),
        _ => false,
    };
    jobs.iter().filter(|job| is_gone(job)).for_each(|job| store.cleaned(job));
}
