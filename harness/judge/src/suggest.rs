//! References from figures: the median, and bounds so many standard deviations from it. A robust spread would do worse: of five runs
//! it is often near zero, and of noise with a long tail it sees only the short one.

use crate::night::{Change, ChangeId, ChangeState, Night, Word};
use muster_core::{
    query::answers::{NoReference, SuggestedReference},
    rules::perf::Direction,
    stats::{as_float, median, percentile},
};
use std::ops::RangeInclusive;

/// A bound is so many standard deviations from the median. With fewer, a healthy machine does not keep the bounds of five runs; with
/// more, they do not find a loss of ten.
pub const DEVIATIONS: f64 = 5.5;
/// No bound is nearer, as a share of the value: figures that are equal do not show how much they vary.
pub const NEAREST: f64 = 0.02;
/// Fewer runs say too little of how much they vary.
const FEWEST: usize = 5;

/// From so many runs on, which share of the runs of a healthy machine misses one such bound at most: with normal noise, and with
/// uniform, exponential and Student's noise (t3). Measured by `tests/references.rs`.
const EXPECTED: [(usize, [f64; 2]); 4] =
    [(5, [0.003, 0.026]), (10, [0.0004, 0.012]), (25, [0.0001, 0.006]), (100, [0.0001, 0.003])];

/// The settings of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuggestSettings {
    /// The percentiles that become the bounds in place of standard deviations: the lower one 1 to 49, the upper one 51 to 99.
    pub lower: Option<u8>,
    pub upper: Option<u8>,
    /// The least number of runs, whatever else is needed.
    pub min_runs: usize,
}

/// A side of the value, -1 or 1, with its percentile.
type Side = (f64, Option<u8>);

/// The reference that figures suggest; all of them are finite. A direction leaves the better side open.
///
/// # Errors
/// Why there is none. A percentile of 5 needs 20 runs.
pub fn suggest(
    values: &[f64],
    direction: Option<Direction>,
    settings: SuggestSettings,
) -> Result<SuggestedReference, NoReference> {
    let lower = (direction != Some(Direction::Lower)).then_some((-1.0, settings.lower));
    let upper = (direction != Some(Direction::Higher)).then_some((1.0, settings.upper));
    let of_percentiles =
        [lower, upper].into_iter().flatten().filter_map(beyond).map(|percent| 100_usize.div_ceil(percent.clamp(1, 50).into()));
    let needed = of_percentiles.fold(settings.min_runs.max(FEWEST), usize::max);
    let value = median(values).filter(|_| values.len() >= needed).ok_or(NoReference::TooFewRuns { needed })?;
    let scale = if value == 0.0 { 1.0 } else { value.abs() };
    let deviations: Vec<f64> = values.iter().map(|one| (one - value) / scale).collect();
    let spread = (deviations.iter().map(|one| one * one).sum::<f64>() / as_float(values.len() - 1)).sqrt();
    let [used_lower, used_upper] = [lower, upper].map(|side| side.map(|side| used(side, &deviations)));
    let bound = |side| bound(side, value, &deviations, spread);
    let (low, high) = (used_lower.map(bound).transpose()?, used_upper.map(bound).transpose()?);
    let is_outside = |one: &&f64| low.is_some_and(|low| **one < low) || high.is_some_and(|high| high < **one);
    Ok(SuggestedReference {
        value,
        lower: low,
        upper: high,
        replaced: [lower != used_lower, upper != used_upper],
        spread,
        furthest: deviations.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default(),
        failed: deviations.iter().filter(is_outside).count(),
        expected: [used_lower, used_upper]
            .into_iter()
            .flatten()
            .map(|side| expected(side, values.len()))
            .fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d]),
    })
}

/// How many hundredths of the figures lie beyond the percentile of a side.
fn beyond((side, percent): Side) -> Option<u8> {
    percent.map(|percent| if side < 0.0 { percent } else { 100_u8.saturating_sub(percent) })
}

