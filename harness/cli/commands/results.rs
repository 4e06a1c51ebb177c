//! `muster results list|show`: sessions of the past, from the store.

use crate::{args::Cli, commands::runtime, report_files::ReportFiles, settings::Places, terminal::Terminal};
use anyhow::Context;
use muster_report::{
    Results, json,
    results::{self, ListedSession, State},
    statistics,
};
use muster_runner::{clock, local::owner};
use muster_store::{Owner, Reader, SessionRow, SessionState};

/// Lists sessions.
pub fn list(cli: &Cli, limit: u32, terminal: Terminal) -> anyhow::Result<u8> {
    let sessions = runtime()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut sessions = Vec::new();
        for row in reader.sessions(limit, &alive).await? {
            let results = reader.results(&row.session.id).await?;
            sessions.push((row, results));
        }
        anyhow::Ok(sessions)
    })?;
    let listed: Vec<ListedSession<'_>> = sessions
        .iter()
        .map(|(row, cases)| ListedSession {
            session: &row.session,
            state: state(row),
            counts: Results::new(&row.session, cases).counts(),
        })
        .collect();
    terminal.print(&results::list(&listed, clock::now(), &terminal.screen()));
    Ok(0)
}

/// Shows one session.
pub fn show(cli: &Cli, session: &str, as_json: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let (row, cases) = runtime()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let row = named(&reader, session).await?;
        let cases = reader.results(&row.session.id).await?;
        anyhow::Ok((row, cases))
    })?;
    let results = Results::new(&row.session, &cases);
    let files = ReportFiles::asked_for(cli, &row.session)?;
    if as_json {
        terminal.print(&json::report(&results, None)?);
    } else {
        terminal.print(&results::show(&results, state(&row), clock::now(), &terminal.screen()));
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

/// The session that a command names: the newest, or the one whose id begins so.
pub(super) async fn named(reader: &Reader, session: &str) -> anyhow::Result<SessionRow> {
    if session != "latest" {
        return Ok(reader.session(session, &alive).await?);
    }
    let newest = reader.sessions(1, &alive).await?.pop();
    newest.with_context(|| format!("no session is stored in {}", reader.path().display()))
}

/// Whether a session's owner lives. One on another machine cannot be asked: it is taken for alive.
pub fn alive(lease: &Owner) -> bool {
    owner::is_alive(lease).unwrap_or(true)
}

fn state(row: &SessionRow) -> State {
    match row.state {
        SessionState::Ended => State::Ended,
        SessionState::Running => State::Running,
        SessionState::Interrupted => State::Interrupted,
    }
}
