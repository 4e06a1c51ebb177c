//! `muster results delete`, `prune` and `backup`.

use super::{
    super::{list, resolve_states},
    megabytes, with,
};
use crate::{
    args::{Cli, PruneArgs},
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use anyhow::ensure;
use muster_core::query::spec::Selection;
use muster_host::{clock, owner};
use muster_session::runtime;
use muster_store::{Keep, Owner, Reader, SessionRow, SessionState};
use std::path::Path;

pub fn delete(cli: &Cli, sessions: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let rows = named(cli, sessions, terminal)?;
    delete_rows(cli, &rows, terminal)
}

/// `--delete-stored-sessions`: every session of a selection. A filter of cases chooses the sessions that have such a case.
pub fn delete_selected(cli: &Cli, selection: &Selection, terminal: Terminal) -> anyhow::Result<u8> {
    let rows = list::rows(cli, selection, (u32::MAX, &[]), terminal)?;
    ensure!(!rows.is_empty(), "no session is in `{selection}`: nothing is deleted");
    delete_rows(cli, &rows, terminal)
}

fn delete_rows(cli: &Cli, rows: &[SessionRow], terminal: Terminal) -> anyhow::Result<u8> {
    let ids: Vec<_> = rows.iter().map(|row| row.session.id.clone()).collect();
    with(cli, async |upkeep| Ok(upkeep.delete(&ids, clock::now(), |owner| alive(rows, owner)).await?))?;
    terminal.print(&format!("deleted {} session(s)\n", ids.len()));
    Ok(0)
}

/// The sessions that a command names, each once.
fn named(cli: &Cli, sessions: &[String], terminal: Terminal) -> anyhow::Result<Vec<SessionRow>> {
    runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut rows: Vec<SessionRow> = Vec::new();
        for session in sessions {
            let row = database::session_named(&reader, session).await?;
            if rows.iter().all(|known| known.session.id != row.session.id) {
                rows.push(row);
            }
        }
        resolve_states(cli, &reader, &mut rows, terminal).await?;
        Ok(rows)
    })
}

/// Whether an owner lives: as far as a cluster knows, else as this machine sees it.
fn alive(rows: &[SessionRow], of: &Owner) -> Option<bool> {
    let known = rows.iter().find(|row| row.held.owner == *of).and_then(|row| match row.state {
        SessionState::Running => Some(true),
        SessionState::Interrupted => Some(false),
        SessionState::Ended | SessionState::Unknown => None,
    });
    known.or_else(|| owner::is_alive(of))
}

pub fn prune(cli: &Cli, args: &PruneArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let PruneArgs { keep, keep_last, logs_older_than } = *args;
    let keep = Keep { now: clock::now(), sessions: keep, last: keep_last, logs: logs_older_than };
    let (pruned, before, after) = with(cli, async |upkeep| {
        let before = upkeep.size().await?;
        let pruned = upkeep.prune(&keep, owner::is_alive).await?;
        if pruned.sessions > 0 || pruned.logs > 0 {
            upkeep.shrink().await?;
        }
        Ok((pruned, before, upkeep.size().await?))
    })?;
    if pruned.unswept > 0 {
        let count = pruned.unswept;
        terminal
            .note(&format!("note: {count} old session(s) stay: something of their jobs may be left, `muster sweep` removes it"));
    }
    let (sessions, logs) = (pruned.sessions, pruned.logs);
    let (before, after) = (megabytes(before), megabytes(after));
    terminal.print(&format!("removed {sessions} session(s) and {logs} log(s): {before} before, {after} after\n"));
    Ok(0)
}

pub fn backup(cli: &Cli, file: &Path, terminal: Terminal) -> anyhow::Result<u8> {
    let size = with(cli, async |upkeep| Ok(upkeep.backup(file).await?))?;
    terminal.print(&format!("{}: {}, checked\n", file.display(), megabytes(size)));
    Ok(0)
}
