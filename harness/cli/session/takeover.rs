//! Takes over a session whose owner is gone.
//!
//! ```text
//! look, wait -> PreviousOwner -> Leases by compare-and-swap -> row by compare-and-swap -> OwnedSession: what is stored of the session
//! ```
//! If two processes take a session over at the same time, one of them fails. The Leases come first: an owner that has lost only the
//! database, and renews a Lease meanwhile, keeps its session.

use crate::{
    args::Cli,
    session::leave::SignOfLife,
    terminal::Terminal,
    wiring::{
        self,
        owners::Owners,
        scope::{self, InScope},
    },
};
use anyhow::bail;
use muster_core::{
    case::SessionId,
    job::{inventory::Lease, scheduler::Job},
    result::CaseResult,
};
use muster_host::owner;
use muster_store::{JobRow, Reader, SessionRow, Store, StoreError};

/// The owner of an abandoned session: the schedulers of the session, and its Leases there as they were seen.
pub struct PreviousOwner {
    schedulers: Vec<InScope>,
    leases: Vec<Vec<Lease>>,
}

/// A session that this process has taken over.
pub struct OwnedSession {
    pub store: Store,
    /// From here on nobody else takes it over.
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
    pub async fn find(cli: &Cli, reader: &Reader, row: &SessionRow, terminal: Terminal) -> anyhow::Result<Option<Self>> {
        let started = reader.unfinished(&row.session.id).await?;
        let schedulers = scope::in_scope(cli, started.iter().map(|row| &row.job)).schedulers;
        if row.session.interrupted {
            // A signal ended it, and it has stored that. Its process may still write reports.
            if owner::is_alive(&row.held.owner) == Some(true) {
                return Ok(None);
            }
            return Ok(Some(Self { leases: vec![Vec::new(); schedulers.len()], schedulers }));
        }
        let owners = Owners { reader: Some(reader), schedulers: &schedulers, terminal };
        let leases = owners.leases_if_owner_is_gone(row).await;
        Ok(leases.map(|leases| Self { schedulers, leases }))
    }

    /// Makes this process the owner, and then reads what is stored of the session: no other process changes it any more.
    ///
    /// # Errors
    /// Another process was faster, or the owner lives after all. Or what runs would be judged with other secrets than it was started
    /// with: nothing has changed then.
    pub async fn take_over(
        self,
        reader: &Reader,
        store: Store,
        row: &SessionRow,
        terminal: Terminal,
    ) -> anyhow::Result<OwnedSession> {
        let id = &row.session.id;
        let taken = async {
            let started = reader.unfinished(id).await?;
            if let Some(secret) = started.iter().find_map(|row| row.rules.as_ref().err()) {
                bail!(
                    "session {id} cannot be continued: what it has started needs the secret `{secret}` with the value that it had; set that \
                     again, or begin another session with --restore-session={id}"
                );
            }
            self.take_leases(id, started).await?;
            store.take_over(id, &row.held, &owner::this_owner()).await?;
            // What follows may take long: reading, rendering, connecting.
            let heartbeat = SignOfLife::start(&store, id, terminal);
            anyhow::Ok((heartbeat, reader.results(id).await?, reader.unfinished(id).await?, reader.teardowns(id).await?))
        };
        match taken.await {
            Ok((heartbeat, results, started, teardowns)) => {
                Ok(OwnedSession { store, heartbeat, schedulers: self.schedulers, results, started, teardowns })
            }
            Err(error) => {
                wiring::close(self.schedulers.iter().map(|connected| &connected.scheduler), None).await;
                Err(error)
            }
        }
    }

    /// Takes the Leases that exist, and creates one in each place where something was started.
    async fn take_leases(&self, id: &SessionId, started: Vec<JobRow>) -> anyhow::Result<()> {
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
