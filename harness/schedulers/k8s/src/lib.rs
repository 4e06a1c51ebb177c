//! Muster's Kubernetes scheduler: Pods, Jobs and any custom resource of a cluster.
//!
//! ```text
//! api         names, times, amounts and selectors of the Kubernetes API
//! kind        what is known of each kind of workload: the embedded table, and what sites and checks add to it
//! descriptor  names, keys and options
//! client      the only code that speaks HTTP: connections, requests, streams, errors
//! job         the stored job (Handle), and the job as last seen (Observed)
//! manifest    objects of a manifest: read, named, labelled, searched for pods
//! quota       what quotas refuse, and which case may try next
//! plan        Workload -> Handle: the objects as they will be sent
//! status      Observed -> JobStatus, or why the job can never run
//! watch       one watch for each (context, namespace, session), kept as Observed
//! session     what the jobs of a session share in one place: watches, quotas, the Lease
//! preflight   what is known before the first launch: kinds, namespaces, rights, quotas, queues
//! launch      a look at the quotas, then objects are created in order
//! logs        one followed log for each container, without a lost or doubled line
//! cleanup     stop or delete, by uid, verified absent
//! doctor      what `muster doctor` says of a place
//! inventory   what carries Muster's label, whose session that is, whether it lives; nodes
//! scheduler   the Scheduler trait, put together from the directories above
//! ```
//! `api`, `kind`, `job`, `manifest`, `quota`, `plan`, `doctor` and `status` are pure. Nothing here decides about limits, retries or what to
//! keep: that is `muster_core::decisions::pipeline`.

mod api;
mod cleanup;
mod client;
mod descriptor;
mod doctor;
mod inventory;
mod job;
mod kind;
mod launch;
mod logs;
mod manifest;
mod plan;
mod preflight;
mod quota;
mod scheduler;
mod session;
mod status;
mod watch;

pub use api::{ClusterPlace, Resource};
pub use client::{Cluster, ContextError, Contexts, Selection, Timeouts};
pub use descriptor::{SCHEDULER, is_kubernetes};
pub use job::Handle;
pub use plan::{
    Plan, plan,
    role::{Extent, binding, roles},
};
pub use scheduler::Kubernetes;
