//! Patterns for names of cases, as in `-n`, `-x` and `quarantine`.

use crate::case::CaseName;
use regex::Regex;
use std::fmt;

/// A pattern of a filter: a regex, or `/HASH`; `!` before it negates.
#[derive(Debug, Clone)]
pub struct Matcher {
    negated: bool,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Regex(Regex),
    Hash(String),
}

impl Matcher {
    /// Reads a pattern. `hashes` says whether `/1a2b3c4d` means a hash here.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(text: &str, hashes: bool) -> Result<Self, String> {
        let (negated, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        if let Some(hash) = pattern.strip_prefix('/').filter(|_| hashes) {
            if hash.is_empty() || !hash.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(format!("`{pattern}` is not a hash: write / and up to 8 hex digits"));
            }
            return Ok(Self { negated, what: What::Hash(hash.to_ascii_lowercase()) });
        }
        let regex =
            Regex::new(pattern).map_err(|error| format!("`{pattern}` is not a regex: {}", last_line(&error.to_string())))?;
        Ok(Self { negated, what: What::Regex(regex) })
    }

    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// A name that is written as it is displayed, perhaps with its place, means that case, whatever its letters mean in a regex.
    pub fn matches(&self, case: &CaseName) -> bool {
        let title = case.title();
        let is_written = match &self.what {
            What::Regex(regex) => regex.as_str() == title || regex.as_str() == case.to_string(),
            What::Hash(_) => false,
        };
        if is_written { !self.negated } else { self.admits(&[&title, &title.replace(' ', "")], &case.hash) }
    }

    /// Returns whether it admits something of one of these texts, or of this hash.
    pub fn admits(&self, texts: &[&str], hash: &str) -> bool {
        let found = match &self.what {
            What::Regex(regex) => texts.iter().any(|text| regex.is_match(text)),
            What::Hash(wanted) => hash.starts_with(wanted.as_str()),
        };
        found != self.negated
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negated { "!" } else { "" };
        match &self.what {
            What::Regex(regex) => write!(f, "{sign}{regex}"),
            What::Hash(hash) => write!(f, "{sign}/{hash}"),
        }
    }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_found_by_the_name_that_is_displayed() {
        let of = |display: &str, environ: &str| CaseName {
            display: display.into(),
            system: "eidf".into(),
            partition: "gpu".into(),
            environ: environ.into(),
            ..CaseName::default()
        };
        let (gnu, other) = (of("triad %size=(2+2)", "gnu"), of("triad %size=(2+2)", "intel"));
        let rows = [
            ("triad %size=(2+2) @eidf:gpu+gnu", [true, false]),
            ("!triad %size=(2+2) @eidf:gpu+gnu", [false, true]),
            ("triad %size=(2+2)", [true, true]),
            ("triad %size=(2", [false, false]),
            ("^tri", [true, true]),
        ];
        for (text, expected) in rows {
            let found = Matcher::parse(text, false).map(|matcher| [&gnu, &other].map(|case| matcher.matches(case)));
            assert_eq!(found.unwrap_or_default(), expected, "{text}");
        }
    }
}