/// A side without a percentile that is the value itself: that is no bound.
fn used((side, percent): Side, deviations: &[f64]) -> Side {
    (side, percent.filter(|percent| of_percent(*percent, deviations) * side > 0.0))
}

fn of_percent(percent: u8, deviations: &[f64]) -> f64 {
    percentile(deviations, f64::from(percent) / 100.0).unwrap_or_default()
}

/// A bound as a check writes it: a share of the value, or absolute around zero; never the value itself.
fn bound((side, percent): Side, value: f64, deviations: &[f64], spread: f64) -> Result<f64, NoReference> {
    let nearest = if value == 0.0 { 0.0 } else { NEAREST };
    let width = percent.map_or(nearest.max(DEVIATIONS * spread), |percent| of_percent(percent, deviations) * side);
    match rounded_up(width) {
        0.0 => Err(NoReference::OnlyZeros),
        // On the side of zero a bound of the whole value lets everything pass.
        width if !width.is_finite() || (side * value < 0.0 && width >= 1.0) => Err(NoReference::TooNoisy),
        width => Ok(side * width),
    }
}

/// Three digits: none of the figures that were within comes to lie outside.
fn rounded_up(size: f64) -> f64 {
    if size == 0.0 {
        return 0.0;
    }
    let scale = libm::pow(10.0, 2.0 - libm::floor(libm::log10(size)));
    libm::ceil(size * scale - 1e-9) / scale
}

/// The share of runs beyond one bound. Beyond a percentile it is about the same for any noise: a new run is as likely in each of the
/// gaps between the old ones.
fn expected(side: Side, runs: usize) -> [f64; 2] {
    match beyond(side) {
        Some(percent) => [(f64::from(percent) / 100.0 * as_float(runs - 1) + 1.0) / as_float(runs + 1); 2],
        None => EXPECTED.iter().rfind(|(from, _)| *from <= runs).map_or([1.0; 2], |(_, expected)| *expected),
    }
}

