//! The files of a stage folder, for schedulers whose jobs do not see it: they send them to where the job runs.

use crate::blocking;
use muster_core::{
    error::{Class, SchedulerError},
    job::stage_folder,
};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// A file that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentFile {
    /// Relative to the stage folder: `input/mesh.dat`.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    pub data: Vec<u8>,
}

/// What was staged, in the order of its paths, without what Muster itself has written into the folder. Links are followed, and
/// empty folders are left out. `most`: bytes that fit.
///
/// # Errors
/// Of class `Config` if there is more; of class `Infra` if a file cannot be read.
pub async fn sent_files(stage: PathBuf, most: u64) -> Result<Vec<SentFile>, SchedulerError> {
    blocking(move || read(&stage, most)).await
}

fn read(stage: &Path, most: u64) -> Result<Vec<SentFile>, SchedulerError> {
    let mut files = Vec::new();
    let mut room = most;
    let walk = walk(stage);
    for path in walk.map_err(|error| unread(stage, error))? {
        let file = one(stage, &path, room).map_err(|error| unread(&path, error))?;
        let Some(left) = room.checked_sub(file.data.len() as u64) else {
            let what = format!(
                "the files of `sourcesdir` are sent with the job, and there may be {most} bytes of them: with {} there are more",
                file.path
            );
            return Err(SchedulerError::plain(Class::Config, what).with_nothing_created());
        };
        room = left;
        files.push(file);
    }
    Ok(files)
}

fn unread(path: &Path, error: io::Error) -> SchedulerError {
    SchedulerError::new(Class::Infra, format!("read {}, which is sent with the job", path.display()), error)
        .with_nothing_created()
}

/// All files below a folder, sorted.
fn walk(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(within) = folders.pop() {
        for entry in fs::read_dir(&within)? {
            let entry = entry?;
            if within == folder && stage_folder::is_ours(&entry.file_name()) {
                continue;
            }
            // What `readonly_files` names is a link here.
            let target = if fs::metadata(entry.path())?.is_dir() { &mut folders } else { &mut files };
            target.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Reads no more than a byte beyond what fits.
fn one(stage: &Path, path: &Path, room: u64) -> io::Result<SentFile> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut data = Vec::new();
    file.take(room.saturating_add(1)).read_to_end(&mut data)?;
    let relative = path.strip_prefix(stage).unwrap_or(path);
    let Some(relative) = relative.to_str() else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its name is not valid UTF-8"));
    };
    Ok(SentFile { path: relative.to_owned(), mode, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_staged_is_sent_and_muster_s_own_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/empty")).unwrap();
        fs::write(at("sub/run.sh"), "true").unwrap();
        fs::set_permissions(at("sub/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at("rfm_job.sh"), "ours").unwrap();
        fs::write(at("a"), "1").unwrap();
        symlink("sub", at("link")).unwrap();
        let files = read(folder.path(), 100).unwrap();
        let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.mode & 0o111 != 0, file.data.len())).collect();
        assert_eq!(seen, [("a", false, 1), ("link/run.sh", true, 4), ("sub/run.sh", true, 4)]);
    }

    #[test]
    fn more_than_fits_is_the_check_s_mistake_and_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "12345").unwrap();
        fs::write(folder.path().join("b"), "123456").unwrap();
        assert!(read(folder.path(), 11).is_ok());
        let error = read(folder.path(), 10).unwrap_err();
        assert_eq!(error.class, Class::Config);
        assert!(error.to_string().contains("10 bytes of them: with b there are more"), "{error}");
    }

    #[test]
    fn a_link_to_nowhere_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        symlink("nowhere", folder.path().join("x")).unwrap();
        let error = read(folder.path(), 10).unwrap_err();
        assert_eq!(error.class, Class::Infra);
    }
}
