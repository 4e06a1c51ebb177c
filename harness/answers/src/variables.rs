//! The variables that a question is about.

use crate::Unanswered;
use muster_core::query::figures::Metric;
use std::collections::BTreeSet;

/// Returns whether a metric is one of these variables, or a row of its table. Every metric is, if there are none.
pub(crate) fn is_variable(metric: &Metric, variables: &[String]) -> bool {
    variables.is_empty() || variables.iter().any(|variable| metric.variable == *variable || metric.label() == *variable)
}

/// Checks that each variable is one of these metrics.
///
/// # Errors
/// [`Unanswered::Unknown`] with the first that is none, and the variables that there are.
pub(crate) fn are_variables<'a>(
    of: &str,
    variables: &[String],
    metrics: impl Iterator<Item = &'a Metric>,
) -> Result<(), Unanswered> {
    let metrics: Vec<&Metric> = metrics.collect();
    let is_missing = |variable: &&String| !metrics.iter().any(|metric| is_variable(metric, std::slice::from_ref(variable)));
    let Some(missing) = variables.iter().find(is_missing) else { return Ok(()) };
    let names: BTreeSet<&str> = metrics.iter().map(|metric| metric.variable.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    Unanswered::unknown(format!("`{of}` has no variable `{missing}`: it has {names}"))
}
