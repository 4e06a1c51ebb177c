//! A namespace of a cluster.

use serde::{Deserialize, Serialize};
use std::fmt;

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
