//! Takes over a session whose owner is gone.
//!
//! ```text
//! look, wait -> PreviousOwner -> Leases by compare-and-swap -> row by compare-and-swap -> TakenOver: what is stored of the session
//! ```
//! If two processes take a session over at the same time, one of them fails. The Leases come first: an owner that has lost only the
//! database, and renews a Lease meanwhile, keeps its session.

use crate::{
    args::Cli,
    terminal::Terminal,
    wiring::owners::{self, Owners},
};
use muster_core::{case::SessionId, job::scheduler::Job, result::CaseResult};
use muster_host::owner;
use muster_k8s::{ClusterPlace, Handle, Kubernetes, LeaseSeen};
use muster_store::{JobRow, Reader, SessionRow, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The owner of an abandoned session: the clusters of the session, and its Leases there as they were seen.
pub struct PreviousOwner {
    kubernetes: Option<Arc<Kubernetes>>,
    leases: BTreeMap<ClusterPlace, LeaseSeen>,
}

/// A session that this process has taken over.
pub struct TakenOver {
    pub store: Store,
    /// Holds its Leases.
    pub kubernetes: Option<Arc<Kubernetes>>,
    pub results: Vec<CaseResult>,
    pub started: Vec<JobRow>,
    /// Teardowns that may still run.
    pub teardowns: Vec<JobRow>,
}

impl PreviousOwner {
    /// Waits until it is certain whether the owner is gone. `None`: it lives.
    pub async fn find(cli: &Cli, reader: &Reader, row: &SessionRow, terminal: Terminal) -> anyhow::Result<Option<Self>> {
        let started = reader.unfinished(&row.session.id).await?;
        let jobs: Vec<&Job> = started.iter().map(|row| &row.job).collect();
        let kubernetes = owners::clusters_that_answer(cli, &jobs);
        if row.session.interrupted {
            // A signal ended it, and it has stored that.
            return Ok(Some(Self { kubernetes, leases: BTreeMap::new() }));
        }
        let owners = Owners { reader: Some(reader), kubernetes: kubernetes.as_deref(), terminal };
        let leases = owners.leases_if_owner_is_gone(row).await;
        Ok(leases.map(|leases| Self { kubernetes, leases }))
    }

    /// Makes this process the owner, and then reads what is stored of the session: no other process changes it any more.
    ///
    /// # Errors
    /// Another process was faster, or the owner lives after all.
    pub async fn take_over(self, reader: &Reader, store: Store, row: &SessionRow) -> anyhow::Result<TakenOver> {
        let id = &row.session.id;
        let taken = async {
            self.take_leases(reader, id).await?;
            store.take_over(id, &row.held, &owner::this_owner()).await?;
            anyhow::Ok((reader.results(id).await?, reader.unfinished(id).await?, reader.teardowns(id).await?))
        };
        match taken.await {
            Ok((results, started, teardowns)) => {
                Ok(TakenOver { store, kubernetes: self.kubernetes, results, started, teardowns })
            }
            Err(error) => {
                if let Some(kubernetes) = &self.kubernetes {
                    kubernetes.close().await;
                }
                Err(error)
            }
        }
    }

    /// Takes the Leases that exist, and creates one in each place where something was started.
    async fn take_leases(&self, reader: &Reader, id: &SessionId) -> anyhow::Result<()> {
        let Some(kubernetes) = &self.kubernetes else { return Ok(()) };
        let started = reader.unfinished(id).await?;
        let of_jobs = started.iter().filter(|row| row.job.scheduler.is_kubernetes()).filter_map(|row| Handle::of(&row.job).ok());
        let places: BTreeSet<ClusterPlace> = of_jobs.map(|handle| handle.place).chain(self.leases.keys().cloned()).collect();
        // In a fixed order, so that two processes do not get one each.
        for place in places {
            if !kubernetes.take_over(&place, id, self.leases.get(&place)).await? {
                return Err(StoreError::Taken { session: id.clone() }.into());
            }
        }
        Ok(())
    }
}
