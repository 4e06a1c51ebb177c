//! Sanity: what must, and must not, stand in a stdout.

use serde::{Deserialize, Serialize};

/// One item of `sanity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// What is asserted.
    #[serde(flatten)]
    pub claim: Claim,
    /// A glob: it is about the kept files that this fits, not about the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The author's words for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
}

/// What an assertion says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The pattern is found; exactly `count` times if given.
    Found {
        /// A regex, multi-line.
        pattern: String,
        /// Exactly so many matches over all sections.
        count: Option<u64>,
    },
    /// The pattern is not found.
    NotFound {
        /// A regex, multi-line.
        pattern: String,
    },
    /// The expression is true.
    Assert {
        /// CEL, evaluated in doubles.
        expression: String,
    },
    /// The workload's exit status. Without such an item it must be 0.
    Exit(ExitRule),
}

/// Which exit statuses are no failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitRule {
    /// Every one.
    Any,
    /// These.
    OneOf(Vec<i32>),
}
