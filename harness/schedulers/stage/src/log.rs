//! The log of a job: a file in its stage folder, which is already the assembled stdout, because it begins with the framing of it.
//!
//! `> /dev/stderr` or `tee /dev/stderr` in a script opens the log again and truncates it. The framing is lost with the first lines,
//! which is how we know. All functions block.

use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Chunk, Job},
        stage_folder::LOG_FILE,
    },
};
use muster_host::files::open_regular;
use std::{
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

/// The most that one chunk of a log that grows has.
const LIVE_BYTES: u64 = 64 << 10;

const TRUNCATED: &str = "the job truncated its log, as `> /dev/stderr` and `tee /dev/stderr` do: write `>&2` or `tee -a`";
const REPLACED: &str = "the job put something that is not a regular file in the place of its log";

/// The last chunks of the only section of a job that has ended: where it lies in the file, and what is missing.
///
/// `late`: why it may not be whole. `removed`: what it means that there is no log.
///
/// # Errors
/// The log cannot be read.
pub fn chunks(
    job: &Job,
    section: &str,
    framing: &str,
    late: Option<String>,
    removed: &str,
) -> Result<Vec<Chunk>, SchedulerError> {
    let path = job.stage.join(LOG_FILE);
    let gap = |why: String| Chunk::Gap { section: section.to_owned(), why };
    let mut chunks = Vec::new();
    match measure(&path, framing) {
        Ok((start, len)) => {
            chunks.extend((start == 0).then(|| gap(TRUNCATED.to_owned())));
            chunks.extend(late.map(gap));
            chunks.push(Chunk::File { section: section.to_owned(), path, start, len });
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => chunks.push(gap(REPLACED.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => chunks.push(gap(removed.to_owned())),
        Err(error) => return Err(SchedulerError::new(Class::Infra, format!("read {}", path.display()), error)),
    }
    chunks.push(Chunk::End { section: section.to_owned() });
    Ok(chunks)
}

/// Returns what a section has after its first `at` bytes; `None`: nothing. A section that was truncated begins again.
///
/// # Errors
/// The log cannot be read: the chunks at the end of the job say why.
pub fn added(job: &Job, section: &str, framing: &str, at: u64) -> io::Result<Option<Chunk>> {
    let path = job.stage.join(LOG_FILE);
    let (start, len) = measure(&path, framing)?;
    let at = if at > len { 0 } else { at };
    if at == len {
        return Ok(None);
    }
    let mut file = open_regular(&path)?;
    file.seek(SeekFrom::Start(start + at))?;
    let mut data = Vec::new();
    file.take((len - at).min(LIVE_BYTES)).read_to_end(&mut data)?;
    Ok((!data.is_empty()).then(|| Chunk::Live { section: section.to_owned(), at, data }))
}

/// Where the section begins and how long it is; it begins at 0 if the framing is gone.
fn measure(path: &Path, framing: &str) -> io::Result<(u64, u64)> {
    let mut file = open_regular(path)?;
    let size = file.metadata()?.len();
    let mut head = vec![0; framing.len()];
    let is_whole = file.read_exact(&mut head).is_ok() && head == framing.as_bytes();
    let start = if is_whole { framing.len() as u64 } else { 0 };
    Ok((start, size - start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_job::job;
    use std::process::Command;

    const FRAMING: &str = "FRAME\n";

    /// What is said of a log: the place of its section, and the gaps.
    fn said(job: &Job, late: Option<&str>) -> (Option<(u64, u64)>, Vec<String>) {
        let chunks = chunks(job, "s", FRAMING, late.map(str::to_owned), "it is gone").unwrap();
        assert!(matches!(chunks.last(), Some(Chunk::End { .. })));
        let place =
            chunks.iter().find_map(|chunk| if let Chunk::File { start, len, .. } = chunk { Some((*start, *len)) } else { None });
        let gap = |chunk: &Chunk| if let Chunk::Gap { why, .. } = chunk { Some(why.clone()) } else { None };
        (place, chunks.iter().filter_map(gap).collect())
    }

    #[test]
    fn a_section_begins_after_the_framing_unless_that_is_gone() {
        let (_folder, job) = job();
        let rows = [
            ("FRAME\na\nb", (6, 3), false),
            ("FRAME\n", (6, 0), false),
            ("b\nc\n", (0, 4), true),
            ("FRAME", (0, 5), true),
            ("", (0, 0), true),
        ];
        for (content, place, is_truncated) in rows {
            std::fs::write(job.stage.join(LOG_FILE), content).unwrap();
            let gaps = if is_truncated { vec![TRUNCATED.to_owned()] } else { vec![] };
            assert_eq!(said(&job, None), (Some(place), gaps), "{content:?}");
        }
        std::fs::write(job.stage.join(LOG_FILE), "FRAME\na").unwrap();
        assert_eq!(said(&job, Some("late")), (Some((6, 1)), vec!["late".to_owned()]));
    }

    #[test]
    fn what_is_added_begins_again_where_a_log_was_truncated() {
        let (_folder, job) = job();
        let rows = [
            ("FRAME\nab", 0, Some((0, "ab"))),
            ("FRAME\nabc", 2, Some((2, "c"))),
            ("FRAME\nabc", 3, None),
            ("FRAME\n", 0, None),
            ("xy", 3, Some((0, "xy"))),
        ];
        for (content, at, expected) in rows {
            std::fs::write(job.stage.join(LOG_FILE), content).unwrap();
            let expected = expected.map(|(at, text)| Chunk::Live { section: "s".to_owned(), at, data: text.as_bytes().to_vec() });
            assert_eq!(added(&job, "s", FRAMING, at).unwrap(), expected, "{content:?} {at}");
        }
    }

    #[test]
    fn a_log_that_is_gone_or_a_pipe_is_a_gap_and_is_not_waited_for() {
        let (_folder, job) = job();
        assert_eq!(said(&job, Some("late")), (None, vec!["it is gone".to_owned()]));
        assert!(Command::new("mkfifo").arg(job.stage.join(LOG_FILE)).status().unwrap().success());
        assert_eq!(said(&job, None), (None, vec![REPLACED.to_owned()]));
        assert!(added(&job, "s", FRAMING, 0).is_err());
    }
}
