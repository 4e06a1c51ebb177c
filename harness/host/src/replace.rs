//! Writing a file that a user has named, such as a report.
//!
//! ```text
//! nothing is there, or a regular file    written aside and renamed: a reader never sees half of it. An old file's mode stays
//! a device, a pipe, a socket             opened and written, never replaced
//! what this process prints to            written through that stream, after what it has printed
//! a symbolic link                        stays: its target is what is written
//! ```

use crate::files;
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat, fcntl_getfl, fcntl_setfl};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

/// As many links in a row are followed as Linux follows.
const MOST_LINKS: usize = 40;

/// How a path is written.
enum Target {
    /// A regular file, or none yet: its own path, and its mode.
    File { path: PathBuf, mode: Option<u32> },
    /// Where this process prints.
    Stream(OwnedFd),
    /// Anything else.
    Special,
}

/// Makes sure that a path can be written, and changes nothing. Folders that are missing are created.
pub fn try_out(path: &Path, suffix: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    match target(path)? {
        Target::File { path, .. } => {
            let aside = aside(&path, suffix);
            files::write(&aside, "")?;
            fs::remove_file(aside)
        }
        // Opening a pipe and closing it would end its reader.
        Target::Special => Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?),
        Target::Stream(_) => Ok(()),
    }
}

/// Writes the whole content of a path. `suffix` is what the name of the file beside it ends with.
pub fn replace(path: &Path, suffix: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    match target(path)? {
        Target::File { path, mode } => {
            let aside = aside(&path, suffix);
            let created = || mode.map_or_else(|| files::create(&aside), |mode| files::emptied(&aside, mode));
            let written = created().and_then(|mut file| file.write_all(content.as_ref())).and_then(|()| fs::rename(&aside, path));
            if written.is_err() {
                let _ = fs::remove_file(&aside);
            }
            written
        }
        Target::Special => special(path)?.write_all(content.as_ref()),
        Target::Stream(stream) => File::from(stream).write_all(content.as_ref()),
    }
}

/// Replaces a file that others may read, too: a new file has the mode that this process gives its files.
pub fn replace_shared(path: &Path, suffix: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    match target(path)? {
        Target::File { path, mode: None } => {
            let written = fs::write(&path, content);
            if written.is_err() {
                let _ = fs::remove_file(&path);
            }
            written
        }
        _ => replace(path, suffix, content),
    }
}

/// The file that writing a path would replace: where a link points. A device, a pipe or a socket is an error.
pub fn regular(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(followed(path)),
        Err(error) => Err(error),
    }
}

fn target(path: &Path) -> io::Result<Target> {
    let found = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Target::File { path: followed(path), mode: None }),
        Err(error) => return Err(error),
    };
    if let Some(stream) = own_stream(&found) {
        return Ok(Target::Stream(stream));
    }
    if found.is_file() {
        return Ok(Target::File { path: fs::canonicalize(path)?, mode: Some(found.mode() & files::PERMISSIONS) });
    }
    Ok(Target::Special)
}

/// Where a link points that points to nothing yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

fn aside(path: &Path, suffix: &str) -> PathBuf {
    let mut aside = path.to_owned().into_os_string();
    aside.push(suffix);
    aside.into()
}

/// Standard output or error, if that is what was found.
fn own_stream(found: &Metadata) -> Option<OwnedFd> {
    let is_it = |stream: OwnedFd| {
        let about = rustix::fs::fstat(&stream).ok()?;
        // The width of these numbers differs between systems.
        #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
        let is_same = (about.st_dev as u64, about.st_ino as u64) == (found.dev(), found.ino());
        is_same.then_some(stream)
    };
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    streams.into_iter().flatten().find_map(is_it)
}

/// A pipe without a reader is an error: waiting for a reader could last for ever.
fn special(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode, mknodat};
    use std::{
        io::Read,
        os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
        thread,
    };

    const SUFFIX: &str = ".part";

    fn both(path: &Path, content: &str) -> io::Result<()> {
        try_out(path, SUFFIX)?;
        replace(path, SUFFIX, content)
    }

    #[test]
    fn a_regular_file_is_replaced_with_its_mode_and_a_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("real", at("link")).unwrap();
        symlink("below/none", at("dangling")).unwrap();
        fs::create_dir(at("below")).unwrap();
        fs::write(at("real"), "a longer text").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o664)).unwrap();
        let mut before = File::open(at("real")).unwrap();
        for (written, real, mode) in
            [("new/file", "new/file", 0o600), ("link", "real", 0o664), ("real", "real", 0o664), ("dangling", "below/none", 0o600)]
        {
            both(&at(written), "text").unwrap();
            assert_eq!(fs::read_to_string(at(real)).unwrap(), "text", "{written}");
            assert_eq!(fs::metadata(at(real)).unwrap().mode() & 0o777, mode, "{written}");
        }
        let mut reader = String::new();
        before.read_to_string(&mut reader).unwrap();
        assert_eq!(reader, "a longer text", "who has it open sees nothing of it");
        assert!(at("link").is_symlink() && at("dangling").is_symlink());
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["below", "dangling", "link", "new", "real"]);
        assert_eq!(both(folder.path(), "").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        replace_shared(&at("file"), SUFFIX, "old").unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old");
        fs::create_dir(at("file.part")).unwrap();
        assert!(replace_shared(&at("file"), SUFFIX, "new").is_err(), "there is no room beside it");
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old");
    }

    #[test]
    fn a_pipe_is_written_and_stays_and_one_without_a_reader_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(both(&path, "text").is_err(), "no reader");
        assert_eq!(regular(&path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let mut reader = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path).unwrap();
        let (end, text) = (path.clone(), "text");
        thread::spawn(move || both(&end, text)).join().unwrap().unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "text");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }
}
