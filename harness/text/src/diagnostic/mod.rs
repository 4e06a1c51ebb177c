//! Mistakes in files, with their place and what to do about them. All of them are collected; none stops the reading.

mod masked;
mod nearest;
mod render;

pub use nearest::{did_you_mean, nearest};
pub use render::{render, render_short};

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A file that was read in this invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u32);

/// A range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The empty span where this one begins: for what is wrong with the whole of a large thing.
    #[must_use]
    pub fn head(self) -> Self {
        Self { end: self.start, ..self }
    }
}

/// The weight of a diagnostic: an error ends the session before anything is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// A key that an evaluation needed and that a map of the scope does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingKey {
    /// The name of the scope, and the keys up to the missing one: `partition`, `devices`, `gpu`.
    pub path: Vec<String>,
    /// The keys that would have been read from its value: `num_devices`.
    pub then: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The place in a file. A command-line option, for example, has none.
    pub span: Option<Span>,
    /// A lower-case fragment without a full stop that says what is wrong.
    pub message: String,
    /// An imperative fragment that says what to do.
    pub hint: Option<String>,
    /// A second place that explains the first, with its own words.
    pub related: Option<(Span, String)>,
    /// The key that an expression needed and that its scope does not have, if that is what is wrong.
    pub missing: Option<Box<MissingKey>>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, span: Some(span), message: message.into(), hint: None, related: None, missing: None }
    }

    pub fn general(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, span: None, message: message.into(), hint: None, related: None, missing: None }
    }

    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what to do, if that is known.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }

    /// Adds the nearest of the known names as a hint, else `otherwise`.
    #[must_use]
    pub fn did_you_mean<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>, otherwise: Option<&str>) -> Self {
        let hint = did_you_mean(name, known).or_else(|| otherwise.map(str::to_owned));
        Self { hint: hint.or(self.hint), ..self }
    }

    /// Adds a second position.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some((span, label.into()));
        self
    }
}

/// The texts that spans point into.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    files: Vec<Source>,
}

/// One file's name and text.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path as the user types it.
    pub path: String,
    pub text: Arc<str>,
}

impl Sources {
    /// Adds a file and returns its id.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        self.files.push(Source { path: path.into(), text: text.into() });
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    /// The path, line and column where a span begins. Lines and columns count from 1, columns in characters.
    pub fn position(&self, span: Span) -> Option<(&str, usize, usize)> {
        let source = self.get(span.file)?;
        let before = source.until(span.start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        Some((&source.path, line, before[line_start..].chars().count() + 1))
    }

    /// Another text for a file.
    fn replace(&mut self, file: FileId, text: String) {
        if let Some(source) = self.files.get_mut(file.0 as usize) {
            source.text = text.into();
        }
    }

    /// All files, in the order of reading.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }
}

impl Source {
    /// The text before a byte offset, which may lie beyond the end or inside a character.
    fn until(&self, offset: u32) -> &str {
        let mut end = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }
}

#[cfg(test)]
mod tests;
