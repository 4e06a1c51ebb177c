//! `--resume`: a session of the same cases that was cut short is finished; if there is none, a new one begins.

use crate::{
    args::{Cli, SweepArgs},
    commands::{attach::Left, sweep, takeover::Dead},
    settings::Places,
    terminal::Terminal,
};
use muster_core::{case::SessionId, result::Session, rounds};
use muster_runner::{clock, local::owner};
use muster_store::{Reader, SessionRow, SessionState};
use std::{collections::BTreeSet, env};
use tokio::runtime::Runtime;

/// So many sessions are looked through.
const NEWEST: u32 = 100;

/// Finishes the session that `session` would be another run of; the exit code is that of the whole. `None`: there is none.
pub(super) fn resume(cli: &Cli, session: &Session, runtime: &Runtime, terminal: Terminal) -> anyhow::Result<Option<u8>> {
    let database = Places::of(cli).database;
    if !database.exists() {
        return Ok(None);
    }
    let reader = runtime.block_on(Reader::open(&database))?;
    let rows = runtime.block_on(reader.sessions(NEWEST, &owner::is_alive))?;
    // Only the newest: what came after one that was cut short has done its work.
    let Some(row) = rows.into_iter().find(|row| rounds::is_same_work(&row.session, session)) else { return Ok(None) };
    if !may_be_left(&row) {
        return Ok(None);
    }
    let id = row.session.id.clone();
    let Some(dead) = runtime.block_on(Dead::certain(cli, &reader, &row, terminal))? else {
        terminal.note(&format!("note: session {id} with the same cases is still running: a new one begins"));
        return Ok(None);
    };
    let here = env::current_dir();
    let finished = Left::of(cli, row)?.finish(dead, runtime, terminal);
    if let Ok(here) = here {
        env::set_current_dir(here)?;
    }
    finished.map(Some)
}

fn may_be_left(row: &SessionRow) -> bool {
    match row.state {
        SessionState::Ended => row.session.interrupted,
        SessionState::Interrupted | SessionState::Unknown => true,
        SessionState::Running => false,
    }
}

/// Removes what dead sessions have left. The session has its exit code already.
pub(super) fn sweep_after(cli: &Cli, runtime: &Runtime, terminal: Terminal) {
    let args = SweepArgs { dry_run: false, kept: false };
    let swept = runtime.block_on(async {
        let spared = left_for_others(cli).await?;
        sweep::swept(cli, &args, &spared, terminal).await
    });
    match swept {
        Ok(swept) => terminal.note(&format!("sweep: {}", swept.text.trim_end())),
        Err(error) => terminal.note(&format!("warning: what dead sessions have left is not swept: {error:#}")),
    }
}

/// Sessions of other cases that were cut short, and may be resumed as well.
async fn left_for_others(cli: &Cli) -> anyhow::Result<BTreeSet<SessionId>> {
    let reader = Reader::open(Places::of(cli).database).await?;
    let rows = reader.sessions(NEWEST, &owner::is_alive).await?;
    let (now, mut newest) = (clock::now(), BTreeSet::new());
    let mut is_left = |row: &SessionRow| {
        let is_newest = newest.insert((row.session.system.clone(), row.session.selection.clone()));
        is_newest && may_be_left(row) && rounds::may_be_resumed(&row.session, now)
    };
    Ok(rows.into_iter().filter(|row| is_left(row)).map(|row| row.session.id).collect())
}
