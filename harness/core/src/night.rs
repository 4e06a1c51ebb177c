//! Nights: to which one a session belongs, and what a site says of them.
//!
//! A night lasts from one cut-off hour to the next and has the date of its evening: with a cut-off at 12:00 a session that starts on
//! the 18th at 03:00 belongs to the night of the 17th. Nights are told apart by moments, not by what a clock shows, so each moment is
//! in one night, also where clocks are changed.

use muster_text::{
    Value,
    decode::{Context, Decode},
    time::{TimeOfDay, Timestamp, Zone},
    yaml::{Kind, Node},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A site's rules for its nights.
#[derive(Debug, Clone, PartialEq)]
pub struct NightRules {
    pub zone: Zone,
    /// The time when one night ends and the next begins.
    pub cutoff: TimeOfDay,
    /// The number of changes that may be reported wrongly a night, over all metrics of the system.
    pub false_alarms: f64,
    /// The share of what was planned that has to be measured.
    pub min_coverage: f64,
}

impl Default for NightRules {
    fn default() -> Self {
        Self { zone: Zone::default(), cutoff: TimeOfDay::NOON, false_alarms: 0.04, min_coverage: 0.9 }
    }
}

/// A check's rules for the verdicts of its figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FigureRules {
    /// Smaller relative changes are none; `None`: as the site says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_effect: Option<f64>,
    /// A figure whose smallest visible step is larger is too noisy; `None`: as the site says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// The variables that have no verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl FigureRules {
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// A night is known by the date of its evening.
pub use muster_text::time::Date as Night;

/// A night with its span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NightSpan {
    pub date: Night,
    pub begins: Timestamp,
    /// The time when the next one begins.
    pub ends: Timestamp,
    /// The name of the time zone.
    pub time_zone: String,
}

impl NightRules {
    /// The night of a moment.
    pub fn night_of(&self, at: Timestamp) -> NightSpan {
        let begins = |date| self.zone.at(date, self.cutoff);
        let today = self.zone.date(at);
        let date = if begins(today) <= at { today } else { today.plus_days(-1) };
        NightSpan { date, begins: begins(date), ends: begins(date.plus_days(1)), time_zone: self.zone.name().to_owned() }
    }
}

/// `time_zone`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneName(pub Zone);

impl Decode for ZoneName {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        parsed(node, context, "the name of a time zone", Zone::parse).map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// `cutoff`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoff(pub TimeOfDay);

impl Decode for Cutoff {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        parsed(node, context, "a time of day", TimeOfDay::parse).map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$" })
    }
}

/// A part of the whole: `90%`, or 0.9.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl Share {
    fn parse(text: &str) -> Result<Self, String> {
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent.trim_end(), 100.0));
        let share = number.parse::<f64>().ok().map(|number| number / whole).filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or_else(|| format!("`{text}` is not a part of the whole: write 90%, or 0.9"))
    }
}

impl Decode for Share {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        parsed(node, context, "a part of the whole", Self::parse)
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": r"^\d+(\.\d+)? ?%$" },
        ] })
    }
}

/// The number of false alarms a night: more than none, at most one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseAlarms(pub f64);

impl FalseAlarms {
    fn parse(text: &str) -> Result<Self, String> {
        let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
        rate.map(Self)
            .ok_or_else(|| format!("`{text}` is no rate of false alarms: write how many a night, as in 0.04, at most 1"))
    }
}

impl Decode for FalseAlarms {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        parsed(node, context, "a number of false alarms a night", Self::parse)
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
    }
}

