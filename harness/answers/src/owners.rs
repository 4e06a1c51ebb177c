//! Signs of the owners of sessions: their processes on this machine, and their heartbeats in the database.

use muster_core::{
    case::SessionId,
    decisions::liveness::{Evidence, Heartbeat},
};
use muster_host::owner;
use muster_store::{Held, Reader};
use std::time::Duration;

/// A look at a session that was seen before.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub session: &'a SessionId,
    /// The owner and the heartbeat as they were seen first. `None`: the database does not know the session.
    pub first: Option<&'a Held>,
    /// The time since then.
    pub watched: Duration,
    /// A heartbeat that is older than this has stopped.
    pub limit: Duration,
}

/// Returns the signs by which `muster_core::decisions::liveness::owner_state` decides. A process on this machine needs no heartbeat.
/// Signs that only schedulers have, the Leases, are not among them.
pub async fn signs(reader: Option<&Reader>, look: Look<'_>) -> Evidence {
    let Look { session, first, watched, limit } = look;
    let process = first.and_then(|held| owner::is_alive(&held.owner));
    let heartbeat = match (reader, first, process) {
        (Some(reader), Some(held), None) => {
            let changed = matches!(reader.held(session).await, Ok(now) if now.as_ref() != Some(held));
            let age = reader.silence(session).await.ok().flatten();
            Some(Heartbeat { limit, age, watched, changed })
        }
        _ => None,
    };
    Evidence { process, heartbeat, ..Evidence::default() }
}
