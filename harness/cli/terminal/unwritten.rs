//! Errors of writing a file that the user has named, or standard output. The exit code says so, wherever it happens.

use anyhow::Context;
use std::{fmt::Display, io, path::Path};

/// The exit code of what went well and could not be written: who reads it must hear of it.
pub const EXIT_UNWRITTEN: u8 = 3;

/// The text that could not be written; its source is the cause.
#[derive(Debug, thiserror::Error)]
#[error("{0} could not be written")]
pub struct Unwritten(String);

/// Says what could not be written.
pub trait Written<T> {
    /// Names `what` at a path as the text that could not be written.
    fn or_unwritten(self, what: impl Display, path: &Path) -> anyhow::Result<T>;
}

impl<T> Written<T> for io::Result<T> {
    fn or_unwritten(self, what: impl Display, path: &Path) -> anyhow::Result<T> {
        self.with_context(|| Unwritten(format!("{what} {}", path.display())))
    }
}
