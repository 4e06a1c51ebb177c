//! The process that owns a session, and what that allows. No other process runs its cases or removes its jobs.
//!
//! ```text
//! this file  Leases, heartbeat, process -> whether an owner lives; waits until that is certain
//! heartbeat  this process shows that it owns a session
//! takeover   an owner is gone -> this process owns the session, and finishes it
//! claims     an owner is gone -> this process holds the session while it removes what that has left
//! sweep      what abandoned sessions left -> what of it is removed
//! leave      what stays when this process ends before its session
//! ```
//! `muster_core::decisions::liveness` decides on the signs that are collected here, repeatedly if necessary.

pub mod claims;
pub mod heartbeat;
pub mod leave;
pub mod sweep;
pub mod takeover;

use futures_util::future::join_all;
use muster_answers::owners::{self, Look};
use muster_core::{
    case::SessionId,
    decisions::liveness::{Evidence, Heartbeat, LastHeartbeat, OwnerState, owner_state},
    error::{SchedulerError, chain},
    job::{
        inventory::{Lease, Removed, Scope},
        scheduler::Scheduler,
    },
};
use muster_store::{Held, Reader, SessionRow, SessionState, StoreError};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// The longest time between two looks.
const POLL: Duration = Duration::from_secs(5);
/// How often the wait is reported.
const REPORT: Duration = Duration::from_mins(1);

/// A scheduler, and where it looks.
pub struct InScope {
    /// The scheduler's own.
    pub name: &'static str,
    pub scheduler: Arc<dyn Scheduler>,
    pub scope: Scope,
}

/// A note to the user while an operation runs.
pub enum OwnershipNote<'a> {
    /// The owner of a session is waited for.
    Waits {
        session: &'a SessionId,
        held: Option<&'a Held>,
        /// Without a heartbeat it counts as gone after this time.
        left: Duration,
        /// This was told before.
        again: bool,
    },
    /// The database does not say who owns the session.
    Unread { session: &'a SessionId, error: StoreError },
    /// Another process has taken the session over while its owner was waited for.
    TakenOver { session: &'a SessionId },
    /// A scheduler has not yet told what it finds.
    NoInventory(&'a InScope),
    /// A scheduler still removes jobs.
    Removes(&'a InScope),
}

/// The receiver of notes.
pub type Tell<'a> = &'a (dyn Fn(OwnershipNote<'_>) + Sync);

/// The time to wait until it is certain whether an owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    No,
    /// The wait ends with certainty, or with a recent sign of life that a server has dated.
    UnlessDated,
    UntilCertain,
}

impl Wait {
    fn remaining(self, life: OwnerState) -> Option<Duration> {
        let OwnerState::Silent { left, last } = life else { return None };
        let waits = match self {
            Self::No => false,
            Self::UnlessDated => last != LastHeartbeat::Recent,
            Self::UntilCertain => true,
        };
        waits.then_some(left)
    }
}

/// The places of heartbeats.
pub struct Owners<'a> {
    pub reader: Option<&'a Reader>,
    pub schedulers: &'a [InScope],
    pub tell: Tell<'a>,
}

/// The finding about the owner of a session.
pub struct Finding {
    pub life: OwnerState,
    /// The Leases as they were seen first, of each scheduler. If the owner is gone, they have not changed since.
    leases: Vec<Vec<Lease>>,
    /// Who held the session in the database at that time.
    held: Option<Held>,
}

impl Owners<'_> {
    /// Looks again at the owner of a session that was first seen so long ago.
    pub async fn look_again(&self, session: &SessionId, finding: &mut Finding, watched: Duration) {
        finding.life = owner_state(&self.signs(session, finding, watched).await);
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
            self.look_again(&session, &mut finding, Duration::ZERO).await;
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
                    let held = findings[*session].held.as_ref();
                    (self.tell)(OwnershipNote::Waits { session, held, left: *left, again: reported.is_some() });
                }
                reported = Some(Instant::now());
            }
            sleep(POLL.min(left / 8).max(Duration::from_millis(100))).await;
            for (session, finding) in &mut findings {
                if wait.remaining(finding.life).is_some() {
                    self.look_again(session, finding, started.elapsed()).await;
                }
            }
        }
    }

    /// The signs of the owner of a session that was first seen as `first`, `watched` ago.
    async fn signs(&self, session: &SessionId, first: &mut Finding, watched: Duration) -> Evidence {
        let look = Look { session, first: first.held.as_ref(), watched, limit: heartbeat::timing().limit };
        let mut evidence = owners::signs(self.reader, look).await;
        let is_known = evidence.process.is_some();
        // Needed to take the session over also if its process is gone: its Lease may still be valid.
        if !is_known || watched.is_zero() {
            let leases = self.leases(session, first, watched).await;
            if !is_known {
                evidence.leases = leases;
            }
        }
        evidence
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

    /// Replaces the unknown states of sessions, as far as possible without waiting.
    pub async fn resolve_states(&self, rows: &mut [SessionRow]) {
        let unknown = rows.iter().filter(|row| row.state == SessionState::Unknown);
        let unknown: Vec<_> = unknown.map(|row| (row.session.id.clone(), Some(row.held.clone()))).collect();
        let findings = self.find(unknown, Wait::No).await;
        for row in rows {
            row.state = findings.get(&row.session.id).map_or(row.state, |finding| finding.life.shown());
        }
    }
}

/// Closes schedulers one after the other. Their jobs may run on.
async fn close(schedulers: &[InScope]) {
    for InScope { scheduler, .. } in schedulers {
        if let Err(error) = closed(scheduler, None, scheduler.limits().cleanup).await {
            tracing::warn!(error = chain(&error), "a scheduler was not closed");
        }
    }
}

/// Closes a scheduler, and returns what it has ended. One that does not answer within the limit is given up.
///
/// # Errors
/// See [`Scheduler::close`].
pub async fn closed(
    scheduler: &Arc<dyn Scheduler>,
    over: Option<&SessionId>,
    limit: Duration,
) -> Result<Vec<Removed>, SchedulerError> {
    timeout(limit, scheduler.close(over)).await.unwrap_or_else(|_| {
        tracing::debug!("a scheduler was not closed in time");
        Ok(Vec::new())
    })
}
