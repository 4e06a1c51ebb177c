//! Two sets of values for each metric: before and after an upgrade, one system and another.
//!
//! An exact rank test for each metric, which accounts for nights that resemble each other, a step-up over all, and the smallest effect
//! that counts. Where so few values cannot claim anything, that is said.

mod resemblance;

use crate::{
    compare::resemblance::tempered,
    stats::{
        location::{as_float, centre_and_sigma, percentile},
        rank::{Method, RankTests, smallest_p},
        shift::{Shift, relative_change, relative_shift},
        trend,
    },
};
use muster_core::rules::perf::Direction;
use muster_text::words;

/// The values of a metric in both sets; `None`: it is not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pair {
    pub a: Option<Sample>,
    pub b: Option<Sample>,
    pub direction: Option<Direction>,
}

/// Values with their unit. Those that are not finite do not count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Those of each series in the order of time.
    pub series: Vec<Vec<f64>>,
    pub unit: String,
}

/// What is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareSettings {
    /// The share of wrong claims among all claims that is tolerated.
    pub false_discoveries: f64,
    /// Smaller relative changes are none.
    pub min_effect: f64,
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self { false_discoveries: 0.05, min_effect: 0.02 }
    }
}

words! {
    /// What is said of a metric.
    pub enum Compared {
        Worse = "worse",
        Better = "better",
        /// It differs, and its variable says no direction.
        Changed = "changed",
        /// No difference can be claimed, though one could have been seen.
        Same = "same",
        TooFewSamples = "too few samples",
        /// Only in the second set.
        New = "new",
        /// Only in the first set.
        Vanished = "vanished",
        MixedUnits = "mixed units",
    }
}

/// The verdict of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct PairVerdict {
    pub word: Compared,
    pub a: Option<Summary>,
    pub b: Option<Summary>,
    pub effect: Option<Shift>,
    /// Of the rank test, two-sided, and larger where samples resemble their neighbours.
    pub p: Option<f64>,
    pub method: Option<Method>,
}

/// A set of values in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The standard deviation over the median, by the median absolute deviation.
    pub spread: f64,
}

/// All metrics together.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// In the order of the pairs.
    pub verdicts: Vec<PairVerdict>,
    /// How many metrics were tested, and what a claim of one needs at most.
    pub tested: usize,
    pub p_needed: f64,
    /// How much samples resemble their neighbours in time, over all metrics.
    pub autocorrelation: f64,
    pub settings: CompareSettings,
}

impl Comparison {
    /// How the verdicts were reached, and how often they are wrong: for the foot of a table.
    pub fn method(&self) -> String {
        let approximate = self.verdicts.iter().filter(|verdict| verdict.method == Some(Method::Normal)).count();
        let approximate = if approximate == 0 { String::new() } else { format!(" (its normal approximation for {approximate})") };
        let tempering = trend::tempering(self.autocorrelation);
        let resemble = if tempering < 1.0 {
            format!(
                "; neighbouring samples resemble each other ({:.2}), so they say {:.0} % of what independent ones say",
                self.autocorrelation,
                100.0 * tempering
            )
        } else {
            String::new()
        };
        format!(
            "rank test of Mann and Whitney{approximate} over {} metrics, step-up: at most {} % of the claims are wrong; changes under {} % are none{resemble}",
            self.tested,
            muster_core::rules::perf::format_number(100.0 * self.settings.false_discoveries),
            muster_core::rules::perf::format_number(100.0 * self.settings.min_effect),
        )
    }
}

/// Compares all metrics.
pub fn compare(pairs: &[Pair], settings: CompareSettings) -> Comparison {
    let samples = pairs.iter().flat_map(|pair| [pair.a.as_ref(), pair.b.as_ref()]).filter_map(finite);
    let autocorrelation = resemblance::autocorrelation(&samples.flatten().collect::<Vec<_>>());
    let tempering = trend::tempering(autocorrelation);
    let mut tests = RankTests::default();
    let mut verdicts: Vec<PairVerdict> = pairs.iter().map(|pair| measured(pair, &mut tests, tempering)).collect();
    let tested = verdicts.iter().filter(|verdict| verdict.p.is_some()).count();
    // Small differences, however certain, are no claims, so they must not make room for others.
    let is_candidate = |verdict: &&PairVerdict| verdict.is_at_least(settings.min_effect);
    let mut candidates: Vec<f64> = verdicts.iter().filter(is_candidate).filter_map(|verdict| verdict.p).collect();
    candidates.sort_unstable_by(f64::total_cmp);
    let p_needed = needed(&candidates, tested, settings.false_discoveries);
    for (verdict, pair) in verdicts.iter_mut().zip(pairs) {
        if let Some(p) = verdict.p {
            let least = |a: Summary, b: Summary| tempered(smallest_p(a.count, b.count), tempering);
            let could_be_seen = verdict.a.zip(verdict.b).is_some_and(|(a, b)| least(a, b) <= p_needed);
            verdict.word = if p <= p_needed {
                word(verdict, pair.direction, settings.min_effect)
            } else if could_be_seen {
                Compared::Same
            } else {
                Compared::TooFewSamples
            };
        }
    }
    Comparison { verdicts, tested, p_needed, autocorrelation, settings }
}

