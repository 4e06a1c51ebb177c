//! The log of a job: a file in the stage folder, which a node writes. It is whole when the job has ended and it has the bytes that the
//! job's script has counted: a file server may show them later.

use crate::{
    files::{SECTION, STILL, framing},
    poll::{Cluster, Tracked},
};
use futures_util::{StreamExt, stream};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Channel, Chunk, Chunks, Job, JobStatus},
        stage_folder::LOG_FILE,
        stdout::SectionOrigin,
    },
};
use muster_host::files::open_regular;
use muster_stage::{blocking, log as stage_log};
use muster_text::time::{Timestamp, format_duration};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

/// How long after an outage is asked again.
const PAUSE: Duration = Duration::from_secs(5);
/// How often a file is looked at that is not whole.
const LATE_POLL: Duration = Duration::from_millis(500);

const REMOVED: &str = "the job removed its log, or the node has never written it";

type Sender = mpsc::Sender<Result<Chunk, SchedulerError>>;

/// The chunks of a job's log.
pub(crate) fn log(cluster: Result<Arc<Cluster>, SchedulerError>, job: &Job) -> Chunks<'static> {
    let job = job.clone();
    let begun = async move {
        let cluster = cluster?;
        let status = until(&cluster, &job, |status| !matches!(status, JobStatus::NotSeen | JobStatus::Pending { .. })).await?;
        Ok((cluster, job, status))
    };
    // Thousands of jobs wait for hours: what sends is made when they run.
    let chunks = move |begun| match begun {
        Ok((cluster, job, status)) => sent(cluster, job, status),
        Err(error) => Box::pin(stream::iter([Err(error)])),
    };
    Box::pin(stream::once(begun).flat_map(chunks))
}

/// The chunks of a job that runs, or has ended.
fn sent(cluster: Arc<Cluster>, job: Job, status: JobStatus) -> Chunks<'static> {
    let (sender, receiver) = mpsc::channel(16);
    let sending = async move {
        if let Err(error) = send(&cluster, &job, status, &sender).await {
            // Nobody listens any more, or it is told.
            let _ = sender.send(Err(error)).await;
        }
    };
    let pieces = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    // Both are polled together, and dropped together.
    let sending = stream::once(sending).filter_map(|()| async { None });
    Box::pin(stream::select(sending, pieces))
}

/// A listener that went away ends the sending with its stream.
async fn say(sender: &Sender, chunk: Chunk) {
    let _ = sender.send(Ok(chunk)).await;
}

async fn send(cluster: &Arc<Cluster>, job: &Job, mut status: JobStatus, sender: &Sender) -> Result<(), SchedulerError> {
    if matches!(status, JobStatus::Running { .. }) {
        say(sender, Chunk::Grows { origin: origin(&status), path: job.stage.join(LOG_FILE) }).await;
        status = until(cluster, job, is_over).await?;
    }
    say(sender, Chunk::Open(Channel::Log, origin(&status))).await;
    let tracked = cluster.tracked(job);
    let is_ended = matches!(status, JobStatus::Ended(_));
    let late = if is_ended { await_whole(job, tracked.as_deref(), sender).await } else { None };
    let job = job.clone();
    let chunks = blocking(move || stage_log::chunks(&job, SECTION, &framing(&job.identifier), late, REMOVED)).await?;
    for chunk in chunks {
        say(sender, chunk).await;
    }
    Ok(())
}

fn is_over(status: &JobStatus) -> bool {
    matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. })
}

fn origin(status: &JobStatus) -> SectionOrigin {
    let (created, node) = match status {
        JobStatus::Running { since, nodes, .. } => (*since, nodes.first().cloned()),
        JobStatus::Ended(ending) => (ending.started, ending.exits.first().and_then(|exit| exit.node.clone())),
        _ => (Timestamp::default(), None),
    };
    SectionOrigin { created, node, ..SectionOrigin::new(SECTION) }
}

