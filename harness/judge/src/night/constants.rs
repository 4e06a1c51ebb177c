//! Computes what constant metrics of a system say of each other.
//!
//! The few values of one constant metric cannot show how rare another value is. Together such metrics can: if each of their `N` values
//! could have been another one as likely as the next `j` of one metric, and only those are, then all places of the `j` were equally
//! likely, and this one has a probability of at most 1 / C(N + j, j). The inverse, the evidence, has a mean of at most 1. Metrics
//! that differ at the same time may have one cause: `N` is divided by their number. As soon as one that is mostly constant had
//! another value or a change in these nights, nothing is said: such values may come together.

use crate::night::{
    evidence::{LONGEST_BASELINE, STARTS},
    gaps::{SIDES, Side},
};
use muster_core::stats::{as_float, median};

/// A metric needs so many equal values of its own.
const LEAST_EQUAL: usize = 10;
/// One other value says nothing: it may be a dip.
const LEAST_OTHERS: usize = 2;
/// The weight of this evidence beside that of the metric's own values, which weigh 1.
const WEIGHT: f64 = 0.05;

/// The constant metrics of a system.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Constants {
    /// The equal values of all of them.
    values: usize,
    /// The number of metrics whose last values are others.
    differing: usize,
    /// One of them was elsewhere before.
    has_left: bool,
}

impl Constants {
    /// Reads the series of metrics, each in the order of its nights. `has_changed`: a change of it is open or lately over.
    pub(super) fn of<'a>(series: impl Iterator<Item = (&'a [f64], bool)>) -> Self {
        let known = series.filter_map(|(values, has_changed)| Some((Series::of(values)?, has_changed)));
        known.fold(Self::default(), |sum, (one, has_changed)| Self {
            values: sum.values + one.equal,
            differing: sum.differing + usize::from(one.since > 0),
            has_left: sum.has_left || one.has_left || has_changed,
        })
    }

    /// The evidence that a series, lower values being worse, has been at another level since a place in it.
    pub(super) fn evidence(&self, values: &[f64], tempering: f64) -> Option<(usize, f64)> {
        let series = Series::of(values).filter(|series| series.equal >= LEAST_EQUAL && !self.has_left)?;
        if !(LEAST_OTHERS..=STARTS).contains(&series.since) {
            return None;
        }
        let count = as_float(self.values) / as_float(self.differing.max(1));
        let log: f64 = (1..=series.since).map(as_float).map(|i| libm::log((count + i) / i)).sum();
        let of_side = SIDES.iter().find(|(side, _)| *side == series.side).map_or(0.0, |(_, prior)| *prior);
        Some((values.len() - series.since, WEIGHT * of_side * libm::exp(tempering * log)))
    }
}

/// A series most of whose values are equal.
struct Series {
    /// The number of equal values, at most a baseline.
    equal: usize,
    /// There are others among them.
    has_left: bool,
    /// The number of last values that all lie on the same side of the equal ones.
    since: usize,
    side: Side,
}

#[allow(clippy::float_cmp, reason = "a constant is exactly equal")]
impl Series {
    /// `None`: no value makes up more than half of them.
    fn of(values: &[f64]) -> Option<Self> {
        let (level, last) = (median(values)?, *values.last()?);
        let equal = values.iter().filter(|value| **value == level).count();
        let side = if last < level { Side::Worse } else { Side::Better };
        let is_beyond = |value: &&f64| if side == Side::Worse { **value < level } else { **value > level };
        let since = values.iter().rev().take_while(is_beyond).count();
        let has_left = equal + since < values.len();
        (2 * equal > values.len()).then_some(Self { equal: equal.min(LONGEST_BASELINE), has_left, since, side })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    fn series(before: usize, since: &[f64]) -> Vec<f64> {
        [&vec![10.0; before], since].concat()
    }

    #[test]
    fn evidence_needs_equal_values_and_two_others_on_one_side() {
        let all = Constants { values: 99, differing: 1, has_left: false };
        let of = |before, since: &[f64]| all.evidence(&series(before, since), 1.0);
        for (since, of_side) in [([9.0, 8.0], 0.75), ([11.0, 12.0], 0.25)] {
            let (place, said) = of(10, &since).expect("evidence");
            let expected = WEIGHT * of_side * 100.0 * 101.0 / 2.0;
            assert!(place == 10 && (said / expected - 1.0).abs() < 1e-9, "{since:?}: {place} {said}");
        }
        for (before, since) in [(9, &[9.0, 9.0][..]), (10, &[9.0]), (10, &[9.0, 10.0]), (10, &[9.0, 11.0]), (25, &[9.0; 22])] {
            assert_eq!(of(before, since), None, "{before} {since:?}");
        }
    }

    #[test]
    fn metrics_that_differ_together_count_as_one_and_any_other_value_before_ends_the_evidence() {
        let (steady, moved, dipped) = (series(20, &[]), series(20, &[9.0, 9.0]), series(20, &[9.0, 10.0]));
        let noisy: Vec<f64> = (0..20).map(f64::from).collect();
        let of = |others: &[&[f64]], has_changed| {
            let all = Constants::of(others.iter().map(|values| (*values, has_changed)).chain([(&moved[..], false)]));
            all.evidence(&moved, 1.0).map(|(_, said)| said)
        };
        let alone = of(&[], false).expect("evidence");
        let two = of(&[&steady], false).expect("evidence");
        assert!((alone / two - 21.0 * 22.0 / (41.0 * 42.0)).abs() < 1e-9, "{alone} {two}");
        assert_eq!([of(&[&noisy], true), of(&[&moved], false)], [Some(alone); 2]);
        assert_eq!([of(&[&dipped], false), of(&[&steady], true)], [None; 2]);
    }

    #[test]
    fn the_mean_over_values_that_may_be_others_is_at_most_the_weight() {
        let (mut random, count) = (Random::new(4), 20_000);
        for (metrics, chance) in [(1, 0.1), (4, 0.02), (4, 0.1)] {
            let mut sum = 0.0;
            for _ in 0..count {
                let mut night = || if random.chance(chance) { 9.0 } else { 10.0 };
                let all: Vec<Vec<f64>> = (0..metrics).map(|_| (0..12).map(|_| night()).collect()).collect();
                sum += Constants::of(all.iter().map(|values| (&values[..], false)))
                    .evidence(&all[0], 1.0)
                    .map_or(0.0, |(_, said)| said);
            }
            assert!(sum / f64::from(count) <= WEIGHT, "{metrics} {chance}: {}", sum / f64::from(count));
        }
    }
}
