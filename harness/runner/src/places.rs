//! Where a session's files are: a stage folder for each attempt, an output folder for what passed.
//!
//! ```text
//! {stage}/{system}/{partition}/{environ}/{check}_{hash16}/    rfm_job.sh, rfm_job.out, pods.json, what the job left
//! {output}/{system}/{partition}/{environ}/{check}_{hash16}/   the first three of them, moved there after a pass
//! {stage}/.sessions/{session}                                 locked while the session lives
//! ```
//! A case that runs again replaces its old folder, unless that belongs to another session that still lives: then
//! it gets one of its own. Nothing outside the stage root is ever removed, and no symbolic link is followed to it.
//!
//! All functions here block; the engine calls them on blocking threads.

use crate::spool;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    error::chain,
    script::{EXIT_FILE, LOG_FILE, SCRIPT_FILE},
};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, open, unlinkat};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// The name of the list of sections beside the stdout.
pub const SECTIONS: &str = "pods.json";
/// Names the session that a stage folder belongs to.
const OWNER: &str = ".rfm_session";
const SESSIONS: &str = ".sessions";

/// A failed operation on a session's folders.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    /// A root is not writable, most of the time.
    #[error("create {}", path.display())]
    Create {
        /// What was to be created.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What stood there before could not be removed.
    #[error("remove {}", path.display())]
    Remove {
        /// What was to be removed.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A symbolic link leads out of the stage root.
    #[error("remove {}: it is not within the stage root {}", path.display(), root.display())]
    Outside {
        /// What was to be removed.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// Another session took the folder in this very moment.
    #[error("{} is in use by session {session}", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        session: String,
    },
    /// A result could not be moved to the output folder.
    #[error("move {} to {}", from.display(), to.display())]
    Keep {
        /// From here.
        from: PathBuf,
        /// To here.
        to: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The folders of one session, and the lock that says that it lives.
#[derive(Debug)]
pub struct Places {
    stage: PathBuf,
    output: PathBuf,
    session: SessionId,
    lock: PathBuf,
    /// Locked as long as it is open; the lock dies with the process, however that ends.
    _held: File,
}

/// What tells one attempt's folder from another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) case: &'a CaseName,
    /// `{check}_{hash16}`
    pub(crate) folder: &'a str,
    /// 1, 2, ...
    pub(crate) number: u32,
    pub(crate) identifier: &'a Identifier,
}

impl Places {
    /// Creates both roots and takes the session's lock.
    ///
    /// # Errors
    /// When a root cannot be created or written.
    pub fn open(stage: &Path, output: &Path, session: &SessionId) -> Result<Self, PlacesError> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (stage, output) = (absolute(stage), absolute(output));
        let sessions = stage.join(SESSIONS);
        for path in [&sessions, &output] {
            fs::create_dir_all(path).map_err(|source| PlacesError::Create { path: path.clone(), source })?;
        }
        let lock = sessions.join(component(&session.0));
        let held = File::create(&lock).map_err(|source| PlacesError::Create { path: lock.clone(), source })?;
        if let Err(error) = flock(&held, FlockOperation::NonBlockingLockExclusive) {
            // A file system without locks: other sessions will then take this one for dead, and their own for theirs.
            tracing::warn!(path = %lock.display(), error = %error, "cannot lock the stage folders of this session");
        }
        Ok(Self { stage, output, session: session.clone(), lock, _held: held })
    }

    /// The root of the stage folders, absolute.
    pub fn stage_root(&self) -> &Path {
        &self.stage
    }

    /// The root of what is kept of passed cases, absolute.
    pub fn output_root(&self) -> &Path {
        &self.output
    }

    /// The folder that an attempt will have.
    pub(crate) fn stage_of(&self, attempt: Attempt<'_>) -> PathBuf {
        let mut leaf = component(attempt.folder);
        if attempt.number > 1 {
            leaf = format!("{leaf}.{}", attempt.number);
        }
        let path = self.stage.join(place(attempt.case)).join(&leaf);
        match self.live_owner(&path) {
            Some(_) => path.with_file_name(format!("{leaf}.{}", attempt.identifier)),
            None => path,
        }
    }

    /// Makes an attempt's folder, empty, in the place of the same case's last one.
    pub(crate) fn create(&self, path: &Path) -> Result<(), PlacesError> {
        let failed = |source| PlacesError::Create { path: path.to_owned(), source };
        match fs::create_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(session) = self.live_owner(path) {
                    return Err(PlacesError::InUse { path: path.to_owned(), session });
                }
                self.remove(path)?;
                fs::create_dir(path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        fs::write(path.join(OWNER), &self.session.0).map_err(failed)
    }

    /// Takes the folder of an attempt that a process now gone has begun in this session. What runs keeps its files, and its
    /// log is collected from the start; what will be launched anew finds the folder empty.
    pub(crate) fn take_up(&self, path: &Path, launched: bool) -> Result<(), PlacesError> {
        if !launched || !path.is_dir() {
            return self.create(path);
        }
        let failed = |source| PlacesError::Remove { path: path.to_owned(), source };
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if spool::is_unfinished(&entry.file_name()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Moves script, stdout and sections of a passed attempt to its output folder and removes the stage folder. Says
    /// where they are now.
    pub(crate) fn keep(&self, stage: &Path, attempt: Attempt<'_>) -> Result<PathBuf, PlacesError> {
        let output = self.output.join(place(attempt.case)).join(component(attempt.folder));
        fs::create_dir(&output)
            .or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => fs::create_dir_all(&output),
            })
            .map_err(|source| PlacesError::Create { path: output.clone(), source })?;
        for name in [SCRIPT_FILE, LOG_FILE, SECTIONS] {
            let (from, to) = (stage.join(name), output.join(name));
            rename(&from, &to).map_err(|source| PlacesError::Keep { from, to, source })?;
        }
        self.drop_stage(stage)?;
        Ok(output)
    }

    /// Removes a stage folder that this session made. Most hold nothing any more but what is named here.
    pub(crate) fn drop_stage(&self, stage: &Path) -> Result<(), PlacesError> {
        // Not through a link, should the job have put one in the place of its folder.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(folder) = open(stage, flags, Mode::empty()) {
            for name in [OWNER, EXIT_FILE] {
                let _ = unlinkat(&folder, name, AtFlags::empty());
            }
        }
        fs::remove_dir(stage).or_else(|_| self.remove(stage))
    }

    /// Removes a stage folder with all that is in it.
    fn remove(&self, path: &Path) -> Result<(), PlacesError> {
        let failed = |source| PlacesError::Remove { path: path.to_owned(), source };
        let outside = || PlacesError::Outside { path: path.to_owned(), root: self.stage.clone() };
        let parent = path.parent().ok_or_else(outside)?;
        let within = parent.strip_prefix(&self.stage).map_err(|_| outside())?;
        // The root may be a link, the user's to set; a link below it may lead anywhere.
        let root = self.stage.canonicalize().map_err(failed)?;
        if parent.canonicalize().map_err(failed)? != root.join(within) {
            return Err(outside());
        }
        // A link in the place of the folder itself is removed, not followed.
        fs::remove_dir_all(path).map_err(failed)
    }

    /// The other session that a folder belongs to, if that still lives.
    fn live_owner(&self, path: &Path) -> Option<String> {
        let owner = fs::read_to_string(path.join(OWNER)).ok()?;
        if owner == self.session.0 {
            return None;
        }
        let file = File::open(self.stage.join(SESSIONS).join(component(&owner))).ok()?;
        flock(&file, FlockOperation::NonBlockingLockShared).is_err().then_some(owner)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.lock) {
            tracing::debug!(error = chain(&error), "the session's lock file stays behind");
        }
    }
}

/// `eidf/gpu-service/default`
fn place(case: &CaseName) -> PathBuf {
    [&case.system, &case.partition, &case.environ].into_iter().map(|name| component(name)).collect()
}

/// A name as one component of a path: nothing in it can lead elsewhere.
fn component(name: &str) -> String {
    let safe = |c: char| if c == '/' || c.is_control() { '_' } else { c };
    let name: String = name.chars().map(safe).collect();
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}

/// Renames a file, to another file system too; a source that is not there is no error.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            fs::copy(from, to)?;
            fs::remove_file(from)
        }
        renamed => renamed,
    }
}
