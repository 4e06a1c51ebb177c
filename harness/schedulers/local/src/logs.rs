//! The log of a job that has ended: where it lies in the file, and whether it is whole. Who asks for it reads what is added to the
//! file while the job runs.
//!
//! `> /dev/stderr` or `tee /dev/stderr` in a script opens the log again and truncates it. The framing at the head of the
//! file is lost with the first lines, which is how we know.

use crate::{LocalScheduler, launch::framing};
use futures_util::{FutureExt, StreamExt, TryFutureExt, stream};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Channel, Chunk, Chunks, Job, JobStatus},
        stage_folder::LOG_FILE,
        stdout::SectionOrigin,
    },
};
use muster_stage::blocking;
use muster_text::time::Timestamp;
use rustix::fs::OFlags;
use std::{
    fs::File,
    future::ready,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};
use tokio::time::timeout;

/// How often the file is looked at for who reads it while it grows.
const LIVE_POLL: Duration = Duration::from_millis(200);
/// The most that one chunk of it has.
const LIVE_BYTES: u64 = 64 << 10;

const TRUNCATED: &str = "the job truncated its log, as `> /dev/stderr` and `tee /dev/stderr` do: write `>&2` or `tee -a`";
const REMOVED: &str = "the job removed its log";
const REPLACED: &str = "the job put something that is not a regular file in the place of its log";

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
        let (path, framing, section) = (job.stage.join(LOG_FILE), framing(job, &self.host_of(job)), self.host_of(job));
        let state = (ended, 0_u64, false);
        Box::pin(stream::unfold(state, move |(mut ended, mut at, mut is_last)| {
            let (path, framing, section) = (path.clone(), framing.clone(), section.clone());
            async move {
                loop {
                    let (path, framing) = (path.clone(), framing.clone());
                    // Nothing to read: the end of the job names what is wrong with its log.
                    let added = blocking(move || added(&path, framing.as_bytes(), at)).await.unwrap_or_default();
                    if let Some((from, data)) = added {
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
            blocking(move || chunks(&job, &host, started)).await
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

/// The chunks of the only section. Blocking.
pub(super) fn chunks(job: &Job, host: &str, created: Timestamp) -> Result<Vec<Chunk>, SchedulerError> {
    let section = || host.to_owned();
    let path = job.stage.join(LOG_FILE);
    let mut chunks = vec![Chunk::Open(Channel::Log, origin(host, created))];
    match measure(&path, framing(job, host).as_bytes()) {
        Ok(None) => chunks.push(Chunk::Gap { section: section(), why: REPLACED.to_owned() }),
        Ok(Some((start, len))) => {
            if start == 0 {
                chunks.push(Chunk::Gap { section: section(), why: TRUNCATED.to_owned() });
            }
            chunks.push(Chunk::File { section: section(), path, start, len });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            chunks.push(Chunk::Gap { section: section(), why: REMOVED.to_owned() });
        }
        Err(error) => return Err(SchedulerError::new(Class::Infra, format!("read {}", path.display()), error)),
    }
    chunks.push(Chunk::End { section: section() });
    Ok(chunks)
}

/// What was added to a section after its first `at` bytes, and where; `None`: nothing. A section that was truncated begins again.
fn added(path: &Path, framing: &[u8], at: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let Some((start, len)) = measure(path, framing)? else { return Ok(None) };
    let at = if at > len { 0 } else { at };
    if at == len {
        return Ok(None);
    }
    let mut file = open(path)?;
    file.seek(SeekFrom::Start(start + at))?;
    let mut data = Vec::new();
    file.take((len - at).min(LIVE_BYTES)).read_to_end(&mut data)?;
    Ok(Some((at, data)).filter(|(_, data)| !data.is_empty()))
}

/// Opening a pipe waits for its writer, perhaps for ever: not here.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Where the section begins and how long it is; it begins at 0 if the framing is gone. `None`: it is not a regular file.
fn measure(path: &Path, framing: &[u8]) -> io::Result<Option<(u64, u64)>> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let size = metadata.len();
    let mut head = vec![0; framing.len()];
    let is_whole = file.read_exact(&mut head).is_ok() && head == framing;
    let start = if is_whole { framing.len() as u64 } else { 0 };
    Ok(Some((start, size - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_begins_after_the_framing_unless_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let rows = [("FRAME\na\nb", (6, 3)), ("FRAME\n", (6, 0)), ("b\nc\n", (0, 4)), ("FRAME", (0, 5)), ("", (0, 0))];
        for (content, place) in rows {
            std::fs::write(&path, content).unwrap();
            assert_eq!(measure(&path, b"FRAME\n").unwrap(), Some(place), "{content:?}");
        }
    }

    #[test]
    fn what_is_added_begins_again_where_a_log_was_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let rows = [
            ("FRAME\nab", 0, Some((0, "ab"))),
            ("FRAME\nabc", 2, Some((2, "c"))),
            ("FRAME\nabc", 3, None),
            ("FRAME\n", 0, None),
            ("xy", 3, Some((0, "xy"))),
        ];
        for (content, at, expected) in rows {
            std::fs::write(&path, content).unwrap();
            let expected = expected.map(|(at, text)| (at, text.as_bytes().to_vec()));
            assert_eq!(added(&path, b"FRAME\n", at).unwrap(), expected, "{content:?} {at}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_the_log_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(measure(&path, b"FRAME\n").unwrap(), None);
    }
}
