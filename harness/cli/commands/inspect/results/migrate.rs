//! `muster results migrate`.

use crate::{args::Cli, settings::Places, terminal::Terminal};
use muster_session::runtime;
use muster_store::Upkeep;

/// Brings a database of an earlier version up to date, which a reader never does.
pub fn migrate(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let database = Places::of(cli).database;
    let unplaced = runtime::build()?.block_on(async {
        let mut upkeep = Upkeep::open(database.clone()).await?;
        let unplaced = upkeep.num_unplaced().await?;
        upkeep.close().await?;
        anyhow::Ok(unplaced)
    })?;
    terminal.print(&format!("{} is up to date\n", database.display()));
    if unplaced > 0 {
        let again = format!("muster results rebuild{}", database.flag());
        terminal.print(&format!("{unplaced} session(s) are in no night: `{again}` places them, with the site files (-C)\n"));
    }
    Ok(0)
}
