//! The files of a job in its stage folder, beside those of every scheduler.

use muster_core::{
    case::Identifier,
    job::{
        scheduler::Signal,
        stage_folder::EXIT_FILE,
        stdout::{first_line, header},
    },
};
use muster_host::files as host_files;
use muster_text::time::Timestamp;
use std::{
    fs,
    io::{self, Read},
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

/// The only section of a job.
pub(crate) const SECTION: &str = "job";
/// Which job runs of an attempt: the first that comes takes it.
pub(crate) const ID: &str = "rfm_job.id";
/// Its cleanup has begun: a job that comes later does nothing.
pub(crate) const CANCELLED: &str = "rfm_job.cancelled";
/// Why a job did nothing.
pub(crate) const SKIPPED: &str = "rfm_job.skipped";
/// How it ended, while it is written.
pub(crate) const UNFINISHED_EXIT: &str = "rfm_job.exit.tmp";

/// A log whose length nobody has counted is whole if it has not grown for so long. A file server may show its end later.
pub(crate) const STILL: Duration = Duration::from_secs(3);

/// The bytes that a whole log begins with.
pub(crate) fn framing(identifier: &Identifier) -> String {
    first_line(identifier) + &header(SECTION)
}

/// What a script has left of how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExitFile {
    pub status: i32,
    /// The least that its log has.
    pub bytes: Option<u64>,
    pub ended: Option<Timestamp>,
    /// The number of times that Slurm has started the job again.
    pub restarts: u32,
    /// Its script was signalled: somebody, or Slurm, may have ended it.
    pub signalled: bool,
    /// A node list.
    pub nodes: String,
}

impl ExitFile {
    /// Slurm has to say how the job ended: the status may be that of a script which was taken away.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.signalled || Signal::of_status(self.status).is_some()
    }

    /// Whether a log of so many bytes is all that its script has seen of it.
    pub(crate) fn has_log_of(&self, bytes: u64) -> bool {
        self.bytes.is_none_or(|least| bytes >= least)
    }

    /// `None` while it is not there, or not whole.
    pub(crate) fn read(stage: &Path) -> Option<Self> {
        // A folder that is read again shows names that a file server had hidden.
        let path = stage.join(EXIT_FILE);
        let text = read(&path).or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                let _ = fs::read_dir(stage).map(Iterator::count);
            }
            read(&path)
        });
        Self::parse(&text.ok()?)
    }

    /// `0 1234 1795331057 0 0 n[1-2]`
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
        let [status, bytes, ended, restarts, signalled, nodes @ ..] = &fields[..] else { return None };
        let seconds = ended.parse::<i64>().ok();
        Some(Self {
            status: status.parse().ok()?,
            bytes: bytes.parse().ok(),
            ended: seconds.map(Timestamp::of_seconds),
            restarts: restarts.parse().ok()?,
            signalled: *signalled != "0",
            nodes: nodes.concat(),
        })
    }
}

/// A small file of a stage folder.
fn read(path: &Path) -> io::Result<String> {
    const MOST: u64 = 64 << 10;
    let mut text = String::new();
    host_files::open_regular(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

/// The number of the job that runs, and since when.
pub(crate) fn runner(stage: &Path) -> Option<(String, Option<Timestamp>)> {
    let path = stage.join(ID);
    let id = read(&path).ok()?.strip_suffix('\n')?.to_owned();
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
            ("0 1234 1795331057 0 0 n[1-2]\n", Some((0, Some(1234), 0, "n[1-2]"))),
            ("143  1795331057 2 1 n1\n", Some((143, None, 2, "n1"))),
            ("7 12 1795331057 0 0 \n", Some((7, Some(12), 0, ""))),
            ("0 1234 1795331057 0 0 n1", None),
            ("0\n", None),
            ("", None),
            (" 1 2\n", None),
            ("-2147483648 1 99999999999999999 0 0 n1\n", Some((i32::MIN, Some(1), 0, "n1"))),
        ];
        for (text, expected) in rows {
            let read = ExitFile::parse(text);
            let read = read.as_ref().map(|read| (read.status, read.bytes, read.restarts, read.nodes.as_str()));
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn a_script_that_was_signalled_does_not_say_alone_how_it_ended() {
        let rows = [
            ("0 1 2 0 0 n1", false),
            ("3 1 2 0 0 n1", false),
            ("143 1 2 0 0 n1", true),
            ("137 1 2 0 0 n1", true),
            ("0 1 2 0 1 n1", true),
            ("-2147483648 1 2 0 0 n1", false),
        ];
        for (text, doubtful) in rows {
            assert_eq!(ExitFile::parse(&format!("{text}\n")).unwrap().is_doubtful(), doubtful, "{text}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let stage = tempfile::tempdir().unwrap();
        for name in [ID, EXIT_FILE] {
            rustix::fs::mkfifoat(rustix::fs::CWD, stage.path().join(name), rustix::fs::Mode::RWXU).unwrap();
        }
        assert_eq!((runner(stage.path()), ExitFile::read(stage.path())), (None, None));
    }
}
