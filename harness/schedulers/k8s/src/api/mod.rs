//! The parts of the Kubernetes API: resources, places, labels, times, amounts, selectors. Pure, and used by everything else.

pub(crate) mod clock;
mod merge;
mod quantity;
pub(crate) mod selector;

pub(crate) use clock::ServerClock;
pub(crate) use merge::{merge, merge_pod};
pub(crate) use quantity::Quantity;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of the scheduler, under which its jobs are stored.
pub(crate) const NAME: &str = "k8s";
/// Its name on a partition where `IPUJob` is the usual resource.
pub(crate) const IPU: &str = "ipu";

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

/// Kueue's label of what waits in a queue; older versions of Kueue read an annotation of this name.
pub(crate) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Every node has it; the value usually is the node's name.
pub(crate) const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Annotation of a pod: the container whose end is the pod's.
pub(crate) const DEFAULT_CONTAINER_ANNOTATION: &str = "kubectl.kubernetes.io/default-container";

/// A namespace of a cluster, and the identity that uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// The kubeconfig's context; `None`: the ServiceAccount of the pod that Muster runs in.
    pub context: Option<String>,
    /// The namespace.
    pub namespace: String,
}

impl fmt::Display for ClusterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.context {
            Some(context) => write!(f, "namespace {} (context {context})", self.namespace),
            None => write!(f, "namespace {}", self.namespace),
        }
    }
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

impl Resource {
    /// Reads an object's `apiVersion` and `kind`.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), plural: None }
    }

    /// Returns whether both are the same kind, in whatever version.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// Returns whether it is a plain pod.
    pub fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }

    /// Returns whether it is a Job of Kubernetes itself; others have kinds of that name too.
    pub fn is_job(&self) -> bool {
        self.group == "batch" && self.kind == "Job"
    }

    pub fn is_job_set(&self) -> bool {
        self.group == "jobset.x-k8s.io" && self.kind == "JobSet"
    }

    /// By the rules of English: the API's own plural of every kind that each server has, and probably of an unknown kind.
    pub(crate) fn probable_plural(&self) -> String {
        let singular = self.kind.to_lowercase();
        match singular.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if ["s", "x", "ch", "sh"].iter().any(|end| singular.ends_with(end)) => format!("{singular}es"),
            None => format!("{singular}s"),
        }
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
