//! The schedulers that a partition may name.

use muster_text::decode::Words;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The schedulers that a partition may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchedulerKind {
    K8s,
    /// Kubernetes with Graphcore's `IPUJob` as the usual resource.
    Ipu,
    Ec2,
    Local,
    /// A script of statuses and logs, for rehearsals and tests.
    Fake,
}

impl Words for SchedulerKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("k8s", Self::K8s), ("ipu", Self::Ipu), ("ec2", Self::Ec2), ("local", Self::Local), ("fake", Self::Fake)];
}

impl SchedulerKind {
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Whether its jobs are objects of a Kubernetes cluster.
    pub fn is_kubernetes(self) -> bool {
        matches!(self, Self::K8s | Self::Ipu)
    }

    /// Whether its jobs read and write the harness' own files.
    pub fn shares_files(self) -> bool {
        matches!(self, Self::Local | Self::Fake)
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
