//! The processes of jobs: those that this harness started, the marks by which those of others are found, and how one ended.

pub(crate) mod exit;
pub(crate) mod mark;
pub(crate) mod own_job;

use tokio::task::spawn_blocking;

/// Runs blocking work on a thread for it; a panic there goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down: no caller waits for the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
