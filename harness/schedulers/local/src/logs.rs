//! The log of a job: its file while the job runs, and where it lies in that at its end.

use crate::{LocalScheduler, launch::framing};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use muster_core::{
    error::SchedulerError,
    job::{
        scheduler::{Channel, Chunk, Chunks, Job, JobStatus},
        stage_folder::LOG_FILE,
        stdout::SectionOrigin,
    },
};
use muster_stage::{blocking, log};
use muster_text::time::Timestamp;

const REMOVED: &str = "the job removed its log";

impl LocalScheduler {
    pub(crate) fn log<'a>(&'a self, job: &'a Job) -> Chunks<'a> {
        let runs = self.file(job).into_stream();
        Box::pin(runs.chain(self.log_at_end(job).into_stream()).map_ok(|chunks| stream::iter(chunks).map(Ok)).try_flatten())
    }

    /// The file of the log, as soon as the job runs.
    async fn file(&self, job: &Job) -> Result<Vec<Chunk>, SchedulerError> {
        let status = self.wait_while(job, |status| matches!(status, JobStatus::NotSeen | JobStatus::Pending { .. })).await?;
        let JobStatus::Running { since, .. } = status else { return Ok(Vec::new()) };
        Ok(vec![Chunk::Grows { origin: origin(&self.host_of(job), since), path: job.stage.join(LOG_FILE) }])
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
    async fn log_at_end(&self, job: &Job) -> Result<Vec<Chunk>, SchedulerError> {
        let status = self.wait_while(job, |status| !is_over(status)).await?;
        let started = if let JobStatus::Ended(ending) = status { ending.started } else { Timestamp::default() };
        let (job, host) = (job.clone(), self.host_of(job));
        let open = Chunk::Open(Channel::Log, origin(&host, started));
        let rest = blocking(move || log::chunks(&job, &host, &framing(&job, &host), None, REMOVED)).await?;
        Ok([vec![open], rest].concat())
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
