//! Comments that silence lints.
//!
//! ```yaml
//! image: tools:latest          # muster: allow moving-image
//! # muster: allow unused-parameter
//! parameters: { round: [1, 2, 3] }
//! # muster: allow-file no-time-limit, runs-nowhere
//! ```
//!
//! A reason may come before it. At the end of a line: for what begins on that line. On a line of its own: for the line below and all that is
//! indented under it. `allow-file`: for the whole file.

use super::{Finding, LINTS};
use muster_text::{
    diagnostic::{Diagnostic, FileId, Source, Sources, Span},
    yaml,
};
use std::{collections::HashMap, ops::Range};

/// The findings that the comments of all files silence.
#[derive(Debug, Default)]
pub struct Silence {
    allowed: HashMap<FileId, Vec<(String, Range<u32>)>>,
    /// Names that no lint has.
    pub unknown: Vec<Finding>,
}

impl Silence {
    /// Reads the comments of all files.
    pub fn of(sources: &Sources) -> Self {
        let mut silence = Self::default();
        for (number, source) in sources.iter().enumerate() {
            silence.read(FileId(u32::try_from(number).unwrap_or(u32::MAX)), source);
        }
        silence
    }

    fn read(&mut self, file: FileId, source: &Source) {
        if !source.text.contains("muster: allow") {
            return;
        }
        for (words, at) in yaml::comments(&source.text) {
            // A reason may come before it.
            let Some((_, directive)) = words.split_once("muster: ") else { continue };
            let (verb, names) = directive.split_once(' ').unwrap_or((directive, ""));
            let covered = match verb {
                "allow-file" => 0..source.text.len(),
                "allow" => covered(&source.text, at.start),
                _ => continue,
            };
            let byte = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
                let span = Span { file, start: byte(at.start), end: byte(at.end) };
                if !LINTS.iter().any(|lint| lint.name == name) {
                    self.unknown.push(unknown(name, span));
                }
                self.allowed.entry(file).or_default().push((name.to_owned(), byte(covered.start)..byte(covered.end)));
            }
        }
    }

    /// Returns whether a finding is silenced.
    pub fn covers(&self, finding: &Finding) -> bool {
        let Some(span) = finding.diagnostic.span else { return false };
        let allowed = self.allowed.get(&span.file).map(Vec::as_slice).unwrap_or_default();
        allowed.iter().any(|(name, range)| name == finding.lint && range.contains(&span.start))
    }
}

fn unknown(name: &str, span: Span) -> Finding {
    let diagnostic = Diagnostic::warning(span, format!("there is no lint `{name}`"));
    let known = LINTS.iter().map(|lint| lint.name);
    let diagnostic = diagnostic.did_you_mean(name, known, Some("`muster check lint --explain` lists them"));
    Finding { lint: "unknown-lint", diagnostic }
}

/// What a directive at `at` is about.
fn covered(text: &str, at: usize) -> Range<usize> {
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |end| from + end + 1);
    if !text[begin..at].trim().is_empty() {
        return begin..line_end(at);
    }
    let (mut end, mut depth) = (line_end(at), None);
    let start = end;
    for line in text[start..].split_inclusive('\n') {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        match depth {
            _ if words.is_empty() || words.starts_with('#') => {}
            None => depth = Some(indent),
            Some(depth) if indent > depth => {}
            Some(_) => break,
        }
        end += line.len();
    }
    start..end
}
