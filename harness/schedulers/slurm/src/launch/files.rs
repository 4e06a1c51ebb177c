//! The files that a job finds in its stage folder. The log comes last, whole and under its name at once: where it is, the others
//! are whole too, and the job may have been submitted.

use crate::{
    command::Commands,
    files::{UNFINISHED_EXIT, framing},
    plan::Handle,
};
use muster_core::{
    case::Identifier,
    job::stage_folder::{LOG_FILE, SCRIPT_FILE},
};
use muster_host::files as host_files;
use muster_text::time::Timestamp;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// When an answer was lost.
const LOST_FILE: &str = "rfm_job.lost";
/// The log before it has its name.
const UNFINISHED_LOG: &str = "rfm_job.out.tmp";
const UNFINISHED_SCRIPT: &str = "rfm_job.sh.tmp";

/// What a launch has found in the stage folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    /// The files were not there before.
    pub is_new: bool,
    /// The time when they were written before.
    pub written: Option<Timestamp>,
    /// The time when an answer to an earlier launch was lost.
    pub lost: Option<Timestamp>,
}

/// Writes what is not there: a launch that failed half-way is continued.
pub(super) fn prepare(stage: &Path, identifier: &Identifier, script: &str) -> io::Result<Prepared> {
    let log = stage.join(LOG_FILE);
    let lost = fs::read_to_string(stage.join(LOST_FILE)).ok();
    let lost = lost.and_then(|text| text.trim().parse().ok()).map(Timestamp);
    let is_new = !log.try_exists()?;
    if is_new {
        write_script(stage, script)?;
        // All are there before the job is, so that no file server has to say later that they are not.
        host_files::create(&stage.join(UNFINISHED_EXIT))?;
        let unfinished = stage.join(UNFINISHED_LOG);
        let mut file = host_files::create(&unfinished)?;
        file.write_all(framing(identifier).as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &log)?;
    }
    Ok(Prepared { is_new, written: modified(&log).filter(|_| !is_new), lost })
}

/// A script is whole or the one before.
fn write_script(stage: &Path, text: &str) -> io::Result<()> {
    let unfinished = stage.join(UNFINISHED_SCRIPT);
    host_files::write_script(&unfinished, text)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(&unfinished, stage.join(SCRIPT_FILE))
}

/// An answer was lost now.
pub(super) fn note_lost(stage: &Path, at: Timestamp) {
    // Without it, the launch of another process looks for the job all the same.
    let _ = fs::write(stage.join(LOST_FILE), at.0.to_string());
}

fn modified(path: &Path) -> Option<Timestamp> {
    let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since.as_micros()).ok()?))
}

/// The script as it is submitted.
pub(super) fn text(handle: &Handle, commands: &Commands) -> String {
    let mut script = handle.script.clone();
    let hidden = commands.hidden(&handle.pass_env);
    if !hidden.is_empty() {
        let header: usize = script.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
        script.insert_str(header, &format!("unset {}\n", hidden.join(" ")));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Place;
    use std::os::unix::fs::PermissionsExt;

    fn identifier() -> Identifier {
        Identifier::parse("abcdefgh").unwrap()
    }

    fn names(stage: &Path) -> Vec<String> {
        let entries = fs::read_dir(stage).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A write fails where a folder is in its way.
    #[test]
    fn a_launch_that_failed_half_way_writes_what_is_missing() {
        for blocked in [UNFINISHED_SCRIPT, SCRIPT_FILE, UNFINISHED_EXIT, UNFINISHED_LOG] {
            let stage = tempfile::tempdir().unwrap();
            let stage = stage.path();
            fs::create_dir(stage.join(blocked)).unwrap();
            prepare(stage, &identifier(), "old").unwrap_err();
            assert!(!stage.join(LOG_FILE).exists(), "{blocked}: the mark of a whole folder");
            fs::remove_dir(stage.join(blocked)).unwrap();
            assert!(prepare(stage, &identifier(), "new").unwrap().is_new, "{blocked}");
            assert_eq!(fs::read_to_string(stage.join(SCRIPT_FILE)).unwrap(), "new", "{blocked}");
            assert_eq!(fs::read_to_string(stage.join(LOG_FILE)).unwrap(), framing(&identifier()), "{blocked}");
            assert_eq!(names(stage), [UNFINISHED_EXIT, LOG_FILE, SCRIPT_FILE], "{blocked}");
            assert_eq!(fs::metadata(stage.join(SCRIPT_FILE)).unwrap().permissions().mode() & 0o100, 0o100);
        }
    }

    #[test]
    fn what_is_whole_is_not_written_again() {
        let stage = tempfile::tempdir().unwrap();
        prepare(stage.path(), &identifier(), "first").unwrap();
        fs::write(stage.path().join(LOG_FILE), "the job's").unwrap();
        note_lost(stage.path(), Timestamp(7));
        let found = prepare(stage.path(), &identifier(), "second").unwrap();
        assert_eq!((found.is_new, found.written.is_some(), found.lost), (false, true, Some(Timestamp(7))));
        let read = |name| fs::read_to_string(stage.path().join(name)).unwrap();
        assert_eq!((read(SCRIPT_FILE), read(LOG_FILE)), ("first".to_owned(), "the job's".to_owned()));
    }

    #[test]
    fn what_only_sbatch_needs_is_unset_before_anything_runs() {
        let mut commands = Commands::new(Place::default(), None);
        commands.set(&[("SLURM_JWT", "token"), ("LD_LIBRARY_PATH", "/opt")]);
        let script = "#!/bin/bash\n#SBATCH --time=61\ncd /stage\n# run\n".to_owned();
        let mut handle = Handle { script, ..Handle::default() };
        let first = "#!/bin/bash\n#SBATCH --time=61\n";
        assert_eq!(text(&handle, &commands), format!("{first}unset SLURM_JWT LD_LIBRARY_PATH\ncd /stage\n# run\n"));
        handle.pass_env = vec!["LD_LIBRARY_PATH".to_owned()];
        assert_eq!(text(&handle, &commands), format!("{first}unset SLURM_JWT\ncd /stage\n# run\n"));
        commands.set(&[]);
        assert_eq!(text(&handle, &commands), handle.script);
    }
}
