//! The folders of a session's files: a stage folder for each attempt, an output folder for what passed.
//!
//! ```text
//! {stage}/{system}/{partition}/{environ}/{check}_{hash16}/    what Muster wrote (`KEPT`) and what the job left
//! {output}/{system}/{partition}/{environ}/{check}_{hash16}/   the same folder after a pass, without what the job left
//! {stage}/.lock                                               held by the first session that lives on this root
//! ```
//! A case that runs again replaces its old folder. A session that finds another at work on the same root appends each
//! identifier to its folders' names instead, so that neither removes what the other still uses. Nothing outside the
//! stage root is ever removed, and no symbolic link is followed to it.
//!
//! A pass costs one rename and no removal: some file systems (ext4 for five seconds) search past every inode that was just
//! removed whenever one is created, and a thousand short cases would pay for each other.
//!
//! All functions here block; the engine calls them on blocking threads.

use crate::log::spool::Spool;
use muster_core::{
    case::{CaseName, Identifier},
    job::{
        scheduler::Ending,
        stage_folder::{KEPT, is_unfinished},
    },
};
use muster_host::files;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// In the stage root. It is never removed: if a lock that a session waits for were removed, two sessions could hold it.
const LOCK: &str = ".lock";
/// In a stage folder: its teardown has started, and no case may use what it holds.
const TORN_DOWN: &str = ".torn-down";
/// How long the removal of a folder is repeated in which files are created.
const REMOVE_LIMIT: Duration = Duration::from_secs(1);

/// A failed operation on a session's folders.
#[derive(Debug, thiserror::Error)]
pub enum FoldersError {
    /// Most of the time a root is not writable.
    #[error("{operation}")]
    Io { operation: String, source: io::Error },
    /// A symbolic link leads out of the stage root.
    #[error("remove {}: it is not within the stage root {}", path.display(), root.display())]
    Outside { path: PathBuf, root: PathBuf },
}

fn create_failed(path: &Path) -> impl Fn(io::Error) -> FoldersError + Copy {
    move |source| FoldersError::Io { operation: format!("create {}", path.display()), source }
}

fn remove_failed(path: &Path) -> impl Fn(io::Error) -> FoldersError + Copy {
    move |source| FoldersError::Io { operation: format!("remove {}", path.display()), source }
}

/// Removes a folder with all that is in it. A link in the place of the folder is removed, not followed. While a job of an earlier
/// session creates files there, a removal may find the folder not empty: it is repeated for [`REMOVE_LIMIT`].
fn remove_folder(path: &Path) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && started.elapsed() < REMOVE_LIMIT => {
                thread::sleep(Duration::from_millis(1));
            }
            removed => return removed,
        }
    }
}

fn keep_failed(from: &Path, to: &Path, source: io::Error) -> FoldersError {
    FoldersError::Io { operation: format!("keep {} as {}", from.display(), to.display()), source }
}

/// The folders of one session.
#[derive(Debug)]
pub struct Folders {
    stage: PathBuf,
    output: PathBuf,
    /// No other session used this stage root when this session started.
    is_first: bool,
    /// `--keep-stage-files`: a pass leaves its stage folder as it is.
    keeps_stages: bool,
    /// Locked, by the first, as long as it is open; the lock dies with the process, however that ends.
    _lock: File,
}

/// What tells one attempt's folder from another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptId<'a> {
    pub(crate) case: &'a CaseName,
    /// `{check}_{hash16}`
    pub(crate) folder: &'a str,
    /// 1, 2, ...
    pub(crate) number: u32,
    pub(crate) identifier: &'a Identifier,
}

