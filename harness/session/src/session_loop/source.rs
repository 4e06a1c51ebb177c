//! Sources of a session's cases.

use crate::case::QueuedCase;
use muster_core::decisions::attempts::Attempts;
use muster_text::time::Timestamp;

/// Gives a session its cases: a fixed list, rounds of one, or what another process has left. A source decides what runs; the
/// engine decides when, and the loop sees to it that what a case needs is there.
pub trait Source {
    /// Asked at the start and whenever a case has ended.
    fn next(&mut self, now: Timestamp, so_far: &SoFar<'_>) -> Next;
}

/// The facts that are known when a source is asked.
pub struct SoFar<'a> {
    pub attempts: &'a Attempts,
    /// Nothing runs, waits or is torn down.
    pub is_idle: bool,
    /// Nothing more is started: the session was cancelled, or had too many failures.
    pub is_closed: bool,
}

/// The answer of a source.
pub enum Next {
    /// These may start.
    More(Batch),
    /// Ask again when a case has ended.
    Wait,
    /// Nothing more comes; a sentence if that may surprise.
    Done(Option<String>),
}

/// Items that are submitted together: a case, a stored plan, or a job that runs already ([`crate::case::Work`]).
pub struct Batch {
    pub items: Vec<QueuedCase>,
    /// The attempt that these are of their cases.
    pub number: u32,
    /// The line above the results of another round.
    pub title: Option<String>,
}
