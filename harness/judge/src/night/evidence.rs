//! Computes how much more likely the values of a metric are with a change than without one.
//!
//! For each night at which a change may have begun, the values since are placed among those before, the baseline, and each
//! alternative multiplies what they say ([`gaps`]). The sum over nights and alternatives is M. Without a
//! change each term has the mean 1 whatever the noise looks like, for only the order of the values counts: M is an e-detector in the
//! sense of Shin, Ramdas and Rinaldo (arXiv 2203.03532), of Shiryaev and Roberts' form.

use crate::{
    night::gaps::{self, ALTERNATIVES},
    stats::exponential::exponentials,
};
use muster_core::stats::as_float;
use std::sync::LazyLock;

/// A baseline needs this many values.
pub const SHORTEST_BASELINE: usize = 5;
/// And has at most this many.
pub(super) const LONGEST_BASELINE: usize = 60;
/// A change is looked for in so many last values.
pub(super) const STARTS: usize = 21;
/// More values than these are never looked at.
pub const LOOKED_AT: usize = LONGEST_BASELINE + STARTS;
/// A change may have begun wherever the evidence is at least this share of the largest.
const PLAUSIBLE: f64 = 0.05;

/// ln 0 (not used), ln 1, ln 2, ...
static LOGARITHMS: LazyLock<[f64; LOOKED_AT + 2]> = LazyLock::new(|| std::array::from_fn(|number| libm::log(as_float(number))));

/// The evidence of the last value of a series, with those before.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// M: the odds for a change, before they are compared with a threshold.
    pub sum: f64,
    /// The place in the series at which a change most likely began.
    pub since: usize,
    /// The first and the last place at which it may have begun.
    pub since_interval: (usize, usize),
    /// The values that were looked at: their number, at most 81.
    pub looked_at: usize,
}

/// The evidence in values in the order of their nights, lower ones being worse. `tempering` is c: 1, or less if neighbours resemble
/// each other. `None` for too few values.
pub fn evidence(values: &[f64], tempering: f64) -> Option<Evidence> {
    evidence_with(values, tempering, None)
}

/// The evidence, with what others say of a change that began at a place of the values.
pub(super) fn evidence_with(values: &[f64], tempering: f64, others: Option<(usize, f64)>) -> Option<Evidence> {
    let hidden = values.len().saturating_sub(LOOKED_AT);
    let values = &values[hidden..];
    let last = values.len().checked_sub(1)?;
    let first = SHORTEST_BASELINE.max((last + 1).saturating_sub(STARTS));
    if last < first {
        return None;
    }
    let mut places = Places::new(values, first);
    let mut terms = [0.0; STARTS];
    for since in first..=last {
        terms[since - first] = total(&places.logs(since), tempering, since.min(LONGEST_BASELINE));
        places.move_on(since);
    }
    if let Some((since, said)) = others {
        terms[since - hidden - first] += said;
    }
    let terms = &terms[..=last - first];
    let (best, largest) =
        terms.iter().enumerate().fold((0, 0.0), |best, (place, term)| if *term > best.1 { (place, *term) } else { best });
    let is_plausible = |term: &f64| *term >= PLAUSIBLE * largest;
    let earliest = terms.iter().position(is_plausible).unwrap_or(best);
    let latest = terms.iter().rposition(is_plausible).unwrap_or(best);
    let place = |term: usize| hidden + first + term;
    Some(Evidence {
        sum: terms.iter().sum(),
        since: place(best),
        since_interval: (place(earliest), place(latest)),
        looked_at: values.len(),
    })
}

/// The weighted sum over alternatives of what they say.
fn total(logs: &[f64; ALTERNATIVES], tempering: f64, baseline: usize) -> f64 {
    let Some(gaps) = gaps::of_baseline(baseline) else { return 0.0 };
    let said = exponentials(logs.map(|log| tempering * log));
    said.iter().zip(&gaps.alternatives).map(|(said, alternative)| alternative.prior * said).sum()
}

/// Where each of the last values stands among those of the baseline, which moves on with the supposed start.
struct Places<'a> {
    values: &'a [f64],
    first: usize,
    /// The values from `first` on. Those that are missing are NaN, which is neither below nor above anything.
    last: [f64; STARTS],
    /// For each of them, how many of the baseline are below it.
    below: [usize; STARTS],
    /// And how many are not above it.
    at_most: [usize; STARTS],
}

impl<'a> Places<'a> {
    fn new(values: &'a [f64], first: usize) -> Self {
        let last = std::array::from_fn(|place| values.get(first + place).copied().unwrap_or(f64::NAN));
        let mut places = Self { values, first, last, below: [0; STARTS], at_most: [0; STARTS] };
        for value in &values[first.saturating_sub(LONGEST_BASELINE)..first] {
            places.join(*value);
        }
        places
    }

    /// The value at `since` joins the baseline, and the oldest leaves it if it is full.
    fn move_on(&mut self, since: usize) {
        self.join(self.values[since]);
        if let Some(oldest) = since.checked_sub(LONGEST_BASELINE) {
            self.leave(self.values[oldest]);
        }
    }

