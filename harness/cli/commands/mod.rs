//! What the program does: one room an action or command. Each returns the exit code.

pub mod check;
pub mod convert;
pub mod inspect;
pub mod k8s;
pub mod kernel;
pub mod manual;
pub mod pipeline;
pub mod session;
pub mod sweep;

/// A runtime for a command that talks to the store or to schedulers.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
