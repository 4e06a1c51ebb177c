//! The value of a metric in a night.

use crate::stats::location::centre_and_sigma;
use muster_core::result::{Failure, Outcome};

/// One attempt at a case, as far as one of its figures is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The nightly run that it belongs to: a session, and the round of it if it ran everything several times.
    pub run: u64,
    /// 1, 2, ... within the run.
    pub number: u32,
    pub outcome: Outcome,
    /// It belongs to the night, and was not made to test something again, to isolate a fault or to tune.
    pub is_nightly: bool,
    /// `None`: the figure was not found.
    pub value: Option<f64>,
}

/// The value of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    pub value: f64,
    /// How many runs it is the median of.
    pub runs: usize,
    /// The standard deviation of the runs over the value, by their median absolute deviation; 0 for one run.
    pub spread: f64,
}

/// The median over the nightly runs of the figure of their first measured attempt. Later attempts are evidence for people: who
/// takes the attempt that passed hides what the others have shown.
pub fn figure(attempts: &[Attempt]) -> Option<Figure> {
    let mut measured: Vec<_> =
        attempts.iter().filter(|attempt| attempt.is_nightly && is_measured(&attempt.outcome)).filter_map(with_number).collect();
    measured.sort_by_key(|(run, number, _)| (*run, *number));
    measured.dedup_by_key(|(run, ..)| *run);
    let values: Vec<f64> = measured.into_iter().map(|(.., value)| value).collect();
    let (value, sigma) = centre_and_sigma(&values)?;
    let spread = if value == 0.0 { 0.0 } else { (sigma / value).abs() };
    Some(Figure { value, runs: values.len(), spread })
}

fn with_number(attempt: &Attempt) -> Option<(u64, u32, f64)> {
    let value = attempt.value.filter(|value| value.is_finite())?;
    Some((attempt.run, attempt.number, value))
}

/// Whether an attempt that ended so has measured the system.
fn is_measured(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Pass | Outcome::Xfail | Outcome::Xpass | Outcome::Fail(Failure::Performance) => true,
        Outcome::Fail(Failure::Sanity | Failure::Workload)
        | Outcome::Skip
        | Outcome::Invalid(_)
        | Outcome::Timeout(_)
        | Outcome::Disrupted(_)
        | Outcome::Error(_)
        | Outcome::Abort
        | Outcome::Stopped(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::result::Invalid;

    fn attempt(run: u64, number: u32, outcome: Outcome, value: f64) -> Attempt {
        Attempt { run, number, outcome, is_nightly: true, value: Some(value) }
    }

    const LOW: Outcome = Outcome::Fail(Failure::Performance);

    #[test]
    fn a_pass_after_a_retry_never_hides_a_low_first_attempt() {
        let attempts = [attempt(1, 2, Outcome::Pass, 100.0), attempt(1, 1, LOW, 80.0)];
        assert_eq!(figure(&attempts), Some(Figure { value: 80.0, runs: 1, spread: 0.0 }));
    }

    #[test]
    fn what_did_not_measure_the_system_is_left_out() {
        let other_purpose = Attempt { is_nightly: false, ..attempt(3, 1, Outcome::Pass, 1.0) };
        let attempts = [
            attempt(1, 1, Outcome::Invalid(Invalid::Logs), 5.0),
            attempt(1, 2, Outcome::Xfail, 90.0),
            attempt(1, 3, Outcome::Pass, 100.0),
            attempt(2, 1, Outcome::Fail(Failure::Sanity), 7.0),
            attempt(4, 1, Outcome::Pass, f64::NAN),
            other_purpose,
        ];
        assert_eq!(figure(&attempts).map(|figure| (figure.value, figure.runs)), Some((90.0, 1)));
        assert_eq!(figure(&attempts[3..]), None);
    }

    #[test]
    fn several_runs_of_a_night_are_their_median() {
        let attempts = [attempt(1, 1, Outcome::Pass, 100.0), attempt(2, 1, LOW, 60.0), attempt(3, 1, Outcome::Pass, 98.0)];
        let figure = figure(&attempts).unwrap();
        assert_eq!((figure.value, figure.runs), (98.0, 3));
        assert!((figure.spread - 1.4826 * 2.0 / 98.0).abs() < 1e-5, "{}", figure.spread);
    }
}
