//! `muster results show`: one session with its cases.

use super::resolve_states;
use crate::{
    args::{self, Beneath, Cli},
    reports::files::ReportFiles,
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use muster_core::decisions::attempts::Attempts;
use muster_host::clock;
use muster_report::{Results, json, results, statistics};
use muster_session::runtime;
use muster_store::Reader;
use std::ffi::OsString;

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
