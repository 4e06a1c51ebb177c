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
use muster_host::files::open_framed;
use std::io::ErrorKind;

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
    match open_framed(&path, framing) {
        Ok((_, start, len)) => {
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
    fn a_log_that_is_gone_or_a_pipe_is_a_gap_and_is_not_waited_for() {
        let (_folder, job) = job();
        assert_eq!(said(&job, Some("late")), (None, vec!["it is gone".to_owned()]));
        assert!(Command::new("mkfifo").arg(job.stage.join(LOG_FILE)).status().unwrap().success());
        assert_eq!(said(&job, None), (None, vec![REPLACED.to_owned()]));
    }
}
