//! The sentences: every reason why a workload waits, fails or cannot run, each in one place.
//!
//! A cause names the pod and its node. What the cluster says itself is quoted in one line, shortened.

use super::text;
use muster_text::Value;
use std::{fmt::Write, time::Duration};

/// Messages of the cluster are quoted up to this many characters.
const MAX_QUOTE: usize = 400;

/// A pod, and where it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) pod: &'a str,
    pub(super) node: Option<&'a str>,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.node {
            Some(node) => write!(f, "pod {} on {node}", self.pod),
            None => write!(f, "pod {}", self.pod),
        }
    }
}

/// A message in one line, without control characters, shortened.
pub(super) fn quote(message: &str) -> String {
    let clean: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    }
}

/// `REASON: message`, or the one that is there.
pub(super) fn reason_and(reason: Option<&str>, message: Option<&str>) -> String {
    let message = message.map(quote).filter(|message| !message.is_empty());
    match (reason.filter(|reason| !reason.is_empty()), message) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(reason), None) => reason.to_owned(),
        (None, Some(message)) => message,
        (None, None) => "no reason given".to_owned(),
    }
}

/// The same of a condition of an untyped object.
pub(super) fn of_condition(condition: &Value) -> String {
    reason_and(Some(text(condition, "reason")), Some(text(condition, "message")))
}

/// `: message`, or nothing if it is empty.
pub(super) fn detail(message: Option<&str>) -> String {
    message.map(quote).filter(|message| !message.is_empty()).map_or_else(String::new, |message| format!(": {message}"))
}

/// `3 pods`, `1 pod`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Up to three names, and how many more.
pub(super) fn names<'n>(all: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = all.len().saturating_sub(3);
    let mut list = all.take(3).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    list
}

/// A whole number of seconds, as a limit is named.
pub(super) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs())
}
