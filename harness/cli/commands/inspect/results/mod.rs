//! `muster results ...`: questions to the store about sessions of the past, and its upkeep. One file a command, its arm below, its
//! arguments in `args/results.rs`. What only looks changes nothing in the folder of the database.

mod demo;
mod list;
mod migrate;
mod show;
mod upkeep;

use crate::{
    args::{Cli, ResultsCommand},
    terminal::Terminal,
    wiring::{owners::Owners, scope},
};
use muster_store::{Reader, SessionRow, SessionState};

pub fn run(cli: &Cli, what: &ResultsCommand, terminal: Terminal) -> anyhow::Result<u8> {
    match what {
        ResultsCommand::List { limit } => list::list(cli, *limit, terminal),
        ResultsCommand::Show { session, json } => show::show(cli, session, *json, terminal),
        ResultsCommand::Demo(args) => demo::demo(args, terminal),
        ResultsCommand::Migrate => migrate::migrate(cli, terminal),
        ResultsCommand::Rebuild => upkeep::rebuild(cli, terminal),
        ResultsCommand::Alias { old, new } => upkeep::alias(cli, (old, new), terminal),
        ResultsCommand::Annotate(args) => upkeep::annotate(cli, args, terminal),
        ResultsCommand::Delete { sessions } => upkeep::delete(cli, sessions, terminal),
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
    Owners { reader: Some(reader), schedulers: &schedulers, terminal }.resolve_states(rows).await;
    Ok(())
}
