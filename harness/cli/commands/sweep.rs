//! `muster sweep`: ends and forgets what dead sessions left behind.

use crate::{
    args::Cli,
    commands::{results::alive, runtime},
    settings::Places,
    terminal::Terminal,
};
use muster_core::{case::SessionId, scheduler::Job, site::SchedulerKind};
use muster_runner::local::sweep::{self, Swept};
use muster_store::{OpenJob, Reader, SessionState, Store};
use std::{collections::BTreeMap, fmt::Write, path::Path};

/// Ends what is left, or only says what that is.
pub fn sweep(cli: &Cli, dry_run: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    runtime()?.block_on(async {
        let open = if database.exists() { Reader::open(&database).await?.open_jobs().await? } else { Vec::new() };
        let mut lives: BTreeMap<SessionId, bool> =
            open.iter().map(|open| (open.job.session.clone(), alive(&open.owner))).collect();
        let jobs: Vec<Job> = open.iter().map(|open| open.job.clone()).collect();
        let mut found = sweep::find(&jobs, |session| lives.get(session).copied().unwrap_or(false));
        for found in &found {
            let session = &found.session;
            if !lives.contains_key(session) {
                lives.insert(session.clone(), lives_or_is_unknown(&database, session).await);
            }
        }
        found.retain(|found| lives.get(&found.session) == Some(&false));
        let mut text = String::new();
        if dry_run {
            for found in &found {
                let _ = writeln!(text, "would end {}", described(found));
            }
            let _ = writeln!(text, "{} job(s) of dead sessions would be ended", found.len());
            terminal.print(&text);
            return Ok(0);
        }
        let swept = sweep::end(found).await;
        let mut left = 0;
        for swept in &swept {
            let word = if swept.left.is_empty() { "ended" } else { "could not end" };
            left += usize::from(!swept.left.is_empty());
            let _ = writeln!(text, "{word} {}", described(&swept.found));
        }
        forget(&database, &open, &lives, &swept).await?;
        let _ = writeln!(text, "{} job(s) of dead sessions ended, {left} left", swept.len() - left);
        terminal.print(&text);
        Ok(u8::from(left > 0))
    })
}

/// A session without open jobs may be over, and a daemon of it be left. One that this database never heard of may be
/// another user's, or another database's: it is let be.
async fn lives_or_is_unknown(database: &Path, session: &SessionId) -> bool {
    let Ok(reader) = Reader::open(database).await else { return true };
    let row = reader.session(&session.0, &alive).await;
    row.map_or(true, |row| row.state == SessionState::Running)
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

/// Writes down that nothing is left of the local jobs of dead sessions.
async fn forget(database: &Path, open: &[OpenJob], lives: &BTreeMap<SessionId, bool>, swept: &[Swept]) -> anyhow::Result<()> {
    let is_left = |job: &Job| swept.iter().any(|swept| swept.found.identifier == job.identifier && !swept.left.is_empty());
    let is_ours = |job: &Job| matches!(job.scheduler, SchedulerKind::Local | SchedulerKind::Fake);
    let gone: Vec<&Job> = open
        .iter()
        .map(|open| &open.job)
        .filter(|job| is_ours(job) && lives.get(&job.session) == Some(&false) && !is_left(job))
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let store = Store::open(database).await?;
    for job in gone {
        store.cleaned(job);
    }
    Ok(store.close().await?)
}
