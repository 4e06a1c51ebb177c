//! The folders that checks mention, and those that count without being mentioned: asked for, never looked at.

use muster_text::diagnostic::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet};

/// What is wanted, and what is there.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// With the first mention; `None`: one that may be there.
    wanted: BTreeMap<String, Option<Span>>,
    there: BTreeSet<String>,
}

impl Folders {
    /// Asks for one.
    pub(super) fn want(&mut self, path: String, by: Option<Span>) {
        let mention = self.wanted.entry(path).or_insert(by);
        *mention = mention.or(by);
    }

    /// What to look for.
    pub(super) fn wanted(&self) -> Vec<String> {
        self.wanted.keys().cloned().collect()
    }

    /// Answers for one of them: whether it is there, or what is wrong with it. Gives the mistake that this is.
    pub(super) fn answer(&mut self, path: &str, is_there: Result<bool, String>) -> Option<Diagnostic> {
        let (path, by) = self.wanted.remove_entry(path)?;
        match (is_there, by) {
            (Ok(true), _) => {
                self.there.insert(path);
                None
            }
            (Ok(false), None) => None,
            (Ok(false), Some(by)) => {
                let message = format!("the folder {path} of `sourcesdir` does not exist");
                Some(Diagnostic::error(by, message).hint("a path is relative to the file that mentions it"))
            }
            (Err(why), by) => {
                let message = format!("the folder {path} cannot be staged: {why}");
                Some(match by {
                    Some(by) => Diagnostic::error(by, message).hint("name a folder that holds only what the job needs"),
                    None => Diagnostic::general(message)
                        .hint("it is staged because it is called `src`: `sourcesdir: null` leaves it out"),
                })
            }
        }
    }

    /// Whether one is there.
    pub(super) fn has(&self, path: &str) -> bool {
        self.there.contains(path)
    }
}
