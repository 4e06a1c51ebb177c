//! A case: a check, one point of its parameters, a partition and an environment; and what becomes of it at launch.

use crate::{
    case::{CaseName, Identifier, SessionId},
    diagnostic::Diagnostic,
    result::About,
    rules::Rules,
    site::{Environment, Partition, System},
    workload::Workload,
};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Check x variant x partition x environment.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Its name.
    pub name: CaseName,
    /// Where it runs.
    pub system: Arc<System>,
    /// Where it runs.
    pub partition: Arc<Partition>,
    /// In which setting.
    pub environ: Arc<Environment>,
}

/// What is known only when a case is launched.
#[derive(Debug, Clone)]
pub struct LaunchFacts {
    /// The attempt's mark.
    pub identifier: Identifier,
    /// The invocation.
    pub session: SessionId,
    /// The attempt's folder.
    pub stage: PathBuf,
}

/// A case with nothing left to fill in.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// What runs.
    pub workload: Workload,
    /// How it is judged.
    pub rules: Rules,
    /// What the check says of itself.
    pub about: About,
    /// How long stopped things are kept; `None`: the scheduler's default.
    pub keep_failed: Option<Duration>,
    /// Not to be run, and why (a `when` rule, a fact that is missing).
    pub skip: Option<String>,
}

impl TestCase {
    /// Fills in every placeholder.
    ///
    /// # Errors
    /// Every mistake that only shows with these values.
    pub fn render(&self, _facts: &LaunchFacts) -> Result<Rendered, Vec<Diagnostic>> {
        Err(vec![Diagnostic::general("checks cannot be rendered yet")])
    }
}
