//! The judging rules of one case, rendered: plain data, stored beside the job, because the files may have changed
//! when a session is resumed.

pub mod perf;
pub mod reference;
pub mod sanity;

use crate::{
    job::outputs::PlannedOutputs,
    rules::{
        perf::{PerfVariable, Source},
        reference::ReferenceRow,
        sanity::{Assertion, Claim},
    },
};
use muster_text::{
    Value,
    diagnostic::MissingKey,
    expr::{Arithmetic, Expr},
    size::Size,
    words,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that turns a stdout into an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Sanity, in the order of the check file.
    pub sanity: Vec<Assertion>,
    /// Globs within the stage folder: what a pass keeps, and what `file` may search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_files: Vec<String>,
    /// Performance variables, in the order of the check file.
    pub perf_variables: Vec<PerfVariable>,
    /// The rows that apply to this case, at most one a variable and key pattern.
    pub references: Vec<ReferenceRow>,
    /// A miss of a reference fails the case.
    pub strict: bool,
    /// A variable without a reference fails the case.
    pub require_reference: bool,
    /// The values that `assert` and `value` see beside the text: parameters, variables, `num_tasks`, `partition`, `environ`.
    pub facts: BTreeMap<String, Value>,
    /// The names among them that have no value, and the missing key that is the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, MissingKey>,
    /// The reason of an expected failure, if one is expected.
    pub xfail: Option<String>,
    /// The outputs for the cases that depend on it, if any do.
    #[serde(rename = "offer", default, skip_serializing_if = "Option::is_none")]
    pub planned_outputs: Option<Box<PlannedOutputs>>,
    /// The limit on the log that is kept and judged; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_limit: Option<LogLimit>,
}

/// The limit of a log, and the treatment of a longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimit {
    /// Total of all sections.
    pub bytes: u64,
    pub action: LogAction,
}

impl LogLimit {
    /// Message for a log of which nothing was kept.
    pub fn nothing_kept(self) -> String {
        format!("no line of it was kept: the log of the case is longer than {} (max_log)", Size(self.bytes))
    }

    /// Message for a log that was cut off.
    pub fn reached(self) -> String {
        format!("the log is longer than {} (max_log): what follows was not kept", Size(self.bytes))
    }
}

words! {
    #[derive(Default)]
    pub enum LogAction {
        /// The case is `invalid{logs}`.
        #[default]
        Invalid = "invalid",
        /// The part that was kept is judged, and the result has a warning.
        Warn = "warn",
    }
}

impl Rules {
    /// Returns the expressions of `assert` and `value`, and whether the figure of each may be missing.
    pub fn expressions(&self) -> impl Iterator<Item = (Expr, bool)> {
        let asserts = self.sanity.iter().filter_map(|assertion| match &assertion.claim {
            Claim::Assert { expression } => Some((expression, false)),
            _ => None,
        });
        let values = self.perf_variables.iter().filter_map(|variable| match &variable.source {
            Source::Value(expression) => Some((expression, variable.optional)),
            Source::Pattern { .. } => None,
        });
        let expressions = asserts.chain(values);
        expressions.filter_map(|(text, optional)| Some((Expr::compile(text, Arithmetic::Doubles).ok()?, optional)))
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            sanity: Vec::new(),
            keep_files: Vec::new(),
            perf_variables: Vec::new(),
            references: Vec::new(),
            strict: true,
            require_reference: false,
            facts: BTreeMap::new(),
            missing: BTreeMap::new(),
            xfail: None,
            planned_outputs: None,
            log_limit: None,
        }
    }
}
