//! The log of a job that has ended: where it lies in the file, and whether it is whole.
//!
//! `> /dev/stderr` or `tee /dev/stderr` in a script opens the log again and truncates it. The framing at the head of the
//! file is lost with the first lines, which is how we know.

use crate::{LocalScheduler, launch::framing, processes::blocking};
use futures_util::{FutureExt, StreamExt, TryFutureExt, stream};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Chunk, Chunks, Job, JobStatus},
        stage_folder::LOG_FILE,
        stdout::SectionOrigin,
    },
};
use muster_text::time::Timestamp;
use rustix::fs::OFlags;
use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

const TRUNCATED: &str = "the job truncated its log, as `> /dev/stderr` and `tee /dev/stderr` do: write `>&2` or `tee -a`";
const REMOVED: &str = "the job removed its log";
const REPLACED: &str = "the job put something that is not a regular file in the place of its log";

impl LocalScheduler {
    /// Waits for the end, then names the part of the file. What is being written now is read from the file itself.
    pub(crate) fn log<'a>(&'a self, job: &'a Job) -> Chunks<'a> {
        let ended = async move {
            let mut status = self.wait_for_change(job, None).await?;
            while let JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. } = status {
                status = self.wait_for_change(job, Some(&status)).await?;
            }
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

/// The chunks of the only section. Blocking.
pub(super) fn chunks(job: &Job, host: &str, created: Timestamp) -> Result<Vec<Chunk>, SchedulerError> {
    let section = || host.to_owned();
    let path = job.stage.join(LOG_FILE);
    let origin = SectionOrigin { created, node: Some(section()), ..SectionOrigin::new(section()) };
    let mut chunks = vec![Chunk::Open(origin)];
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

/// Where the section begins and how long it is; it begins at 0 if the framing is gone. `None`: it is not a regular file.
fn measure(path: &Path, framing: &[u8]) -> io::Result<Option<(u64, u64)>> {
    // Opening a pipe waits for its writer, perhaps for ever.
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(without_waiting).open(path)?;
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
    fn a_pipe_in_the_place_of_the_log_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(measure(&path, b"FRAME\n").unwrap(), None);
    }
}
