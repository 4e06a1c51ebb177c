//! Patterns: Rust's regex syntax, multi-line, over bytes.

use std::sync::Arc;

/// A compiled pattern. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Arc<regex::bytes::Regex>,
}

/// Why a pattern does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// The place in the pattern, in bytes.
    pub at: Option<std::ops::Range<usize>>,
}

impl Pattern {
    /// Compiles a pattern with multi-line mode on.
    ///
    /// # Errors
    /// The reason, its place in the pattern and a hint.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        let regex = regex::bytes::RegexBuilder::new(text).multi_line(true).build();
        match regex {
            Ok(regex) => Ok(Self { regex: Arc::new(regex) }),
            Err(error) => Err(PatternError { message: error.to_string(), hint: None, at: None }),
        }
    }

    /// The compiled regex.
    pub fn regex(&self) -> &regex::bytes::Regex {
        &self.regex
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}
