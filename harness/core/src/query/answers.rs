//! Answers, as they are rendered.

use crate::{
    night::Night,
    query::figures::{Metric, Point},
    rules::perf::Direction,
};
use muster_text::words;

/// The difference of two sets of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    pub method: Method,
    /// The worst first.
    pub rows: Vec<ComparedMetric>,
}

/// Two sides that are compared, in the words of the question.
#[derive(Debug, Clone, PartialEq)]
pub struct Sides {
    pub old: String,
    pub new: String,
    /// The number of sessions of each side.
    pub sessions: (usize, usize),
}

/// The method of verdicts, and how often they are wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// `rank test of Mann and Whitney over 212 metrics, step-up: ...`
    pub text: String,
    /// The share of claimed differences that is none, at most, on average.
    pub error_rate: f64,
    /// The smallest difference of medians that is claimed, as a share.
    pub min_effect: f64,
    pub sample: SampleUnit,
}

words! {
    /// The meaning of one value of a sample.
    pub enum SampleUnit {
        /// The figure of a run.
        Run = "run",
        /// The median of the runs of a night: runs of one night may share what made them slow.
        Night = "night",
    }

    /// The verdict on a metric in two sets.
    pub enum Difference {
        Regressed = "regressed",
        /// Its check gives no direction.
        Changed = "changed",
        Vanished = "vanished",
        New = "new",
        Improved = "improved",
        /// The values are so few that the test could claim nothing.
        TooFew = "too few samples",
        /// No difference was found.
        Steady = "steady",
    }
}

/// One metric in two sets.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedMetric {
    pub metric: Metric,
    pub unit: String,
    pub direction: Option<Direction>,
    pub old: Option<Summary>,
    pub new: Option<Summary>,
    pub difference: Difference,
    /// The relative difference, if there are both sides: -0.051 is 5.1 % less.
    pub effect: Option<f64>,
    /// The check or its manifest is not the same on both sides.
    pub is_redefined: bool,
    /// The probability of ranks at least as far apart if nothing has changed.
    pub p: Option<f64>,
}

/// A sample in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The standard deviation over the median, estimated by the median absolute deviation.
    pub spread: f64,
}

impl Compared {
    /// Puts the worst first: by what is said, then by size, then by name.
    pub fn sort(&mut self) {
        let loss = |row: &ComparedMetric| {
            let effect = row.effect.unwrap_or_default();
            match row.direction {
                Some(Direction::Higher) => -effect,
                Some(Direction::Lower) => effect,
                None => effect.abs(),
            }
        };
        self.rows.sort_by(|a, b| {
            a.difference.cmp(&b.difference).then_with(|| loss(b).total_cmp(&loss(a))).then_with(|| a.metric.cmp(&b.metric))
        });
    }
}

/// The figures of one metric over time.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    pub metric: Metric,
    pub unit: String,
    pub direction: Option<Direction>,
    /// The points in order of time.
    pub points: Vec<Point>,
    /// The marks in order of time.
    pub marks: Vec<Mark>,
}

/// Something that happened to a metric in a night.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub night: Night,
    pub kind: MarkKind,
    /// One line.
    pub text: String,
}

words! {
    pub enum MarkKind {
        /// A change that the night verdict has found.
        Change = "change",
        /// Another reference, or other bounds.
        Reference = "reference",
        /// Another check, manifest or unit.
        Redefined = "redefined",
        Annotation = "annotation",
    }
}

/// A reference for a metric from its figures, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    pub metric: Metric,
    /// The name of the check, without its parameters.
    pub check: String,
    /// The parameters, in the order of the case's name.
    pub parameters: Vec<(String, String)>,
    pub unit: String,
    pub count: usize,
    /// The number of nights in which they were measured.
    pub nights: usize,
    /// The things that are left out, one sentence each.
    pub left_out: Vec<String>,
    pub reference: Result<SuggestedReference, NoReference>,
}

/// `[value, lower, upper]`, bounds as shares of the value, or absolute around 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuggestedReference {
    pub value: f64,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// The lower, the upper bound: the percentile that was asked for is the value itself, so that standard deviations are the bound.
    pub replaced: [bool; 2],
    /// The standard deviation around the value, and the run that is furthest from it: like the bounds.
    pub spread: f64,
    pub furthest: f64,
    /// The number of the runs that would have failed.
    pub failed: usize,
    /// The share of the runs of a healthy machine that fails, at most: with normal noise, and with noise that has a long tail.
    pub expected: [f64; 2],
}

/// The reason why figures suggest no reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoReference {
    TooFewRuns {
        needed: usize,
    },
    /// They vary so much that every figure up to zero would pass.
    TooNoisy,
    /// All are zero: that says nothing of a bound.
    OnlyZeros,
}
