//! `muster sweep`: ends and forgets what dead sessions left behind, on this machine and on the clusters that it knows.

mod clusters;

use crate::{
    args::{Cli, SweepArgs},
    commands::{results::alive, runtime},
    settings::Places,
    terminal::Terminal,
};
use clusters::{Clusters, Ended};
use muster_core::{case::SessionId, error::chain, scheduler::Job, site::SchedulerKind};
use muster_k8s::census::Found;
use muster_runner::{
    clock,
    local::sweep::{self, Swept},
};
use muster_store::{OpenJob, Reader, SessionState, Store};
use std::{collections::BTreeMap, fmt::Write, path::Path};

/// Ends what is left, or only says what that is.
pub fn sweep(cli: &Cli, args: &SweepArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    runtime()?.block_on(async {
        let open = if database.exists() { Reader::open(&database).await?.open_jobs().await? } else { Vec::new() };
        let mut lives: BTreeMap<SessionId, bool> =
            open.iter().map(|open| (open.job.session.clone(), alive(&open.owner))).collect();
        let jobs: Vec<Job> = open.iter().map(|open| open.job.clone()).collect();
        let mut found = sweep::find(&jobs, |session| lives.get(session).copied().unwrap_or(false));
        let clusters = clusters::look(cli, &jobs).await?;
        let on_clusters = clusters.iter().flat_map(|clusters| &clusters.census.found).map(|found| &found.job.session);
        for session in found.iter().map(|found| &found.session).chain(on_clusters) {
            if !lives.contains_key(session)
                && let Some(life) = life(&database, session).await
            {
                lives.insert(session.clone(), life);
            }
        }
        found.retain(|found| lives.get(&found.session) == Some(&false));
        let doomed = clusters.as_ref().map(|clusters| clusters.doomed(&lives, args.kept, clock::now())).unwrap_or_default();
        let mut text = String::new();
        let blind = told_of_clusters(clusters.as_ref(), &mut text);
        if args.dry_run {
            would_end(&found, &doomed, &mut text);
            terminal.print(&text);
            return Ok(u8::from(blind));
        }
        let swept = sweep::end(found).await;
        let ended = match &clusters {
            Some(clusters) => clusters.end(doomed, &lives).await,
            None => Vec::new(),
        };
        let left = told_of_ends(&swept, &ended, &mut text);
        forget(&database, &open, &lives, &swept, clusters.as_ref(), &ended).await?;
        terminal.print(&text);
        Ok(u8::from(left > 0 || blind))
    })
}

/// What could not be looked at; whether that hides anything.
fn told_of_clusters(clusters: Option<&Clusters>, text: &mut String) -> bool {
    let Some(Clusters { census, .. }) = clusters else { return false };
    for note in &census.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for (_, error) in &census.blind {
        let _ = writeln!(text, "could not look: {}", chain(error));
    }
    !census.blind.is_empty()
}

fn would_end(found: &[sweep::Found], doomed: &[Found], text: &mut String) {
    for found in found {
        let _ = writeln!(text, "would end {}", described(found));
    }
    for found in doomed {
        let _ = writeln!(text, "would delete {}", found.line());
    }
    let _ = writeln!(text, "{} job(s) of dead sessions would be ended", found.len() + doomed.len());
}

fn told_of_ends(swept: &[Swept], ended: &[Ended], text: &mut String) -> usize {
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
    let _ = writeln!(text, "{} job(s) of dead sessions ended, {left} left", swept.len() + ended.len() - left);
    left
}

/// Whether a session without open jobs lives: it may be over, and something of it be left. `None`: this database never heard of
/// it. It may be another user's, or another database's.
async fn life(database: &Path, session: &SessionId) -> Option<bool> {
    let reader = Reader::open(database).await.ok()?;
    let row = reader.session(&session.0, &alive).await.ok()?;
    Some(row.state == SessionState::Running)
}

fn described(found: &sweep::Found) -> String {
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

fn is_of(found: &sweep::Found, job: &Job) -> bool {
    found.identifier == job.identifier && found.session == job.session
}

/// Writes down of which jobs nothing is left.
async fn forget(
    database: &Path,
    open: &[OpenJob],
    lives: &BTreeMap<SessionId, bool>,
    swept: &[Swept],
    clusters: Option<&Clusters>,
    ended: &[Ended],
) -> anyhow::Result<()> {
    let is_left = |job: &Job| swept.iter().any(|swept| is_of(&swept.found, job) && !swept.left.is_empty());
    let is_dead = |job: &Job| lives.get(&job.session) == Some(&false);
    let was_deleted = |job: &Job| ended.iter().any(|ended| ended.found.job.is_same(job) && ended.left.is_empty());
    let is_absent = |job: &Job| is_dead(job) && clusters.is_some_and(|clusters| clusters.has_nothing_of(job));
    let is_gone = |job: &Job| match job.scheduler {
        SchedulerKind::Local | SchedulerKind::Fake => is_dead(job) && !is_left(job),
        kind if kind.is_kubernetes() => was_deleted(job) || is_absent(job),
        _ => false,
    };
    let gone: Vec<&Job> = open.iter().map(|open| &open.job).filter(|job| is_gone(job)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let store = Store::open(database).await?;
    for job in gone {
        store.cleaned(job);
    }
    Ok(store.close().await?)
}
