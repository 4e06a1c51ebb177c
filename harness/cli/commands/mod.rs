//! What the program does: one room an action or command. Each returns the exit code.

mod anew;
pub mod attach;
pub mod check;
pub mod completions;
pub mod config;
pub mod convert;
mod course;
pub mod daemons;
mod distribute;
pub mod dry_run;
pub mod k8s;
pub mod kernel;
mod leave;
mod life;
pub mod list;
pub mod man;
pub mod pipeline;
pub mod report;
mod restore;
pub mod results;
mod resume;
pub mod run;
pub mod sweep;
mod takeover;
pub mod tests;
mod unmasked;

/// A runtime for a command that talks to the store or to schedulers.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
