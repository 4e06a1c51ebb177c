//! A report that is one file: tried out before anything runs, written aside and renamed when all is over.

use anyhow::Context;
use muster_core::case::SessionId;
use muster_host::files;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A file that will be written.
#[derive(Debug, Clone)]
pub struct OutFile {
    /// What it is, in messages: `the run report`.
    what: &'static str,
    path: PathBuf,
    aside: PathBuf,
}

impl OutFile {
    /// Makes sure that it can be written: after a night of running is too late to hear that it cannot. `flag` is what
    /// chooses another place; `{sessionid}` in the path stands for the session.
    pub fn prepare(what: &'static str, path: &Path, flag: &str, session: &SessionId) -> anyhow::Result<Self> {
        let path = PathBuf::from(path.to_string_lossy().replace("{sessionid}", &session.0));
        let mut aside = path.clone().into_os_string();
        aside.push(format!(".{session}.part"));
        let file = Self { what, path, aside: aside.into() };
        file.try_out()
            .with_context(|| format!("{what} {} cannot be written: choose another place with {flag}", file.path.display()))?;
        Ok(file)
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn try_out(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            files::create_dir_all(folder)?;
        }
        if self.path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        files::write(&self.aside, "")?;
        fs::remove_file(&self.aside)
    }

    /// Writes it aside and renames it: a reader never sees half of one.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let written = files::write(&self.aside, text).and_then(|()| fs::rename(&self.aside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&self.aside);
        }
        written.with_context(|| format!("{} {} could not be written", self.what, self.path.display()))
    }
}
