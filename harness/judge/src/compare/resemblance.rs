//! Measures how much samples resemble their neighbours in time, and what a probability is worth then.
//!
//! A rank test takes all orders of the values for equally likely. Where a night resembles the one before, both sides of a comparison
//! are further apart by chance.

use crate::stats::{
    normal,
    trend::{NEIGHBOURS, rank_autocorrelation},
};
use muster_core::stats::as_float;
use std::collections::BTreeMap;

/// The autocorrelation of series in the order of time. A step between the halves of a series is none: a step leaves little within the
/// halves, autocorrelation more than half of what the whole series show.
pub(super) fn autocorrelation(series: &[Vec<f64>]) -> f64 {
    let halves = series.iter().flat_map(|values| match values.len() / 2 {
        half if half >= LEAST_HALF => vec![values[..half].to_vec(), values[half..].to_vec()],
        _ => vec![values.clone()],
    });
    let (whole, within) = (resemblance(series), resemblance(&halves.collect::<Vec<_>>()));
    if within < whole / 2.0 { within } else { whole }
}

/// Halves of fewer values say too little: wrong claims become more frequent.
const LEAST_HALF: usize = 7;

/// The autocorrelation with which first-order autoregressive series of these lengths have, on average, the rank autocorrelation of
/// these. One short series says little, many say enough.
fn resemblance(series: &[Vec<f64>]) -> f64 {
    let mut by_length: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for values in series {
        let last = &values[values.len().saturating_sub(NEIGHBOURS)..];
        if let Some(phi) = rank_autocorrelation(last) {
            let (count, sum) = by_length.entry(last.len()).or_default();
            (*count, *sum) = (*count + 1.0, *sum + phi);
        }
    }
    // The variance of the rank autocorrelation of n values in random order is about 1/n: n is the weight.
    let observed: f64 = by_length.iter().map(|(n, (_, sum))| as_float(*n) * sum).sum();
    let expected = |phi: f64| by_length.iter().map(|(n, (count, _))| as_float(*n) * count * expected(*n, phi)).sum::<f64>();
    let steps = (0..LARGEST).map(|percent| f64::from(percent) / 100.0);
    steps.take_while(|phi| expected(*phi) < observed).last().unwrap_or(0.0)
}

/// In percent: no autocorrelation is taken for more.
const LARGEST: u32 = 96;

/// The mean autocorrelation of `n` values of a first-order autoregressive series about their own mean: the ratio of the expectations.
/// -1/n for independent values. The mean of ratios of ranks is smaller: .42 is found for .5 with 14 nights, .29 with five.
fn expected(n: usize, phi: f64) -> f64 {
    let n = as_float(n);
    let power = libm::pow(phi, n);
    // n times the covariance of the first value with the mean, and n times the variance of the mean.
    let first = (1.0 - power) / (1.0 - phi);
    let mean = (1.0 + phi - 2.0 * phi * first / n) / (1.0 - phi);
    let products = (n - 1.0) * phi - 2.0 * mean + 2.0 * first / n + (n - 1.0) * mean / n;
    products / (n - mean)
}

