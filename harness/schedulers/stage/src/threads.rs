//! Staging on threads of its own: it may take minutes, and whatever else touches files must not wait for it.
//!
//! ```text
//! stage -> a turn -> thread: copies, looks at its token between files and chunks -> done
//!                \-> the limit, the end of the session, dropped: it is cancelled, and the thread is awaited for 2 s
//! ```
//! A thread that hangs within the kernel (a file server that is gone) is left to itself, and its turn is another's.

use crate::copy::{StagingError, stage};
use muster_core::{
    decisions::backoff::Backoff,
    error::{Class, SchedulerError},
    job::workload::Staging,
};
use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    thread::{self, available_parallelism},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, oneshot},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// More at once only make a disk slower.
const MOST_AT_ONCE: usize = 8;
/// How often a folder is staged again whose copying failed.
const RETRIES: u32 = 3;
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(4) };
/// How long a thread is awaited that was asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Something that ends the wait.
pub(crate) type End<'a> = Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// Stages folders, a few at once.
#[derive(Debug, Clone)]
pub struct Stager(Arc<Semaphore>);

impl Default for Stager {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, Into::into);
        Self(Arc::new(Semaphore::new(processors.clamp(2, MOST_AT_ONCE))))
    }
}

impl Stager {
    /// Stages a folder. The limit counts from its turn; `cancelled` ends it at any time.
    pub async fn stage(&self, staging: Staging, to: PathBuf, mut cancelled: End<'_>) -> Result<(), SchedulerError> {
        let stopped = || refused(StagingError::Stopped(staging.folder.clone()));
        let _turn = tokio::select! {
            biased;
            () = &mut cancelled => return Err(stopped()),
            turn = self.0.acquire() => turn,
        };
        let mut over = Box::pin(limit(&staging));
        let mut retries = 0;
        loop {
            let answer = once(&staging, &to, &mut cancelled, over.as_mut()).await;
            match answer {
                Err(StagingError::Copy { .. }) if retries < RETRIES => {}
                answer => return answer.map_err(refused),
            }
            tokio::select! {
                () = sleep(PAUSES.after(retries + 1)) => retries += 1,
                () = &mut cancelled => return Err(stopped()),
            }
        }
    }
}

/// Ends when the time is up.
async fn limit(staging: &Staging) {
    match staging.limit.and_then(|limit| Instant::now().checked_add(limit)) {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// One attempt.
async fn once(staging: &Staging, to: &Path, cancelled: &mut End<'_>, over: End<'_>) -> Result<(), StagingError> {
    let (answer, mut answered) = oneshot::channel();
    let stop = CancellationToken::new();
    // Dropped, this future stops the thread too.
    let stopping = stop.clone().drop_guard();
    let work = {
        let (staging, to) = (staging.clone(), to.to_owned());
        move || answer.send(stage(&staging, &to, &stop))
    };
    let no_thread = |source| StagingError::Thread { folder: staging.folder.clone(), source };
    thread::Builder::new().name("stage".to_owned()).spawn(work).map_err(no_thread)?;
    let why = tokio::select! {
        biased;
        answer = &mut answered => return answer.unwrap_or_else(|_| Err(no_thread(io::Error::other("it panicked")))),
        () = cancelled => StagingError::Stopped(staging.folder.clone()),
        () = over => {
            StagingError::Slow { folder: staging.folder.clone(), limit: staging.limit.unwrap_or_default() }
        }
    };
    drop(stopping);
    let _ = timeout(GRACE, answered).await;
    Err(why)
}

fn refused(error: StagingError) -> SchedulerError {
    let class = if matches!(error, StagingError::Mistake { .. }) { Class::Config } else { Class::Infra };
    SchedulerError::new(class, "stage `sourcesdir`", error)
}
