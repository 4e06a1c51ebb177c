//! The runtime that a session runs on: few threads, for it waits most of the time.
//!
//! A thread's turn costs as much as the work that it takes over. With few threads a thread that has finished finds its
//! next work queued instead of being woken for it, and thousands of cases that begin together cannot start hundreds.

use std::{io, thread::available_parallelism};
use tokio::runtime::{Builder, Runtime};

/// Beyond this many, workers only wake each other.
const MOST_WORKERS: usize = 4;
/// Threads that touch files and start processes, beside those that judge.
const DISK_THREADS: usize = 4;

/// Builds it.
///
/// As many logs are put together at once as there are processors, and the rest is left to other files.
///
/// # Errors
/// When the operating system has no thread or descriptor to give.
pub fn build() -> io::Result<Runtime> {
    let processors = available_parallelism().map_or(1, Into::into);
    Builder::new_multi_thread()
        .worker_threads(processors.min(MOST_WORKERS))
        .max_blocking_threads(processors + DISK_THREADS)
        .enable_all()
        .build()
}
