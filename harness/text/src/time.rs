//! Points in time and durations, as data. Nothing here reads a clock.

use jiff::{SignedDuration, civil, tz};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// Microseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Seconds since the Unix epoch, of whoever counts so.
    pub fn of_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Whole seconds since the Unix epoch, of whoever counts so.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The time that passed from `earlier` to `self`; zero if the clock went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `self` moved forward by `by`.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }
}

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

/// A day of the calendar, as days since 1970-01-01; of a point in time that of UTC, unless a zone is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Date(pub i32);

const EPOCH: civil::Date = civil::date(1970, 1, 1);

impl Date {
    pub const MIN: Self = Self(i32::MIN);
    pub const MAX: Self = Self(i32::MAX);

    /// Returns the day of a point in time.
    pub fn of(at: Timestamp) -> Self {
        Self::of_days(at.0.div_euclid(DAY))
    }

    /// Returns the day that lies so many days after 1970-01-01.
    pub fn of_days(days: i64) -> Self {
        Self(i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Returns the number of days since 1970-01-01.
    pub fn days(self) -> i64 {
        self.0.into()
    }

    /// Returns the day so many days later, or earlier.
    #[must_use]
    pub fn plus_days(self, days: i64) -> Self {
        Self::of_days(self.days().saturating_add(days))
    }

    /// Returns the day so many days earlier.
    #[must_use]
    pub fn before(self, days: i32) -> Self {
        Self(self.0.saturating_sub(days))
    }

    fn of_civil(day: civil::Date) -> Self {
        Self((day - EPOCH).get_days())
    }

    /// Returns the day as jiff knows it. Days outside of its years are its first or last day.
    fn civil(self) -> civil::Date {
        EPOCH.saturating_add(SignedDuration::from_hours(24 * self.days()))
    }

    /// Reads `2026-12-31`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a day: write YEAR-MONTH-DAY, as in 2026-12-31");
        let day = text.trim();
        // jiff also reads `20261231` and a date with a time.
        let is_plain =
            day.split('-').map(str::len).eq([4, 2, 2]) && day.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        day.parse().ok().filter(|_| is_plain).map(Self::of_civil).ok_or_else(wrong)
    }
}

/// A time zone of the IANA database that is part of the program: the same rules on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(tz::TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(tz::TimeZone::UTC)
    }
}

impl Zone {
    /// Finds `Europe/London`.
    ///
    /// # Errors
    /// A lower-case fragment that says that there is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let zone = tz::TimeZoneDatabase::bundled().get(name);
        zone.map(Self).map_err(|_| format!("`{name}` is not a time zone: write UTC, or its name as in Europe/London"))
    }

    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The day that a clock there shows.
    pub fn date(&self, at: Timestamp) -> Date {
        let edge = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Date::of_civil(self.0.to_datetime(jiff::Timestamp::from_microsecond(at.0).unwrap_or(edge)).date())
    }

    /// Returns when a clock there shows this time: the first time if it does so twice, the moment after if it leaves the time out.
    pub fn at(&self, date: Date, time: TimeOfDay) -> Timestamp {
        let there = self.0.to_ambiguous_zoned(date.civil().to_datetime(time.0)).compatible();
        let edge = if date.days() < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Timestamp(there.map_or(edge, |there| there.timestamp()).as_microsecond())
    }
}

/// A time as a clock shows it: `18:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(civil::Time);

impl TimeOfDay {
    pub const NOON: Self = Self(civil::time(12, 0, 0, 0));

    /// Reads `18:30`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok());
        let parts = text.split_once(':').and_then(|(hour, minute)| Some((number(hour)??, number(minute)??)));
        let time = parts.and_then(|(hour, minute)| civil::Time::new(hour, minute, 0, 0).ok());
        time.map(Self).ok_or_else(|| format!("`{text}` is not a time of day: write HOUR:MINUTE, as in 12:00"))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.civil().fmt(f)
    }
}

