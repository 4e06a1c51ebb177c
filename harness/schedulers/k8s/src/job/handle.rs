//! What a `Job` of this scheduler remembers: enough to find, watch, read and delete its objects from the store alone.

use crate::kind::WorkloadRules;
use muster_core::scheduler::Job;
use muster_text::Value;
use serde::{Deserialize, Serialize};

/// Label of everything that one attempt of one case creates: its identifier.
pub(crate) const LABEL: &str = "rfm";
/// Label of everything that one session creates.
pub(crate) const SESSION_LABEL: &str = "rfm-session";
/// Label of what was stopped and kept to be looked at.
pub(crate) const KEPT_LABEL: &str = "rfm-kept";
/// Annotation of what was kept: when `muster sweep` may remove it (RFC 3339).
pub(crate) const EXPIRES_ANNOTATION: &str = "rfm/expires";
/// Annotation of the workload: the case's name as displayed.
pub(crate) const CASE_ANNOTATION: &str = "rfm/case";

/// Annotation of the workload: what was created beside it, as `Object::named` writes it, for those who may not list it.
pub(crate) const OBJECTS_ANNOTATION: &str = "rfm/objects";

/// `Job::handle` of a job on Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Handle {
    /// Which cluster, in whose name.
    pub place: ClusterPlace,
    /// Everything the manifest asks for, in the order of creation: what the workload refers to comes before it.
    pub objects: Vec<Object>,
    /// Which of the objects is the workload.
    pub workload: usize,
    /// How many pods the workload will have as far as its manifest says: for display and preflight, never a condition.
    pub expected_pods: Option<u32>,
    /// How the workload ends, is found and is stopped.
    pub rules: WorkloadRules,
    /// How long stopped objects stay, in seconds.
    pub keep_seconds: u64,
    /// The deadline that the plan gave the workload in the cluster; `None`: the manifest has its own, or there is none.
    #[serde(default)]
    pub deadline: Option<Deadline>,
    /// The main containers that the manifest's pods have. One that a pod has beside them was added by the cluster.
    #[serde(default)]
    pub own_containers: Vec<String>,
    /// A cause of waiting that cannot change by itself is believed after so many seconds; `None`: never.
    #[serde(default)]
    pub hopeless_after: Option<u64>,
    /// What a log is whose node may have rotated lines away.
    #[serde(default)]
    pub log_rotation: LogRotation,
}

/// What ends a workload in the cluster if nobody else does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// From the start that its kind counts from.
    pub seconds: u64,
    /// The settings that it comes from, for the cause.
    pub from: String,
}

/// What becomes of a case of which nobody can prove that the node rotated no line of its log away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogRotation {
    /// It cannot be judged.
    #[default]
    Invalid,
    /// It is judged by what is there, with a warning.
    Warn,
}

/// A namespace of a cluster, as somebody who may use it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// The kubeconfig's context; `None`: the ServiceAccount of the pod that Muster runs in.
    pub context: Option<String>,
    /// The namespace.
    pub namespace: String,
}

/// One object of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// What it is.
    pub resource: Resource,
    /// Its name, already rewritten.
    pub name: String,
    /// The object as it is sent.
    pub manifest: Value,
    /// The server's answer to its creation.
    pub uid: Option<String>,
}

/// A kind of object and where the API serves it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// `batch`; empty for the core group.
    pub group: String,
    /// `v1`
    pub version: String,
    /// `Job`
    pub kind: String,
    /// `jobs`; `None` until the server has been asked, for kinds that Muster does not know.
    pub plural: Option<String>,
}

/// Whether an object carries a job's labels.
pub(crate) fn is_of(job: &Job, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels[LABEL] == *job.identifier.as_str() && labels[SESSION_LABEL] == *job.session.0
}

impl Handle {
    /// Reads a job's handle back.
    ///
    /// # Errors
    /// When it is another scheduler's, or another version's.
    pub fn of(job: &Job) -> Result<Self, serde_json::Error> {
        Self::deserialize(&job.handle)
    }

    /// As it is stored.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The workload itself.
    pub fn workload(&self) -> Option<&Object> {
        self.objects.get(self.workload)
    }
}

impl Object {
    /// `v1/Secret/rfm-token-abcdefgh`
    pub(crate) fn named(&self) -> String {
        format!("{}/{}/{}", self.resource.api_version(), self.resource.kind, self.name)
    }
}

/// Reads what [`Object::named`] has written.
pub(crate) fn parse_named(text: &str) -> Option<(Resource, String)> {
    let mut parts = text.trim().rsplitn(3, '/');
    let (name, kind, api_version) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Resource::of(api_version, kind), name.to_owned()))
}

impl Resource {
    /// From an object's `apiVersion` and `kind`.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), plural: None }
    }

    /// Whether both are the same kind, in whatever version.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// Whether it is a plain pod.
    pub fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }

    /// Whether it is a Job of Kubernetes itself; others have kinds of that name too.
    pub fn is_job(&self) -> bool {
        self.group == "batch" && self.kind == "Job"
    }

    /// `batch/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The name that kubectl understands without doubt: `pods`, `jobs.batch`, `ipujobs.graphcore.ai`.
    pub fn for_kubectl(&self) -> String {
        let plural = self.plural.clone().unwrap_or_else(|| self.kind.to_lowercase());
        if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) }
    }
}
