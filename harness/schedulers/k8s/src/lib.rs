//! Muster's Kubernetes scheduler: Pods, Jobs and any custom resource of a cluster.
//!
//! ```text
//! plan (pure)   manifest + kind   Workload -> Handle: the objects as they will be sent
//! launch        create            preflight against quotas -> objects created in order, found again after a lost answer
//! wait          watch -> status   one watch per (context, namespace, session) -> Observed -> Assessment
//! collect_logs  logs              one follow per container, resumed without a lost or doubled line
//! cleanup       end               stop or delete, by uid, verified absent; by label where no uid is known
//! list          census            what carries our label, whose session that is and whether it lives
//! ```
//! `plan` and everything in `status`, `quota` and `kind` are pure. Only `client` speaks HTTP. Nothing here decides about limits,
//! retries or what to keep: that is `muster_core::pipeline`.

pub mod census;
pub mod client;
mod clock;
pub mod contexts;
pub mod diagnosis;
mod end;
mod gate;
pub mod handle;
pub mod kind;
mod launch;
pub mod lease;
mod lives;
pub mod logs;
pub mod manifest;
pub mod nodes;
pub mod observed;
pub mod plan;
pub mod policy;
pub mod quantity;
pub mod quota;
mod rehearsal;
pub mod role;
mod scheduler;
pub mod sections;
pub mod selector;
pub mod status;
mod tenancy;
pub mod watch;

pub use scheduler::Kubernetes;
