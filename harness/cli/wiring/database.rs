//! The results database of an invocation.

use crate::{
    args::Cli,
    settings::{self, Places},
    terminal::Terminal,
    wiring::secrets,
};
use anyhow::{Context, anyhow};
use muster_host::owner;
use muster_store::{Location, Reader, SessionRow, Store, StoreError};
use tokio::runtime::Runtime;

/// Opens the database for writing, and prints what the user should know of it.
pub fn open(cli: &Cli, places: &Places, runtime: &Runtime, terminal: Terminal) -> anyhow::Result<Store> {
    let store = runtime.block_on(Store::open(&places.database)).context("no place for results: choose another with --db")?;
    for note in settings::note_on_database(cli).iter().chain(store.notes()) {
        terminal.note(&format!("note: {note}"));
    }
    Ok(store.hiding(secrets::of(cli), cli.files.schedulers.clone()))
}

/// Opens the database for a process that will write to it, after what others have left for it on this machine is written.
pub async fn reader_of_writer(database: &Location) -> Result<Reader, StoreError> {
    muster_store::recover(database).await?;
    Reader::of_writer(database).await
}

/// The session that a command names: `latest`, or the beginning of an id.
pub async fn session_named(reader: &Reader, session: &str) -> anyhow::Result<SessionRow> {
    if session != "latest" {
        return Ok(reader.session(session, &owner::is_alive).await?);
    }
    let newest = reader.sessions(1, &owner::is_alive).await?.pop();
    newest.ok_or_else(|| nothing_stored(reader))
}

/// Why there is nothing to show.
pub fn nothing_stored(reader: &Reader) -> anyhow::Error {
    anyhow!(
        "no session is stored in {}: run checks with `muster -r`, or choose another database with --db",
        reader.database().display()
    )
}
