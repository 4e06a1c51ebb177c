//! One watch for all jobs of a session in a place, however many there are: pods by the session's label, and each kind of workload.
//!
//! ```text
//! register(job) ---------> Tracked (a level: Arc<Observed>) ---changed---> wait, logs, end
//!                              ^
//! follow(pods, rfm-session)  --+-- by label rfm
//! follow(kind, rfm-session)  --+
//! follow(pods, rule's selector | pods owned by the workload): only where our label does not reach the pods
//! trouble(job): events and what Kueue says, requested while nothing changes
//! ```
//! Not done here: judging. `status` says what an `Observed` means.

mod follow;
mod health;
mod job;
mod owners;
mod ownership;
mod trouble;

pub(crate) use health::watch_error;

use crate::{
    api::{LABEL, Resource, SESSION_LABEL},
    client::{Cluster, Watched},
    job::{Handle, Observed, replaced_pods::controller},
};
use follow::{Change, Pace, Sink, Source, follow};
use health::{Health, Outages};
use job::Tracked;
use k8s_openapi::api::core::v1::Pod;
use muster_core::case::{Identifier, SessionId};
use muster_text::Value;
use owners::{Chain, Owners};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::Instant,
};

/// The watches of one session in one place.
pub(crate) struct Watch {
    cluster: Arc<Cluster>,
    session: SessionId,
    jobs: Jobs,
    owners: Arc<Owners>,
    health: Health,
    pace: Pace,
    shared: Mutex<BTreeMap<Source, Running>>,
    /// For jobs whose pods do not carry our label.
    extra: Mutex<BTreeMap<Identifier, Running>>,
    /// When the next of the jobs that have waited for long may be asked about.
    ration: Mutex<Instant>,
}

#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<BTreeMap<Identifier, Tracked>>>);

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Identifier, Tracked>> {
        self.0.lock()
    }

    /// Passes a change to the job that the object's label names, or `Listed` to all jobs of `kind`.
    fn take<T: Watched>(&self, change: Change<T>, kind: fn(&Tracked) -> bool, apply: fn(&Tracked, T, bool)) {
        let mut jobs = self.lock();
        let (object, gone) = match change {
            Change::Applied(object) => (object, false),
            Change::Deleted(object) => (object, true),
            Change::Vanished(uid) => return jobs.values().for_each(|job| job.vanished(&uid)),
            Change::Listed => return jobs.values_mut().filter(|job| kind(job)).for_each(Tracked::listed),
        };
        let job = object.label(LABEL).and_then(Identifier::parse).and_then(|identifier| jobs.get(&identifier));
        if let Some(job) = job {
            apply(job, object, gone);
        }
    }
}

/// A watch, ended when this is dropped.
struct Running {
    task: JoinHandle<()>,
    resync: Arc<Notify>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    /// Nothing is asked before the first job is registered.
    pub(crate) fn new(cluster: Arc<Cluster>, session: SessionId) -> Self {
        let (jobs, health, pace) = (Jobs::default(), Health::new(), Pace::default());
        let ration = Mutex::new(Instant::now());
        let owners = Arc::new(Owners::new(Arc::clone(&cluster)));
        Self { cluster, session, jobs, owners, health, pace, shared: Mutex::default(), extra: Mutex::default(), ration }
    }

    /// Watches a job that is about to be created: nothing of it can have been missed.
    pub(crate) fn register(&self, identifier: &Identifier, handle: &Handle) -> watch::Receiver<Arc<Observed>> {
        self.tracked(identifier, handle, false)
    }

    /// It exists, under this uid: what an earlier job of the same name was, the watch may still report.
    pub(crate) fn launched(&self, identifier: &Identifier, handle: &Handle) {
        if let Some(tracked) = self.jobs.lock().get_mut(identifier) {
            tracked.launched(handle);
        }
    }

    /// Watches a job that may exist since long ago, unless it is watched already.
    pub(crate) fn observe(&self, identifier: &Identifier, handle: &Handle) -> watch::Receiver<Arc<Observed>> {
        let was_launched = handle.workload().is_some_and(|object| object.uid.is_some());
        self.tracked(identifier, handle, was_launched)
    }