impl Folders {
    /// Creates both roots and tries to be the first.
    ///
    /// # Errors
    /// When a root cannot be created or written.
    pub fn open(stage: &Path, output: &Path) -> Result<Self, FoldersError> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (stage, output) = (absolute(stage), absolute(output));
        for path in [&stage, &output] {
            files::create_dir_all(path).map_err(create_failed(path))?;
        }
        let path = stage.join(LOCK);
        let lock = files::append(&path).map_err(create_failed(&path))?;
        let is_first = match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => true,
            Err(Errno::WOULDBLOCK) => false,
            // A file system without locks: two sessions at once would replace each other's folders.
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot lock the stage folders: run one session at a time here");
                true
            }
        };
        Ok(Self { stage, output, is_first, keeps_stages: false, _lock: lock })
    }

    /// Leaves the stage folders of what passes as they are.
    #[must_use]
    pub fn keeping_stages(mut self, keeps: bool) -> Self {
        self.keeps_stages = keeps;
        self
    }

    /// Another session is about to use the folders of the same cases: this one has others.
    #[must_use]
    pub fn beside_another(mut self, is_beside: bool) -> Self {
        self.is_first &= !is_beside;
        self
    }

    /// Whether what passes leaves its stage folder as it is.
    pub(crate) fn keeps_stages(&self) -> bool {
        self.keeps_stages
    }

    /// The folder that an attempt will have.
    pub(crate) fn stage_of(&self, attempt: AttemptId<'_>) -> PathBuf {
        let mut leaf = leaf(attempt);
        if !self.is_first {
            leaf = format!("{leaf}.{}", attempt.identifier);
        }
        self.stage.join(place(attempt.case)).join(leaf)
    }

    /// The folder that an attempt will have if it passes.
    fn output_of(&self, attempt: AttemptId<'_>) -> PathBuf {
        self.output.join(place(attempt.case)).join(leaf(attempt))
    }

    /// The folders between a root and an attempt's folder, which all are Muster's own, and the root if a session has made it one.
    fn above<'a>(root: &'a Path, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        path.ancestors().skip(1).take_while(move |folder| folder.starts_with(root))
    }

    /// Makes an attempt's folder, empty, in the place of the same case's last one.
    pub(crate) fn create(&self, path: &Path) -> Result<(), FoldersError> {
        files::widen(Self::above(&self.stage, path));
        let created = match files::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => files::create_dir_all(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove(path)?;
                files::create_dir(path)
            }
            created => created,
        };
        created.map_err(create_failed(path))
    }

    /// Takes the folder of an attempt that a process now gone has launched. What was put together is judged again; else what
    /// there is of the log is dropped, to be collected from the start.
    pub(crate) fn take_over(&self, path: &Path, attempt: AttemptId<'_>) -> Result<Option<(Spool, Ending)>, FoldersError> {
        let output = self.output_of(attempt);
        if Spool::reopened(path, attempt.identifier).is_none() && Spool::reopened(&output, attempt.identifier).is_some() {
            // What is still there of the stage folder was about to be removed.
            if path.is_dir() {
                self.remove(path)?;
            }
            let kept = |source| keep_failed(&output, path, source);
            fs::rename(&output, path).map_err(kept)?;
        }
        if !path.is_dir() {
            self.create(path)?;
        }
        let whole = Spool::reopened(path, attempt.identifier);
        if whole.is_some() {
            return Ok(whole);
        }
        let failed = remove_failed(path);
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_unfinished(&entry.file_name()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(None)
    }

    /// Makes the stage folder of a passed attempt its output folder, without what the job left but for some files. Says where
    /// that is.
    pub(crate) fn keep(&self, stage: &Path, attempt: AttemptId<'_>, files: &[PathBuf]) -> Result<PathBuf, FoldersError> {
        if self.keeps_stages {
            return self.keep_copy(stage, attempt, files);
        }
        let output = self.output_of(attempt);
        files::widen(Self::above(&self.output, &output));
        prune(stage, files).map_err(remove_failed(stage))?;
        if fs::rename(stage, &output).is_ok() {
            return Ok(output);
        }
        // It passed before: the old folder makes way as a whole, so that a process that is killed here leaves one complete folder.
        let old = output.with_added_extension("old");
        // Left by a process that was killed.
        let _ = fs::remove_dir_all(&old);
        let made_way = fs::rename(&output, &old).is_ok();
        let parent = output.parent().unwrap_or(&self.output);
        files::create_dir_all(parent).map_err(create_failed(parent))?;
        if fs::rename(stage, &output).is_err() {
            // The output is on another file system.
            self.keep_copy(stage, attempt, files)?;
            self.remove(stage)?;
        }
        if made_way {
            fs::remove_dir_all(&old).map_err(remove_failed(&old))?;
        }
        Ok(output)
    }

    /// Copies what Muster wrote of a passed attempt, and some files, to its output folder; others still need the stage folder.
    /// Says where.
    pub(crate) fn keep_copy(&self, stage: &Path, attempt: AttemptId<'_>, files: &[PathBuf]) -> Result<PathBuf, FoldersError> {
        let output = self.output_of(attempt);
        let create = |path: &Path| files::create_dir_all(path).map_err(create_failed(path));
        create(&output)?;
        files::widen(Self::above(&self.output, &output));
        // What an earlier pass has kept is not this one's.
        prune(&output, &[]).map_err(remove_failed(&output))?;
        for name in KEPT.iter().map(Path::new).chain(files.iter().map(PathBuf::as_path)) {
            let (from, to) = (stage.join(name), output.join(name));
            create(to.parent().unwrap_or(&output))?;
            match files::copy(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(keep_failed(&from, &to, error));
                }
                _ => {}
            }
        }
        Ok(output)
    }

    /// Marks a stage folder: no case may use what it holds any more.
    pub(crate) fn give_up(path: &Path) -> Result<(), FoldersError> {
        let mark = path.join(TORN_DOWN);
        files::write(&mark, "").map_err(create_failed(&mark))
    }

    /// Removes a stage folder that other cases have used. A process that is killed here leaves nothing that looks complete.
    pub(crate) fn tear_down(&self, path: &Path) -> Result<(), FoldersError> {
        self.check_within(path)?;
        let gone = path.with_added_extension("gone");
        // Left by a process that was killed.
        let _ = fs::remove_dir_all(&gone);
        let moved = fs::rename(path, &gone).and_then(|()| fs::remove_dir_all(&gone));
        moved.map_err(remove_failed(path))
    }

    /// Removes a stage folder with all that is in it.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), FoldersError> {
        self.check_within(path)?;
        remove_folder(path).map_err(remove_failed(path))
    }

    /// Nothing outside the stage root is ever touched. The root may be a link, the user's to set; a link below it may lead
    /// anywhere.
    fn check_within(&self, path: &Path) -> Result<(), FoldersError> {
        let failed = remove_failed(path);
        let outside = || FoldersError::Outside { path: path.to_owned(), root: self.stage.clone() };
        let within = path.parent().and_then(|parent| parent.strip_prefix(&self.stage).ok()).ok_or_else(outside)?;
        let mut folder = self.stage.clone();
        for component in within.components() {
            folder.push(component);
            let is_plain = matches!(component, Component::Normal(_));
            if !is_plain || fs::symlink_metadata(&folder).map_err(failed)?.is_symlink() {
                return Err(outside());
            }
        }
        Ok(())
    }
}

