//! `muster results ...`: questions to the store about sessions of the past, and its upkeep. A command has a file, with what undoes it,
//! an arm below, and its arguments in `args/results/`. What only looks changes nothing in the folder of the database.

mod demo;
mod list;
mod migrate;
mod questions;
mod show;
mod upkeep;

use crate::{
    args::{Cli, ResultsCommand, Stored},
    reports::stored,
    terminal::Terminal,
    wiring::{owners, scope},
};
use muster_session::ownership::Owners;
use muster_store::{Reader, SessionRow, SessionState};

/// ReFrame's actions on stored results; `None`: it is none of them.
pub fn reframe(cli: &Cli, terminal: Terminal) -> Option<anyhow::Result<u8>> {
    let Stored {
        performance_compare,
        list_stored_sessions,
        list_stored_testcases,
        describe_stored_sessions,
        delete_stored_sessions,
    } = &cli.action.stored;
    if let Some(comparison) = performance_compare {
        return Some(stored::compare(cli, comparison, terminal));
    }
    if let Some(comparison) = list_stored_testcases {
        return Some(stored::list_cases(cli, comparison, terminal));
    }
    if let Some(selection) = list_stored_sessions {
        return Some(list::list_selected(cli, selection, terminal));
    }
    if let Some(selection) = delete_stored_sessions {
        return Some(upkeep::delete_selected(cli, selection, terminal));
    }
    describe_stored_sessions.as_ref().map(|selection| questions::export_json(cli, selection, terminal))
}

pub fn run(cli: &Cli, what: &ResultsCommand, terminal: Terminal) -> anyhow::Result<u8> {
    match what {
        ResultsCommand::List(args) => list::list(cli, args, terminal),
        ResultsCommand::Show { session, json } => show::show(cli, session, *json, terminal),
        ResultsCommand::Causes(args) => questions::causes(cli, args, terminal),
        ResultsCommand::Compare(args) => questions::compare(cli, args, terminal),
        ResultsCommand::Export(args) => questions::export(cli, args, terminal),
        ResultsCommand::Import(args) => questions::import(cli, args, terminal),
        ResultsCommand::History(args) => questions::history(cli, args, terminal),
        ResultsCommand::SuggestReferences(args) => questions::suggest(cli, args, terminal),
        ResultsCommand::Demo(args) => demo::demo(args, terminal),
        ResultsCommand::Migrate => migrate::migrate(cli, terminal),
        ResultsCommand::Rebuild => upkeep::rebuild(cli, terminal),
        ResultsCommand::Alias(args) => upkeep::alias(cli, args, terminal),
        ResultsCommand::Annotate(args) => upkeep::annotate(cli, args, terminal),
        ResultsCommand::Delete { sessions, dry_run } => upkeep::delete(cli, sessions, *dry_run, terminal),
        ResultsCommand::Prune(args) => upkeep::prune(cli, args, terminal),
        ResultsCommand::Backup { file } => upkeep::backup(cli, file, terminal),
    }
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
    Owners { reader: Some(reader), schedulers: &schedulers, tell: &owners::told(terminal) }.resolve_states(rows).await;
    Ok(())
}
