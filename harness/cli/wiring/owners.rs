//! The texts about the owners of sessions.

use crate::terminal::Terminal;
use anyhow::anyhow;
use muster_core::{case::SessionId, error::chain};
use muster_session::ownership::{InScope, OwnershipNote, sweep::AT_ONCE};
use muster_store::{Held, SessionRow};
use muster_text::time::format_duration;
use std::time::Duration;

/// Prints what is told.
pub fn told(terminal: Terminal) -> impl Fn(OwnershipNote<'_>) + Sync {
    move |note| terminal.note(&text(&note))
}

fn text(note: &OwnershipNote<'_>) -> String {
    match note {
        OwnershipNote::Waits { session, held, left, again } => progress(session, *held, *left, *again),
        OwnershipNote::Unread { session, error } => format!("warning: session {session} is left alone: {}", chain(error)),
        OwnershipNote::TakenOver { session } => {
            format!("note: session {session} was taken over meanwhile: nothing of it is removed")
        }
        OwnershipNote::NoInventory(InScope { name, scheduler, .. }) => {
            let limit = format_duration(scheduler.limits().answer);
            format!("no answer yet from {name}: the sweep waits for it, {limit} for each place that does not answer")
        }
        OwnershipNote::Removes(InScope { name, scheduler, .. }) => {
            let limit = format_duration(scheduler.limits().cleanup);
            format!("no answer yet from {name}: each removal takes {limit} at most, and {AT_ONCE} are under way at once")
        }
    }
}

/// Returns the reason why a session is not taken over.
pub fn still_runs(row: &SessionRow) -> anyhow::Error {
    let owner = &row.held.owner;
    anyhow!("session {} is still running, as process {} on {}: end that first, or wait", row.session.id, owner.pid, owner.host)
}

/// Returns the sentence on a claim that failed.
pub fn unclaimed(session: &SessionId) -> String {
    format!("claim session {session}, so that nobody takes it over while its jobs are removed: nothing of it is removed")
}

fn progress(session: &SessionId, held: Option<&Held>, left: Duration, again: bool) -> String {
    // A fraction of a second says nothing.
    let left = format_duration(Duration::from_secs(left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)));
    if again {
        return format!("session {session}: still no heartbeat; it counts as abandoned in {left}");
    }
    let owner = held.map_or_else(String::new, |held| format!(" of process {} on {}", held.owner.pid, held.owner.host));
    format!(
        "session {session}: waiting for a heartbeat{owner}; without one it counts as abandoned in {left} (Ctrl-C stops the wait)"
    )
}
