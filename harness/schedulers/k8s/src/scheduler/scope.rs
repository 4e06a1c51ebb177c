//! The places of a scope, one after the other: what there is, the Leases, and who holds them.

use super::Kubernetes;
use crate::{
    api::ClusterPlace,
    client::{ApiError, ContextError, Requests},
    inventory::{Known, add_place, nodes, not_looked_at},
    job::Handle,
    plan,
    preflight::{self, Need, Needs},
    session::lease,
};
use futures_util::future::join_all;
use muster_core::{
    case::SessionId,
    error::{Class, SchedulerError, chain},
    job::{
        inventory::{Inventory, Lease, Scope},
        scheduler::{Finding, Job, NodeSeen, Nodes},
        workload::Workload,
    },
};
use muster_text::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{task::yield_now, time::timeout};

/// How long launches wait for what a place says of them.
const PREFLIGHT_LIMIT: Duration = Duration::from_secs(10);
/// How long a session waits for the description of nodes.
const NODES_LIMIT: Duration = Duration::from_secs(4);
/// How long to wait for a Lease. Without an answer there is none.
const ANSWER: Duration = Duration::from_secs(15);

impl Kubernetes {
    /// The nodes of a workload's cluster, each cluster asked once.
    pub(super) async fn nodes_of(&self, workload: &Workload, state: &str) -> Result<Nodes, SchedulerError> {
        let text = |key: &str| workload.sched_options[key].as_str();
        let place = self.contexts.place(text("context"), text("namespace")).map_err(no_cluster)?;
        let cell = Arc::clone(self.nodes.lock().entry(place.context.clone()).or_default());
        let list = || async { nodes::listed(&*self.cluster(&place).await?).await.map(Arc::new) };
        let nodes = cell.get_or_try_init(list).await?;
        let mut found = Nodes::default();
        for node in nodes.iter() {
            match node.away.filter(|_| state != "all") {
                None => found.names.push(node.name.clone()),
                Some(why) => found.left_out.push(format!("{} {why}", node.name)),
            }
        }
        Ok(found)
    }

    /// What the clusters of some partitions say of their nodes. One that does not answer in time, or may not be asked, says nothing.
    pub(super) async fn described_nodes(&self, partitions: &[Value]) -> Vec<NodeSeen> {
        let place = |options: &Value| self.contexts.place(options["context"].as_str(), options["namespace"].as_str()).ok();
        // Nodes have no namespace.
        let places: BTreeMap<Option<String>, ClusterPlace> =
            partitions.iter().filter_map(place).map(|place| (place.context.clone(), place)).collect();
        let look = async |place: ClusterPlace| {
            let look = async { nodes::described(&*self.cluster(&place).await?).await.map_err(ApiError::classify) };
            match timeout(NODES_LIMIT, look).await {
                Ok(Ok(nodes)) => return nodes,
                Ok(Err(error)) => tracing::debug!(%place, error = chain(&error), "nothing is known of nodes"),
                Err(_) => tracing::debug!(%place, "nothing is known of nodes: no answer"),
            }
            Vec::new()
        };
        join_all(places.into_values().map(look)).await.concat()
    }

    /// What the clusters of these workloads say of them. A place that does not answer in time says nothing.
    pub(super) async fn look_ahead(
        &self,
        workloads: &mut (dyn Iterator<Item = Workload> + Send),
    ) -> Result<Vec<Finding>, SchedulerError> {
        let (mut needs, mut session) = (Needs::default(), None);
        for (at, workload) in workloads.enumerate() {
            if let Ok(plan) = plan::plan(&workload, &self.contexts) {
                needs.add(at, &plan.handle);
            }
            session.get_or_insert(workload.session);
            // So that the session can be cancelled meanwhile.
            yield_now().await;
        }
        let (Needs(places), Some(session)) = (needs, session) else { return Ok(Vec::new()) };
        let look = async |(place, needs): (&ClusterPlace, &BTreeMap<Need, Vec<usize>>)| {
            let look = async {
                let shared = self.shared(place, &session).await?;
                preflight::ask(&shared, needs).await.map_err(ApiError::classify)
            };
            match timeout(PREFLIGHT_LIMIT, look).await {
                Ok(Ok(findings)) => return findings,
                Ok(Err(error)) => tracing::debug!(%place, error = chain(&error), "a preflight leaves a place to the launch"),
                Err(_) => tracing::debug!(%place, "a preflight leaves a place to the launch: no answer"),
            }
            Vec::new()
        };
        Ok(join_all(places.iter().map(look)).await.concat())
    }

