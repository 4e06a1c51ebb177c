//! The input of a night's verdict: the metrics of a system with their values by night, annotations, and the settings.

use crate::night::change::Change;
use muster_core::{
    night::Night,
    query::{
        figures::{Basis, Metric as MetricName},
        remarks::Remark,
    },
    rules::perf::Direction,
};
use muster_text::words;

/// All metrics of a system. They are judged together, with one error rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct System {
    pub name: String,
    pub metrics: Vec<Metric>,
    pub annotations: Vec<Remark>,
}

/// One figure of one case over the nights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metric {
    /// Its number in the store.
    pub id: i64,
    /// The name for people, with the case as displayed, after aliases.
    pub name: MetricName,
    pub unit: String,
    /// `None`: a change is neither worse nor better.
    pub direction: Option<Direction>,
    /// The values in any order. Of two in a night the median is judged.
    pub values: Vec<Value>,
    /// The conditions of the measurements: [`Value::segment`] is a place in this list.
    pub segments: Vec<Basis>,
    /// The plan of the metric in the judged night.
    pub plan: Plan,
    /// The changes that were opened in earlier nights, and not dropped since, by the night since when each holds.
    pub changes: Vec<Change>,
    /// The value that replaces that of the settings.
    pub min_effect: Option<f64>,
    /// The value that replaces that of the settings.
    pub limit: Option<f64>,
    /// Its case is in quarantine: changes are shown, not counted.
    pub is_quarantined: bool,
}

/// The value of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    pub night: Night,
    pub value: f64,
    /// The place in the segments of its metric.
    pub segment: u32,
}

words! {
    /// The state of a metric in the plan of a night.
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

/// The settings of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The number of false alarms a night that are tolerated over all metrics of a system.
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
