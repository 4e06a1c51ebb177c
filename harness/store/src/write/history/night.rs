//! The figure of a night from those of its runs. Pure.

use muster_core::stats::median;

/// Some runs have another basis than the last one, and are left out.
pub(crate) const MIXED: i64 = 1;
/// Some runs have no finite value.
pub(crate) const NO_NUMBER: i64 = 2;

/// The figure of one run of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// `None`: it was no finite number.
    pub(crate) value: Option<f64>,
    /// What it must have in common with others to be compared.
    pub(crate) basis: i64,
}

/// A row of `night_figure`, but for its key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NightFigure {
    /// The median.
    pub(crate) value: Option<f64>,
    /// How many runs have a value.
    pub(crate) n: i64,
    /// The standard deviation; `None` for fewer than two.
    pub(crate) spread: Option<f64>,
    pub(crate) flags: i64,
    pub(crate) basis: i64,
}

/// The figure of a night with these runs, in their order. `None`: it has none.
pub(crate) fn of_runs(runs: &[Run]) -> Option<NightFigure> {
    let basis = runs.last()?.basis;
    let values: Vec<f64> = runs.iter().filter(|run| run.basis == basis).filter_map(|run| run.value).collect();
    let is_mixed = runs.iter().any(|run| run.basis != basis);
    let lacks_numbers = runs.iter().any(|run| run.value.is_none());
    Some(NightFigure {
        value: median(&values),
        n: i64::try_from(values.len()).unwrap_or(i64::MAX),
        spread: spread(&values),
        flags: i64::from(is_mixed) * MIXED + i64::from(lacks_numbers) * NO_NUMBER,
        basis,
    })
}

/// The standard deviation of a sample.
#[allow(clippy::cast_precision_loss, reason = "nobody runs a case 2^53 times a night")]
fn spread(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    let variance = values.iter().map(|value| (value - mean).powi(2) / (count - 1.0)).sum::<f64>();
    Some(variance.sqrt()).filter(|spread| spread.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(runs: &[(Option<f64>, i64)]) -> Option<NightFigure> {
        of_runs(&runs.iter().map(|(value, basis)| Run { value: *value, basis: *basis }).collect::<Vec<_>>())
    }

    #[test]
    fn a_night_has_the_median_and_the_spread_of_its_runs() {
        let one = NightFigure { value: Some(3.0), n: 1, spread: None, flags: 0, basis: 7 };
        assert_eq!(figure(&[]), None);
        assert_eq!(figure(&[(Some(3.0), 7)]), Some(one));
        let three = figure(&[(Some(1.0), 7), (Some(9.0), 7), (Some(2.0), 7)]).unwrap();
        assert_eq!((three.value, three.n), (Some(2.0), 3));
        assert!((three.spread.unwrap() - 19.0_f64.sqrt()).abs() < 1e-12, "{three:?}");
        assert_eq!(figure(&[(Some(f64::MAX), 7), (Some(f64::MIN), 7)]).unwrap().spread, None);
    }

    #[test]
    fn runs_of_another_basis_than_the_last_are_left_out_and_said_so() {
        let figure = figure(&[(Some(1.0), 7), (Some(9.0), 8)]).unwrap();
        assert_eq!(figure, NightFigure { value: Some(9.0), n: 1, spread: None, flags: MIXED, basis: 8 });
    }

    #[test]
    fn what_has_no_number_is_said_and_counts_for_nothing() {
        let some = figure(&[(None, 7), (Some(9.0), 7)]).unwrap();
        assert_eq!((some.value, some.n, some.flags), (Some(9.0), 1, NO_NUMBER));
        let none = figure(&[(None, 7)]).unwrap();
        assert_eq!((none.value, none.n, none.flags), (None, 0, NO_NUMBER));
    }
}
