//! A kind of object: its group, version, kind and plural.

use serde::{Deserialize, Serialize};

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
