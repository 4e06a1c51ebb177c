//! The engine that drives cases through a scheduler, and the schedulers that need no cluster.
//!
//! It owns order, `max_jobs`, limits, retries and cancelling. It decides nothing that `muster_core::pipeline`
//! decides, and prints nothing: it emits [`event::Event`]s.

pub mod engine;
pub mod event;
pub mod fake;
pub mod local;
pub mod run_case;
pub mod spool;
pub mod trials;
