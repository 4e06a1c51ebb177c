//! Times: this machine's clock, and times of the API as `Timestamp`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use muster_text::time::Timestamp;

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
}
