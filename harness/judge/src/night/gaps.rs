//! The probabilities of a value's gap in the baseline, without a change and with each of twelve.
//!
//! `n` values leave `n + 1` gaps: below the lowest, between neighbours, above the highest. If nothing has changed, a new value
//! falls into each of them with the same probability, whatever the noise looks like. An alternative says how a change of some
//! size moves the probability towards one end. Lower is worse here: the caller turns values whose lower ones are better.

use crate::{
    night::evidence::{LONGEST_BASELINE, SHORTEST_BASELINE},
    stats::normal,
};
use muster_core::stats::as_float;
use std::sync::OnceLock;

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Worse,
    Better,
}

/// A change that is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    pub side: Side,
    /// The size in standard deviations of the baseline.
    pub sigmas: f64,
    /// The number of values at the end of the baseline towards which it goes that are dips, which say nothing of the level.
    pub dips: usize,
    /// The probability before anything is known; the sum over all is 1.
    pub prior: f64,
}

/// The number of alternatives.
pub const ALTERNATIVES: usize = 12;

pub(super) const SIDES: [(Side, f64); 2] = [(Side::Worse, 0.75), (Side::Better, 0.25)];
const SIGMAS: [(f64, f64); 2] = [(2.0, 0.5), (3.5, 0.5)];
const DIPS: [(usize, f64); 3] = [(0, 0.60), (1, 0.25), (2, 0.15)];
/// At most every fifth value of a baseline is a dip.
const VALUES_A_DIP: usize = 5;
/// With a change, this much of the probability lies among the dips.
const AMONG_DIPS: f64 = 0.03;
/// And this much is spread evenly: no single value says more than 20 to 1 against a change.
const EVEN: f64 = 0.05;

/// The probabilities of the gaps of a baseline.
pub(super) struct Gaps {
    pub(super) alternatives: [Alternative; ALTERNATIVES],
    /// For each gap, the natural logarithm of its probability with each alternative.
    pub(super) logs: Vec<[f64; ALTERNATIVES]>,
}

/// Made when they are needed: nearly all baselines are the longest.
static GAPS: [OnceLock<Gaps>; LONGEST_BASELINE - SHORTEST_BASELINE + 1] =
    [const { OnceLock::new() }; LONGEST_BASELINE - SHORTEST_BASELINE + 1];

/// Those of a baseline of `n` values; shorter and longer ones have none.
pub(super) fn of_baseline(n: usize) -> Option<&'static Gaps> {
    Some(GAPS.get(n.checked_sub(SHORTEST_BASELINE)?)?.get_or_init(|| Gaps::new(n)))
}

impl Gaps {
    fn new(n: usize) -> Self {
        let alternatives = alternatives(n);
        let mut logs = vec![[0.0; ALTERNATIVES]; n + 1];
        for (place, alternative) in alternatives.iter().enumerate() {
            for (gap, probability) in probabilities(n, *alternative).into_iter().enumerate() {
                logs[gap][place] = libm::log(probability);
            }
        }
        Self { alternatives, logs }
    }
}

/// All that are looked for with a baseline of `n` values.
fn alternatives(n: usize) -> [Alternative; ALTERNATIVES] {
    let is_possible = |dips: usize| dips * VALUES_A_DIP <= n;
    let possible: f64 = DIPS.iter().filter(|(dips, _)| is_possible(*dips)).map(|(_, prior)| prior).sum();
    let mut all = [Alternative { side: Side::Worse, sigmas: 0.0, dips: 0, prior: 0.0 }; ALTERNATIVES];
    let combinations =
        SIDES.iter().flat_map(|side| SIGMAS.iter().flat_map(move |sigmas| DIPS.iter().map(move |dips| (side, sigmas, dips))));
    for (slot, ((side, of_side), (sigmas, of_sigmas), (dips, of_dips))) in all.iter_mut().zip(combinations) {
        let of_dips = if is_possible(*dips) { of_dips / possible } else { 0.0 };
        // One that is not possible keeps a place and no weight.
        let dips = if is_possible(*dips) { *dips } else { 0 };
        *slot = Alternative { side: *side, sigmas: *sigmas, dips, prior: of_side * of_sigmas * of_dips };
    }
    all
}

