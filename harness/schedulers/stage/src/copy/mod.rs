//! Putting `sourcesdir` into a stage folder: a copy of what its `.gitignore` files do not name, links in the place of what is
//! read only.
//!
//! A link within the folder is copied as what it leads to, as ReFrame does: the job may change its files, and none of the
//! source's. Times of change are kept, for `make` compares them. What was staged before is replaced, so that staging can be
//! tried again. Who does it, how many at once and for how long, is in `threads`.

use ignore::WalkBuilder;
use muster_core::job::{stage_folder, workload::Staging};
use muster_host::files;
use muster_text::{
    glob::{GlobError, Globs},
    time::format_duration,
};
use std::{
    error::Error,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How much of a file is copied between two looks at whether to stop: at 1 MB/s these are four seconds.
const CHUNK: u64 = 4 << 20;

/// Why a folder was not staged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StagingError {
    /// The check or its folder is wrong: another attempt ends alike.
    #[error("{what}")]
    Mistake { what: String, source: Option<Box<dyn Error + Send + Sync>> },
    #[error("stage {} as {}", from.display(), to.display())]
    Copy { from: PathBuf, to: PathBuf, source: io::Error },
    /// There is too much of it, or the disk is too slow.
    #[error(
        "staging {} took more than {} (stage_limit): name its large files under `readonly_files`, which are linked instead of copied, or raise the limit",
        folder.display(),
        format_duration(*limit)
    )]
    Slow { folder: PathBuf, limit: Duration },
    /// The caller does not wait for it any more.
    #[error("staging {} was stopped", .0.display())]
    Stopped(PathBuf),
    /// The operating system gives no thread, or the thread panicked.
    #[error("stage {} on a thread of its own", folder.display())]
    Thread { folder: PathBuf, source: io::Error },
}

fn mistake(what: String) -> StagingError {
    StagingError::Mistake { what, source: None }
}

fn bad_glob(error: GlobError) -> StagingError {
    StagingError::Mistake { what: "`readonly_files`".to_owned(), source: Some(Box::new(error)) }
}

/// Returns whether there is a folder to be staged, or a fragment that says what is wrong with it.
///
/// # Errors
/// What is there cannot be staged.
pub fn look(folder: &Path) -> Result<bool, String> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
        Ok(there) if !there.is_dir() => return Err("it is not a folder".to_owned()),
        Ok(_) => {}
    }
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut ours = entries.flatten().map(|entry| entry.file_name()).filter(|name| stage_folder::is_ours(name));
    match ours.next() {
        Some(name) => Err(format!("it holds {}, which Muster itself writes into a stage folder", name.display())),
        None => Ok(true),
    }
}

/// Puts a copy of the folder into a stage folder. Blocks.
pub(crate) fn stage(staging: &Staging, stage: &Path, stop: &CancellationToken) -> Result<(), StagingError> {
    let Staging { folder, readonly_files, .. } = staging;
    match look(folder) {
        Ok(true) => {}
        Ok(false) => {
            return Err(mistake(format!("the folder {} of `sourcesdir` does not exist", folder.display())));
        }
        Err(why) => return Err(mistake(format!("the folder {} cannot be staged: {why}", folder.display()))),
    }
    let copying = Copying { folder, stage, stop, linked: Globs::compile(readonly_files).map_err(bad_glob)? };
    let linked = copying.run()?;
    for glob in readonly_files {
        let fits = Globs::compile(&[glob]).map_err(bad_glob)?;
        if !linked.iter().any(|path| fits.cover(path)) {
            return Err(mistake(format!("`readonly_files`: nothing in {} fits `{glob}`", folder.display())));
        }
    }
    Ok(())
}

struct Copying<'a> {
    folder: &'a Path,
    stage: &'a Path,
    stop: &'a CancellationToken,
    linked: Globs,
}

impl Copying<'_> {
    /// Says what was linked.
    fn run(&self) -> Result<Vec<String>, StagingError> {
        let mut walk = WalkBuilder::new(self.folder);
        walk.standard_filters(false).git_ignore(true).require_git(false).follow_links(true);
        let (folder, globs) = (self.folder.to_owned(), self.linked.clone());
        // What is linked is linked as a whole.
        walk.filter_entry(move |entry| {
            let parent = entry.path().parent().and_then(|parent| parent.strip_prefix(&folder).ok());
            parent.is_none_or(|parent| !globs.cover(&parent.to_string_lossy()))
        });
        let mut linked = Vec::new();
        for entry in walk.build() {
            let entry = entry.map_err(|error| StagingError::Mistake {
                what: format!("read what is in {}", self.folder.display()),
                source: Some(Box::new(error)),
            })?;
            let Ok(path) = entry.path().strip_prefix(self.folder) else { continue };
            if path.as_os_str().is_empty() {
                continue;
            }
            self.go_on()?;
            let to = self.stage.join(path);
            let shown = path.to_string_lossy();
            let done = if self.linked.cover(&shown) {
                linked.push(shown.into_owned());
                link(entry.path(), &to)
            } else if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                make_folder(&to)
            } else if let Some(what) = entry.file_type().and_then(special) {
                let path = entry.path().display();
                return Err(mistake(format!(
                    "{path} is {what}, and only files and folders can be staged: remove it, or name it under `readonly_files`, which are linked"
                )));
            } else {
                self.copy(entry.path(), &to)
            };
            // What is stopped half-way is not an error of the disk.
            self.go_on()?;
            done.map_err(|source| StagingError::Copy { from: entry.path().to_owned(), to, source })?;
        }
        Ok(linked)
    }

    fn go_on(&self) -> Result<(), StagingError> {
        if self.stop.is_cancelled() { Err(StagingError::Stopped(self.folder.to_owned())) } else { Ok(()) }
    }

    /// Copies a file with its permissions and its time of change; half of it, if it is asked to stop.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        make_way(to)?;
        let source = File::open(from)?;
        let about = source.metadata()?;
        let copy = files::create(to)?;
        while !self.stop.is_cancelled() && io::copy(&mut (&source).take(CHUNK), &mut &copy)? > 0 {}
        copy.set_permissions(about.permissions())?;
        copy.set_times(fs::FileTimes::new().set_modified(about.modified()?))
    }
}

/// What is neither a file nor a folder.
pub(crate) fn special(kind: fs::FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_fifo(), "a pipe"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device() || kind.is_block_device(), "a device"),
    ];
    kinds.into_iter().find_map(|(is, what)| is.then_some(what))
}

fn make_folder(to: &Path) -> io::Result<()> {
    match files::create_dir(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => Ok(()),
        made => made,
    }
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    make_way(to)?;
    std::os::unix::fs::symlink(std::path::absolute(from)?, to)
}

/// Removes what an earlier attempt has put there.
fn make_way(to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
