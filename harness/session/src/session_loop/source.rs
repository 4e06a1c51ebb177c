//! Sources of a session's cases.

use crate::case::QueuedCase;
use futures_util::future::BoxFuture;
use muster_check::cases::test_case::TestCase;
use muster_core::{
    case::CaseName,
    decisions::{attempts::Attempts, pipeline::Stop},
};
use muster_text::time::Timestamp;
use std::sync::Arc;

/// Gives a session its cases: a fixed list, rounds of one, or what another process has left. A source decides what runs; the
/// engine decides when, and the loop sees to it that what a case needs is there.
pub trait Source {
    /// Asked at the start, after [`Next::More`] and [`Next::Stop`], whenever a case has ended, at the time of a [`Next::Until`], and when
    /// the source has news.
    fn next(&mut self, now: Timestamp, so_far: &SoFar<'_>) -> Next;

    /// Resolves when the source has another answer, though no case has ended. May be dropped at any point. `None`: it never has.
    fn news(&mut self) -> Option<BoxFuture<'_, ()>> {
        None
    }
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
    /// These may start. The source is asked again at once.
    More(Batch),
    /// These attempts stop, for this reason. The source is asked again at once, unless it has said so of all of them before. What has ended
    /// by then stays as it ended.
    Stop {
        /// Cases with the numbers of their attempts.
        attempts: Vec<(Arc<CaseName>, u32)>,
        why: Stop,
    },
    /// Ask again when a case has ended, or there is news. If nothing runs, and there will be no news, nothing more comes.
    Wait,
    /// Ask again as after `Wait`, and also at this time, even if nothing runs.
    Until(Timestamp),
    /// Nothing more comes; a sentence if that may surprise.
    Done(Option<String>),
}

/// Items that are submitted together: a case, a stored plan, or a job that runs already ([`crate::case::Work`]).
#[derive(Default)]
pub struct Batch {
    /// The cases that the session has not seen before: they may run again for those that need them.
    pub cases: Arc<[TestCase]>,
    pub items: Vec<QueuedCase>,
    /// The attempt that these are of their cases.
    pub number: u32,
    /// The line above the results of another round.
    pub title: Option<String>,
}