impl From<Date> for String {
    fn from(date: Date) -> Self {
        date.to_string()
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

/// Reads `1d2h3m4s`, each part optional but in this order, or a bare number of seconds: ReFrame's `time_limit`.
///
/// # Errors
/// A lower-case fragment that says what is wrong with `text`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: write 1d2h3m4s, any part may be left out, or a number of seconds");
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let (mut rest, mut next_unit, mut total) = (text, 0, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let count: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = rest[digits..].chars().next().ok_or_else(wrong)?;
        let place = units[next_unit..].iter().position(|(name, _)| *name == unit).ok_or_else(wrong)? + next_unit;
        total = count.checked_mul(units[place].1).and_then(|seconds| total.checked_add(seconds)).ok_or_else(wrong)?;
        next_unit = place + 1;
        rest = &rest[digits + 1..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_secs(total)) }
}

/// Writes a duration for people: `350ms`, `4.2s`, `1h2m3s`.
pub fn format_duration(length: Duration) -> String {
    let seconds = length.as_secs();
    if seconds < 1 {
        return format!("{}ms", length.as_millis());
    }
    if seconds < 60 {
        return format!("{:.1}s", length.as_secs_f64());
    }
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let shown: Vec<String> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    shown.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_a_time_is_the_last_one_that_has_begun() {
        for (time, second) in [(0, 0), (999_999, 0), (1_000_000, 1), (-1, -1), (-1_000_000, -1)] {
            assert_eq!(Timestamp(time).seconds(), second, "{time}");
        }
        assert_eq!(Timestamp::of_seconds(1_796_000_000).seconds(), 1_796_000_000);
    }

    #[test]
    fn durations_are_read_as_reframe_reads_them() {
        for (text, seconds) in [("10m", 600), ("1d2h3m4s", 93_784), ("90", 90), ("0s", 0), ("2h30s", 7_230)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "5x", "3s2m", "1.5h", "-1s", "10 m", "99999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_is_read_and_computed_from_a_timestamp() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (20_513, "2026-03-01"),
            (20_818, "2026-12-31"),
            (2_932_896, "9999-12-31"),
        ] {
            let date = Date::of(Timestamp(days * DAY + DAY - 1));
            assert_eq!((date.to_string().as_str(), Date::parse(text)), (text, Ok(date)));
            assert_eq!((Date::of_days(days), date.days()), (date, days));
        }
        for text in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-1",
            "tomorrow",
            "2026-06-31",
            "",
            "2026-12-31-1",
            "20261231",
            "2026-12-31T00",
            "2026-12-3é",
        ] {
            assert!(Date::parse(text).is_err(), "{text}");
        }
        assert!(Date::parse("2026-12-31") < Date::parse("2027-01-01"));
    }

    #[test]
    fn a_day_has_a_next_one() {
        assert_eq!(Date::of_days(20_818).plus_days(1).to_string(), "2027-01-01");
        assert_eq!((Date::of_days(i64::MAX), Date::MAX.plus_days(1), Date::MIN.before(1)), (Date::MAX, Date::MAX, Date::MIN));
        assert_eq!((Date::MAX.to_string().as_str(), Date::MIN.to_string().as_str()), ("9999-12-31", "-009999-01-01"));
    }

    #[test]
    fn a_zone_has_a_name_and_tells_the_day_and_the_time() {
        let london = Zone::parse("Europe/London").unwrap();
        assert_eq!((london.name(), Zone::default().name()), ("Europe/London", "UTC"));
        insta::assert_snapshot!(Zone::parse("Europe/Londn").unwrap_err(), @"`Europe/Londn` is not a time zone: write UTC, or its name as in Europe/London");
        let summer = Date::parse("2026-07-01").unwrap();
        let noon = london.at(summer, TimeOfDay::NOON);
        assert_eq!(noon.0, (summer.days() * 24 + 11) * 3_600_000_000);
        assert_eq!(london.date(Timestamp(noon.0 + 12 * 3_600_000_000 - 1)), summer);
        assert_eq!(london.date(Timestamp(noon.0 + 12 * 3_600_000_000)), summer.plus_days(1));
    }

    #[test]
    fn a_time_of_day_has_two_digits_for_hour_and_minute() {
        for text in ["00:00", "12:00", "23:59"] {
            assert_eq!(TimeOfDay::parse(text).map(|time| time.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "12", "24:00", "12:60", "7:00", "12:00:00", "+1:00", "12.00", "aa:bb"] {
            assert!(TimeOfDay::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_short() {
        for (millis, text) in [(350, "350ms"), (4_200, "4.2s"), (3_723_000, "1h2m3s"), (60_000, "1m")] {
            assert_eq!(format_duration(Duration::from_millis(millis)), text);
        }
    }
}
