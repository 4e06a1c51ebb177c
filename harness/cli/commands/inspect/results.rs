//! `muster results list|show`: sessions of the past, from the store.

use crate::{
    args::Cli,
    commands::runtime,
    reports::files::ReportFiles,
    settings::Places,
    terminal::Terminal,
    wiring::owners::{self, Lives},
};
use anyhow::Context;
use muster_core::job::scheduler::Job;
use muster_host::{clock, owner};
use muster_report::{
    Results, json,
    results::{self, ListedSession, State},
    statistics,
};
use muster_store::{Reader, SessionRow, SessionState};

/// Lists sessions.
pub fn list(cli: &Cli, limit: u32, terminal: Terminal) -> anyhow::Result<u8> {
    let sessions = runtime()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut sessions = Vec::new();
        let mut rows = reader.sessions(limit, &owner::is_alive).await?;
        settle(cli, &reader, &mut rows, terminal).await?;
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
        let mut row = named(&reader, session).await?;
        settle(cli, &reader, std::slice::from_mut(&mut row), terminal).await?;
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
pub async fn named(reader: &Reader, session: &str) -> anyhow::Result<SessionRow> {
    if session != "latest" {
        return Ok(reader.session(session, &owner::is_alive).await?);
    }
    let newest = reader.sessions(1, &owner::is_alive).await?.pop();
    newest.with_context(|| format!("no session is stored in {}", reader.path().display()))
}

/// Finds out by the clusters of a session whether it lives, where its process cannot be seen from here. Nothing is waited for.
async fn settle(cli: &Cli, reader: &Reader, rows: &mut [SessionRow], terminal: Terminal) -> anyhow::Result<()> {
    if rows.iter().all(|row| row.state != SessionState::Unknown) {
        return Ok(());
    }
    let open = reader.open_jobs().await?;
    let jobs: Vec<&Job> = open.iter().collect();
    let kubernetes = owners::clusters_that_answer(cli, &jobs);
    Lives { reader: Some(reader), kubernetes: kubernetes.as_deref(), terminal }.settle(rows).await;
    Ok(())
}

fn state(row: &SessionRow) -> State {
    match row.state {
        SessionState::Ended => State::Ended,
        SessionState::Running => State::Running,
        SessionState::Interrupted => State::Interrupted,
        SessionState::Unknown => State::Unknown,
    }
}
