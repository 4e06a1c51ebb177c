//! What is judged: the metrics of a system with their values by night, what people have said of them, and the settings.

use crate::night::change::Change;
use muster_core::{
    query::figures::Basis,
    rules::perf::{Direction, label},
};
use muster_text::{
    time::{Date, Timestamp},
    words,
};
use std::fmt;

/// A night, by the date of its evening: days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Night(pub i32);

const DAY: i64 = 86_400_000_000;

impl Night {
    /// The night whose evening has this date.
    pub fn of(evening: Date) -> Self {
        // Days are counted from those that lie around, so that the calendar stays in one place.
        let mut days = (0, 4_000_000);
        while days.0 < days.1 {
            let middle = i32::midpoint(days.0, days.1);
            if Self(middle).date() < evening { days.0 = middle + 1 } else { days.1 = middle }
        }
        Self(days.0)
    }

    pub fn date(self) -> Date {
        Date::of(Timestamp(i64::from(self.0) * DAY))
    }

    /// So many nights earlier.
    #[must_use]
    pub fn before(self, nights: i32) -> Self {
        Self(self.0.saturating_sub(nights))
    }
}

impl fmt::Display for Night {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date().fmt(f)
    }
}

/// All metrics of a system. They are judged together, with one error rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct System {
    pub name: String,
    pub metrics: Vec<Metric>,
    pub annotations: Vec<Annotation>,
}

/// One figure of one case over the nights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metric {
    /// Its number in the store.
    pub id: i64,
    pub name: MetricName,
    pub unit: String,
    /// `None`: a change is neither worse nor better.
    pub direction: Option<Direction>,
    /// In any order. Of two in a night the median is judged.
    pub values: Vec<Value>,
    /// What the values were measured with: [`Value::segment`] is a place in this list.
    pub segments: Vec<Basis>,
    /// Whether it was planned in the judged night.
    pub plan: Plan,
    /// What was opened in earlier nights, and not dropped since, by the night since when it holds.
    pub changes: Vec<Change>,
    /// In place of that of the settings.
    pub min_effect: Option<f64>,
    /// In place of that of the settings.
    pub limit: Option<f64>,
    /// Its case is in quarantine: changes are shown, not counted.
    pub is_quarantined: bool,
}

/// How people call a metric.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricName {
    pub partition: String,
    pub environ: String,
    /// The check of the case.
    pub check: String,
    /// The case as displayed, after aliases.
    pub case: String,
    pub variable: String,
    /// The row of a table.
    pub key: Option<String>,
}

impl MetricName {
    /// `bandwidth`, or `latency[8]`.
    pub fn label(&self) -> String {
        label(&self.variable, self.key.as_deref())
    }
}

/// The value of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    pub night: Night,
    pub value: f64,
    /// Which of the segments of its metric.
    pub segment: u32,
}

words! {
    /// What became of a metric in the plan of a night.
    #[derive(Default)]
    pub enum Plan {
        /// The store does not know the plan of the night. A metric that was measured in the week before counts as planned.
        #[default]
        Unknown = "unknown",
        Unplanned = "unplanned",
        Run = "run",
        Skipped = "skipped",
        Busy = "busy",
        Absent = "absent",
        Cordoned = "cordoned",
    }
}

words! {
    /// What a person says of nights or changes.
    pub enum AnnotationKind {
        /// The values of these nights are left out.
        Maintenance = "maintenance",
        /// A change since one of these nights is fine: its level is the new baseline.
        Accept = "accept",
        /// A change since one of these nights is none: its values until the last of them, and until it was said, are left out.
        /// The baseline stays.
        Dismiss = "dismiss",
        /// Changes are shown in these nights, and not counted.
        Known = "known",
    }
}

/// What people have said.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    pub kind: AnnotationKind,
    pub scope: Scope,
    pub from: Night,
    /// The last night; `None`: there is no end.
    pub until: Option<Night>,
    /// The last night of which a session had started when it was said.
    pub said: Night,
    pub reason: String,
}

/// Of what: everything that is given has to agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub partition: Option<String>,
    pub environ: Option<String>,
    /// The check, or the case as displayed.
    pub check: Option<String>,
    /// The variable, or one row of its table (`latency[8]`).
    pub variable: Option<String>,
}

impl Scope {
    pub fn covers(&self, name: &MetricName) -> bool {
        let is = |wanted: &Option<String>, holds: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(holds);
        is(&self.partition, &|wanted| wanted == name.partition)
            && is(&self.environ, &|wanted| wanted == name.environ)
            && is(&self.check, &|wanted| wanted == name.check || wanted == name.case)
            && is(&self.variable, &|wanted| wanted == name.variable || wanted == name.label())
    }
}

impl Annotation {
    pub fn holds_in(&self, night: Night) -> bool {
        self.from <= night && self.until.is_none_or(|until| night <= until)
    }
}

/// What a site chooses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How many false alarms a night are tolerated over all metrics of a system.
    pub false_alarms: f64,
    /// Smaller relative changes are none.
    pub min_effect: f64,
    /// A metric whose smallest visible step is larger is too noisy.
    pub limit: f64,
    /// The share of planned metrics that has to be measured.
    pub min_coverage: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { false_alarms: 0.04, min_effect: 0.02, limit: 0.20, min_coverage: 0.9 }
    }
}

/// Measured: with this over A, so many false alarms a night are opened (`tests/bench/night.sh`).
const ALARMS_AT_ONE: f64 = 0.48;

impl Settings {
    /// A: at most 1 / A of the alarms that are raised before a true change are false, in expectation and for each night of patience.
    pub fn threshold(&self) -> f64 {
        ALARMS_AT_ONE / self.false_alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_has_the_date_of_its_evening() {
        for (days, date) in [(0, "1970-01-01"), (20_773, "2026-11-16"), (11_016, "2000-02-29")] {
            assert_eq!(Night(days).to_string(), date);
            assert_eq!(Date::parse(date).map(Night::of), Ok(Night(days)));
        }
    }

    #[test]
    fn everything_that_a_scope_gives_has_to_agree() {
        let text = |text: &str| Some(text.to_owned());
        let name = MetricName {
            partition: "gpu".into(),
            environ: "gnu".into(),
            check: "triad".into(),
            case: "triad %size=2G".into(),
            variable: "latency".into(),
            key: text("8"),
        };
        let scope = Scope { partition: text("gpu"), ..Scope::default() };
        let rows = [
            (Scope::default(), true),
            (scope.clone(), true),
            (Scope { partition: text("cpu"), ..Scope::default() }, false),
            (Scope { check: text("triad"), ..scope.clone() }, true),
            (Scope { check: text("triad %size=2G"), ..scope.clone() }, true),
            (Scope { check: text("triad %size=4G"), ..scope.clone() }, false),
            (Scope { variable: text("latency[8]"), ..scope.clone() }, true),
            (Scope { variable: text("latency[9]"), ..scope.clone() }, false),
            (Scope { environ: text("intel"), variable: text("latency"), ..scope }, false),
        ];
        for (scope, expected) in rows {
            assert_eq!(scope.covers(&name), expected, "{scope:?}");
        }
    }
}
