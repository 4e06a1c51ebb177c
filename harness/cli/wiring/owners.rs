//! Whether the owners of sessions live: collects the signs on which `muster_core::decisions::liveness` decides, repeatedly if necessary.

use crate::{terminal::Terminal, wiring::scope::InScope};
use anyhow::anyhow;
use futures_util::future::join_all;
use muster_core::{
    case::SessionId,
    decisions::liveness::{Evidence, Heartbeat, HeartbeatTiming, LastHeartbeat, OwnerState, owner_state},
    error::chain,
    job::inventory::Lease,
};
use muster_host::owner;
use muster_session::heartbeat;
use muster_store::{Held, Reader, SessionRow, SessionState};
use muster_text::time::format_duration;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, sleep};

/// The longest time between two looks.
const POLL: Duration = Duration::from_secs(5);
/// How often the wait is reported.
const REPORT: Duration = Duration::from_mins(1);
/// How long to wait until it is certain whether an owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    No,
    /// Until it is certain, except for owners with a recent sign that a server has dated.
    UnlessDated,
    UntilCertain,
}

impl Wait {
    fn remaining(self, life: OwnerState) -> Option<Duration> {
        match life {
            OwnerState::Silent { left, last }
                if self == Self::UntilCertain || (self == Self::UnlessDated && last != LastHeartbeat::Recent) =>
            {
                Some(left)
            }
            _ => None,
        }
    }
}

/// Where to look for heartbeats.
pub struct Owners<'a> {
    pub reader: Option<&'a Reader>,
    pub schedulers: &'a [InScope],
    pub terminal: Terminal,
}

/// What is known of the owner of a session.
pub struct Finding {
    pub life: OwnerState,
    /// The Leases as they were seen first, of each scheduler. If the owner is gone, they have not changed since.
    pub leases: Vec<Vec<Lease>>,
    /// Who held the session in the database at that time.
    held: Option<Held>,
}

impl Finding {
    /// Enough to show it. Who takes a session over waits until it is certain.
    pub fn state(&self) -> SessionState {
        match self.life {
            OwnerState::Alive | OwnerState::Silent { last: LastHeartbeat::Recent, .. } => SessionState::Running,
            OwnerState::Gone | OwnerState::Silent { last: LastHeartbeat::Expired, .. } => SessionState::Interrupted,
            OwnerState::Silent { .. } | OwnerState::Unknown => SessionState::Unknown,
        }
    }
}

impl Owners<'_> {
    /// Looks again at the owner of a session that was first seen so long ago.
    pub async fn look_again(&self, session: &SessionId, finding: &mut Finding, watched: Duration) -> SessionState {
        finding.life = owner_state(&self.signs(session, finding, watched).await);
        finding.state()
    }

    /// Looks at the owners of sessions, and waits as long as `wait` allows. Of sessions that the database does not know, only the
    /// Leases count.
    pub async fn find(
        &self,
        sessions: impl IntoIterator<Item = (SessionId, Option<Held>)>,
        wait: Wait,
    ) -> BTreeMap<SessionId, Finding> {
        let started = Instant::now();
        // All at once: each may wait for a server that does not answer.
        let first = sessions.into_iter().map(async |(session, held): (SessionId, Option<Held>)| {
            let mut finding = Finding { life: OwnerState::Unknown, leases: vec![Vec::new(); self.schedulers.len()], held };
            finding.life = owner_state(&self.signs(&session, &mut finding, Duration::ZERO).await);
            (session, finding)
        });
        let mut findings: BTreeMap<SessionId, Finding> = join_all(first).await.into_iter().collect();
        let mut reported: Option<Instant> = None;
        loop {
            let waiting: Vec<(&SessionId, Duration)> =
                findings.iter().filter_map(|(session, finding)| Some((session, wait.remaining(finding.life)?))).collect();
            let Some(left) = waiting.iter().map(|(_, left)| *left).max() else { return findings };
            if reported.is_none_or(|reported| reported.elapsed() >= REPORT) {
                for (session, left) in &waiting {
                    self.terminal.note(&progress(session, findings[*session].held.as_ref(), *left, reported.is_some()));
                }
                reported = Some(Instant::now());
            }
            sleep(POLL.min(left / 8).max(Duration::from_millis(100))).await;
            for (session, finding) in &mut findings {
                if wait.remaining(finding.life).is_some() {
                    finding.life = owner_state(&self.signs(session, finding, started.elapsed()).await);
                }
            }
        }
    }

    /// The heartbeats of a session that was first seen as `first`, `watched` ago.
    async fn signs(&self, session: &SessionId, first: &mut Finding, watched: Duration) -> Evidence {
        let process = first.held.as_ref().and_then(|held| owner::is_alive(&held.owner));
        if process.is_some() {
            // Needed to take the session over: the Lease of an owner that is gone may still be valid.
            if watched.is_zero() {
                self.leases(session, first, watched).await;
            }
            return Evidence { process, ..Evidence::default() };
        }
        let leases = self.leases(session, first, watched).await;
        let HeartbeatTiming { limit, .. } = heartbeat::timing();
        let heartbeat = match (self.reader, &first.held) {
            (Some(reader), Some(held)) => {
                let changed = matches!(reader.held(session).await, Ok(now) if now.as_ref() != Some(held));
                let age = reader.silence(session).await.ok().flatten();
                Some(Heartbeat { limit, age, watched, changed })
            }
            _ => None,
        };
        Evidence { process, leases, heartbeat }
    }

    async fn leases(&self, session: &SessionId, first: &mut Finding, watched: Duration) -> Vec<Heartbeat> {
        let mut signs = Vec::new();
        for (InScope { scheduler, scope, .. }, first) in self.schedulers.iter().zip(&mut first.leases) {
            let seen = scheduler.leases(scope, session).await.unwrap_or_else(|error| {
                tracing::debug!(error = chain(&error), "no Lease is seen");
                Vec::new()
            });
            for lease in seen {
                let before = first.iter().find(|before| before.place == lease.place);
                signs.push(Heartbeat::of(&lease, before.unwrap_or(&lease), watched));
                if before.is_none() {
                    first.push(lease);
                }
            }
        }
        signs
    }

    /// Waits until it is certain, and returns the Leases of an owner that is gone. `None`: the owner lives.
    pub async fn leases_if_owner_is_gone(&self, row: &SessionRow) -> Option<Vec<Vec<Lease>>> {
        let session = (row.session.id.clone(), Some(row.held.clone()));
        let findings = self.find([session], Wait::UntilCertain).await;
        let gone = findings.into_values().next().filter(|finding| finding.life == OwnerState::Gone);
        gone.map(|finding| finding.leases)
    }

    /// Replaces the unknown states of sessions, as far as possible without waiting.
    pub async fn resolve_states(&self, rows: &mut [SessionRow]) {
        let unknown = rows.iter().filter(|row| row.state == SessionState::Unknown);
        let unknown: Vec<_> = unknown.map(|row| (row.session.id.clone(), Some(row.held.clone()))).collect();
        let findings = self.find(unknown, Wait::No).await;
        for row in rows {
            row.state = findings.get(&row.session.id).map_or(row.state, Finding::state);
        }
    }
}

/// Why a session is not taken over.
pub fn still_runs(row: &SessionRow) -> anyhow::Error {
    let owner = &row.held.owner;
    anyhow!("session {} is still running, as process {} on {}: end that first, or wait", row.session.id, owner.pid, owner.host)
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