    fn tracked(&self, identifier: &Identifier, handle: &Handle, is_adopted: bool) -> watch::Receiver<Arc<Observed>> {
        let (receiver, is_new) = {
            let mut jobs = self.jobs.lock();
            let is_new = !jobs.contains_key(identifier);
            let tracked =
                jobs.entry(identifier.clone()).or_insert_with(|| Tracked::new(handle, self.cluster.clock().clone(), is_adopted));
            (tracked.receiver(), is_new)
        };
        if is_new {
            let pod = Resource::of("v1", "Pod");
            let workload = handle.workload().map(|object| object.resource.clone());
            self.share(pod, is_adopted);
            if let Some(resource) = workload.filter(|resource| !resource.is_pod()) {
                self.share(resource, is_adopted);
            }
        }
        receiver
    }

    /// Starts the shared watch of a kind. With `resync`, one that runs reports every object again.
    fn share(&self, resource: Resource, resync: bool) {
        let source = Source { resource, selector: Some(format!("{SESSION_LABEL}={}", self.session)), job: None };
        let mut shared = self.shared.lock();
        match shared.get(&source) {
            Some(running) if resync => running.resync.notify_one(),
            Some(_) => {}
            None => {
                let jobs = self.jobs.clone();
                let running = if source.resource.is_pod() {
                    self.start(source.clone(), Pods { jobs, owners: Arc::clone(&self.owners) })
                } else {
                    self.start(source.clone(), Workloads(jobs))
                };
                shared.insert(source, running);
            }
        }
    }

    fn start<T: Watched>(&self, source: Source, sink: impl Sink<T> + 'static) -> Running {
        let resync = Arc::new(Notify::new());
        let report = self.health.of(source.clone());
        let following = follow(Arc::clone(&self.cluster), source, Arc::clone(&resync), report, self.pace.clone(), sink);
        Running { task: tokio::spawn(following), resync }
    }

    /// Watches pods without Muster's label: by the selector of the kind, else by their owners. Idempotent.
    pub(crate) fn find_unlabelled(&self, identifier: &Identifier, handle: &Handle) {
        let Some(workload) = handle.workload().filter(|object| !object.resource.is_pod()) else { return };
        let mut extra = self.extra.lock();
        if extra.contains_key(identifier) {
            return;
        }
        tracing::debug!(%identifier, kind = workload.resource.kind, "its pods do not carry our label: another watch");
        let selector = handle.rules.pods.selector.as_ref().map(|selector| selector.replace("{name}", &workload.name));
        let (owners, by_selector) = (Arc::clone(&self.owners), selector.is_some());
        let sink = PodsOfJob { jobs: self.jobs.clone(), identifier: identifier.clone(), owners, by_selector };
        let source = Source { resource: Resource::of("v1", "Pod"), selector, job: Some(identifier.clone()) };
        let running = self.start(source, sink);
        extra.insert(identifier.clone(), running);
    }

    /// How many pods of a job have been seen.
    pub(crate) fn pods_of(&self, identifier: &Identifier) -> u32 {
        let pods = self.jobs.lock().get(identifier).map_or(0, |tracked| tracked.observed().pods.len());
        u32::try_from(pods).unwrap_or(u32::MAX)
    }

    /// Stops tracking a job.
    pub(crate) fn forget(&self, identifier: &Identifier) {
        self.jobs.lock().remove(identifier);
        self.extra.lock().remove(identifier);
    }

    /// What vanishes of the job from now on was deleted by Muster.
    pub(crate) fn deleted_by_us(&self, identifier: &Identifier) {
        if let Some(tracked) = self.jobs.lock().get_mut(identifier) {
            tracked.deleted_by_us();
        }
    }

    /// No node of what still runs of the job answers.
    pub(crate) fn unreachable(&self, identifier: &Identifier) {
        if let Some(tracked) = self.jobs.lock().get(identifier) {
            tracked.unreachable();
        }
    }

    /// Which watches fail.
    pub(crate) fn health(&self) -> watch::Receiver<Outages> {
        self.health.receiver()
    }