impl PairVerdict {
    fn is_at_least(&self, min_effect: f64) -> bool {
        self.a.zip(self.b).is_some_and(|(a, b)| relative_change(a.median, b.median).abs() >= min_effect)
    }
}

/// The largest p that is a claim (Benjamini and Hochberg): with `k` claims among `tested` metrics, their share of the tolerated rate.
fn needed(sorted: &[f64], tested: usize, rate: f64) -> f64 {
    let share = |claims: usize| rate * as_float(claims) / as_float(tested.max(1));
    let claims = (1..=sorted.len()).rev().find(|claims| sorted[claims - 1] <= share(*claims));
    // Without a claim: what the first one would need.
    share(claims.unwrap_or(1))
}

/// The values of a sample that count, by series; `None` for none.
fn finite(sample: Option<&Sample>) -> Option<Vec<Vec<f64>>> {
    let values = |series: &Vec<f64>| series.iter().copied().filter(|value| value.is_finite()).collect();
    let series = sample?.series.iter().map(values).filter(|values: &Vec<f64>| !values.is_empty());
    Some(series.collect()).filter(|series: &Vec<_>| !series.is_empty())
}

/// The verdict as far as the metric alone decides it.
fn measured(pair: &Pair, tests: &mut RankTests, tempering: f64) -> PairVerdict {
    let (a, b) = (finite(pair.a.as_ref()), finite(pair.b.as_ref()));
    let unit = |sample: &Option<Sample>| sample.as_ref().map(|sample| sample.unit.clone());
    let mut verdict = PairVerdict {
        word: Compared::TooFewSamples,
        a: a.as_ref().and_then(|series| summary(&series.concat())),
        b: b.as_ref().and_then(|series| summary(&series.concat())),
        effect: None,
        p: None,
        method: None,
    };
    let (a, b) = match (a, b) {
        (None, None) => return verdict,
        (None, Some(_)) => return PairVerdict { word: Compared::New, ..verdict },
        (Some(_), None) => return PairVerdict { word: Compared::Vanished, ..verdict },
        (Some(_), Some(_)) if unit(&pair.a) != unit(&pair.b) => return PairVerdict { word: Compared::MixedUnits, ..verdict },
        (Some(a), Some(b)) => (a, b),
    };
    let tempering = if are_far_apart(&a, &b) { 1.0 } else { tempering };
    let (a, b) = (a.concat(), b.concat());
    if let Some(test) = tests.compare(&a, &b) {
        (verdict.p, verdict.method) = (Some(tempered(test.p, tempering)), Some(test.method));
    }
    verdict.effect = relative_shift(tests, &a, &b);
    verdict
}

/// Whether the sides are further apart than any of their series is wide: neighbours that resemble each other are not the cause.
fn are_far_apart(a: &[Vec<f64>], b: &[Vec<f64>]) -> bool {
    let range = |values: &[f64]| percentile(values, 0.0).zip(percentile(values, 1.0));
    let widest = a.iter().chain(b).filter_map(|series| range(series)).map(|(low, high)| high - low).fold(0.0, f64::max);
    let sides = range(&a.concat()).zip(range(&b.concat()));
    sides.is_some_and(|((low_a, high_a), (low_b, high_b))| (low_a - high_b).max(low_b - high_a) > widest)
}

/// The word of a difference that is certain enough.
fn word(verdict: &PairVerdict, direction: Option<Direction>, min_effect: f64) -> Compared {
    let Some((a, b)) = verdict.a.zip(verdict.b).filter(|_| verdict.is_at_least(min_effect)) else { return Compared::Same };
    match (direction, b.median < a.median) {
        (None, _) => Compared::Changed,
        (Some(Direction::Higher), true) | (Some(Direction::Lower), false) => Compared::Worse,
        (Some(Direction::Higher), false) | (Some(Direction::Lower), true) => Compared::Better,
    }
}

