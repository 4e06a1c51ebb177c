//! The state of one job in the cluster, as last seen: input of `status` and `logs`, kept up to date by the watch.
//!
//! ```text
//! API server -watch-> Observed (a level, replaced as a whole) -assess(now)-> Assessment          status
//!                                        '-> which containers have a log to read, and which are over   logs
//! ```

use crate::job::told::Told;
use k8s_openapi::api::core::v1::{Event, Pod};
use muster_core::job::scheduler::JobStatus;
use muster_text::{Value, time::Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock},
    time::Duration,
};

/// One job, as last seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed {
    /// The workload object: a Pod is its own.
    pub workload: Seen,
    /// Every pod that was ever seen, oldest first, without `managedFields`.
    pub pods: Vec<SeenPod>,
    /// Names of pods that carry the labels of its own and belong to something else.
    pub foreign: BTreeSet<String>,
    /// It was stopped, but no node of what still runs answers: its logs are not waited for.
    pub unreachable: bool,
    /// Uids of pods that no node could ever take, and since when the scheduler says so, by this machine's clock.
    pub hopeless: BTreeMap<String, Timestamp>,
    /// The events and conditions that were fetched beyond the watch because nothing changes.
    pub trouble: Trouble,
    /// It is watched since before its launch: nothing of it was missed.
    pub from_the_start: bool,
    /// The time when its first object was created, by this machine's clock: the start of all grace periods.
    pub since: Timestamp,
}

/// The workload object.
#[derive(Debug, Clone, Default)]
pub(crate) enum Seen {
    /// Not yet: the watch may be later than the creation.
    #[default]
    NotYet,
    /// As it is now.
    Present(LiveObject),
    /// It was there and is not any more; as it was last.
    Gone(LiveObject),
}

/// An object as the API writes it. A pod is serialized on first use, which is rare.
#[derive(Clone)]
pub(crate) struct LiveObject(Arc<LazyLock<Value, Box<dyn FnOnce() -> Value + Send>>>);

impl LiveObject {
    /// Of a pod.
    pub(crate) fn of(pod: Arc<Pod>) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(move || serde_json::to_value(&*pod).unwrap_or_default()))))
    }
}

impl From<Value> for LiveObject {
    fn from(object: Value) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(|| object))))
    }
}

impl Deref for LiveObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for LiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Seen {
    /// The object, as it is or was.
    pub(crate) fn object(&self) -> Option<&Value> {
        match self {
            Self::NotYet => None,
            Self::Present(object) | Self::Gone(object) => Some(object),
        }
    }
}

/// A pod of the job.
#[derive(Debug, Clone)]
pub(crate) struct SeenPod {
    /// The pod as it is, or was last.
    pub pod: Arc<Pod>,
    /// It has vanished from the API.
    pub gone: bool,
    /// We asked for its deletion ourselves.
    pub deleted_by_us: bool,
    /// The first request that it end, as far as one was seen.
    pub told: Option<Told>,
}

impl SeenPod {
    /// One that is there.
    pub(crate) fn new(pod: Arc<Pod>) -> Self {
        Self { told: Told::of(&pod, None), pod, gone: false, deleted_by_us: false }
    }

    pub(crate) fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn node(&self) -> Option<&str> {
        self.pod.spec.as_ref()?.node_name.as_deref()
    }

    /// `Running`; empty if it has none yet.
    pub(crate) fn phase(&self) -> &str {
        self.pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    /// Whether it is gone, or in its last phase.
    pub(crate) fn is_over(&self) -> bool {
        self.gone || matches!(self.phase(), "Succeeded" | "Failed")
    }
}

/// What is requested only while a job does not change, at most every ten seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble {
    /// Events of the workload, the objects between it and its pods, and the pods, oldest first.
    pub events: Vec<Arc<Event>>,
    /// Uids of the pods whose events were read after their end.
    pub ended_pods: BTreeSet<String>,
    /// Kueue's Workload object of it.
    pub kueue: Option<Arc<Value>>,
    /// Rights that were missing to find out more: `list events`.
    pub denied: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assessment {
    pub state: JobState,
    /// Assess again after this time even if nothing changes: a grace period ends.
    pub recheck_in: Option<Duration>,
    /// It does not move: fetch `Trouble`.
    pub stuck: bool,
}

/// The state of a job, or why it can never run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JobState {
    Status(JobStatus),
    /// It can never run without a change (`error{config}`): one sentence with what, where and what to do.
    Hopeless(String),
    /// The cluster cannot run it for reasons that are not the check's (`error{infra}`): one sentence.
    Broken(String),
}