/// The two-sided probability of a rank test whose samples say `tempering` times as much as independent ones: the variance of its
/// statistic is so many times larger.
pub(super) fn tempered(p: f64, tempering: f64) -> f64 {
    if tempering < 1.0 { 2.0 * normal::cumulative(tempering.sqrt() * normal::quantile(p / 2.0)) } else { p }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::tests::{differences, pair},
        sample::{Random, Spread, World, WorldSpec},
    };
    use muster_core::query::{answers::Difference, pairs::Pair};

    /// 100 metrics over 28 nights that resemble their neighbours, the first fortnight against the second.
    fn fortnights(spec: WorldSpec) -> Vec<Pair> {
        let world = World::new(&WorldSpec { metrics: 100, nights: 28, at: 14, ..spec });
        world.values.iter().map(|values| pair(vec![values[..14].to_vec()], vec![values[14..].to_vec()], None)).collect()
    }

    fn claims(pairs: &[Pair]) -> usize {
        differences(pairs).iter().filter(|difference| **difference == Difference::Changed).count()
    }

    #[test]
    fn nights_that_resemble_their_neighbours_raise_no_claims_and_losses_are_found() {
        for phi in [0.3, 0.5] {
            let world = |seed| WorldSpec { seed, phi, spread: Spread::Fixed(0.05), ..WorldSpec::default() };
            let wrong = (1..=40).filter(|seed| claims(&fortnights(world(*seed))) > 0).count();
            assert!(wrong <= 5, "{phi}: claims in {wrong} of 40 worlds");
            let moved = |seed| WorldSpec { moved: 20, spread: Spread::Fixed(0.01), ..world(seed) };
            let found: usize = (1..=10).map(|seed| claims(&fortnights(moved(seed))[..])).sum();
            assert!(found >= 180, "{phi}: {found} of 200 found");
        }
    }

    #[test]
    fn the_autocorrelation_of_short_samples_is_found() {
        for (nights, phi) in [(14, 0.0), (14, 0.5), (40, 0.5)] {
            let world = World::new(&WorldSpec { metrics: 2000, nights, phi, dips: 0.0, ..WorldSpec::default() });
            let found = autocorrelation(&world.values);
            assert!((found - phi).abs() < 0.1, "{nights} nights: {found} for {phi}");
        }
        assert!(autocorrelation(&[vec![1.0; 9], vec![1.0, 2.0], vec![]]) < 0.01);
        assert!(autocorrelation(&[(0..40).map(f64::from).collect()]) > 0.9);
    }

    #[test]
    fn a_loss_of_half_is_claimed_whatever_few_values_say_of_their_order() {
        let rows: [(&[&[f64]], &[f64]); 3] = [
            (&[&[1000.0; 4], &[2000.0; 4]], &[500.0; 4]),
            (&[&[1000.0; 8]], &[500.0; 4]),
            (&[&[950.0, 950.0, 950.0, 1000.0, 1000.0, 1000.0, 1000.0]], &[500.0; 7]),
        ];
        let mut random = Random::new(1);
        let mut noisy = |levels: &[f64]| levels.iter().map(|level| level * (1.0 + 0.005 * random.normal())).collect::<Vec<_>>();
        for (old, new) in rows {
            for _ in 0..200 {
                let pair = pair(old.iter().map(|levels| noisy(levels)).collect(), vec![noisy(new)], None);
                assert_eq!(claims(std::slice::from_ref(&pair)), 1, "{pair:?}");
            }
        }
    }

    #[test]
    fn series_are_measured_each_by_itself_and_a_step_between_halves_does_not_count() {
        let mut world = World::new(&WorldSpec { metrics: 100, nights: 14, dips: 0.0, ..WorldSpec::default() });
        for values in &mut world.values {
            values[..7].iter_mut().for_each(|value| *value *= 2.0);
        }
        assert!(autocorrelation(&world.values) < 0.1, "{}", autocorrelation(&world.values));
        let alternating = vec![vec![1.0, 2.0, 1.0, 2.0], vec![5.0, 6.0, 5.0, 6.0]];
        assert!(autocorrelation(&alternating) < 0.01);
        assert!(autocorrelation(&[alternating.concat()]) > 0.5);
    }

    #[test]
    fn a_probability_is_worth_less_where_samples_resemble_each_other() {
        // 1.96 standard deviations are 1.13 of them if the variance is three times as large.
        let rows = [(0.05, 1.0, 0.05), (0.05, 1.0 / 3.0, 0.257_79), (1.0, 0.5, 1.0), (0.0, 0.5, 0.0)];
        for (p, tempering, expected) in rows {
            assert!((tempered(p, tempering) - expected).abs() < 1e-4, "{p} {tempering}: {}", tempered(p, tempering));
        }
    }
}
