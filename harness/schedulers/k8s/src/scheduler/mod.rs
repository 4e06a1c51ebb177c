//! The scheduler of Kubernetes partitions: implements the trait `Scheduler` with the other directories.

mod doctor;
mod scope;

use crate::{
    api::{ClusterPlace, NAME, ServerClock},
    cleanup,
    client::{ApiError, Budget, Cluster, Contexts, Shares, Timeouts},
    inventory::nodes::Node,
    job::{Handle, JobState, Observed, Seen},
    launch,
    logs::{self, Pace},
    manifest::pod_templates,
    plan,
    session::{SharedState, lease},
    status::assess,
    watch::watch_error,
};
use futures_util::TryFutureExt;
use muster_core::{
    case::SessionId,
    decisions::liveness::HeartbeatTiming,
    error::{Class, SchedulerError},
    job::{
        descriptor::Harness,
        handle::JobHandle,
        inventory::{Examined, Inventory, Lease, Removed, Scope},
        scheduler::{
            Chunks, Disposition, Finding, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, NodeSeen, Nodes, Scheduler, Staged,
        },
        workload::Workload,
    },
    probe::Probe,
};
use muster_stage::Stager;
use muster_text::{Value, diagnostic::Diagnostic};
use parking_lot::Mutex;
use std::{collections::BTreeMap, future::pending, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep, sleep_until},
};

type Cell<T> = Arc<OnceCell<Arc<T>>>;

/// Pods, Jobs and custom resources on the clusters of a kubeconfig, or on the one that Muster runs in.
///
/// One instance serves all Kubernetes partitions of a session, and as many sessions as are attached.
#[derive(Default)]
pub struct Kubernetes {
    contexts: Contexts,
    timing: HeartbeatTiming,
    budget: Arc<Budget>,
    timeouts: Timeouts,
    clusters: Mutex<BTreeMap<ClusterPlace, Cell<Cluster>>>,
    /// By context, as they were when they were listed.
    nodes: Mutex<BTreeMap<Option<String>, Cell<Vec<Node>>>>,
    shared_states: Mutex<BTreeMap<(ClusterPlace, SessionId), Cell<SharedState>>>,
    stager: Stager,
}

impl Kubernetes {
    /// Sends no request before the first launch.
    pub fn new(contexts: Contexts) -> Self {
        Self { contexts, ..Self::default() }
    }

    /// A scheduler within the limits of the process that uses it.
    pub fn within(contexts: Contexts, harness: &Harness) -> Self {
        let timing = HeartbeatTiming::with_limit(harness.heartbeat_limit);
        Self::new(contexts).within_open_files(harness.open_files).with_heartbeat(timing)
    }

    /// Limits the connections to what a process with so many open files can have.
    #[must_use]
    pub fn within_open_files(self, limit: u64) -> Self {
        Self { budget: Arc::new(Budget::new(Shares::of_open_files(limit))), ..self }
    }

    /// Sets the interval and the limit of the Lease.
    #[must_use]
    pub fn with_heartbeat(self, timing: HeartbeatTiming) -> Self {
        Self { timing, ..self }
    }

    /// Sets the timeouts of silent connections: for tests.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// The connection to a place.
    pub(crate) async fn cluster(&self, place: &ClusterPlace) -> Result<Arc<Cluster>, SchedulerError> {
        let cell = Arc::clone(self.clusters.lock().entry(place.clone()).or_default());
        let connect = || async {
            let cluster = Cluster::connect_within(place, Arc::clone(&self.budget)).await;
            Ok(cluster.map_err(|error| ApiError::from(error).classify())?.with_timeouts(self.timeouts))
        };
        cell.get_or_try_init(connect).await.map(Arc::clone)
    }

