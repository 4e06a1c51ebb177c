//! Points in time and periods as people write them in queries: `now-1w`, `20261124T2200`, `2026-11-24`.
//!
//! ReFrame's forms, and a date with dashes. A time without a zone is one of its reader; `now` is given by the caller.

use crate::time::Timestamp;
use jiff::{civil, tz::TimeZone};
use std::{fmt, time::Duration};

/// A point in time, perhaps relative to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    base: Base,
    /// Added to it, in seconds.
    offset: i64,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Now,
    /// Where its reader lives.
    Local(civil::DateTime),
    Zoned(jiff::Timestamp),
}

/// A period from one point in time up to another, which does not belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    pub from: Moment,
    pub until: Moment,
}

impl Moment {
    /// Reads `now`, `YYYYMMDD`, `YYYYMMDDTHHMM`, `YYYYMMDDTHHMMSS[+ZZZZ]` or `YYYY-MM-DD`, with `+N` or `-N` weeks (w), days (d),
    /// hours (h) or minutes (m) behind it.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a point in time: write now, 20261124, 20261124T2200, 20261124T220000 or 2026-11-24, and behind it \
                 +N or -N of w, d, h or m, as in now-2w"
            )
        };
        let text = text.trim();
        let (base, rest) = match text.strip_prefix("now") {
            Some(rest) => (Base::Now, rest),
            None => date(text).and_then(|(day, rest)| with_time(day, rest)).ok_or_else(wrong)?,
        };
        let offset = if rest.is_empty() { 0 } else { offset(rest).ok_or_else(wrong)? };
        Ok(Self { base, offset, text: text.to_owned() })
    }

    /// The point in time, for a reader in this zone. Times beyond the calendar are its first or last one.
    pub fn at(&self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let base = match &self.base {
            Base::Now => now.0,
            Base::Local(time) => {
                zone.to_ambiguous_zoned(*time).compatible().map_or(i64::MAX, |at| at.timestamp().as_microsecond())
            }
            Base::Zoned(at) => at.as_microsecond(),
        };
        Timestamp(base.saturating_add(self.offset.saturating_mul(1_000_000)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Period {
    /// Reads `FROM:UNTIL`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, until) =
            text.split_once(':').ok_or_else(|| format!("`{text}` is not a period: write FROM:UNTIL, as in now-1w:now"))?;
        Ok(Self { from: Moment::parse(from)?, until: Moment::parse(until)? })
    }

    /// Its ends, for a reader in this zone.
    ///
    /// # Errors
    /// An end that is not later than the beginning.
    pub fn at(&self, now: Timestamp, zone: &TimeZone) -> Result<(Timestamp, Timestamp), String> {
        let (from, until) = (self.from.at(now, zone), self.until.at(now, zone));
        if from < until { Ok((from, until)) } else { Err(format!("the period {self} ends before it begins")) }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.until)
    }
}

/// A date at the beginning of a text, and what follows it.
fn date(text: &str) -> Option<(civil::Date, &str)> {
    let dashed = text.get(..10).filter(|day| day.split('-').map(str::len).eq([4, 2, 2]));
    let length = if dashed.is_some() { 10 } else { 8 };
    let day: String = text.get(..length)?.chars().filter(|c| *c != '-').collect();
    Some((civil::Date::new(number(&day, 0, 4)?, number(&day, 4, 6)?, number(&day, 6, 8)?).ok()?, &text[length..]))
}

/// The time of a day, if there is one, and its zone.
fn with_time(day: civil::Date, rest: &str) -> Option<(Base, &str)> {
    let Some(time) = rest.strip_prefix('T') else { return Some((Base::Local(day.at(0, 0, 0, 0)), rest)) };
    let digits = time.find(|c: char| !c.is_ascii_digit()).unwrap_or(time.len());
    let seconds = match digits {
        4 => 0,
        6 => number(time, 4, 6)?,
        _ => return None,
    };
    let time_of_day = civil::Time::new(number(time, 0, 2)?, number(time, 2, 4)?, seconds, 0).ok()?;
    let local = day.to_datetime(time_of_day);
    match zone(&time[digits..]) {
        Some((offset, rest)) => Some((Base::Zoned(offset.to_timestamp(local).ok()?), rest)),
        None => Some((Base::Local(local), &time[digits..])),
    }
}

/// `Z`, or `+HHMM` that is not a number of weeks or days.
fn zone(text: &str) -> Option<(jiff::tz::Offset, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((jiff::tz::Offset::UTC, rest));
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (digits, rest) = (text.get(1..5)?, &text[5..]);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || rest.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let seconds = number::<i32>(digits, 0, 2)? * 3600 + number::<i32>(digits, 2, 4)? * 60;
    Some((jiff::tz::Offset::from_seconds(sign * seconds).ok()?, rest))
}

/// `+N` or `-N` and a unit, in seconds.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (count, unit) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
    let unit = match unit {
        "w" => 7 * 86_400,
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        _ => return None,
    };
    if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A million years is long enough, and cannot overflow.
    let seconds = count.parse::<i64>().ok()?.checked_mul(unit)?;
    (Duration::from_secs(seconds.unsigned_abs()) < Duration::from_hours(24 * 365 * 1_000_000)).then_some(sign * seconds)
}

