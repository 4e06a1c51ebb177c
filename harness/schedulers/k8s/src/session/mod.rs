//! The parts that the jobs of a session share in one place: the connection, the watches, the queue for quotas, the Lease.

pub(crate) mod gate;
pub(crate) mod lease;

use crate::{
    api::{Resource, clock},
    client::{ApiError, Cluster, Selection, Why},
    job::Handle,
    quota::{self, Demand, Fit, Refusal, Reservations, Together, WaitQueue},
    watch::Watch,
};
use gate::{AfterRefusal, Gates};
use lease::Lease;
use muster_core::{
    case::{Identifier, SessionId},
    decisions::liveness::HeartbeatTiming,
    job::scheduler::Job,
};
use muster_text::Value;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// Quotas change seldom: their list is good for so long.
const QUOTAS_LIVE: Duration = Duration::from_secs(10);
/// A case that waits for quota asks again after a tenth of the time that it has waited, within these bounds.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What the jobs of a session in a place have in common.
pub(crate) struct SharedState {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) watch: Watch,
    pub(crate) lease: Lease,
    room: Mutex<Room>,
    gates: Mutex<Gates>,
    quotas: Mutex<Option<(Instant, Quotas)>>,
    /// Jobs of which a launch without an answer may have created something, in this process or in one that is gone.
    unanswered: Mutex<BTreeSet<Identifier>>,
}

#[derive(Default)]
struct Room {
    queue: WaitQueue,
    reservations: Reservations,
    /// Since when each case waits, and its name for messages.
    waiting: BTreeMap<Identifier, (Instant, String)>,
}

/// The quotas of the namespace; `None`: the right to list them is missing.
pub(crate) type Quotas = Option<Arc<Vec<Value>>>;

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// What a quota allows seldom changes.
    Any,
    /// What is used of it always does.
    Now,
}

impl SharedState {
    pub(crate) fn new(cluster: Arc<Cluster>, session: &SessionId, timing: HeartbeatTiming) -> Self {
        Self {
            watch: Watch::new(Arc::clone(&cluster), session.clone()),
            lease: Lease::new(Arc::clone(&cluster), session, timing),
            cluster,
            room: Mutex::default(),
            gates: Mutex::default(),
            quotas: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    /// Remembers that objects of a job may exist, or that it is known what does.
    pub(crate) fn set_unanswered(&self, identifier: &Identifier, is_unanswered: bool) {
        let mut unanswered = self.unanswered.lock();
        if is_unanswered {
            unanswered.insert(identifier.clone());
        } else {
            unanswered.remove(identifier);
        }
    }

    pub(crate) fn is_unanswered(&self, identifier: &Identifier) -> bool {
        self.unanswered.lock().contains(identifier)
    }

    /// Watches a job from now on, whichever process launched it.
    pub(crate) fn observe(&self, job: &Job, handle: &Handle) -> tokio::sync::watch::Receiver<Arc<crate::job::Observed>> {
        self.watch.observe(&job.identifier, handle)
    }

    /// The case that waits before a job for a resource that the job wants too, and that resource.
    pub(crate) fn blocked_by(&self, job: &Job, wants: impl FnOnce() -> Demand) -> Option<(String, String)> {
        let mut room = self.room.lock();
        if room.queue.is_empty() {
            return None;
        }
        let (who, resource) = room.queue.blocker(&job.identifier, &wants(), clock::now())?;
        let name = room.waiting.get(&who).map_or_else(|| who.to_string(), |(_, case)| case.clone());
        Some((name, resource))
    }

    /// Why a job may not be launched now: objects of its kinds are refused, although they were granted before.
    pub(crate) fn gate_closed(&self, job: &Job, handle: &Handle) -> Option<String> {
        let kinds = kinds(handle);
        self.gates.lock().closed(&job.identifier, kinds.iter().map(String::as_str), Instant::now())
    }

    /// A job was refused an object of a kind that was granted before.
    pub(crate) fn withdrawn(&self, job: &Job, kind: &Resource, why: &str) -> AfterRefusal {
        self.gates.lock().refused(&job.identifier, &kind.for_kubectl(), why, Instant::now())
    }

    /// All its objects are created.
    pub(crate) fn launched(&self, job: &Job, handle: &Handle) {
        self.watch.launched(&job.identifier, handle);
        let kinds = kinds(handle);
        self.gates.lock().launched(kinds.iter().map(String::as_str));
    }

    /// Reserves quota for all of `pods`, if they fit at once beside the reservations of others.
    ///
    /// # Errors
    /// What is short.
    pub(crate) fn reserve(&self, job: &Job, quotas: &[Value], pods: &Together) -> Result<(), Refusal> {
        let mut room = self.room.lock();
        let reserved = room.reservations.for_others(&job.identifier, clock::now(), |who| self.watch.pods_of(who));
        for limits in quotas.iter().filter_map(quota::QuotaStatus::of) {
            if let Fit::Later(refusal) = quota::fit(&limits, pods, &reserved) {
                return Err(refusal);
            }
        }
        room.reservations.reserve(&job.identifier, pods, clock::now());
        Ok(())
    }

    /// A job with a reservation was not created.
    pub(crate) fn release(&self, identifier: &Identifier) {
        self.room.lock().reservations.release(identifier);
    }

    /// A job was refused because a quota is full.
    pub(crate) fn refused(&self, job: &Job, refusal: &Refusal) {
        let mut room = self.room.lock();
        room.queue.refused(&job.identifier, refusal, clock::now());
        room.waiting.entry(job.identifier.clone()).or_insert_with(|| (Instant::now(), job.case.clone()));
    }

    /// The job is launched, or given up.
    pub(crate) fn leave_queue(&self, identifier: &Identifier) {
        let mut room = self.room.lock();
        room.queue.leave(identifier);
        room.waiting.remove(identifier);
        self.gates.lock().leave(identifier);
    }

    /// When a job that waits for quota asks again.
    pub(crate) fn retry_after(&self, identifier: &Identifier) -> Duration {
        let room = self.room.lock();
        let waited = room.waiting.get(identifier).map_or(Duration::ZERO, |(since, _)| since.elapsed());
        (waited / 10).clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }

    /// The quotas, asked for once in a while, or now.
    pub(crate) async fn quotas(&self, age: Age) -> Result<Quotas, ApiError> {
        if let Some((at, quotas)) = &*self.quotas.lock()
            && age == Age::Any
            && at.elapsed() < QUOTAS_LIVE
        {
            return Ok(quotas.clone());
        }
        let quotas = match self.cluster.list(&Resource::of("v1", "ResourceQuota"), Selection::default()).await {
            Ok(listed) => Some(Arc::new(listed.items)),
            Err(error) if error.why() == Why::NotAllowed => None,
            Err(error) => return Err(error),
        };
        *self.quotas.lock() = Some((Instant::now(), quotas.clone()));
        Ok(quotas)
    }
}

fn kinds(handle: &Handle) -> Vec<String> {
    handle.objects.iter().map(|object| object.resource.for_kubectl()).collect()
}
