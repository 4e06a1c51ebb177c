//! `muster attach`: goes on with a session whose harness is gone, and finishes it.
//!
//! ```text
//! store: session, results, what was begun --+--> what runs is followed, what may have been launched is launched anew
//! its command line, read again -> selection -+--> what never had its turn is run
//! all over -> one report of the whole session, each case once
//! ```
//! How a case is judged was stored with its plan: files that have changed since change only what was not begun yet.

use crate::{
    args::{self, Cli, Parsed},
    commands::{
        results::alive,
        run::{self, Course},
    },
    selection::{self, Depth},
    settings::Places,
    terminal::Terminal,
    wire,
};
use anyhow::{Context, bail};
use muster_core::{case::CaseName, result::CaseResult, workload::Limits};
use muster_runner::{
    runtime,
    turn::{Begun, Turn, Work},
};
use muster_store::{JobRow, JobState, Reader, SessionRow, SessionState};
use std::{collections::BTreeSet, env, ffi::OsString, path::Path, sync::Arc, time::Duration};

/// What the store knows of a session.
struct Past {
    row: SessionRow,
    results: Vec<CaseResult>,
    begun: Vec<JobRow>,
}

/// Takes a session over and finishes it. The exit code is that of the whole session.
pub fn attach(cli: &Cli, session: &str, terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build().context("start the runtime")?;
    let database = Places::of(cli).database;
    let past = runtime.block_on(past(&database, session))?;
    let id = past.row.session.id.clone();
    match past.row.state {
        SessionState::Interrupted => {}
        SessionState::Ended => bail!("session {id} has ended: `muster results show {id}` shows it"),
        SessionState::Running => {
            let owner = &past.row.owner;
            bail!("session {id} is still running, as process {} on {}: end that first, or wait", owner.pid, owner.host);
        }
    }
    let database = std::path::absolute(&database).unwrap_or(database);
    let mut parsed = as_it_was_called(&past, &database)?;
    parsed.cli.reports.lay_under(&cli.reports);
    let begun: BTreeSet<String> = past
        .results
        .iter()
        .map(|result| &result.name)
        .chain(past.begun.iter().map(|row| &row.name))
        .map(CaseName::to_string)
        .collect();
    let selection = selection::select(&parsed.cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    let rest = if selection.has_errors() {
        terminal.note("the check files have mistakes by now: only what was begun is finished");
        Vec::new()
    } else {
        selection.cases.into_iter().filter(|case| !begun.contains(&case.name.to_string())).collect()
    };
    let partitions = past.begun.iter().map(|row| (row.name.partition.clone(), row.job.scheduler));
    let wired = wire::schedulers(partitions.chain(wire::partitions(&rest)))?;
    terminal.note(&format!(
        "session {id}: {} of {} case(s) have ended, {} begun are taken up, {} are begun now",
        past.results.len(),
        past.row.session.num_cases,
        past.begun.len(),
        rest.len()
    ));
    let at_once = past.begun.len();
    let names = past.results.iter().map(|result| &result.name).chain(past.begun.iter().map(|row| &row.name));
    let displayed: BTreeSet<String> =
        names.map(|name| name.display.clone()).chain(rest.iter().map(|case| case.name.display.clone())).collect();
    let num_checks = u32::try_from(displayed.len()).unwrap_or(u32::MAX);
    let turns = past.begun.into_iter().map(|row| taken_up(row, at_once)).chain(rest.into_iter().map(Turn::from)).collect();
    let course = Course {
        session: past.row.session,
        heir_of: Some(past.row.owner),
        before: past.results.into_iter().map(Arc::new).collect(),
        wired,
        num_checks,
        turns,
    };
    run::course(&parsed.cli, &runtime, course, terminal)
}

async fn past(database: &Path, session: &str) -> anyhow::Result<Past> {
    let reader = Reader::open(database).await?;
    let row = match session {
        "latest" => {
            let interrupted = |row: &SessionRow| row.state == SessionState::Interrupted;
            let found = reader.sessions(100, &alive).await?.into_iter().find(interrupted);
            found.with_context(|| format!("no session in {} was interrupted", reader.path().display()))?
        }
        prefix => reader.session(prefix, &alive).await?,
    };
    let (results, begun) = (reader.results(&row.session.id).await?, reader.unfinished(&row.session.id).await?);
    Ok(Past { row, results, begun })
}

/// The flags of the session, in its folder. What came from the environment then comes from the environment now.
fn as_it_was_called(past: &Past, database: &Path) -> anyhow::Result<Parsed> {
    let session = &past.row.session;
    env::set_current_dir(&session.workdir)
        .with_context(|| format!("the folder {} in which session {} was begun", session.workdir.display(), session.id))?;
    let mut argv: Vec<OsString> = session.command.iter().map(OsString::from).collect();
    argv.extend(["--db".into(), database.into()]);
    let parsed = args::parse(&argv, &|name| env::var(name).ok());
    parsed.with_context(|| {
        format!("the command line of session {} is not understood any more: {}", session.id, session.command.join(" "))
    })
}

/// A begun case, as work for the engine. All of them have a slot: they run already, or did.
fn taken_up(row: JobRow, at_once: usize) -> Turn {
    let JobRow { name, about, attempt, job, state, rules, limits, .. } = row;
    let limits = limits.unwrap_or(Limits { pending: None, run: None, judge: Duration::from_mins(5) });
    let launched = state != JobState::Intent && !wire::dies_with_the_harness(job.scheduler);
    Turn {
        folder: folder_of(&job.stage, attempt, job.identifier.as_str()),
        name: Arc::new(name),
        scheduler: job.scheduler,
        max_jobs: at_once,
        attempt,
        needs: Box::default(),
        about: Arc::new(move || about.clone()),
        work: Work::Begun(Box::new(Begun { job, rules, limits, launched })),
    }
}

/// The name of a case's folders, from one attempt's stage folder.
fn folder_of(stage: &Path, attempt: u32, identifier: &str) -> String {
    let name = stage.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(&format!(".{identifier}")).unwrap_or(&name);
    name.strip_suffix(&format!(".{attempt}")).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_folder_of_an_attempt_is_that_of_its_case() {
        for (stage, attempt) in [
            ("/stage/s/p/e/triad_0123456789abcdef", 1),
            ("/stage/s/p/e/triad_0123456789abcdef.2", 2),
            ("/stage/s/p/e/triad_0123456789abcdef.abcdefgh", 1),
            ("/stage/s/p/e/triad_0123456789abcdef.2.abcdefgh", 2),
        ] {
            assert_eq!(folder_of(Path::new(stage), attempt, "abcdefgh"), "triad_0123456789abcdef", "{stage}");
        }
    }
}
