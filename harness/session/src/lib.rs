//! The engine that drives cases through a scheduler, and the schedulers that need no cluster.
//!
//! It owns order, `max_jobs`, limits, retries and cancelling. It decides nothing that `muster_core::pipeline`
//! decides, and prints nothing: it emits [`event::Event`]s.

mod assembly;
pub mod clock;
mod clocks;
mod context;
pub mod engine;
pub mod event;
pub mod fake;
mod flight;
pub mod heartbeat;
pub mod identifier;
mod journal;
pub mod judging;
mod kept;
mod lines;
pub mod local;
mod logs;
mod map;
mod order;
pub mod places;
mod plan;
mod record;
mod release;
mod retry;
mod run_case;
pub mod runtime;
pub mod signals;
mod spool;
pub mod staging;
mod tail;
pub mod trials;
pub mod turn;
