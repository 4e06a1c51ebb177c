//! A report that is one file: tried out before anything runs, written when all is over.

use crate::{
    args::is_dash,
    terminal::{self, unwritten::Written},
};
use anyhow::Context;
use muster_core::case::SessionId;
use muster_host::replace;
use std::path::{Path, PathBuf};

/// A file that will be written.
#[derive(Debug, Clone)]
pub struct OutFile {
    /// What it is, in messages: `the run report`.
    what: &'static str,
    /// `-` is standard output.
    path: PathBuf,
    /// What the file beside it is called that is renamed.
    suffix: String,
}

impl OutFile {
    /// Makes sure before anything runs that it can be written. `flag` is what
    /// chooses another place; `{sessionid}` in the path is the session.
    pub fn prepare(what: &'static str, path: &Path, flag: &str, session: &SessionId) -> anyhow::Result<Self> {
        let path = PathBuf::from(path.to_string_lossy().replace("{sessionid}", &session.0));
        let suffix = format!(".{session}.part");
        let tried = if is_dash(&path) { Ok(()) } else { replace::try_out(&path, &suffix) };
        tried.with_context(|| format!("{what} {} cannot be written: choose another place with {flag}", path.display()))?;
        Ok(Self { what, path, suffix })
    }

    /// Returns the place where it will be.
    pub fn place(&self) -> String {
        if is_dash(&self.path) { "standard output".to_owned() } else { self.path.display().to_string() }
    }

    /// Its path; `None`: it is printed.
    pub fn path(&self) -> Option<&Path> {
        Some(&*self.path).filter(|path| !is_dash(path))
    }

    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let Some(path) = self.path() else {
            terminal::print_file(text);
            return Ok(());
        };
        replace::replace(path, &self.suffix, text).or_unwritten(self.what, path)
    }
}
