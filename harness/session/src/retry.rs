//! The times at which an operation that failed is tried again.

use muster_core::{
    decisions::backoff::Backoff,
    error::{Class, SchedulerError},
};
use std::time::Duration;
use tokio::time::Instant;

/// How often an operation is tried again that failed for no fault of its own.
const RETRIES: u32 = 3;

/// A site that says `not now` without a time is asked again after this.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The pauses where the other side asks for none.
const OWN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };

/// The failures of one operation since it last worked.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u32,
    since: Option<Instant>,
}

impl Failures {
    /// Whether only one was counted.
    pub(crate) fn is_first(&self) -> bool {
        self.count == 1
    }

    /// Whether the last answer was a failure.
    pub(crate) fn is_any(&self) -> bool {
        self.count > 0
    }

    /// Counts a failure; `Some`: try again after this pause. An outage may last for `outage`; `None`: something else limits it.
    pub(crate) fn add(&mut self, error: &SchedulerError, outage: Option<Duration>) -> Option<Duration> {
        let now = Instant::now();
        let failing_for = now - *self.since.get_or_insert(now);
        self.count += 1;
        is_tried_again(error.class, self.count, failing_for, outage).then(|| pause(error.retry_after, self.count))
    }
}

/// After the `count`th failure in a row, the first of them so long ago.
fn is_tried_again(class: Class, count: u32, failing_for: Duration, outage: Option<Duration>) -> bool {
    match class {
        Class::Infra => count <= RETRIES,
        Class::Outage => outage.is_none_or(|limit| failing_for < limit),
        Class::Config | Class::Gone | Class::Unsupported => false,
    }
}

fn pause(asked: Option<Duration>, failures: u32) -> Duration {
    asked.unwrap_or(OWN.after(failures)).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_or_as_long_as_an_outage_may_last() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        let rows = [
            (Class::Infra, 1, 0, Some(5), true),
            (Class::Infra, 3, 9, Some(5), true),
            (Class::Infra, 4, 0, Some(5), false),
            (Class::Outage, 99, 4, Some(5), true),
            (Class::Outage, 2, 5, Some(5), false),
            (Class::Outage, 999, 600, None, true),
            (Class::Config, 1, 0, None, false),
            (Class::Gone, 1, 0, None, false),
            (Class::Unsupported, 1, 0, None, false),
        ];
        for (class, count, failing, outage, again) in rows {
            assert_eq!(is_tried_again(class, count, minutes(failing), outage.map(minutes)), again, "{class:?} {count} {failing}");
        }
    }

    #[test]
    fn pauses_grow_unless_the_other_side_asks_for_one() {
        let own: Vec<u64> = (1..=8).map(|failures| pause(None, failures).as_secs()).collect();
        assert_eq!(own, [1, 2, 4, 8, 8, 8, 8, 8]);
        assert_eq!(pause(Some(Duration::from_secs(7)), 3), Duration::from_secs(7));
        assert_eq!(pause(Some(Duration::ZERO), 1), SHORTEST_PAUSE);
    }
}