/// Reads the text of a scalar.
fn parsed<T>(node: &Node, context: &mut Context, what: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
    match context.kind(node)? {
        Kind::Scalar { text, .. } if !node.is_null() => match parse(text) {
            Ok(value) => Some(value),
            Err(message) => context.wrong(node, message, None),
        },
        _ => context.expected(node, what, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::time::Date;

    const HOUR: i64 = 3_600_000_000;

    fn rules(zone: &str, cutoff: &str) -> NightRules {
        NightRules { zone: Zone::parse(zone).unwrap(), cutoff: TimeOfDay::parse(cutoff).unwrap(), ..NightRules::default() }
    }

    /// A moment, UTC.
    fn at(date: &str, hour: i64, minute: i64) -> Timestamp {
        Timestamp((Date::parse(date).unwrap().days() * 24 + hour) * HOUR + minute * HOUR / 60)
    }

    #[test]
    fn a_night_has_the_date_of_its_evening_and_ends_at_the_cutoff() {
        let rows = [
            ("UTC", "12:00", at("2026-11-17", 11, 59), "2026-11-16"),
            ("UTC", "12:00", at("2026-11-17", 12, 0), "2026-11-17"),
            ("UTC", "12:00", at("2026-11-18", 3, 0), "2026-11-17"),
            ("UTC", "00:00", at("2026-11-18", 0, 0), "2026-11-18"),
            // 20:30 of the 17th there.
            ("America/New_York", "12:00", at("2026-11-18", 1, 30), "2026-11-17"),
            ("Asia/Tokyo", "18:00", at("2026-11-18", 8, 59), "2026-11-17"),
            ("Asia/Tokyo", "18:00", at("2026-11-18", 9, 0), "2026-11-18"),
            ("UTC", "12:00", at("2027-01-01", 1, 0), "2026-12-31"),
        ];
        for (zone, cutoff, at, date) in rows {
            let night = rules(zone, cutoff).night_of(at);
            assert_eq!(night.date.to_string(), date, "{zone} {cutoff} {at:?}");
            assert!(night.begins <= at && at < night.ends, "{night:?}");
        }
    }

    #[test]
    fn a_night_in_which_clocks_change_is_longer_or_shorter_and_still_one() {
        let hours = |date: &str| {
            let night = rules("Europe/Berlin", "12:00").night_of(at(date, 20, 0));
            (night.date.to_string(), (night.ends.0 - night.begins.0) / HOUR)
        };
        assert_eq!(hours("2026-03-28"), ("2026-03-28".to_owned(), 23));
        assert_eq!(hours("2026-10-24"), ("2026-10-24".to_owned(), 25));
        assert_eq!(hours("2026-10-25"), ("2026-10-25".to_owned(), 24));
    }

    #[test]
    fn every_moment_is_in_one_night_also_with_a_cutoff_that_clocks_leave_out_or_show_twice() {
        for (date, cutoff) in [("2026-03-29", "02:30"), ("2026-10-25", "02:30"), ("2026-10-25", "02:00"), ("2026-03-29", "03:00")]
        {
            let rules = rules("Europe/Berlin", cutoff);
            let first = Date::parse(date).unwrap().plus_days(-1);
            let mut night = rules.night_of(at(&first.to_string(), 0, 0));
            for minute in 0..4 * 24 * 60 {
                let now = at(&first.to_string(), 0, minute);
                let next = rules.night_of(now);
                assert!(next.begins <= now && now < next.ends, "{cutoff} {now:?} {next:?}");
                if next != night {
                    assert_eq!((next.date, next.begins, now), (night.date.plus_days(1), night.ends, night.ends), "{cutoff}");
                    night = next;
                }
            }
        }
    }

    #[test]
    fn a_share_is_a_percentage_or_a_fraction() {
        for (text, share) in [("90%", 0.9), ("0.9", 0.9), ("100 %", 1.0), ("0", 0.0)] {
            assert_eq!(Share::parse(text), Ok(Share(share)), "{text}");
        }
        for text in ["", "90", "-1%", "nan", "101%", "x"] {
            assert!(Share::parse(text).is_err(), "{text}");
        }
        assert_eq!(FalseAlarms::parse("0.04"), Ok(FalseAlarms(0.04)));
        for text in ["0", "-1", "1.5", "nan", ""] {
            assert!(FalseAlarms::parse(text).is_err(), "{text}");
        }
    }
}
