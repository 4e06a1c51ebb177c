//! Takes over a session whose owner is gone.
//!
//! ```text
//! look, wait -> PreviousOwner -> Leases by compare-and-swap -> row by compare-and-swap -> OwnedSession: what is stored of the session
//! ```
//! If two processes take a session over at the same time, one of them fails. The Leases come first: an owner that has lost only the
//! database, and renews a Lease meanwhile, keeps its session.

use crate::ownership::{InScope, Owners, Tell, Wait, close, heartbeat::SignOfLife};
use muster_core::{
    case::SessionId,
    decisions::liveness::OwnerState,
    error::SchedulerError,
    job::{inventory::Lease, scheduler::Job},
    result::CaseResult,
};
use muster_host::owner;
use muster_store::{JobRow, Reader, SessionRow, Store, StoreError};

/// The reason why a session was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// [`StoreError::Taken`]: another process was faster, or the owner lives after all.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// Running cases would be judged with other secrets than those that they were started with. Nothing has changed.
    #[error(
        "session {session} cannot be continued: what it has started needs the secret `{secret}` with the value that it had; set that \
         again, or begin another session with --restore-session={session}"
    )]
    Secret { session: SessionId, secret: String },
}

/// The owner of an abandoned session: the schedulers of the session, and its Leases there as they were seen.
pub struct PreviousOwner {
    schedulers: Vec<InScope>,
    leases: Vec<Vec<Lease>>,
}

/// A session that this process has taken over.
pub struct OwnedSession {
    pub store: Store,
    /// The sign of life: while it lasts, nobody else takes the session over.
    pub heartbeat: SignOfLife,
    /// They hold its Leases.
    pub schedulers: Vec<InScope>,
    pub results: Vec<CaseResult>,
    pub started: Vec<JobRow>,
    /// Teardowns that may still run.
    pub teardowns: Vec<JobRow>,
}

impl PreviousOwner {
    /// Waits until it is certain whether the owner is gone. `None`: it lives.
    pub async fn find(schedulers: Vec<InScope>, reader: &Reader, row: &SessionRow, tell: Tell<'_>) -> Option<Self> {
        if row.session.interrupted {
            // A signal ended it, and it has stored that. Its process may still write reports.
            let leases = vec![Vec::new(); schedulers.len()];
            return (owner::is_alive(&row.held.owner) != Some(true)).then_some(Self { schedulers, leases });
        }
        let owners = Owners { reader: Some(reader), schedulers: &schedulers, tell };
        let findings = owners.find([(row.session.id.clone(), Some(row.held.clone()))], Wait::UntilCertain).await;
        let gone = findings.into_values().next().filter(|finding| finding.life == OwnerState::Gone)?;
        Some(Self { schedulers, leases: gone.leases })
    }

    /// Makes this process the owner, and then reads what is stored of the session: no other process changes it any more. When another
    /// one takes it over in turn, `taken` runs.
    ///
    /// # Errors
    /// See [`TakeoverError`].
    pub async fn take_over<T: Send + 'static>(
        self,
        reader: &Reader,
        store: Store,
        row: &SessionRow,
        taken: impl Future<Output = T> + Send + 'static,
    ) -> Result<OwnedSession, TakeoverError> {
        let id = &row.session.id;
        let owned = async {
            let started = reader.unfinished(id).await?;
            if let Some(secret) = started.iter().find_map(|row| row.rules.as_ref().err()) {
                return Err(TakeoverError::Secret { session: id.clone(), secret: secret.clone() });
            }
            self.take_leases(id, started).await?;
            store.take_over(id, &row.held, &owner::this_owner()).await?;
            // What follows may take long: reading, rendering, connecting.
            let heartbeat = SignOfLife::start(&store, id, taken);
            Ok((heartbeat, reader.results(id).await?, reader.unfinished(id).await?, reader.teardowns(id).await?))
        };
        match owned.await {
            Ok((heartbeat, results, started, teardowns)) => {
                Ok(OwnedSession { store, heartbeat, schedulers: self.schedulers, results, started, teardowns })
            }
            Err(error) => {
                close(&self.schedulers).await;
                Err(error)
            }
        }
    }

    /// Takes the Leases that exist, and creates one in each place where something was started.
    async fn take_leases(&self, id: &SessionId, started: Vec<JobRow>) -> Result<(), TakeoverError> {
        let started: Vec<Job> = started.into_iter().map(|row| row.job).collect();
        for (InScope { name, scheduler, .. }, seen) in self.schedulers.iter().zip(&self.leases) {
            let jobs: Vec<Job> = started.iter().filter(|job| *job.scheduler == **name).cloned().collect();
            if !scheduler.take_over(id, &jobs, seen).await? {
                return Err(StoreError::Taken { session: id.clone() }.into());
            }
        }
        Ok(())
    }
}
