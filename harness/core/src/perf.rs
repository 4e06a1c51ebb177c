//! Performance variables: how figures are read from a stdout.

use serde::{Deserialize, Serialize};

/// One entry of `perf_variables`, rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerfVariable {
    /// `flops`
    pub name: String,
    /// `GFLOP/s`; values whose unit stands in the text are converted to it.
    pub unit: String,
    /// Where the figure comes from.
    pub source: Source,
    /// One figure a section, each with its node.
    pub per_section: bool,
    /// Finding nothing is no fault.
    pub optional: bool,
    /// Which way is better; colours and comparisons.
    pub direction: Option<Direction>,
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Matches of a regex.
    Pattern {
        /// Multi-line. Group `value`, else the only named group, else group 1, else the whole match is the figure;
        /// group `unit` its unit, group `key` makes a table.
        pattern: String,
        /// Another group: a name or a number.
        tag: Option<String>,
        /// Which of several matches.
        pick: Pick,
    },
    /// A CEL expression over the text and the variables before this one.
    Value(String),
}

/// Which matches make the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The n-th, from 0; -1 is the last.
    Item(i64),
    /// All of them together.
    Reduce(Reduce),
}

/// How many figures become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// The first.
    First,
    /// The last.
    Last,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The median; the mean of the middle two for an even number.
    Median,
    /// The sum; of none it is 0.
    Sum,
    /// How many; of none it is 0.
    Count,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Bandwidth.
    Higher,
    /// Latency.
    Lower,
}

/// One figure, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The variable.
    pub variable: String,
    /// The row of a table.
    pub key: Option<String>,
    /// The section it was read from, for `per: section`.
    pub section: Option<String>,
    /// That section's node.
    pub node: Option<String>,
    /// The figure. NaN is kept, and fails.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// What it was held against.
    pub bounds: Option<Bounds>,
    /// How that went.
    pub verdict: Verdict,
    /// Which way is better.
    pub direction: Option<Direction>,
}

impl Measurement {
    /// `latency[8]`, or `flops`.
    pub fn label(&self) -> String {
        self.key.as_ref().map_or_else(|| self.variable.clone(), |key| format!("{}[{key}]", self.variable))
    }
}

/// A reference and the interval around it, absolute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The reference value.
    pub reference: f64,
    /// The lowest value that passes; `None`: open.
    pub lower: Option<f64>,
    /// The highest value that passes; `None`: open.
    pub upper: Option<f64>,
}

/// How a figure compares with its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No reference.
    None,
    /// Within the bounds.
    Pass,
    /// Within the bounds, but outside the warn band.
    Warn,
    /// Outside.
    Fail,
    /// Outside, as expected, and why.
    Xfail(String),
    /// Within, though a miss was expected, and why.
    Xpass(String),
}