    /// Asks why a job does not move and puts it into its `Observed`; `Some`: not before then.
    pub(crate) async fn trouble(&self, identifier: &Identifier) -> Option<Instant> {
        let (observed, is_composed) = {
            let mut jobs = self.jobs.lock();
            let tracked = jobs.get_mut(identifier)?;
            if let Some(due) = tracked.trouble_turn(Instant::now(), &mut self.ration.lock()) {
                return Some(due);
            }
            (tracked.observed(), tracked.is_composed)
        };
        let trouble = trouble::ask(&self.cluster, identifier, &observed, is_composed).await;
        let mut jobs = self.jobs.lock();
        let tracked = jobs.get_mut(identifier)?;
        tracked.trouble(trouble);
        tracked.trouble_turn(Instant::now(), &mut self.ration.lock())
    }
}

/// Pods that carry our labels.
struct Pods {
    jobs: Jobs,
    owners: Arc<Owners>,
}

impl Sink<Pod> for Pods {
    async fn take(&self, change: Change<Pod>) {
        if let Change::Applied(pod) = &change {
            self.prove(pod);
        }
        self.jobs.take(change, |job| job.is_pod, Tracked::pod);
    }
}

impl Pods {
    /// Asks whose an owner is that the job does not know, and takes its pods away if they are another's. The watch does not wait for it.
    fn prove(&self, pod: &Pod) {
        let Some(identifier) = pod.label(LABEL).and_then(Identifier::parse) else { return };
        let Some(roots) = self.jobs.lock().get(&identifier).and_then(|job| job.to_prove(pod)) else { return };
        let (jobs, owners, pod) = (self.jobs.clone(), Arc::clone(&self.owners), pod.clone());
        tokio::spawn(async move {
            let chain = owners.lead_to(&pod, &roots).await;
            let jobs = jobs.lock();
            let (Some(job), Some(owner)) = (jobs.get(&identifier), controller(&pod)) else { return };
            match chain {
                Chain::Ours => {}
                Chain::Others => job.disown(&owner.uid),
                Chain::Unknown => job.ask_again(&owner.uid),
            }
        });
    }
}

/// Workloads of other kinds that carry our labels.
struct Workloads(Jobs);

impl Sink<Value> for Workloads {
    async fn take(&self, change: Change<Value>) {
        self.0.take(
            change,
            |job| !job.is_pod,
            |job, object, gone| {
                if object["metadata"]["name"] == *job.name {
                    job.workload(object.into(), gone);
                }
            },
        );
    }
}

/// Pods of one job without Muster's label.
struct PodsOfJob {
    jobs: Jobs,
    identifier: Identifier,
    owners: Arc<Owners>,
    /// The selector of its kind has found it.
    by_selector: bool,
}

impl Sink<Pod> for PodsOfJob {
    async fn take(&self, change: Change<Pod>) {
        let (pod, gone) = match change {
            Change::Applied(pod) => (pod, false),
            Change::Deleted(pod) => (pod, true),
            Change::Vanished(uid) => {
                return self.jobs.lock().get(&self.identifier).into_iter().for_each(|job| job.vanished(&uid));
            }
            Change::Listed => return,
        };
        // One with our label comes by the shared watch, or is another job's.
        if pod.label(LABEL).is_some() {
            return;
        }
        let (observed, knows_owners) = match self.jobs.lock().get(&self.identifier) {
            Some(job) => (job.observed(), job.knows_owners()),
            None => return,
        };
        let Some(root) = observed.workload.object().and_then(|object| object.uid()) else { return };
        let has_owner = controller(&pod).is_some();
        let is_own = match self.owners.lead_to(&pod, &BTreeSet::from([root.to_owned()])).await {
            Chain::Ours => true,
            Chain::Others => self.by_selector && !has_owner && !knows_owners,
            // Without a selector, a pod of an unknown owner is left out.
            Chain::Unknown => self.by_selector,
        };
        match self.jobs.lock().get(&self.identifier) {
            Some(job) if is_own => job.pod(pod, gone),
            Some(job) if self.by_selector => job.ignore(&pod),
            _ => {}
        }
    }
}
