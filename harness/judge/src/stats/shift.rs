//! The shift of one set of values above another: the ratio of their medians, in the interval of Hodges and Lehmann.

use crate::stats::rank::RankTests;
use muster_core::stats::{as_float, floor, median};

/// A relative change: -0.051 is 5.1 % less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub estimate: f64,
    /// An interval that holds the true change with a confidence of at least 90 %; of very few values, all that there is.
    pub low: f64,
    pub high: f64,
}

/// The confidence of the interval.
pub const CONFIDENCE: f64 = 0.9;

/// More values of a set than this are thinned out before each is compared with each.
const THINNED: usize = 250;

/// Compares `after` with `before`: the change of the median, which is what people see beside it. The interval is that of Hodges and
/// Lehmann, of the median of all ratios between a value of each; where it does not reach the change of the median, it is extended to it.
/// Where values are not positive, differences over the median of `before` take the place of ratios. `None` for an empty set, or a median
/// of zero.
pub fn relative_shift(tests: &mut RankTests, before: &[f64], after: &[f64]) -> Option<Shift> {
    let outside_all = tests.outside(before.len(), after.len(), CONFIDENCE);
    let share = as_float(outside_all) / (as_float(before.len()) * as_float(after.len()));
    let (old, new) = (median(before)?, median(after)?);
    let (before, after) = (thinned(before), thinned(after));
    let scale = old.abs();
    let are_positive = before.iter().chain(&after).all(|value| *value > 0.0);
    if scale == 0.0 {
        return None;
    }
    let change = |from: f64, to: f64| if are_positive { to / from - 1.0 } else { (to - from) / scale };
    let mut changes: Vec<f64> = after.iter().flat_map(|to| before.iter().map(move |from| change(*from, *to))).collect();
    changes.sort_unstable_by(f64::total_cmp);
    let outside = floor(share * as_float(changes.len()) + 1e-9).saturating_sub(1);
    let (low, high) = (*changes.get(outside)?, *changes.get(changes.len() - 1 - outside)?);
    let estimate = relative_change(old, new);
    Some(Shift { estimate, low: low.min(estimate), high: high.max(estimate) })
}

/// At most so many values, evenly over the order of their sizes.
fn thinned(values: &[f64]) -> Vec<f64> {
    if values.len() <= THINNED {
        return values.to_vec();
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (0..THINNED).map(|place| sorted[(2 * place + 1) * sorted.len() / (2 * THINNED)]).collect()
}

/// The relative change of a level: `after / before - 1`, and over the size of `before` where it is not positive. Infinite if
/// something came from zero.
pub fn relative_change(before: f64, after: f64) -> f64 {
    let difference = after - before;
    if difference == 0.0 { 0.0 } else { difference / before.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(before: &[f64], after: &[f64]) -> Option<Shift> {
        relative_shift(&mut RankTests::default(), before, after)
    }

    #[test]
    fn a_shift_is_that_of_the_medians_in_an_interval_that_holds_it() {
        let before = [100.0, 102.0, 98.0, 101.0, 99.0];
        let after = before.map(|value| value * 0.9);
        let Shift { estimate, low, high } = shift(&before, &after).unwrap();
        assert!((estimate + 0.1).abs() < 1e-3, "{estimate}");
        assert!(low < -0.1 && -0.1 < high && high < -0.08 && low > -0.12, "{low} {high}");
        // Two modes: the median of all ratios is 1.
        let (before, after) = ([10.0, 10.0, 10.0, 20.0, 20.0], [10.0, 10.0, 20.0, 20.0, 20.0]);
        let Shift { estimate, low, high } = shift(&before, &after).unwrap();
        assert!((estimate - 1.0).abs() < 1e-12 && low <= 0.0 && high >= 1.0, "{estimate} {low} {high}");
    }

    #[test]
    fn values_that_are_not_positive_are_compared_by_differences() {
        let Shift { estimate, .. } = shift(&[-10.0, -11.0, -9.0], &[-12.0, -13.0, -11.0]).unwrap();
        assert!((estimate + 0.2).abs() < 1e-12, "{estimate}");
        assert_eq!(shift(&[0.0, 0.0], &[1.0]), None);
        assert_eq!(shift(&[], &[1.0]), None);
        assert_eq!((relative_change(-2.0, -3.0), relative_change(0.0, 0.0)), (-0.5, 0.0));
        assert!(relative_change(0.0, 1.0).is_infinite());
    }

    #[test]
    fn large_sets_are_thinned_out() {
        let before: Vec<f64> = (0..2000).map(|i| 1000.0 + f64::from(i * 37 % 2000) / 20.0).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 1.03).collect();
        let Shift { estimate, low, high } = shift(&before, &after).unwrap();
        assert!((estimate - 0.03).abs() < 1e-3 && low > 0.025 && high < 0.035, "{estimate} {low} {high}");
    }
}
