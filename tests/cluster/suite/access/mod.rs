//! How the cluster is reached and what an account may do there.

pub(super) mod in_cluster;
pub(super) mod permissions;
pub(super) mod preflight;
pub(super) mod proxies;
pub(super) mod restricted;