/// The first status of which something holds.
async fn until(cluster: &Arc<Cluster>, job: &Job, holds: impl Fn(&JobStatus) -> bool) -> Result<JobStatus, SchedulerError> {
    let mut seen = None;
    loop {
        match cluster.next_status(job, seen.as_ref()).await {
            Ok(status) if holds(&status) => return Ok(status),
            Ok(status) => seen = Some(status),
            // Who waits for the job reports it; a log only takes longer.
            Err(error) if error.class == Class::Outage => sleep(PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the log has what the script has counted, or without its count until it grows no more. `Some`: why it may not be whole.
async fn await_whole(job: &Job, tracked: Option<&Tracked>, sender: &Sender) -> Option<String> {
    let tracked = tracked?;
    let (bytes, latency) = (tracked.log_bytes(), tracked.handle().policy.file_latency);
    let started = Instant::now();
    let (mut before, mut still_since) = (0, started);
    loop {
        let path = job.stage.join(LOG_FILE);
        let there = blocking(move || size(&path)).await;
        if there != before {
            (before, still_since) = (there, Instant::now());
        }
        if bytes.map_or(still_since.elapsed() >= STILL, |bytes| there >= bytes) {
            return None;
        }
        if started.elapsed() >= latency {
            let latency = format_duration(latency);
            return Some(match bytes {
                Some(bytes) => format!(
                    "the log has {there} of {bytes} bytes {latency} after the job: the file server does not show them, or the job truncated it"
                ),
                None => format!("the log still grows {latency} after the job, and no exit file says how long it is"),
            });
        }
        say(sender, Chunk::Alive).await;
        sleep(LATE_POLL).await;
    }
}

/// Opening a file asks its server; its folder shows it again if it was hidden.
fn size(path: &Path) -> u64 {
    let length = |path: &Path| open_regular(path).and_then(|file| file.metadata()).map(|about| about.len());
    let again = |_| {
        let _ = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).map(Iterator::count);
        length(path)
    };
    length(path).or_else(again).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::{Handle, Place},
        poll::Known,
    };
    use muster_core::{
        case::{Identifier, SessionId},
        job::scheduler::Ending,
    };

    #[tokio::test(start_paused = true)]
    async fn the_file_of_a_log_is_named_while_the_job_runs_and_its_part_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (identifier, path) = (Identifier::from_letters([0; 8]), folder.path().join(LOG_FILE));
        std::fs::write(&path, framing(&identifier) + "two").unwrap();
        let handle = Handle { id: Some("1".to_owned()), launched: Some(Timestamp(0)), ..Handle::default() };
        let job = Job {
            identifier,
            session: SessionId("s".into()),
            case: String::new(),
            scheduler: "slurm".into(),
            stage: folder.path().to_owned(),
            handle: serde_json::to_value(handle).unwrap().into(),
        };
        let cluster = Cluster::new(Place::default(), None);
        let tracked = cluster.track(&job).unwrap();
        let tell = |status| tracked.tell(Known { status: Some(status), ..Known::default() });
        tell(JobStatus::Running { since: Timestamp(7), nodes: vec!["n1".into()], partly_ended: None, has_ended: false });
        let mut chunks = log(Ok(Arc::clone(&cluster)), &job).map(Result::unwrap);
        let Some(Chunk::Grows { origin, path: grows }) = chunks.next().await else { panic!("no file") };
        assert_eq!((origin.title().as_str(), origin.created, origin.node.as_deref()), (SECTION, Timestamp(7), Some("n1")));
        assert_eq!(grows, path);
        tell(JobStatus::Ended(Ending::default()));
        let rest: Vec<Chunk> = chunks.filter(|chunk| std::future::ready(*chunk != Chunk::Alive)).collect().await;
        assert!(matches!(&rest[..], [Chunk::Open(..), Chunk::File { len: 3, .. }, Chunk::End { .. }]), "{rest:?}");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_log_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(size(&path), 0);
    }
}