    fn join(&mut self, value: f64) {
        for place in 0..STARTS {
            self.below[place] += usize::from(value < self.last[place]);
            self.at_most[place] += usize::from(value <= self.last[place]);
        }
    }

    fn leave(&mut self, value: f64) {
        for place in 0..STARTS {
            self.below[place] -= usize::from(value < self.last[place]);
            self.at_most[place] -= usize::from(value <= self.last[place]);
        }
    }

    /// The gap into which each value from `since` on falls: of equal values half are below, rounded down.
    fn gaps(&self, since: usize) -> impl Iterator<Item = usize> {
        (since - self.first..self.values.len() - self.first)
            .map(|place| self.below[place] + (self.at_most[place] - self.below[place]) / 2)
    }

    /// What the values from `since` on say for each alternative, as logarithms.
    fn logs(&self, since: usize) -> [f64; ALTERNATIVES] {
        let baseline = since.min(LONGEST_BASELINE);
        let mut sums = [0.0; ALTERNATIVES];
        let Some(gaps) = gaps::of_baseline(baseline) else { return sums };
        let mut same = [0_usize; LONGEST_BASELINE + 1];
        let mut common = 0.0;
        for (before, gap) in self.gaps(since).enumerate() {
            common += LOGARITHMS[baseline + 1 + before] - LOGARITHMS[same[gap] + 1];
            same[gap] += 1;
            for (sum, log) in sums.iter_mut().zip(&gaps.logs[gap]) {
                *sum += log;
            }
        }
        sums.map(|sum| sum + common)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "a tie is exact equality; bits are compared")]
mod tests {
    use super::*;
    use crate::sample::Random;
    use proptest::prelude::*;

    /// The formula as it is written down: products, without anything that is carried on.
    fn closed_form(values: &[f64], tempering: f64) -> f64 {
        let t = values.len();
        let mut sum = 0.0;
        for since in SHORTEST_BASELINE.max(t.saturating_sub(STARTS))..t {
            let baseline = &values[since.saturating_sub(LONGEST_BASELINE)..since];
            let n = baseline.len();
            let gap_of = |value: f64| {
                let below = baseline.iter().filter(|other| **other < value).count();
                let equal = baseline.iter().filter(|other| **other == value).count();
                below + equal / 2
            };
            let gaps: Vec<usize> = values[since..].iter().map(|value| gap_of(*value)).collect();
            let prior = |place: usize| gaps::of_baseline(n).unwrap().alternatives[place].prior;
            for alternative in 0..ALTERNATIVES {
                let product: f64 = (0..gaps.len())
                    .map(|place| {
                        let same = gaps[..place].iter().filter(|gap| **gap == gaps[place]).count();
                        gaps::factor(n, alternative, gaps[place], place, same).unwrap().powf(tempering)
                    })
                    .product();
                sum += prior(alternative) * product;
            }
        }
        sum
    }

    proptest! {
        #[test]
        fn the_recursion_is_the_closed_form(
            values in prop::collection::vec(0_u8..30, 6..100),
            tempering in prop::sample::select(vec![1.0, 0.6, 0.2]),
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let looked_at = &values[values.len().saturating_sub(LOOKED_AT)..];
            let (sum, expected) = (evidence(&values, tempering).unwrap().sum, closed_form(looked_at, tempering));
            prop_assert!((sum / expected - 1.0).abs() < 1e-9, "{sum} {expected}");
        }

        #[test]
        fn only_the_order_of_the_values_counts(values in prop::collection::vec(-50_i8..50, 6..90)) {
            let plain: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let bent: Vec<f64> = plain.iter().map(|value| (value / 9.0).exp() * 3.0 - 1.0).collect();
            let (plain, bent) = (evidence(&plain, 0.8).unwrap(), evidence(&bent, 0.8).unwrap());
            prop_assert_eq!(plain.sum.to_bits(), bent.sum.to_bits());
            prop_assert_eq!(plain, bent);
        }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut random = Random::new(1);
        let mut values: Vec<f64> = (0..60).map(|_| 100.0 + random.normal()).collect();
        for value in &mut values[52..] {
            *value -= 5.0;
        }
        let quiet = evidence(&values[..52], 1.0).unwrap();
        let found = evidence(&values, 1.0).unwrap();
        assert!(quiet.sum < 100.0 && found.sum > 1e6, "{} {}", quiet.sum, found.sum);
        assert_eq!(found.since, 52);
        assert!((51..=52).contains(&found.since_interval.0) && (52..=53).contains(&found.since_interval.1), "{found:?}");
        let tempered = evidence(&values, 0.3).unwrap();
        assert!(tempered.sum < found.sum / 1e3, "autocorrelated values say less: {}", tempered.sum);
    }

    #[test]
    fn too_few_values_say_nothing() {
        assert_eq!(evidence(&[], 1.0), None);
        assert_eq!(evidence(&[1.0; 5], 1.0), None);
        assert!(evidence(&[1.0; 6], 1.0).is_some());
    }
}
