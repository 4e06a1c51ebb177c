//! `muster results migrate`.

use crate::{args::Cli, settings::Places, terminal::Terminal};
use muster_session::runtime;
use muster_store::{Reader, StoreError, Upkeep};

/// Brings a database of an earlier version up to date, which a reader never does.
pub fn migrate(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    let (done, unplaced) = runtime::build()?.block_on(async {
        let done = match Reader::open(&database).await {
            Err(StoreError::OlderSchema { found: 0, .. }) => "has its tables now",
            Err(StoreError::OlderSchema { .. }) => "was brought up to date",
            Ok(_) | Err(_) => "is up to date",
        };
        let mut upkeep = Upkeep::open(database.clone()).await?;
        let unplaced = upkeep.num_unplaced().await?;
        upkeep.close().await?;
        anyhow::Ok((done, unplaced))
    })?;
    terminal.print(&format!("{} {done}\n", database.display()));
    if unplaced > 0 {
        let again = format!("muster results rebuild{}", database.flag());
        terminal.print(&format!("{unplaced} session(s) are in no night: `{again}` places them, with the site files (-C)\n"));
    }
    Ok(0)
}
