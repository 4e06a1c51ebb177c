//! A report that is one file: tried out before anything runs, written when all is over.

use crate::terminal::unwritten::Written;
use anyhow::Context;
use muster_core::case::SessionId;
use muster_host::replace;
use std::path::{Path, PathBuf};

/// A file that will be written.
#[derive(Debug, Clone)]
pub struct OutFile {
    /// What it is, in messages: `the run report`.
    what: &'static str,
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
        replace::try_out(&path, &suffix)
            .with_context(|| format!("{what} {} cannot be written: choose another place with {flag}", path.display()))?;
        Ok(Self { what, path, suffix })
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        replace::replace(&self.path, &self.suffix, text).or_unwritten(self.what, &self.path)
    }
}