/// Returns whether others can count on what a case has left in its stage folder.
pub fn is_available(stage: &Path) -> bool {
    stage.is_dir() && !stage.join(TORN_DOWN).exists()
}

/// `eidf/gpu-service/default`
fn place(case: &CaseName) -> PathBuf {
    [&case.system, &case.partition, &case.environ].into_iter().map(|name| component(name)).collect()
}

/// `{check}_{hash16}`, and `.2` after it for the second attempt.
fn leaf(attempt: AttemptId<'_>) -> String {
    let leaf = component(attempt.folder);
    if attempt.number > 1 { format!("{leaf}.{}", attempt.number) } else { leaf }
}

/// A name as one component of a path: nothing in it can lead elsewhere.
fn component(name: &str) -> String {
    let safe = |c: char| if c == '/' || c.is_control() { '_' } else { c };
    let name: String = name.chars().map(safe).collect();
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}

/// Removes what the job left in its folder, but for some files.
fn prune(stage: &Path, files: &[PathBuf]) -> io::Result<()> {
    // Should the job have put a link in the place of its folder, what that leads to is not ours.
    if !fs::symlink_metadata(stage)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    // A link is kept as the file that it leads to, which may be about to go.
    for link in files.iter().map(|file| stage.join(file)).filter(|file| file.is_symlink()) {
        let unfinished = link.with_added_extension("part");
        files::copy(&link, &unfinished)?;
        fs::rename(&unfinished, &link)?;
    }
    prune_within(stage, Path::new(""), files)
}

/// Removes in one folder below `stage` what is not kept.
fn prune_within(stage: &Path, folder: &Path, files: &[PathBuf]) -> io::Result<()> {
    for entry in fs::read_dir(stage.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let is_ours = KEPT.iter().any(|kept| path == Path::new(kept));
        let is_kept = is_ours || files.iter().any(|file| file.starts_with(&path));
        match (is_kept, entry.file_type()?.is_dir()) {
            (true, true) if !is_ours => prune_within(stage, &path, files)?,
            (true, _) => {}
            (false, true) => fs::remove_dir_all(entry.path())?,
            (false, false) => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