/// How likely a value falls into each gap of a baseline of `n` values.
fn probabilities(n: usize, alternative: Alternative) -> Vec<f64> {
    let Alternative { side, sigmas, dips, .. } = alternative;
    let kept = n - dips;
    // Up to the upper end of gap `i` of the values that are no dips, whose expected places are quantiles of the normal distribution.
    let up_to = |end: usize| normal::cumulative(normal::quantile(as_float(end) / as_float(kept + 1)) + sigmas);
    let main = (0..=kept).map(|gap| up_to(gap + 1) - up_to(gap));
    let of_level = if dips == 0 { 1.0 } else { 1.0 - AMONG_DIPS };
    let of_dip = if dips == 0 { 0.0 } else { AMONG_DIPS / as_float(dips) };
    let all = std::iter::repeat_n(of_dip, dips).chain(main.map(|main| of_level * main));
    let mut all: Vec<f64> = all.map(|q| (1.0 - EVEN) * q + EVEN / as_float(n + 1)).collect();
    match side {
        Side::Worse => {}
        Side::Better => all.reverse(),
    }
    all
}

/// Returns the factor by which a value in `gap` is more likely with an alternative than without a change: it comes after `before`
/// others since the supposed change, `same` of which fell into that gap. `None` for a baseline, a gap or an alternative that does
/// not exist. For [`evidence`](super::evidence()) the same is computed with logarithms.
pub fn factor(n: usize, alternative: usize, gap: usize, before: usize, same: usize) -> Option<f64> {
    let log = of_baseline(n)?.logs.get(gap)?.get(alternative)?;
    Some(as_float(n + 1 + before) * libm::exp(*log) / as_float(same + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_each_factor_over_an_even_gap_is_one() {
        for n in SHORTEST_BASELINE..=LONGEST_BASELINE {
            for alternative in 0..ALTERNATIVES {
                let factors = (0..=n).map(|gap| factor(n, alternative, gap, 0, 0).unwrap());
                let mean = factors.sum::<f64>() / as_float(n + 1);
                assert!((mean - 1.0).abs() < 1e-12, "n {n}, alternative {alternative}: {mean}");
            }
            let priors: f64 = of_baseline(n).unwrap().alternatives.iter().map(|alternative| alternative.prior).sum();
            assert!((priors - 1.0).abs() < 1e-12, "n {n}: {priors}");
        }
        assert!(of_baseline(4).is_none() && of_baseline(61).is_none());
    }

    #[test]
    fn a_later_value_has_a_mean_of_one_given_those_before() {
        // Of `before` values, those in a gap make it likelier that the next falls there, too.
        let (n, counts) = (9, [2_usize, 0, 1, 0, 0, 3, 0, 0, 0, 1]);
        let before: usize = counts.iter().sum();
        for alternative in 0..ALTERNATIVES {
            let mean: f64 = counts
                .iter()
                .enumerate()
                .map(|(gap, same)| {
                    let likely = as_float(same + 1) / as_float(n + 1 + before);
                    likely * factor(n, alternative, gap, before, *same).unwrap()
                })
                .sum();
            assert!((mean - 1.0).abs() < 1e-12, "alternative {alternative}: {mean}");
        }
    }

    #[test]
    fn better_is_the_mirror_image_of_worse() {
        let gaps = of_baseline(23).unwrap();
        for place in 0..ALTERNATIVES / 2 {
            let (worse, better) = (gaps.alternatives[place], gaps.alternatives[place + ALTERNATIVES / 2]);
            assert_eq!((worse.side, better.side), (Side::Worse, Side::Better));
            assert_eq!((worse.sigmas, worse.dips), (better.sigmas, better.dips));
            for gap in 0..=23 {
                assert_eq!(gaps.logs[gap][place].to_bits(), gaps.logs[23 - gap][place + ALTERNATIVES / 2].to_bits());
            }
        }
        // The lowest gap speaks for worse, except where it is that of a dip.
        assert!(gaps.logs[0][0] > gaps.logs[12][0] && gaps.logs[0][1] < gaps.logs[1][1]);
    }
}
