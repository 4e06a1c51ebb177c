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
use muster_answers::sessions::Listed;
use muster_core::{case::SessionId, query::spec::Selection};
use muster_host::{clock, owner};
use muster_report::time;
use muster_session::runtime;
use muster_store::{Going, Keep, Owner, Reader, SessionRow, SessionState, Space, WhyKept};
use std::{collections::BTreeMap, path::Path};

pub fn delete(cli: &Cli, sessions: &[String], dry_run: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let rows = named(cli, sessions, terminal)?;
    if dry_run { would_delete(cli, &rows, terminal) } else { delete_rows(cli, &rows, terminal) }
}

fn would_delete(cli: &Cli, rows: &[SessionRow], terminal: Terminal) -> anyhow::Result<u8> {
    let would = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        anyhow::Ok(reader.would_delete(&ids(rows), clock::now(), |owner| alive(rows, owner)).await?)
    })?;
    terminal.print(&format!("would delete {}: about {} less\n", going(&would, terminal), megabytes(would.bytes)));
    Ok(0)
}

/// `--delete-stored-sessions`: every session of a selection. A filter of cases chooses the sessions that have such a case.
pub fn delete_selected(cli: &Cli, selection: &Selection, terminal: Terminal) -> anyhow::Result<u8> {
    let rows = list::rows(cli, selection, Listed { limit: u32::MAX, outcomes: &[] }, terminal)?;
    ensure!(!rows.is_empty(), "no session is in `{selection}`: nothing is deleted");
    if cli.action.dry_run.is_some() { would_delete(cli, &rows, terminal) } else { delete_rows(cli, &rows, terminal) }
}

fn delete_rows(cli: &Cli, rows: &[SessionRow], terminal: Terminal) -> anyhow::Result<u8> {
    let ids = ids(rows);
    let deleted = with(cli, async |upkeep| Ok(upkeep.delete(&ids, clock::now(), |owner| alive(rows, owner)).await?))?;
    terminal.print(&format!("deleted {}\n", going(&deleted, terminal)));
    Ok(0)
}

fn ids(rows: &[SessionRow]) -> Vec<SessionId> {
    rows.iter().map(|row| row.session.id.clone()).collect()
}

/// `3 session(s) with 120 case(s), started from 2025-10-01 to 2025-10-03`
fn going(going: &Going, terminal: Terminal) -> String {
    let day = |at| time::local(at, &terminal.screen().zone).get(..10).unwrap_or_default().to_owned();
    let started = going.started.map_or_else(String::new, |(first, last)| match (day(first), day(last)) {
        (first, last) if first == last => format!(", started {first}"),
        (first, last) => format!(", started from {first} to {last}"),
    });
    format!("{} session(s) with {} case(s){started}", going.sessions(), going.cases)
}

/// The sessions that a command names, each once.
fn named(cli: &Cli, sessions: &[String], terminal: Terminal) -> anyhow::Result<Vec<SessionRow>> {
    runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut rows: Vec<SessionRow> = Vec::new();
        for session in sessions {
            let row = database::session_named(cli, &reader, session, terminal).await?;
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
    ensure!(!cli.files.is_system_typed, "prune looks at the sessions of every system: leave out --system");
    let PruneArgs { keep, keep_last, logs_older_than, dry_run } = *args;
    let keep = Keep { now: clock::now(), sessions: keep, last: keep_last, logs: logs_older_than };
    if dry_run {
        let would = runtime::build()?.block_on(async {
            let reader = Reader::open(Places::of(cli).database).await?;
            anyhow::Ok(reader.would_prune(&keep, owner::is_alive).await?)
        })?;
        note_unswept(&would, terminal);
        let (sessions, logs) = (going(&would, terminal), would.logs);
        terminal.print(&format!("would remove {sessions}; {logs} log(s) of others: about {} less\n", megabytes(would.bytes)));
        return Ok(0);
    }
    let (pruned, space, before, after) = with(cli, async |upkeep| {
        let before = upkeep.size().await?;
        let pruned = upkeep.prune(&keep, owner::is_alive).await?;
        let space = if pruned.is_nothing() { Space::GivenBack } else { upkeep.shrink(&pruned, before).await? };
        Ok((pruned, space, before, upkeep.size().await?))
    })?;
    note_unswept(&pruned, terminal);
    let (sessions, logs) = (going(&pruned, terminal), pruned.logs);
    let (before, after) = (megabytes(before), megabytes(after));
    terminal.print(&format!("removed {sessions}; {logs} log(s) of others: {before} before, {after} after\n"));
    match space {
        Space::GivenBack => {}
        Space::KeptAsLittle => terminal.note("note: that is under a tenth: the server keeps the space for the next rows"),
        Space::Kept(tables) => kept(tables).iter().for_each(|note| terminal.note(note)),
    }
    Ok(0)
}

/// A note for each reason why a server keeps the space of tables.
fn kept(tables: Vec<(&'static str, WhyKept)>) -> Vec<String> {
    let mut of_reason: BTreeMap<WhyKept, Vec<&str>> = BTreeMap::new();
    for (table, why) in tables {
        of_reason.entry(why).or_default().push(table.trim_matches('"'));
    }
    let note = |(why, tables): (WhyKept, Vec<&str>)| {
        let why = match why {
            WhyKept::InUse => "others use them, or it takes too long; prune again later",
            WhyKept::TooLarge => {
                "each is over 1 GB, and nobody could use it meanwhile: run `VACUUM FULL` on it when nobody needs it"
            }
            WhyKept::NotOwner => "only their owner may write them again: prune as the user who created the tables",
            WhyKept::NoRoom => "its disk has no room for a copy of them",
        };
        format!("note: the server keeps the space of {} for the next rows: {why}", tables.join(", "))
    };
    of_reason.into_iter().map(note).collect()
}

fn note_unswept(going: &Going, terminal: Terminal) {
    if going.unswept > 0 {
        let count = going.unswept;
        terminal
            .note(&format!("note: {count} old session(s) stay: something of their jobs may be left, `muster sweep` removes it"));
    }
}

pub fn backup(cli: &Cli, file: &Path, terminal: Terminal) -> anyhow::Result<u8> {
    let size = with(cli, async |upkeep| Ok(upkeep.backup(file).await?))?;
    terminal.print(&format!("{}: {}, checked\n", file.display(), megabytes(size)));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_keeps_space_says_why() {
        let tables = vec![
            ("attempt_log", WhyKept::TooLarge),
            ("measurement", WhyKept::NotOwner),
            (r#""case""#, WhyKept::NotOwner),
            ("job", WhyKept::NoRoom),
            ("member", WhyKept::InUse),
        ];
        insta::assert_snapshot!(kept(tables).join("\n"), @"
        note: the server keeps the space of member for the next rows: others use them, or it takes too long; prune again later
        note: the server keeps the space of attempt_log for the next rows: each is over 1 GB, and nobody could use it meanwhile: run `VACUUM FULL` on it when nobody needs it
        note: the server keeps the space of measurement, case for the next rows: only their owner may write them again: prune as the user who created the tables
        note: the server keeps the space of job for the next rows: its disk has no room for a copy of them
        ");
    }
}
