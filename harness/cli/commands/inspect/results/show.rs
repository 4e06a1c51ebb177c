//! `muster results show`: one session with its cases, or the newest session of a case with this case alone.

use super::{questions::of_system, resolve_states};
use crate::{
    args::{self, Beneath, Cli},
    reports::files::ReportFiles,
    terminal::Terminal,
    wiring::database::{self, Question},
};
use anyhow::{anyhow, ensure};
use muster_answers::{Asked, LATEST, sessions};
use muster_core::{
    case::matcher::Matcher,
    decisions::{
        attempts::{Attempts, Dropped},
        rounds,
    },
    query::spec::{Filters, Selection},
    result::Session,
};
use muster_host::{clock, owner};
use muster_report::{Results, json, results, statistics};
use muster_session::runtime;
use muster_store::{SessionRow, StoreError};
use std::ffi::OsString;

pub fn show(cli: &Cli, what: &str, as_json: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let (row, cases, end) = runtime::build()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        let (reader, asked) = (&question.reader, question.asked());
        let mut filters = of_system(cli)?;
        let mut row = match named(cli, &asked, what, &filters, terminal).await {
            Ok(row) => row,
            Err(error) => {
                filters.cases.push(Matcher::parse(what, true).map_err(anyhow::Error::msg)?);
                match newest_with(&asked, &filters).await? {
                    Some(row) => row,
                    None => return Err(of_neither(&asked, error, &filters).await),
                }
            }
        };
        resolve_states(cli, reader, std::slice::from_mut(&mut row), terminal).await?;
        let mut cases = reader.results(&row.session.id).await?;
        let end = rounds::end(&row.session, &cases, &Dropped::default());
        if !filters.cases.is_empty() || !filters.partitions.is_empty() {
            let names = reader.names().await?;
            cases.retain(|case| names.are_admitted(&filters, &case.name, &[]));
            row.session.num_cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        }
        anyhow::Ok((row, cases, end))
    })?;
    let attempts = Attempts::of(row.session.counting, cases);
    let results = Results::of(&row.session, &attempts).ending_as(end);
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

/// The session that is named, on the system that is asked for.
async fn named(cli: &Cli, asked: &Asked<'_>, what: &str, filters: &Filters, terminal: Terminal) -> anyhow::Result<SessionRow> {
    let is_meant = |session: &Session| filters.systems.iter().all(|system| system.admits(&session.system));
    if what == LATEST && !filters.systems.is_empty() {
        asked.are_known(filters).await?;
        let sessions = asked.sessions(&Selection::default()).await?;
        let newest = sessions.iter().find(|one| is_meant(&one.session));
        let newest = match newest {
            Some(newest) => asked.reader.session_of(&newest.session.id, &owner::is_alive).await?,
            None => None,
        };
        if let Some(row) = &newest {
            database::tell_of_latest(&cli.files, &row.session, terminal);
        }
        return newest.ok_or_else(|| anyhow!("no session of this system is stored: leave out --system"));
    }
    let row = database::session_named(cli, asked.reader, what, terminal).await?;
    let Session { id, system, .. } = &row.session;
    ensure!(is_meant(&row.session), "session {id} ran on `{system}`: leave out --system");
    Ok(row)
}

/// What begins no session is no case either: the nearest names help.
async fn of_neither(asked: &Asked<'_>, error: anyhow::Error, filters: &Filters) -> anyhow::Error {
    let is_no_session = matches!(error.downcast_ref(), Some(StoreError::NoSession { .. }));
    match asked.are_known(filters).await {
        Err(no_case) if is_no_session => anyhow!("{error}, and {no_case}"),
        Ok(()) | Err(_) => error,
    }
}

/// The newest session with such a case.
async fn newest_with(asked: &Asked<'_>, filters: &Filters) -> anyhow::Result<Option<SessionRow>> {
    let Some(newest) = sessions::newest_with(asked, filters).await? else { return Ok(None) };
    Ok(asked.reader.session_of(&newest.session.id, &owner::is_alive).await?)
}
