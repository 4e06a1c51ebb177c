//! The runtime that a session, or a question, runs on: few threads, for it waits most of the time.
//!
//! A thread's turn costs as much as the work that it takes over. With few threads a thread that has finished finds its
//! next work queued instead of being woken for it, and thousands of cases that begin together cannot start hundreds.

use muster_host::processor;
use std::{io, ops::Deref, thread::available_parallelism, time::Duration};
use tokio::runtime::{Builder, Runtime};

/// Beyond this many, workers only wake each other.
const MOST_WORKERS: usize = 4;
/// Threads that touch files and start processes, beside those that judge.
const DISK_THREADS: usize = 4;

/// A call to a file system that has not returned by then may never do so.
const LEAVING: Duration = Duration::from_secs(5);

/// The runtime of a session, or of a question. Its end does not wait for threads that hang.
#[derive(Debug)]
pub struct SessionRuntime(Option<Runtime>);

impl Deref for SessionRuntime {
    type Target = Runtime;

    #[expect(clippy::expect_used, reason = "only its end takes the runtime away")]
    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it has not ended")
    }
}

impl Drop for SessionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(LEAVING);
        }
    }
}

/// Builds that of a question which reads many figures, and launches nothing: one thread, which stays on one processor. SQLite reads
/// the rows on another thread, which takes turns with it. On two processors each row would move between their caches several
/// times, and both threads would spend twice the time. With a server there is one thread anyway.
///
/// # Errors
/// When the operating system has no descriptor to give.
pub fn of_question() -> io::Result<SessionRuntime> {
    processor::stay_on_one();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(SessionRuntime(Some(runtime)))
}

/// Builds that of a session.
///
/// As many logs are put together at once as there are processors, and the rest is left to other files.
///
/// # Errors
/// When the operating system has no thread or descriptor to give.
pub fn build() -> io::Result<SessionRuntime> {
    let processors = available_parallelism().map_or(1, Into::into);
    let runtime = Builder::new_multi_thread()
        .worker_threads(processors.min(MOST_WORKERS))
        .max_blocking_threads(processors + DISK_THREADS)
        .enable_all()
        .build()?;
    Ok(SessionRuntime(Some(runtime)))
}
