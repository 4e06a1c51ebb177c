//! Creating files and folders with the modes that Muster gives them. Everything that Muster writes is created here.
//!
//! ```text
//! file mode 0600 (the default)    files rw-------   folders rwx------   scripts rwx------
//! file mode 0640 (--file-mode)    files rw-r-----   folders rwxr-x---   scripts rwxr-x---
//! ```
//! The mode is one setting of the process, as the umask is, and holds whatever the umask says: a file is never wider than its mode, from
//! its creation on, and bits that the umask cuts off are added before anything is written. The umask itself stays as it is,
//! because jobs inherit it. What existed before keeps its mode, unless it is rewritten as a whole.
//!
//! All functions block, and have the errors of their counterparts in `std::fs`.

use rustix::fs::OFlags;
use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

/// The default: only the owner reads a file.
const PRIVATE: u32 = 0o600;
/// The bits of a mode that are permissions of owner, group and others.
pub(crate) const PERMISSIONS: u32 = 0o777;

static FILE_MODE: AtomicU32 = AtomicU32::new(PRIVATE);

/// Sets the mode of every file that this process creates from now on.
pub fn set_mode(file: u32) {
    FILE_MODE.store(file & 0o666, Ordering::Relaxed);
}

fn file_mode() -> u32 {
    FILE_MODE.load(Ordering::Relaxed)
}

/// `x` where `r` is: the mode of a folder, and of a script.
fn with_search(file: u32) -> u32 {
    file | (file & 0o444) >> 2
}

/// A new folder.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mode = with_search(file_mode());
    DirBuilder::new().mode(mode).create(path)?;
    // Only bits for others can be missing: no umask in use takes its owner's.
    if mode & 0o077 != 0 { std::fs::set_permissions(path, Permissions::from_mode(mode)) } else { Ok(()) }
}

/// A folder and all folders above it that are missing.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_dir_all(path.parent().ok_or(error)?)?;
            match create_dir(path) {
                Err(_) if path.is_dir() => Ok(()),
                created => created,
            }
        }
        Err(_) if path.is_dir() => Ok(()),
        created => created,
    }
}

/// Gives folders that a process with a narrower mode has created the permissions that new ones get; none loses any. `within` are
/// folders of Muster's own. What cannot be opened stays as it is.
pub fn widen<'a>(within: impl IntoIterator<Item = &'a Path>) {
    let wanted = with_search(file_mode());
    // Nothing is narrower than the default.
    for folder in within.into_iter().filter(|_| wanted & 0o077 != 0) {
        let found = std::fs::symlink_metadata(folder).ok().filter(std::fs::Metadata::is_dir);
        let mode = found.map(|found| found.permissions().mode() & PERMISSIONS);
        if let Some(mode) = mode.filter(|mode| mode | wanted != *mode) {
            let _ = std::fs::set_permissions(folder, Permissions::from_mode(mode | wanted));
        }
    }
}

/// An empty file for reading and writing; one that was there is emptied and gets the mode too.
pub fn create(path: &Path) -> io::Result<File> {
    emptied(path, file_mode())
}

/// The whole content of a file.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(content.as_ref())
}

/// The whole content of a file that can be executed.
pub fn write_script(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    emptied(path, with_search(file_mode()))?.write_all(content.as_ref())
}

/// A file that does not exist yet, for appending and reading.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mode = file_mode();
    let file = OpenOptions::new().read(true).append(true).create_new(true).mode(mode).open(path)?;
    settle(&file, mode)?;
    Ok(file)
}

/// A file for appending and reading, created if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).append(true).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match create_new(path) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(),
            created => created,
        },
        opened => opened,
    }
}

/// A file for reading that a job may have replaced. Opening a pipe would wait for its writer, perhaps for ever: that is
/// [`io::ErrorKind::InvalidInput`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let regular = file.metadata()?.is_file();
    if regular { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")) }
}

/// A file that begins with a framing unless a job has truncated it, where its own part begins, and how long that is: all of it if the
/// framing is gone. Errors are those of [`open_regular`].
pub fn open_framed(path: &Path, framing: &str) -> io::Result<(File, u64, u64)> {
    let mut file = open_regular(path)?;
    let size = file.metadata()?.len();
    let mut head = vec![0; framing.len()];
    let is_whole = file.read_exact(&mut head).is_ok() && head == framing.as_bytes();
    let start = if is_whole { framing.len() as u64 } else { 0 };
    Ok((file, start, size - start))
}

/// The content of a file under another name. What its owner may execute stays executable.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let is_script = source.metadata()?.permissions().mode() & 0o100 != 0;
    let mode = if is_script { with_search(file_mode()) } else { file_mode() };
    io::copy(&mut source, &mut emptied(to, mode)?).map(drop)
}

pub(crate) fn emptied(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(mode).open(path)?;
    settle(&file, mode)?;
    Ok(file)
}

/// Gives a file the mode that the umask, or its past, keeps it from having. A device or a pipe stays what it is.
fn settle(file: &File, mode: u32) -> io::Result<()> {
    let found = file.metadata()?;
    if found.is_file() && found.permissions().mode() & PERMISSIONS != mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & PERMISSIONS
    }

    #[test]
    fn a_folder_gets_x_where_a_file_gets_r() {
        for (file, folder) in [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755), (0o660, 0o770), (0o620, 0o720)] {
            assert_eq!(with_search(file), folder, "{file:o}");
        }
    }

    #[test]
    fn what_is_created_has_its_mode_and_what_is_written_again_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        create_dir_all(&at("a/b/c")).unwrap();
        create_dir_all(&at("a/b/c")).unwrap();
        for name in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(&at(name)), 0o700, "{name}");
        }
        fs::write(at("wide"), "x").unwrap();
        fs::set_permissions(at("wide"), Permissions::from_mode(0o666)).unwrap();
        append(&at("wide")).unwrap();
        assert_eq!(mode(&at("wide")), 0o666, "what existed before keeps its mode");
        write(&at("wide"), "y").unwrap();
        assert_eq!(mode(&at("wide")), 0o600);
        write_script(&at("script"), "#!/bin/sh\n").unwrap();
        copy(&at("script"), &at("copy")).unwrap();
        assert_eq!((mode(&at("script")), mode(&at("copy"))), (0o700, 0o700));
        append(&at("new")).unwrap().write_all(b"a").unwrap();
        append(&at("new")).unwrap().write_all(b"b").unwrap();
        assert_eq!((mode(&at("new")), fs::read(at("new")).unwrap()), (0o600, b"ab".to_vec()));
        assert_eq!(create_new(&at("new")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(create_dir_all(&at("new/below")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(create_dir(&at("a")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
