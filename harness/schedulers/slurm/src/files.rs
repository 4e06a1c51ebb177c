//! The files of a job in its stage folder, beside those of every scheduler.

use muster_core::job::stage_folder::EXIT_FILE;
use muster_text::time::Timestamp;
use std::{fs, io, path::Path, time::UNIX_EPOCH};

/// The only section of a job.
pub(crate) const SECTION: &str = "job";
/// Which job runs of an attempt: the first that comes takes it.
pub(crate) const ID: &str = "rfm_job.id";
/// Its cleanup has begun: a job that comes later does nothing.
pub(crate) const CANCELLED: &str = "rfm_job.cancelled";
/// How it ended, while it is written.
pub(crate) const UNFINISHED_EXIT: &str = "rfm_job.exit.tmp";

/// What a script has left of how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExitFile {
    pub status: i32,
    /// The least that its log has.
    pub bytes: Option<u64>,
    pub ended: Option<Timestamp>,
    /// A node list.
    pub nodes: String,
}

impl ExitFile {
    /// `None` while it is not there, or not whole.
    pub(crate) fn read(stage: &Path) -> Option<Self> {
        // A folder that is read again shows names that a file server had hidden.
        let path = stage.join(EXIT_FILE);
        let text = fs::read_to_string(&path).or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                let _ = fs::read_dir(stage).map(Iterator::count);
            }
            fs::read_to_string(&path)
        });
        Self::parse(&text.ok()?)
    }

    /// `0 1234 1795331057 n[1-2]`
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
        let [status, bytes, ended, nodes @ ..] = &fields[..] else { return None };
        let seconds = ended.parse::<i64>().ok();
        Some(Self {
            status: status.parse().ok()?,
            bytes: bytes.parse().ok(),
            ended: seconds.map(|seconds| Timestamp(seconds * 1_000_000)),
            nodes: nodes.concat(),
        })
    }
}

/// The number of the job that runs, and since when.
pub(crate) fn runner(stage: &Path) -> Option<(String, Option<Timestamp>)> {
    let path = stage.join(ID);
    let id = fs::read_to_string(&path).ok()?.strip_suffix('\n')?.to_owned();
    let modified = fs::metadata(&path).and_then(|about| about.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let since = since.and_then(|since| Some(Timestamp(i64::try_from(since.as_micros()).ok()?)));
    (!id.is_empty()).then_some((id, since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_file_is_whole_or_none() {
        let rows = [
            ("0 1234 1795331057 n[1-2]\n", Some((0, Some(1234), "n[1-2]"))),
            ("143  1795331057 n1\n", Some((143, None, "n1"))),
            ("7 12 1795331057 \n", Some((7, Some(12), ""))),
            ("0 1234 1795331057 n1", None),
            ("0\n", None),
            ("", None),
            (" 1 2\n", None),
        ];
        for (text, expected) in rows {
            let read = ExitFile::parse(text);
            let read = read.as_ref().map(|read| (read.status, read.bytes, read.nodes.as_str()));
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
