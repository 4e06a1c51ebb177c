//! Times: this machine's clock, the clock of an API server, and times of the API as `Timestamp`.
//!
//! The times of pods are by the cluster's clock. Compared with a clock that is ten minutes ahead, a new pod would have run for
//! ten minutes, and every grace period would be over. Each answer carries the server's date, in whole seconds.

use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use muster_text::time::Timestamp;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// Now.
#[cfg(not(test))]
pub(crate) fn now() -> Timestamp {
    of(jiff::Timestamp::now())
}

/// Now, by the clock of the runtime, which tests can pause and advance.
#[cfg(test)]
pub(crate) fn now() -> Timestamp {
    use std::sync::LazyLock;
    use tokio::time::Instant;
    static START: LazyLock<(jiff::Timestamp, Instant)> = LazyLock::new(|| (jiff::Timestamp::now(), Instant::now()));
    let (then, instant) = *START;
    of(then).plus(Instant::now().saturating_duration_since(instant))
}

/// A time of a typed object.
pub(crate) fn of(time: jiff::Timestamp) -> Timestamp {
    Timestamp(time.as_microsecond())
}

/// A time of a status; `None` also for the year 1970, with which the kubelet says that it does not know.
pub(crate) fn known(time: &Time) -> Option<Timestamp> {
    Some(of(time.0)).filter(|time| time.0 > 0)
}

/// When the first of these containers started, as far as their statuses tell.
pub(crate) fn first_start<'a>(statuses: impl IntoIterator<Item = &'a ContainerStatus>) -> Option<Timestamp> {
    let states = statuses.into_iter().flat_map(|status| [&status.last_state, &status.state]).flatten();
    let started = |state: &ContainerState| {
        let running = state.running.as_ref().and_then(|running| running.started_at.as_ref());
        // A container that could not be started has a start time in 1970.
        running.or_else(|| state.terminated.as_ref()?.started_at.as_ref()).and_then(known)
    };
    states.filter_map(started).min()
}

/// A time as the API writes it; `None`: it is none.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(of)
}

/// As the API reads it, with as many digits as it takes; `None`: no calendar has it.
pub(crate) fn rfc3339(time: Timestamp) -> Option<String> {
    Some(jiff::Timestamp::from_microsecond(time.0).ok()?.to_string())
}

/// With six digits, as a `MicroTime` has.
pub(crate) fn micro_time(time: Timestamp) -> Option<String> {
    Some(format!("{:.6}", jiff::Timestamp::from_microsecond(time.0).ok()?))
}

/// To the second, for people; `None` also for the year 1970, with which the API says that it does not know.
pub(crate) fn shown(time: Timestamp) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(time.0).ok().filter(|_| time.0 > 0)?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

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
        Timestamp(now().0.saturating_add(self.ahead()))
    }

    /// A time of the server as this machine's clock would have shown it.
    pub fn here(&self, time: Timestamp) -> Timestamp {
        Timestamp(time.0.saturating_sub(self.ahead()))
    }

    /// An answer of this date has just come.
    pub(crate) fn dated(&self, date: Timestamp) {
        self.ahead.store(corrected(self.ahead(), date, now()), Ordering::Relaxed);
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
    fn what_is_written_is_read_back() {
        let time = Timestamp(1_500_000);
        assert_eq!(rfc3339(time).as_deref(), Some("1970-01-01T00:00:01.5Z"));
        assert_eq!(micro_time(time).as_deref(), Some("1970-01-01T00:00:01.500000Z"));
        assert_eq!(shown(time).as_deref(), Some("1970-01-01T00:00:01Z"));
        assert_eq!((shown(Timestamp(0)), rfc3339(Timestamp(i64::MAX))), (None, None));
        for text in [rfc3339(time), micro_time(time)] {
            assert_eq!(parse(&text.unwrap()), Some(time));
        }
        assert_eq!(parse("yesterday"), None);
    }

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
