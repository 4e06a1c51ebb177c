//! Collecting a job's log while it runs, and its end.
//!
//! The collector is a task of its own, so that logs reach the disk while the case only waits for a status. A stream that
//! breaks is taken up again where it broke; what stays lost is a gap.

use crate::{
    log::{
        lines::{LOOK, LOOKS, Listened},
        spool::Spool,
    },
    retry::Failures,
};
use futures_util::StreamExt;
use muster_core::{
    error::{SchedulerError, chain},
    job::scheduler::{Chunk, Job, Scheduler},
    rules::LogLimit,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::SemaphorePermit,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long it may go on when the session is cancelled.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// How long the collector may take to stop.
const RELEASE_LIMIT: Duration = Duration::from_secs(10);
/// Chunks that have arrived together are written together.
const BATCH: usize = 64;

/// A task that collects one job's log.
pub(crate) struct Collector {
    task: JoinHandle<Spool>,
    stop: CancellationToken,
    /// How many batches have come.
    arrived: Arc<AtomicU64>,
    /// How long the log may be silent after its job, if it has not ended.
    silence: Duration,
    /// The collector ends with its case.
    _guard: DropGuard,
}

impl Collector {
    pub(crate) fn start(
        scheduler: &Arc<dyn Scheduler>,
        job: &Arc<Job>,
        limit: Option<LogLimit>,
        listened: Option<Listened>,
    ) -> Self {
        let (stop, arrived) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let spool = Spool::new(job.stage.clone(), job.identifier.clone()).limited(limit).listened(listened);
        let task = tokio::spawn(collect(Arc::clone(scheduler), Arc::clone(job), spool, stop.clone(), Arc::clone(&arrived)));
        Self { task, _guard: stop.clone().drop_guard(), stop, arrived, silence: scheduler.limits().silence }
    }

    /// Waits for the rest of the log: what is to be judged as long as some of it comes, what was stopped for a while only. How much there
    /// may be is up to the scheduler. Nothing is waited for after `give_up`.
    pub(crate) async fn drain(mut self, cancel: &CancellationToken, give_up: &CancellationToken, is_judged: bool) -> Drained {
        let cancelled = async {
            cancel.cancelled().await;
            sleep(CANCEL_LIMIT).await;
        };
        let is_cancelled = tokio::select! {
            biased;
            collected = &mut self.task => return collected.map_or(PANICKED, Drained::Whole),
            () = stalls(&self.arrived, self.silence, is_judged) => false,
            () = cancelled, if is_judged => true,
            () = give_up.cancelled() => true,
        };
        self.stop.cancel();
        match timeout(RELEASE_LIMIT, &mut self.task).await {
            Err(_) => Drained::NoLog("the log could not be written to the stage folder in time"),
            Ok(Err(_)) => PANICKED,
            Ok(Ok(mut spool)) if is_cancelled => {
                spool.cut_short("the session ended before the log did");
                Drained::Cancelled(spool)
            }
            Ok(Ok(mut spool)) => {
                let limit = self.silence.as_secs();
                spool.cut_short(&if is_judged {
                    format!("the log did not end after the job, and nothing more of it came for {limit} s")
                } else {
                    format!("the log did not end within {limit} s of the job")
                });
                Drained::Whole(spool)
            }
        }
    }
}

/// Until nothing has come for the limit; or until the limit, if it does not matter what comes.
async fn stalls(arrived: &AtomicU64, limit: Duration, until_silent: bool) {
    loop {
        let before = arrived.load(Ordering::Relaxed);
        sleep(limit).await;
        if !until_silent || arrived.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

/// What became of a log when its collector ended.
pub(crate) enum Drained {
    /// All that there is. What is missing is a gap in it.
    Whole(Spool),
    /// What had come when the session was cancelled.
    Cancelled(Spool),
    /// Nothing, and why: nothing can be judged.
    NoLog(&'static str),
}

const PANICKED: Drained = Drained::NoLog("collecting the log panicked");

async fn collect(
    scheduler: Arc<dyn Scheduler>,
    job: Arc<Job>,
    mut spool: Spool,
    stop: CancellationToken,
    arrived: Arc<AtomicU64>,
) -> Spool {
    let mut failures = Failures::default();
    loop {
        let marks = spool.marks();
        let mut chunks = scheduler.collect_logs(&job, marks.clone()).ready_chunks(BATCH);
        let broken = loop {
            let batch = tokio::select! {
                biased;
                batch = chunks.next() => batch,
                () = stop.cancelled() => return spool,
                // Waiting for its turn it goes on to take what comes.
                _turn = turn_to_look(), if spool.looks() => {
                    spool = blocking(spool, Spool::look).await;
                    continue;
                }
            };
            let Some(batch) = batch else { return spool };
            let (good, broken) = split(batch);
            spool = write(spool, good).await;
            arrived.fetch_add(1, Ordering::Relaxed);
            if spool.is_closed() {
                return spool;
            }
            if let Some(error) = broken {
                break error;
            }
        };
        if spool.marks() != marks {
            failures = Failures::default();
        }
        let Some(pause) = failures.add(&broken, None) else {
            spool.cut_short(&chain(&broken));
            return spool;
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = stop.cancelled() => return spool,
        }
    }
}

async fn turn_to_look() -> Option<SemaphorePermit<'static>> {
    sleep(LOOK).await;
    LOOKS.acquire().await.ok()
}

/// Files are written and read on a blocking thread; everything else is bookkeeping.
async fn write(mut spool: Spool, chunks: Vec<Chunk>) -> Spool {
    if !chunks.iter().any(|chunk| matches!(chunk, Chunk::Bytes { .. } | Chunk::File { .. })) {
        spool.take_all(chunks);
        return spool;
    }
    blocking(spool, |spool| spool.take_all(chunks)).await
}

async fn blocking(mut spool: Spool, work: impl FnOnce(&mut Spool) + Send + 'static) -> Spool {
    let done = spawn_blocking(move || {
        work(&mut spool);
        spool
    });
    match done.await {
        Ok(spool) => spool,
        Err(lost) => std::panic::resume_unwind(lost.into_panic()),
    }
}

/// The chunks before an error, and the error.
fn split(batch: Vec<Result<Chunk, SchedulerError>>) -> (Vec<Chunk>, Option<SchedulerError>) {
    let mut good = Vec::with_capacity(batch.len());
    for chunk in batch {
        match chunk {
            Ok(chunk) => good.push(chunk),
            Err(error) => return (good, Some(error)),
        }
    }
    (good, None)
}
