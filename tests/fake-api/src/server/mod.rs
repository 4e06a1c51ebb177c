//! HTTP: requests in, answers and streams out, on the state of the cluster.

pub(crate) mod serve;
mod watch;
