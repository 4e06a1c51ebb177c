//! Work on files, away from everything else.

use tokio::task::spawn_blocking;

/// Runs blocking work on a thread for it; a panic there goes on here.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down: no caller waits for the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