    async fn shared(&self, place: &ClusterPlace, session: &SessionId) -> Result<Arc<SharedState>, SchedulerError> {
        let cell = {
            let mut shared_states = self.shared_states.lock();
            Arc::clone(shared_states.entry((place.clone(), session.clone())).or_default())
        };
        let open = || async { Ok(Arc::new(SharedState::new(self.cluster(place).await?, session, self.timing))) };
        cell.get_or_try_init(open).await.map(Arc::clone)
    }

    async fn of(&self, job: &Job) -> Result<(Arc<SharedState>, Arc<Handle>), SchedulerError> {
        let handle = Handle::of(job).map_err(|error| {
            SchedulerError::new(Class::Config, format!("the stored job {} cannot be read", job.identifier), error)
        })?;
        Ok((self.shared(&handle.place, &job.session).await?, handle))
    }

    async fn status(&self, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let (shared, handle) = self.of(job).await?;
        let mut observed = shared.observe(job, &handle);
        let mut health = shared.watch.health();
        loop {
            let now = Arc::clone(&observed.borrow_and_update());
            let clock = shared.cluster.clock();
            let assessment = assess(&handle, &now, clock.now());
            match assessment.state {
                JobState::Status(status) => {
                    let status = by_our_clock(status, clock);
                    if Some(&status) != seen {
                        return Ok(status);
                    }
                }
                JobState::Hopeless(why) => return Err(SchedulerError::plain(Class::Config, why)),
                JobState::Broken(why) => return Err(SchedulerError::plain(Class::Infra, why)),
            }
            if has_unlabelled_pods(&now) {
                shared.watch.find_unlabelled(&job.identifier, &handle);
            }
            let workload = handle.workload().map(|object| &object.resource);
            watch_error(&health.borrow_and_update(), &job.identifier, |source| {
                source.resource.is_pod() || Some(&source.resource) == workload
            })?;
            tokio::select! {
                changed = observed.changed() => if changed.is_err() {
                    observed = shared.observe(job, &handle);
                },
                _ = health.changed() => {}
                () = after(assessment.recheck_in) => {}
                () = look_for_trouble(&shared, job), if assessment.stuck => {}
            }
        }
    }
}

/// The first reason why a workload that is to be checked cannot run here.
fn not_planned(mistakes: Vec<Diagnostic>) -> SchedulerError {
    SchedulerError::plain(Class::Config, mistakes.into_iter().next().map_or_else(String::new, |mistake| mistake.message))
}

