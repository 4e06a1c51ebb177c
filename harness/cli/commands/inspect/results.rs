//! `muster results list|show|migrate`: sessions of the past, from the store. `list` and `show` change nothing in its folder.

use crate::{
    args::{self, Beneath, Cli},
    reports::files::ReportFiles,
    settings::Places,
    terminal::Terminal,
    wiring::{database, owners::Owners, scope},
};
use muster_core::decisions::attempts::Attempts;
use muster_host::{clock, owner};
use muster_report::{
    Results, json,
    results::{self, ListedSession},
    statistics,
};
use muster_session::runtime;
use muster_store::{Reader, SessionRow, SessionState};
use std::ffi::OsString;

pub fn list(cli: &Cli, limit: u32, terminal: Terminal) -> anyhow::Result<u8> {
    let sessions = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut sessions = Vec::new();
        let mut rows = reader.sessions(limit, &owner::is_alive).await?;
        resolve_states(cli, &reader, &mut rows, terminal).await?;
        for row in rows {
            let results = reader.results(&row.session.id).await?;
            sessions.push((row, results));
        }
        anyhow::Ok(sessions)
    })?;
    let listed: Vec<ListedSession<'_>> = sessions
        .iter()
        .map(|(row, cases)| ListedSession {
            session: &row.session,
            state: row.state,
            counts: Results::new(&row.session, cases).counts(),
        })
        .collect();
    terminal.print(&results::list(&listed, clock::now(), &terminal.screen()));
    Ok(0)
}

pub fn show(cli: &Cli, session: &str, as_json: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let (row, cases) = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut row = database::session_named(&reader, session).await?;
        resolve_states(cli, &reader, std::slice::from_mut(&mut row), terminal).await?;
        let cases = reader.results(&row.session.id).await?;
        anyhow::Ok((row, cases))
    })?;
    let attempts = Attempts::of(row.session.counting, cases);
    let results = Results::of(&row.session, &attempts);
    let argv: Vec<OsString> = row.session.command.iter().map(OsString::from).collect();
    // The flags of another version may be unknown.
    let called = args::parse(&argv, &cli.files.schedulers, Beneath { env: &|_| None, files: &[] })
        .map_or_else(|_| cli.clone(), |parsed| parsed.cli);
    let files = ReportFiles::asked_for(cli, &called, &row.session)?;
    if as_json {
        terminal.print(&json::report(&results, None)?);
    } else {
        terminal.print(&results::show(&results, files.rerun_options(), row.state, clock::now(), &terminal.screen()));
        if cli.reports.failure_stats {
            terminal.print(&statistics::report(&results, &terminal.screen()));
        }
    }
    // A person asked for these here and now: the first that cannot be written is the answer.
    if let Some(error) = files.write(&results).into_iter().next() {
        return Err(error);
    }
    terminal.note(&files.places());
    Ok(0)
}

/// Brings a database of an earlier version up to date, which a reader never does.
pub fn migrate(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    runtime::build()?.block_on(muster_store::migrate(&database))?;
    terminal.print(&format!("{} is up to date\n", database.display()));
    Ok(0)
}

/// Replaces the unknown states of sessions whose process is not visible from here, by the Leases in their clusters.
pub(super) async fn resolve_states(
    cli: &Cli,
    reader: &Reader,
    rows: &mut [SessionRow],
    terminal: Terminal,
) -> anyhow::Result<()> {
    if rows.iter().all(|row| row.state != SessionState::Unknown) {
        return Ok(());
    }
    let open = reader.open_jobs().await?;
    let schedulers = scope::in_scope(cli, &open).schedulers;
    Owners { reader: Some(reader), schedulers: &schedulers, terminal }.resolve_states(rows).await;
    Ok(())
}
