//! The log of a job: at its end where it lies in the file, and before, for who asks for it, what is added to the file.

use crate::{LocalScheduler, launch::framing};
use futures_util::{FutureExt, StreamExt, TryFutureExt, stream};
use muster_core::{
    error::SchedulerError,
    job::{
        scheduler::{Channel, Chunk, Chunks, Job, JobStatus},
        stdout::SectionOrigin,
    },
};
use muster_stage::{blocking, log};
use muster_text::time::Timestamp;
use std::{future::ready, time::Duration};
use tokio::time::timeout;

/// How often the file is looked at for who reads it while it grows.
const LIVE_POLL: Duration = Duration::from_millis(200);
const REMOVED: &str = "the job removed its log";

impl LocalScheduler {
    pub(crate) fn log<'a>(&'a self, job: &'a Job, live: bool) -> Chunks<'a> {
        let at_end = self.log_at_end(job);
        if !live {
            return at_end;
        }
        let rest = at_end.filter(|chunk| ready(!matches!(chunk, Ok(Chunk::Open(..)))));
        Box::pin(self.open_log(job).into_stream().chain(self.live_log(job)).chain(rest))
    }

    /// The section, as soon as the job runs.
    async fn open_log(&self, job: &Job) -> Result<Chunk, SchedulerError> {
        let status = self.wait_while(job, |status| matches!(status, JobStatus::NotSeen | JobStatus::Pending { .. })).await?;
        let started = match status {
            JobStatus::Running { since, .. } => since,
            JobStatus::Ended(ending) => ending.started,
            _ => Timestamp::default(),
        };
        Ok(Chunk::Open(Channel::Log, origin(&self.host_of(job), started)))
    }

    /// What the job adds to its log, until it has ended.
    fn live_log<'a>(&'a self, job: &'a Job) -> Chunks<'a> {
        let ended = Box::pin(self.wait_while(job, |status| !is_over(status)));
        let (framing, section) = (framing(job, &self.host_of(job)), self.host_of(job));
        let state = (ended, 0_u64, false);
        Box::pin(stream::unfold(state, move |(mut ended, mut at, mut is_last)| {
            let (framing, section) = (framing.clone(), section.clone());
            async move {
                loop {
                    let (job, framing, section) = (job.clone(), framing.clone(), section.clone());
                    // Nothing to read: the end of the job names what is wrong with its log.
                    let added = blocking(move || log::added(&job, &section, &framing, at)).await.unwrap_or_default();
                    if let Some(Chunk::Live { section, at: from, data }) = added {
                        at = from + data.len() as u64;
                        return Some((Ok(Chunk::Live { section, at: from, data }), (ended, at, is_last)));
                    }
                    if is_last {
                        return None;
                    }
                    is_last = timeout(LIVE_POLL, &mut ended).await.is_ok();
                }
            }
        }))
    }

    /// The first status that is another.
    async fn wait_while(&self, job: &Job, is_so: impl Fn(&JobStatus) -> bool) -> Result<JobStatus, SchedulerError> {
        let mut status = self.wait_for_change(job, None).await?;
        while is_so(&status) {
            status = self.wait_for_change(job, Some(&status)).await?;
        }
        Ok(status)
    }

    /// Waits for the end, then names the part of the file.
    fn log_at_end<'a>(&'a self, job: &'a Job) -> Chunks<'a> {
        let ended = async move {
            let status = self.wait_while(job, |status| !is_over(status)).await?;
            let started = if let JobStatus::Ended(ending) = status { ending.started } else { Timestamp::default() };
            let (job, host) = (job.clone(), self.host_of(job));
            let open = Chunk::Open(Channel::Log, origin(&host, started));
            let rest = blocking(move || log::chunks(&job, &host, &framing(&job, &host), None, REMOVED)).await?;
            Ok([vec![open], rest].concat())
        };
        let chunks = ended.map_ok(|chunks| stream::iter(chunks).map(Ok)).map(|result| match result {
            Ok(chunks) => chunks.left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Box::pin(chunks.flatten_stream())
    }

    /// The host in the log's framing: the one that launched.
    fn host_of(&self, job: &Job) -> String {
        job.handle["machine"]["host"].as_str().unwrap_or(&self.here.host).to_owned()
    }
}

fn is_over(status: &JobStatus) -> bool {
    matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. })
}

fn origin(host: &str, created: Timestamp) -> SectionOrigin {
    SectionOrigin { created, node: Some(host.to_owned()), ..SectionOrigin::new(host) }
}
