//! Judging: a finished job's text and exits, held against the rules of its case.

use crate::{
    perf::Measurement,
    result::{Fault, Outcome, Phase},
    rules::Rules,
    scheduler::Ending,
    stdout::Stdout,
};

/// What the judge found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// How the case ended.
    pub outcome: Outcome,
    /// The phase that decided it.
    pub phase: Phase,
    /// One sentence, for every outcome but a pass.
    pub cause: Option<String>,
    /// The figures, in the order of the variables.
    pub measurements: Vec<Measurement>,
    /// Things worth a line that did not decide anything.
    pub warnings: Vec<String>,
}

/// Judges a job that ended by itself. `expired` is asked again and again while searching; once it says so, judging
/// stops and the case is an error.
pub fn judge(_rules: &Rules, _stdout: &Stdout, _ending: &Ending, _expired: &dyn Fn() -> bool) -> Judgement {
    Judgement {
        outcome: Outcome::Error(Fault::Config),
        phase: Phase::Sanity,
        cause: Some("judging is not built yet".to_owned()),
        measurements: Vec::new(),
        warnings: Vec::new(),
    }
}
