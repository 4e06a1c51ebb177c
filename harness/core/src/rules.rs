//! The judging rules of one case, rendered: plain data, stored beside the job, because the files may have changed
//! when a session is resumed.

use crate::{Value, expr::MissingKey, fixture::Offer, perf::PerfVariable, reference::ReferenceRow, sanity::Assertion};
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
    /// Whether a miss of a reference fails the case.
    pub strict: bool,
    /// Whether a variable without a reference fails the case.
    pub require_reference: bool,
    /// What `assert` and `value` see beside the text: parameters, variables, `num_tasks`, `partition`, `environ`.
    pub facts: BTreeMap<String, Value>,
    /// The names among them that have no value, and the key for want of which.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, MissingKey>,
    /// The reason of an expected failure, if one is expected.
    pub xfail: Option<String>,
    /// What it leaves for the cases that depend on it, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Box<Offer>>,
}

/// Nothing is asked for, and references are strict.
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
            offer: None,
        }
    }
}
