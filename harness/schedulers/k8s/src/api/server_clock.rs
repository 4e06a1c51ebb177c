//! The clock of an API server, independent of this machine's clock.
//!
//! The times of pods are by the cluster's clock. Compared with a clock that is ten minutes ahead, a new pod would have run for
//! ten minutes, and every grace period would be over. Each answer carries the server's date, in whole seconds.

use crate::api::clock;
use muster_text::time::Timestamp;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// A difference that whole seconds and the way of an answer explain. Smaller corrections would only make times jump.
const TOLERANCE: i64 = 3_000_000;

/// The clock of one server; clones are the same clock. Before the first answer it is this machine's.
#[derive(Debug, Clone, Default)]
pub struct ServerClock {
    /// Microseconds that it is ahead.
    ahead: Arc<AtomicI64>,
}

impl ServerClock {
    /// Now, by the server.
    pub fn now(&self) -> Timestamp {
        Timestamp(clock::now().0.saturating_add(self.ahead()))
    }

    /// A time of the server as this machine's clock would have shown it.
    pub fn here(&self, time: Timestamp) -> Timestamp {
        Timestamp(time.0.saturating_sub(self.ahead()))
    }

    /// An answer of this date has just come.
    pub(crate) fn dated(&self, date: Timestamp) {
        self.ahead.store(corrected(self.ahead(), date, clock::now()), Ordering::Relaxed);
    }

    fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }
}

/// How far the server is ahead, after an answer of this date.
fn corrected(ahead: i64, date: Timestamp, now: Timestamp) -> i64 {
    let seen = date.0.saturating_sub(now.0);
    if seen.saturating_sub(ahead).saturating_abs() <= TOLERANCE { ahead } else { seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_corrected_when_it_is_seconds_off_and_not_for_the_rounding_of_dates() {
        let second = 1_000_000;
        //  ahead before, date, now -> ahead
        let rows = [
            (0, 100, 100, 0),
            (0, 100, 101, 0),
            (0, 100, 103, 0),
            (0, 100, 700, -600),
            (0, 700, 100, 600),
            (-600, 101, 702, -600),
            // This machine's clock was corrected.
            (-600, 102, 102, 0),
        ];
        for (before, date, now, after) in rows {
            let at = |seconds: i64| Timestamp(seconds * second);
            assert_eq!(corrected(before * second, at(date), at(now)), after * second, "{before} {date} {now}");
        }
    }
}
