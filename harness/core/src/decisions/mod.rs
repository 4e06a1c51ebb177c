//! Decisions on what happens next, as functions of what is known. No clock runs here.

pub mod attempts;
pub mod backoff;
pub mod budget;
pub mod graph;
pub mod liveness;
pub mod pipeline;
pub mod rounds;
pub mod sweep;
