//! The engine that drives cases through a scheduler.
//!
//! It owns order, `max_jobs`, limits, rounds, retries, takeovers and cancelling. It decides nothing that `muster_core::decisions::pipeline`
//! decides, and prints nothing: it emits [`event::Event`]s.
//!
//! ```text
//! session_loop  what runs next: rounds, retries, restored results, attempts that another process has started
//! front     how a session is shown and stopped from outside: libtest's harness, signals
//! engine    all cases of a session: dependencies, slots of partitions, --maxfail, cancelling, teardowns
//! case      one case, from its slot to its result: plan, launch, wait, judge, clean up
//! folders   stage and output folders
//! log       logs on disk while they arrive, and the stdout they become
//! ownership which process owns a session: taking over, claims, leaving, and what a sweep removes
//! ```

pub mod case;
mod crash_points;
pub mod engine;
pub mod event;
pub mod folders;
pub mod front;
pub mod identifier;
pub mod log;
pub mod ownership;
mod panics;
pub mod patience;
mod retry;
pub mod runtime;
pub mod session_loop;
