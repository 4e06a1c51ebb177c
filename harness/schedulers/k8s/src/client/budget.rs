//! Limits the connections to API servers: each is a file descriptor, of which a process has a limited number.
//!
//! ```text
//! requests   one answer, read to its end           wait for their turn
//! reads      one log, read to its present end      wait for their turn
//! follows    one log that is followed              taken while there are some; without one a log is read in turns
//! ```
//! Watches, a few in each session, are not counted. Idle connections are reused, but two requests at the same moment
//! may both open one: so the shares are half of what would fit.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Logs that are read in turns cost no more than one request in this time, all of them together.
const BETWEEN_READS: Duration = Duration::from_millis(50);

/// The limit of requests and logs that a session may have open.
#[derive(Debug)]
pub struct Budget {
    requests: Semaphore,
    reads: Semaphore,
    follows: Semaphore,
    shares: Shares,
    polled: AtomicUsize,
}

/// The most open requests and logs of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Requests that are answered at once.
    pub requests: usize,
    /// Logs that are read to their end.
    pub reads: usize,
    /// Logs that are followed.
    pub follows: usize,
}

impl Shares {
    /// The shares for a process that may have that many files open.
    pub fn of_open_files(limit: u64) -> Self {
        let share = |part: u64, least, most| usize::try_from(limit / part).unwrap_or(usize::MAX).clamp(least, most);
        Self { requests: share(12, 2, 256), reads: share(16, 2, 64), follows: share(5, 2, 2_000) }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Shares::of_open_files(1_024))
    }
}

impl Budget {
    pub fn new(shares: Shares) -> Self {
        Self {
            requests: Semaphore::new(shares.requests),
            reads: Semaphore::new(shares.reads),
            follows: Semaphore::new(shares.follows),
            shares,
            polled: AtomicUsize::new(0),
        }
    }

    /// How many objects may be created at once: what is deleted or read does not wait for all of them.
    pub(super) fn creates(&self, most: usize) -> usize {
        (self.shares.requests / 2).clamp(1, most)
    }

    /// A turn for a request. No semaphore here is ever closed: without a permit a request would only be less polite.
    pub(super) async fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.acquire().await.ok()
    }

    /// A turn to read a log to its present end.
    pub(crate) async fn read(&self) -> Option<SemaphorePermit<'_>> {
        self.reads.acquire().await.ok()
    }

    /// A place for a log that is followed, if there is one. A quarter is for the logs that people look at while a job runs.
    pub(crate) fn follow(&self, is_shown: bool) -> Option<SemaphorePermit<'_>> {
        let is_free = is_shown || self.follows.available_permits() > self.shares.follows / 4;
        if is_free { self.follows.try_acquire().ok() } else { None }
    }

    /// A log has no place and is read in turns, until this is dropped.
    pub(crate) fn polled(&self) -> Polled<'_> {
        self.polled.fetch_add(1, Ordering::Relaxed);
        Polled(self)
    }
}

/// A log that is read in turns.
pub(crate) struct Polled<'a>(&'a Budget);

impl Polled<'_> {
    /// How long until its next turn, at least so long: the more there are, the longer.
    pub(crate) fn pause(&self, at_least: Duration) -> Duration {
        let others = u32::try_from(self.0.polled.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        at_least.max(BETWEEN_READS.saturating_mul(others))
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.polled.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_together_leave_half_of_the_files_to_others() {
        let rows = [(0, (2, 2, 2)), (100, (8, 6, 20)), (256, (21, 16, 51)), (1_024, (85, 64, 204)), (1 << 20, (256, 64, 2_000))];
        for (limit, (requests, reads, follows)) in rows {
            let shares = Shares::of_open_files(limit);
            assert_eq!(shares, Shares { requests, reads, follows }, "{limit}");
            assert!(limit < 100 || u64::try_from(requests + reads + follows).unwrap() * 2 < limit, "{limit}");
        }
    }

    #[test]
    fn a_quarter_of_the_places_is_kept_for_logs_that_are_shown() {
        let budget = Budget::new(Shares { requests: 2, reads: 2, follows: 8 });
        let taken: Vec<_> = (0..8).map_while(|_| budget.follow(false)).collect();
        assert_eq!(taken.len(), 6);
        let shown: Vec<_> = (0..8).map_while(|_| budget.follow(true)).collect();
        assert_eq!(shown.len(), 2);
        drop(taken);
        assert!(budget.follow(false).is_some());
    }

    #[test]
    fn many_logs_that_are_read_in_turns_wait_longer() {
        let (budget, second) = (Budget::default(), Duration::from_secs(1));
        let first = budget.polled();
        assert_eq!(first.pause(second), second);
        let others: Vec<_> = (0..99).map(|_| budget.polled()).collect();
        assert_eq!(first.pause(second), second * 5);
        drop(others);
        assert_eq!(first.pause(second), second);
    }
}
