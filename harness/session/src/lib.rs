//! The engine that drives cases through a scheduler.
//!
//! It owns order, `max_jobs`, limits, retries and cancelling. It decides nothing that `muster_core::pipeline`
//! decides, and prints nothing: it emits [`event::Event`]s.

mod assembly;
mod clocks;
mod context;
pub mod engine;
pub mod event;
mod flight;
pub mod heartbeat;
pub mod identifier;
mod journal;
pub mod judging;
mod kept;
mod lines;
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
mod tail;
pub mod trials;
pub mod turn;