fn number<T: std::str::FromStr>(text: &str, from: usize, until: usize) -> Option<T> {
    let digits = text.get(from..until)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz;

    /// 2026-11-25 08:00:00 UTC
    const NOW: Timestamp = Timestamp(1_795_593_600_000_000);

    fn at(text: &str, zone: &TimeZone) -> String {
        match Moment::parse(text) {
            Ok(moment) => jiff::Timestamp::from_microsecond(moment.at(NOW, zone).0).expect("in the calendar").to_string(),
            Err(message) => message,
        }
    }

    #[test]
    fn reframes_forms_are_read() {
        let rows = [
            ("now", "2026-11-25T08:00:00Z"),
            ("now-1d", "2026-11-24T08:00:00Z"),
            ("now+2h", "2026-11-25T10:00:00Z"),
            ("now-2w", "2026-11-11T08:00:00Z"),
            ("20261124", "2026-11-24T00:00:00Z"),
            ("2026-11-24", "2026-11-24T00:00:00Z"),
            ("2026-11-24-30m", "2026-11-23T23:30:00Z"),
            ("20261124T2205", "2026-11-24T22:05:00Z"),
            ("20261124T220507", "2026-11-24T22:05:07Z"),
            ("20261124T220507Z", "2026-11-24T22:05:07Z"),
            ("20261124T220507+0100", "2026-11-24T21:05:07Z"),
            ("20261124T220507-0130+1d", "2026-11-25T23:35:07Z"),
            ("20261124T220507+0100d", "2027-03-04T22:05:07Z"),
            (" 20261124+1w ", "2026-12-01T00:00:00Z"),
        ];
        for (text, time) in rows {
            assert_eq!(at(text, &TimeZone::UTC), time, "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_one_of_its_reader() {
        let east = TimeZone::fixed(tz::offset(2));
        assert_eq!(at("20261124T2200", &east), "2026-11-24T20:00:00Z");
        assert_eq!(at("20261124T220000+0000", &east), "2026-11-24T22:00:00Z");
        assert_eq!(at("now", &east), "2026-11-25T08:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let texts = [
            "",
            "no",
            "nowadays",
            "now-",
            "now-d",
            "now-1",
            "now-1y",
            "now--1d",
            "now-1dd",
            "2026",
            "20261324",
            "20261131",
            "2026112",
            "20261124T22",
            "20261124T2260",
            "20261124T22000",
            "20261124T220000+99",
            "2026-1-1",
            "now-99999999999999999999d",
            "now-9999999999999w",
            "é",
            "20261124é",
            "2026112é",
            "now+é",
            "T2200",
        ];
        for text in texts {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
        insta::assert_snapshot!(Moment::parse("yesterday").unwrap_err(), @"`yesterday` is not a point in time: write now, 20261124, 20261124T2200, 20261124T220000 or 2026-11-24, and behind it +N or -N of w, d, h or m, as in now-2w");
    }

    #[test]
    fn a_period_ends_after_it_begins() {
        let read = |text: &str| Period::parse(text).and_then(|period| period.at(NOW, &TimeZone::UTC));
        let (from, until) = read("now-1d:now").expect("a period");
        assert_eq!(until.since(from), Duration::from_hours(24));
        assert_eq!(read("now:now-1d"), Err("the period now:now-1d ends before it begins".to_owned()));
        assert_eq!(read("now:now"), Err("the period now:now ends before it begins".to_owned()));
        assert!(read("now").unwrap_err().contains("write FROM:UNTIL"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".*", tail in "[-+0-9wdhmTZ:n]*") {
            let _ = Moment::parse(&text);
            if let Ok(moment) = Moment::parse(&format!("2026{tail}")) {
                moment.at(NOW, &TimeZone::UTC);
            }
            if let Ok(moment) = Moment::parse(&format!("now{tail}")) {
                moment.at(Timestamp(i64::MAX), &TimeZone::UTC);
            }
        }
    }
}
