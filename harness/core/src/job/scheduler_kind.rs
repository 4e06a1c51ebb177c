//! The schedulers that a partition may name.

use muster_text::words;

words! {
    /// The schedulers that a partition may name.
    #[derive(Default)]
    pub enum SchedulerKind {
        K8s = "k8s",
        /// Kubernetes with Graphcore's `IPUJob` as the usual resource.
        Ipu = "ipu",
        Ec2 = "ec2",
        #[default]
        Local = "local",
        /// A script of statuses and logs, for rehearsals and tests.
        Fake = "fake",
    }
}

impl SchedulerKind {
    /// Whether its jobs are objects of a Kubernetes cluster.
    pub fn is_kubernetes(self) -> bool {
        matches!(self, Self::K8s | Self::Ipu)
    }

    /// Whether its jobs read and write the harness' own files.
    pub fn shares_files(self) -> bool {
        matches!(self, Self::Local | Self::Fake)
    }
}