/// The few numbers of a set; `None` for no values.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let (median, sigma) = centre_and_sigma(values)?;
    let spread = if median == 0.0 { 0.0 } else { (sigma / median).abs() };
    Some(Summary { count: values.len(), median, low: percentile(values, 0.0)?, high: percentile(values, 1.0)?, spread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    fn pair(a: &[f64], b: &[f64], direction: Option<Direction>) -> Pair {
        let sample = |values: &[f64]| Some(Sample { series: vec![values.to_vec()], unit: "GB/s".to_owned() });
        Pair { a: sample(a), b: sample(b), direction }
    }

    fn words(pairs: &[Pair]) -> Vec<Compared> {
        compare(pairs, CompareSettings::default()).verdicts.iter().map(|verdict| verdict.word).collect()
    }

    const LOW: [f64; 6] = [90.0, 91.0, 89.0, 90.5, 90.2, 89.7];
    const HIGH: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 100.2, 99.7];

    #[test]
    fn each_metric_has_a_word() {
        let slightly = HIGH.map(|value| value * 1.019);
        let other_unit = Some(Sample { unit: "MB/s".to_owned(), series: vec![LOW.to_vec()] });
        let rows = [
            (pair(&HIGH, &LOW, Some(Direction::Higher)), Compared::Worse),
            (pair(&HIGH, &LOW, Some(Direction::Lower)), Compared::Better),
            (pair(&HIGH, &LOW, None), Compared::Changed),
            (pair(&HIGH, &HIGH, Some(Direction::Higher)), Compared::Same),
            (pair(&HIGH, &slightly, Some(Direction::Higher)), Compared::Same),
            (pair(&HIGH[..2], &LOW[..2], Some(Direction::Higher)), Compared::TooFewSamples),
            (Pair { a: None, ..pair(&[], &LOW, None) }, Compared::New),
            (pair(&HIGH, &[f64::NAN], None), Compared::Vanished),
            (Pair { b: other_unit, ..pair(&HIGH, &LOW, None) }, Compared::MixedUnits),
        ];
        let pairs: Vec<Pair> = rows.iter().map(|(pair, _)| pair.clone()).collect();
        assert_eq!(words(&pairs), rows.map(|(_, word)| word));
        assert_eq!(words(&[]), []);
    }

    #[test]
    fn many_metrics_need_more_than_one() {
        let moved = pair(&HIGH[..4], &LOW[..4], Some(Direction::Higher));
        assert_eq!(words(std::slice::from_ref(&moved)), [Compared::Worse]);
        let mut random = Random::new(5);
        let mut draw = || (0..4).map(|_| random.normal() + 50.0).collect::<Vec<f64>>();
        let still: Vec<Pair> = (0..50).map(|_| pair(&draw(), &draw(), None)).collect();
        let all = [vec![moved], still].concat();
        assert!(words(&all).iter().all(|word| *word == Compared::TooFewSamples), "4 and 4 values cannot show one of 51");
    }

    #[test]
    fn wrong_claims_are_as_rare_as_stated() {
        let mut wrong = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut draw = || (0..14).map(|_| 100.0 + 5.0 * random.normal()).collect::<Vec<f64>>();
            let pairs: Vec<Pair> = (0..100).map(|_| pair(&draw(), &draw(), None)).collect();
            wrong += usize::from(words(&pairs).contains(&Compared::Changed));
        }
        // Without any difference, each claim is wrong: one in twenty comparisons may have one.
        assert!(wrong <= 5, "{wrong} of 40");
    }

    #[test]
    fn certain_differences_that_are_too_small_make_no_room_for_wrong_claims() {
        let mut wrong = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut draw = |level: f64, noise: f64| (0..14).map(|_| level + noise * random.normal()).collect::<Vec<f64>>();
            let small: Vec<Pair> = (0..100).map(|_| pair(&draw(100.0, 0.1), &draw(99.0, 0.1), None)).collect();
            let none: Vec<Pair> = (0..100).map(|_| pair(&draw(100.0, 5.0), &draw(100.0, 5.0), None)).collect();
            wrong += usize::from(words(&[small, none].concat()).contains(&Compared::Changed));
        }
        assert!(wrong <= 5, "{wrong} of 40");
    }

    #[test]
    fn the_method_is_named_with_its_error_rate() {
        let mut comparison = compare(&[pair(&HIGH, &LOW, None)], CompareSettings { false_discoveries: 0.1, min_effect: 0.05 });
        comparison.autocorrelation = 0.5;
        insta::assert_snapshot!(
            comparison.method(),
            @"rank test of Mann and Whitney over 1 metrics, step-up: at most 10 % of the claims are wrong; changes under 5 % are none; neighbouring samples resemble each other (0.50), so they say 33 % of what independent ones say"
        );
        let comparison = compare(&[pair(&HIGH, &LOW, None)], CompareSettings::default());
        insta::assert_snapshot!(
            comparison.method(),
            @"rank test of Mann and Whitney over 1 metrics, step-up: at most 5 % of the claims are wrong; changes under 2 % are none"
        );
    }
}