impl Scheduler for Kubernetes {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        let handle = plan::plan(workload, &self.contexts)?.handle;
        Ok(Job::of(workload, NAME, JobHandle::of(handle)))
    }

    fn check(&self, workload: &Workload) -> Result<(), Vec<Diagnostic>> {
        match plan::out_of_reach(workload, &self.contexts) {
            Some(why) => Err(vec![why]),
            None => plan::plan(workload, &self.contexts).map(drop),
        }
    }

    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        Ok(Some(plan::plan(workload, &self.contexts)?.preview(&self.contexts)))
    }

    fn dry_run<'a>(&'a self, workload: &'a Workload) -> Fut<'a, Option<Vec<String>>> {
        Box::pin(async {
            let handle = plan::plan(workload, &self.contexts).map_err(not_planned)?.handle;
            // Without a server nothing was refused.
            let cluster = self.cluster(&handle.place).await.map_err(|error| SchedulerError { class: Class::Outage, ..error })?;
            let warnings = launch::dry_run(&cluster, &handle).await;
            warnings.map(Some).map_err(ApiError::classify)
        })
    }

    fn preflight<'a>(&'a self, workloads: &'a mut (dyn Iterator<Item = Workload> + Send)) -> Fut<'a, Vec<Finding>> {
        Box::pin(self.look_ahead(workloads))
    }

    fn probes<'a>(&'a self, examined: Examined<'a>) -> Vec<Probe<'a>> {
        self.questions(examined)
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move {
            let (shared, handle) = self.of(job).await?;
            launch::launch(&shared, job, Arc::unwrap_or_clone(handle)).await
        })
    }

    fn stage<'a>(&'a self, job: &'a Job, mut cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        let handle = Handle::of(job).ok()?;
        let staging = handle.sources.clone()?;
        let what = staging.folder.display().to_string();
        let done = Box::pin(async move { self.stager.stage(staging, job.stage.clone(), cancelled.as_mut()).await });
        Some(Staged { what, done })
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(self.status(job, seen))
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        let following = async move {
            let (shared, handle) = self.of(job).await?;
            let observed = shared.observe(job, &handle);
            Ok(logs::collect(Pace::default(), Arc::clone(&shared.cluster), handle, observed, from))
        };
        Box::pin(following.try_flatten_stream())
    }

    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(async move {
            let (shared, handle) = self.of(job).await?;
            cleanup::cleanup(&shared, job, &handle, how).await
        })
    }

    fn nodes<'a>(&'a self, workload: &'a Workload, state: &'a str) -> Fut<'a, Nodes> {
        Box::pin(self.nodes_of(workload, state))
    }

    fn describe_nodes<'a>(&'a self, partitions: &'a [Value]) -> Fut<'a, Vec<NodeSeen>> {
        Box::pin(async { Ok(self.described_nodes(partitions).await) })
    }

    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        Box::pin(async { Ok(self.look(scope).await) })
    }

    fn leases<'a>(&'a self, scope: &'a Scope, session: &'a SessionId) -> Fut<'a, Vec<Lease>> {
        Box::pin(async { Ok(self.leases_of(scope, session).await) })
    }

    fn take_over<'a>(&'a self, session: &'a SessionId, jobs: &'a [Job], seen: &'a [Lease]) -> Fut<'a, bool> {
        Box::pin(self.take_leases(session, jobs, seen))
    }

    fn delete_lease<'a>(&'a self, lease: &'a Lease) -> Fut<'a, ()> {
        Box::pin(async move {
            let Some(place) = lease::read_place(&lease.place) else { return Ok(()) };
            lease::delete(&*self.cluster(&place).await?, lease).await.map_err(ApiError::classify)
        })
    }

    fn close<'a>(&'a self, _over: Option<&'a SessionId>) -> Fut<'a, Vec<Removed>> {
        Box::pin(async {
            let shared_states: Vec<Cell<SharedState>> = {
                let mut shared_states = self.shared_states.lock();
                std::mem::take(&mut *shared_states).into_values().collect()
            };
            for shared in shared_states.iter().filter_map(|cell| cell.get()) {
                shared.lease.release().await;
            }
            tracing::debug!(requests = %self.requests(), "the clusters were asked");
            Ok(Vec::new())
        })
    }
}

/// The session continues from a start by this machine's clock.
fn by_our_clock(status: JobStatus, clock: &ServerClock) -> JobStatus {
    match status {
        JobStatus::Running { since, nodes, partly_ended, has_ended } => {
            JobStatus::Running { since: clock.here(since), nodes, partly_ended, has_ended }
        }
        status => status,
    }
}

/// The workload exists without pods, and its pods cannot or do not have Muster's label.
fn has_unlabelled_pods(observed: &Observed) -> bool {
    let Seen::Present(object) = &observed.workload else { return false };
    observed.pods.is_empty() && is_label_lost(object)
}

/// A kind without pod templates (they are elsewhere), or one whose schema dropped the label.
fn is_label_lost(workload: &Value) -> bool {
    let templates = pod_templates(workload);
    let labelled = |template: &Value| template["metadata"]["labels"].get(crate::api::LABEL).is_some();
    !templates.iter().all(|(template, _)| labelled(template)) || templates.is_empty()
}

async fn after(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => pending().await,
    }
}

/// Returns when there is something new to assess.
async fn look_for_trouble(shared: &SharedState, job: &Job) {
    loop {
        match shared.watch.trouble(&job.identifier).await {
            Some(due) => sleep_until(due.max(Instant::now())).await,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