/// The nights that are of another level than the present one, each part with the word and the name of its change.
pub fn other_levels(
    changes: &[Change],
    direction: Option<Direction>,
    min_effect: f64,
) -> Vec<(&'static str, ChangeId, RangeInclusive<Night>)> {
    let (mut before, mut others) = (None, Vec::new());
    for change in changes {
        let mut now = change.clone();
        now.turn_by(direction);
        let (word, since) = (now.word().as_str(), now.since_interval.0);
        let begins = |word| Some((word, now.id, Night::MIN..=now.since_interval.1.before(1)));
        match now.state {
            ChangeState::Dismissed { until, .. } => others.push(("dismissed", now.id, since..=until)),
            _ if now.is_gone(direction, min_effect) => {}
            ChangeState::Recovered { since: back, .. } => others.push((word, now.id, since..=back.before(1))),
            // The level before it is the one that is to be, whatever came later.
            ChangeState::Open if now.is_worse() => {
                others.push((word, now.id, since..=Night::MAX));
                break;
            }
            ChangeState::Open => before = begins(word),
            ChangeState::Accepted { .. } => before = begins(Word::Accepted.as_str()),
            // Unless its basis is another, the metric has moved on from it: it did not go back to the level before.
            ChangeState::Superseded { .. } => before = begins("superseded"),
        }
    }
    before.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::night::Turn;

    const DEFAULT: SuggestSettings = SuggestSettings { lower: None, upper: None, min_runs: 5 };
    const PERCENTILES: SuggestSettings = SuggestSettings { lower: Some(5), upper: Some(95), min_runs: 1 };
    const HIGHER: Option<Direction> = Some(Direction::Higher);
    const LOWER: Option<Direction> = Some(Direction::Lower);

    fn hundred(scale: f64, offset: f64) -> Vec<f64> {
        (0..=100).map(|n| offset + scale * f64::from(n)).collect()
    }

    /// Four of five lie this far from the value: that is the standard deviation.
    fn five(value: f64, spread: f64) -> Vec<f64> {
        [-1.0, 1.0, 0.0, -1.0, 1.0].map(|one| value + one * spread).to_vec()
    }

    #[test]
    fn the_median_and_its_bounds_become_a_reference() {
        let rows = [
            (five(100.0, 1.0), HIGHER, DEFAULT, (100.0, Some(-0.055), None)),
            (five(100.0, 1.0), LOWER, DEFAULT, (100.0, None, Some(0.055))),
            (five(-100.0, 1.0), None, DEFAULT, (-100.0, Some(-0.055), Some(0.055))),
            (five(0.0, 1.0), None, DEFAULT, (0.0, Some(-5.5), Some(5.5))),
            // Away from zero a loss may be more than the value.
            (five(1.0, 0.5), LOWER, DEFAULT, (1.0, None, Some(2.75))),
            (five(7.0, 0.0), None, DEFAULT, (7.0, Some(-NEAREST), Some(NEAREST))),
            (hundred(1.0, 950.0), HIGHER, PERCENTILES, (1000.0, Some(-0.045), None)),
            (hundred(1.0, 950.0), LOWER, PERCENTILES, (1000.0, None, Some(0.045))),
            (hundred(1.0, -1050.0), None, PERCENTILES, (-1000.0, Some(-0.045), Some(0.045))),
            (hundred(1.0, -50.0), None, PERCENTILES, (0.0, Some(-45.0), Some(45.0))),
            // A percentile that is the median is no bound.
            (vec![7.0; 40], None, PERCENTILES, (7.0, Some(-NEAREST), Some(NEAREST))),
        ];
        for (values, direction, settings, expected) in rows {
            let of = suggest(&values, direction, settings).expect("enough");
            let close = |a: Option<f64>, b: Option<f64>| a.zip(b).map_or(a == b, |(a, b)| (a - b).abs() < 1e-9);
            assert!(
                close(Some(of.value), Some(expected.0)) && close(of.lower, expected.1) && close(of.upper, expected.2),
                "{of:?} {expected:?}"
            );
        }
    }

    #[test]
    fn why_there_is_no_reference_is_said() {
        let few = |needed| Some(NoReference::TooFewRuns { needed });
        let noisy = Some(NoReference::TooNoisy);
        let rows = [
            (vec![], DEFAULT, HIGHER, few(5)),
            (vec![1.0; 4], SuggestSettings { min_runs: 1, ..DEFAULT }, HIGHER, few(5)),
            (vec![1.0; 29], SuggestSettings { min_runs: 30, ..DEFAULT }, HIGHER, few(30)),
            (vec![1.0; 19], PERCENTILES, HIGHER, few(20)),
            (vec![1.0; 20], PERCENTILES, HIGHER, None),
            (vec![1.0; 99], SuggestSettings { lower: Some(1), ..PERCENTILES }, HIGHER, few(100)),
            (vec![0.0; 40], PERCENTILES, LOWER, Some(NoReference::OnlyZeros)),
            (five(1.0, 0.4), DEFAULT, None, noisy),
            (five(1.0, 0.4), DEFAULT, LOWER, None),
            (five(-1.0, 0.4), DEFAULT, LOWER, noisy),
            (vec![f64::MAX, f64::MIN, 1.0, 1.0, 1.0], DEFAULT, LOWER, noisy),
        ];
        for (values, settings, direction, why) in rows {
            assert_eq!(suggest(&values, direction, settings).err(), why, "{values:?} {direction:?}");
        }
    }

    #[test]
    fn what_the_stored_runs_would_have_done_and_new_ones_may_do_is_said() {
        let of = suggest(&[vec![100.0; 99], vec![60.0]].concat(), None, DEFAULT).unwrap();
        assert_eq!((of.failed, of.lower, of.expected), (1, Some(-0.222), [0.0002, 0.006]));
        assert!((of.furthest + 0.4).abs() < 1e-9 && (of.spread - 0.0402).abs() < 1e-4, "{of:?}");
    }

    #[test]
    fn a_percentile_that_is_the_median_is_replaced_and_new_runs_fail_as_of_standard_deviations() {
        let of = suggest(&[vec![100.0; 37], vec![90.0, 91.0, 92.0]].concat(), None, PERCENTILES).unwrap();
        let of_lower = expected((-1.0, Some(5)), 40);
        assert_eq!((of.replaced, of.expected), ([false, true], [of_lower[0] + 0.0001, of_lower[1] + 0.006]), "{of:?}");
        let default = suggest(&[100.0; 40], None, DEFAULT).unwrap();
        let coarse = suggest(&[100.0; 40], None, PERCENTILES).unwrap();
        assert_eq!(coarse, SuggestedReference { replaced: [true; 2], ..default });
    }

    #[test]
    fn only_nights_of_the_present_level_count() {
        use ChangeState::{Accepted, Dismissed, Open, Recovered, Superseded};
        use Turn::{Better, Lower, Worse};
        let found = Night(30);
        let recovered = Recovered { since: Night(20), found };
        let dismissed = Dismissed { until: Night(15), found };
        let change = |since: i32, turn, after, state| Change {
            id: ChangeId { metric: 1, opened: found },
            since: Night(since),
            since_interval: (Night(since - 1), Night(since + 1)),
            turn,
            before: 1.0,
            after,
            effect: None,
            evidence: 1e4,
            tempering: 1.0,
            needed_alone: 2400.0,
            shape: None,
            state,
        };
        let (all, none) = (i32::MAX, i32::MIN);
        let rows = [
            (HIGHER, vec![change(10, Worse, 0.9, Open)], vec![("regressed", 9, all)]),
            (HIGHER, vec![change(10, Worse, 0.9, recovered)], vec![("regressed", 9, 19)]),
            (HIGHER, vec![change(10, Better, 1.1, recovered)], vec![("improved", 9, 19)]),
            (HIGHER, vec![change(10, Worse, 0.9, dismissed)], vec![("dismissed", 9, 15)]),
            (HIGHER, vec![change(10, Worse, 0.9, Accepted { found })], vec![("accepted", none, 10)]),
            (HIGHER, vec![change(10, Better, 1.1, Open)], vec![("improved", none, 10)]),
            (None, vec![change(10, Lower, 0.9, Open)], vec![("changed", none, 10)]),
            // Its variable says by now that lower is worse.
            (HIGHER, vec![change(10, Lower, 0.9, Open)], vec![("regressed", 9, all)]),
            // Less than the smallest change, and levels that have passed each other.
            (HIGHER, vec![change(10, Worse, 0.99, Open), change(12, Better, 1.01, Open)], vec![]),
            (HIGHER, vec![change(10, Worse, 1.1, Open), change(12, Better, 0.9, Accepted { found })], vec![]),
            // The last level counts, without what lies within it; a part of a way back from a worse one is none.
            (
                HIGHER,
                vec![change(5, Worse, 0.9, Accepted { found }), change(10, Better, 1.1, Open), change(20, Worse, 0.9, Open)],
                vec![("improved", none, 10), ("regressed", 19, all)],
            ),
            (HIGHER, vec![change(10, Worse, 0.8, Open), change(20, Better, 1.1, Open)], vec![("regressed", 9, all)]),
            (
                HIGHER,
                vec![change(10, Better, 1.2, Superseded { found }), change(20, Worse, 0.8, Open)],
                vec![("superseded", none, 10), ("regressed", 19, all)],
            ),
        ];
        for (direction, changes, expected) in rows {
            let found = other_levels(&changes, direction, 0.02);
            let found: Vec<_> = found.iter().map(|(word, _, nights)| (*word, nights.start().0, nights.end().0)).collect();
            assert_eq!(found, expected, "{changes:?}");
        }
    }

    #[test]
    fn a_bound_is_rounded_away_from_the_value() {
        assert_eq!((rounded_up(0.021_34), rounded_up(0.0), rounded_up(1.234)), (0.0214, 0.0, 1.24));
    }
}
