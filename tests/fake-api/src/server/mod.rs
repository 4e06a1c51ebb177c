//! HTTP around the world: requests in, answers and streams out.

pub(crate) mod serve;
mod watch;
