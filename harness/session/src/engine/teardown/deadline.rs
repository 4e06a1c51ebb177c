//! When a teardown has to be over.

use crate::case::context::Context;
use muster_text::time::format_duration;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// A teardown takes no longer, whatever `time_limit` says.
const LIMIT: Duration = Duration::from_mins(5);
/// The limit when the session is cancelled: from the start of the teardown, or from the cancellation, whichever is later.
const HURRIED_LIMIT: Duration = Duration::from_mins(1);

/// The end of one teardown, which comes nearer when the session is cancelled.
pub(super) struct Deadline<'a> {
    context: &'a Context,
    begun: Instant,
    limit: Duration,
}

impl<'a> Deadline<'a> {
    /// Of a teardown that begins now, with the limit of its check.
    pub(super) fn of(context: &'a Context, own: Option<Duration>) -> Self {
        Self { context, begun: Instant::now(), limit: own.map_or(LIMIT, |limit| limit.min(LIMIT)) }
    }

    /// Waits for it, and says when that was: `after 5m`.
    pub(super) async fn over(&self) -> String {
        if self.context.cancelled_at().is_none() {
            let (by, when) = end(self.begun, self.limit, None);
            tokio::select! {
                () = sleep_until(by) => return when,
                () = self.context.cancel.cancelled() => {}
            }
        }
        let (by, when) = end(self.begun, self.limit, self.context.cancelled_at());
        tokio::select! {
            () = sleep_until(by) => when,
            () = self.context.leave.cancelled() => "when the session was left at once".to_owned(),
        }
    }
}

/// When a teardown ends that began then, and in words.
fn end(begun: Instant, limit: Duration, cancelled: Option<Instant>) -> (Instant, String) {
    let own = begun + limit;
    match cancelled.map(|at| at.max(begun) + HURRIED_LIMIT).filter(|by| *by < own) {
        None => (own, format!("after {}", format_duration(limit))),
        Some(by) if by == begun + HURRIED_LIMIT => (by, format!("after {}", format_duration(HURRIED_LIMIT))),
        Some(by) => (by, format!("{} after the session was cancelled", format_duration(HURRIED_LIMIT))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_session_brings_the_end_nearer_and_never_puts_it_off() {
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        // Begun, its limit, cancelled, its end; all in seconds.
        let rows = [
            (100, 300, None, 400, "after 5m"),
            (100, 300, Some(50), 160, "after 1m"),
            (100, 300, Some(100), 160, "after 1m"),
            (100, 300, Some(110), 170, "1m after the session was cancelled"),
            (100, 300, Some(340), 400, "after 5m"),
            (100, 300, Some(399), 400, "after 5m"),
            (100, 30, Some(50), 130, "after 30.0s"),
        ];
        for (begun, limit, cancelled, by, when) in rows {
            let end = end(at(begun), Duration::from_secs(limit), cancelled.map(at));
            assert_eq!(end, (at(by), when.to_owned()), "{begun} {limit} {cancelled:?}");
        }
    }
}
