//! The figures of metrics. A run is the first measured attempt at a case: what a retry made of it is no figure of the history.

use crate::{
    night::Night,
    rules::perf::{Bounds, Direction, label},
};
use muster_text::time::Timestamp;
use std::collections::BTreeMap;

/// One figure of one case over all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric {
    /// The case, with its parameters.
    pub case: String,
    pub system: String,
    pub partition: String,
    pub environ: String,
    pub variable: String,
    /// The row of a table.
    pub key: Option<String>,
}

impl Metric {
    /// `latency[8]`, or `flops`.
    pub fn label(&self) -> String {
        label(&self.variable, self.key.as_deref())
    }

    /// `eidf:gpu+default`
    pub fn place(&self) -> String {
        format!("{}:{}+{}", self.system, self.partition, self.environ)
    }
}

/// The properties in which two figures agree if they may be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Basis {
    pub unit: String,
    pub check_hash: String,
    pub manifest_hash: String,
}

impl Basis {
    /// Returns the part that keeps figures of both from being compared. A digest may be unknown (''): older versions and ReFrame
    /// have written none. A unit never is: '' is a number without one.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let differ = |one: &str, other: &str| one != other && !one.is_empty() && !other.is_empty();
        let parts = [
            (self.unit != other.unit, "the unit"),
            (differ(&self.check_hash, &other.check_hash), "the check"),
            (differ(&self.manifest_hash, &other.manifest_hash), "the manifest"),
        ];
        parts.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    pub fn agrees_with(&self, other: &Self) -> bool {
        self.difference(other).is_none()
    }
}

/// The figure of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    pub night: Night,
    pub value: f64,
    /// The place of its basis in [`FigureSet::bases`].
    pub basis: usize,
}

/// The figures of one metric, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub metric: Metric,
    /// The better direction, if the check says it.
    pub direction: Option<Direction>,
    /// The smallest relative change that counts, if the check says so.
    pub min_effect: Option<f64>,
    pub runs: Vec<Run>,
}

/// The figures of a selection, by the number of the metric, which is that of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigureSet {
    pub series: BTreeMap<i64, Series>,
    pub bases: Vec<Basis>,
    /// The sessions that were selected.
    pub sessions: usize,
}

/// A figure in a history, with how it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub at: Timestamp,
    pub night: Night,
    pub session: String,
    /// `None`: it was no number.
    pub value: Option<f64>,
    pub bounds: Option<Bounds>,
    pub basis: Basis,
    /// Left out of all statistics: an annotation says so, or an attempt before it was measured.
    pub is_left_out: bool,
}
