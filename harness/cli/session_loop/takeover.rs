//! From a session whose owner is dead to a session that is ours.
//!
//! ```text
//! look, watch -> Dead -> its Leases, by compare-and-swap -> its row, by compare-and-swap -> Taken: what is known of it
//! ```
//! Of two who take a session over at the same time one fails. The Leases come first: an owner that was only cut off from the
//! database, and renews one meanwhile, keeps its session.

use crate::{
    args::Cli,
    terminal::Terminal,
    wiring::owners::{self, Lives},
};
use muster_core::{case::SessionId, job::scheduler::Job, result::CaseResult};
use muster_host::owner;
use muster_k8s::{ClusterPlace, Handle, Kubernetes, LeaseSeen};
use muster_store::{JobRow, Reader, SessionRow, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What is known of an owner that is dead: the clusters of its session, and the Leases there as they were seen then.
pub struct Dead {
    kubernetes: Option<Arc<Kubernetes>>,
    leases: BTreeMap<ClusterPlace, LeaseSeen>,
}

/// A session that is ours.
pub struct Taken {
    pub store: Store,
    /// Holds its Leases.
    pub kubernetes: Option<Arc<Kubernetes>>,
    pub results: Vec<CaseResult>,
    pub begun: Vec<JobRow>,
    /// Teardowns that were begun, and may still run.
    pub teardowns: Vec<JobRow>,
}

impl Dead {
    /// Watches until it is certain; `None`: the owner lives.
    pub async fn certain(cli: &Cli, reader: &Reader, row: &SessionRow, terminal: Terminal) -> anyhow::Result<Option<Self>> {
        let begun = reader.unfinished(&row.session.id).await?;
        let jobs: Vec<&Job> = begun.iter().map(|row| &row.job).collect();
        let kubernetes = owners::clusters_that_answer(cli, &jobs);
        if row.session.interrupted {
            // It said good-bye.
            return Ok(Some(Self { kubernetes, leases: BTreeMap::new() }));
        }
        let lives = Lives { reader: Some(reader), kubernetes: kubernetes.as_deref(), terminal };
        let leases = lives.of_the_dead(row).await;
        Ok(leases.map(|leases| Self { kubernetes, leases }))
    }

    /// Makes this process the owner. What is known of the session is read after that: nobody else changes it any more.
    ///
    /// # Errors
    /// Somebody else was faster, or the owner lives after all.
    pub async fn take_over(self, reader: &Reader, store: Store, row: &SessionRow) -> anyhow::Result<Taken> {
        let id = &row.session.id;
        let taken = async {
            self.take_leases(reader, id).await?;
            store.take_over(id, &row.held, &owner::this_owner()).await?;
            anyhow::Ok((reader.results(id).await?, reader.unfinished(id).await?, reader.teardowns(id).await?))
        };
        match taken.await {
            Ok((results, begun, teardowns)) => Ok(Taken { store, kubernetes: self.kubernetes, results, begun, teardowns }),
            Err(error) => {
                if let Some(kubernetes) = &self.kubernetes {
                    kubernetes.close().await;
                }
                Err(error)
            }
        }
    }

    /// Those that there are, and one wherever something was begun.
    async fn take_leases(&self, reader: &Reader, id: &SessionId) -> anyhow::Result<()> {
        let Some(kubernetes) = &self.kubernetes else { return Ok(()) };
        let begun = reader.unfinished(id).await?;
        let of_jobs = begun.iter().filter(|row| row.job.scheduler.is_kubernetes()).filter_map(|row| Handle::of(&row.job).ok());
        let places: BTreeSet<ClusterPlace> = of_jobs.map(|handle| handle.place).chain(self.leases.keys().cloned()).collect();
        // In one order, so that of two each does not get one.
        for place in places {
            if !kubernetes.take_over(&place, id, self.leases.get(&place)).await? {
                return Err(StoreError::Taken { session: id.clone() }.into());
            }
        }
        Ok(())
    }
}
