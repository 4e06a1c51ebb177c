//! Points in time as people and programs read them.

use jiff::tz::TimeZone;
use muster_judge::night::Night;
use muster_text::time::Timestamp;

/// `2026-01-05 07:03:12 +01:00`
pub fn local(at: Timestamp, zone: &TimeZone) -> String {
    written(at, zone, "%F %T %:z")
}

/// `2026-01-05T06:03:12.000000Z`
pub fn utc(at: Timestamp) -> String {
    written(at, &TimeZone::UTC, "%FT%T%.6fZ")
}

/// The date of the evening of a night.
pub(crate) fn evening(night: Night, format: &str) -> String {
    written(Timestamp(i64::from(night.0) * 86_400_000_000), &TimeZone::UTC, format)
}

fn written(at: Timestamp, zone: &TimeZone, format: &str) -> String {
    // Beyond the year 9999 there is no calendar; the number itself is shown then.
    jiff::Timestamp::from_microsecond(at.0)
        .map_or_else(|_| format!("{} us", at.0), |at| at.to_zoned(zone.clone()).strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_where_its_reader_lives() {
        let at = Timestamp(1_767_596_592_000_042);
        let east = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(local(at, &TimeZone::UTC), "2026-01-05 07:03:12 +00:00");
        assert_eq!(local(at, &east), "2026-01-05 08:03:12 +01:00");
        assert_eq!(utc(at), "2026-01-05T07:03:12.000042Z");
        assert_eq!(utc(Timestamp(i64::MAX)), "9223372036854775807 us");
    }
}
