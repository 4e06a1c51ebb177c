//! `muster results migrate`.

use crate::{args::Cli, settings::Places, terminal::Terminal};
use muster_session::runtime;

/// Brings a database of an earlier version up to date, which a reader never does.
pub fn migrate(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    runtime::build()?.block_on(muster_store::migrate(&database))?;
    terminal.print(&format!("{} is up to date\n", database.display()));
    Ok(0)
}