    /// What was sent to all clusters so far.
    pub(super) fn requests(&self) -> Requests {
        let clusters = self.clusters.lock();
        let mut sum = Requests::default();
        for cluster in clusters.values().filter_map(|cell| cell.get()) {
            sum.add(&cluster.requests());
        }
        sum
    }

    /// Places that cannot be read are listed in it.
    pub(super) async fn look(&self, scope: &Scope) -> Inventory {
        let known = Known::of(scope, &self.contexts);
        let (mut inventory, mut seen, mut unknown) = (Inventory::default(), BTreeSet::new(), Vec::new());
        for place in &known.places {
            if place.context.as_ref().is_some_and(|context| !self.contexts.has(context)) {
                unknown.push(not_looked_at(place, &scope.jobs));
                continue;
            }
            let looked = async {
                let cluster = self.cluster(place).await?;
                add_place(&mut inventory, &cluster, &known).await.map_err(ApiError::classify)
            };
            match looked.await {
                Ok(true) => drop(seen.insert(place)),
                Ok(false) => {}
                Err(error) => inventory.blind.push(error),
            }
        }
        inventory.notes.extend(unknown);
        let is_absent = |job: &&Job| {
            let is_seen = Handle::of(job).is_ok_and(|handle| seen.contains(&handle.place));
            is_seen && !inventory.found.iter().any(|found| found.job.is_same(job))
        };
        inventory.absent = scope.jobs.iter().filter(is_absent).map(Job::id).collect();
        inventory.found.sort_by(|one, other| one.job.identifier.cmp(&other.job.identifier));
        inventory.blind.extend(known.errors.into_iter().map(no_cluster));
        inventory
    }

    /// A place that cannot be asked, or does not answer, has none.
    pub(super) async fn leases_of(&self, scope: &Scope, session: &SessionId) -> Vec<Lease> {
        let look = async |place: ClusterPlace| {
            let look = async { lease::look(&*self.cluster(&place).await?, session).await.map_err(ApiError::classify) };
            match timeout(ANSWER, look).await {
                Ok(Ok(seen)) => return seen.map(|seen| seen.into_lease(&place, session.clone())),
                Ok(Err(error)) => tracing::debug!(%place, error = chain(&error), "no Lease is seen"),
                Err(_) => tracing::debug!(%place, "no Lease is seen: no answer"),
            }
            None
        };
        join_all(Known::of(scope, &self.contexts).places.into_iter().map(look)).await.into_iter().flatten().collect()
    }

    /// Takes the Leases that there are, and creates one in each place of the jobs.
    pub(super) async fn take_leases(&self, session: &SessionId, jobs: &[Job], seen: &[Lease]) -> Result<bool, SchedulerError> {
        let of_jobs = jobs.iter().filter_map(|job| Some((Handle::of(job).ok()?.place.clone(), None)));
        let of_leases = seen.iter().filter_map(|lease| Some((lease::read_place(&lease.place)?, Some(lease.version.as_str()))));
        // In a fixed order, so that two processes do not get one each.
        let places: BTreeMap<ClusterPlace, Option<&str>> = of_jobs.chain(of_leases).collect();
        for (place, version) in places {
            if !self.shared(&place, session).await?.lease.take_over(version).await.map_err(ApiError::classify)? {
                return Ok(false);
            }
        }
        for job in jobs {
            if let Ok((shared, handle)) = self.of(job).await
                && handle.workload().is_some_and(|object| object.uid.is_none())
            {
                shared.set_unanswered(&job.identifier, true);
            }
        }
        Ok(true)
    }
}

fn no_cluster(error: ContextError) -> SchedulerError {
    SchedulerError::new(Class::Config, "find the cluster of a partition", error)
}
