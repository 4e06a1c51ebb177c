//! Two sets of values for each metric: before and after an upgrade, one system and another.
//!
//! An exact rank test for each metric, which accounts for nights that resemble each other, a step-up over all, and the smallest effect
//! that counts. Where so few values cannot claim anything, that is said.

mod resemblance;

use crate::{
    compare::resemblance::tempered,
    stats::{
        rank::{self, RankTests, smallest_p},
        shift::relative_change,
        trend,
    },
};
use muster_core::{
    query::{
        answers::{Compared, ComparedMetric, Difference, Method, SampleUnit, Summary},
        pairs::Pair,
    },
    rules::perf::{Direction, format_number},
    stats::{as_float, centre_and_sigma, percentile},
};

/// The settings of a comparison.
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

/// Compares all metrics, in the order of the pairs. Their values are finite, and no series is empty.
pub fn compare(pairs: Vec<Pair>, sample: SampleUnit, settings: CompareSettings) -> Compared {
    let series: Vec<Vec<f64>> = pairs.iter().flat_map(|pair| pair.old.iter().chain(&pair.new)).cloned().collect();
    let autocorrelation = resemblance::autocorrelation(&series);
    let tempering = trend::tempering(autocorrelation);
    let (mut tests, mut approximate) = (RankTests::default(), 0);
    let mut rows = Vec::new();
    for pair in pairs {
        let (row, method) = measured(pair, &mut tests, tempering);
        approximate += usize::from(method == Some(rank::Method::Normal));
        rows.push(row);
    }
    let tested = rows.iter().filter(|row| row.p.is_some()).count();
    // Small differences, however certain, are no claims, so they must not make room for others.
    let is_candidate = |row: &&ComparedMetric| is_at_least(row, settings.min_effect);
    let mut candidates: Vec<f64> = rows.iter().filter(is_candidate).filter_map(|row| row.p).collect();
    candidates.sort_unstable_by(f64::total_cmp);
    let p_needed = needed(&candidates, tested, settings.false_discoveries);
    for row in &mut rows {
        let Some(p) = row.p else { continue };
        let least = |old: Summary, new: Summary| tempered(smallest_p(old.count, new.count), tempering);
        let could_be_seen = row.old.zip(row.new).is_some_and(|(old, new)| least(old, new) <= p_needed);
        row.difference = if p <= p_needed {
            claimed(row, settings.min_effect)
        } else if could_be_seen {
            Difference::Steady
        } else {
            Difference::TooFew
        };
    }
    let text = method(tested, approximate, autocorrelation, settings);
    let method = Method { text, error_rate: settings.false_discoveries, min_effect: settings.min_effect, sample };
    Compared { method, rows }
}

/// How differences were found among so many metrics, and how often they are wrong: for the foot of a table. `approximate`: of so many
/// metrics by the normal distribution.
fn method(tested: usize, approximate: usize, autocorrelation: f64, settings: CompareSettings) -> String {
    let approximate = if approximate == 0 { String::new() } else { format!(" (its normal approximation for {approximate})") };
    let tempering = trend::tempering(autocorrelation);
    let resemble = if tempering < 1.0 {
        format!(
            "; neighbouring samples resemble each other ({autocorrelation:.2}), so they say {:.0} % of what independent ones say",
            100.0 * tempering
        )
    } else {
        String::new()
    };
    format!(
        "rank test of Mann and Whitney{approximate} over {tested} metrics, step-up: at most {} % of the claims are wrong; changes under {} % are none{resemble}",
        format_number(100.0 * settings.false_discoveries),
        format_number(100.0 * settings.min_effect),
    )
}

fn is_at_least(row: &ComparedMetric, min_effect: f64) -> bool {
    row.old.zip(row.new).is_some_and(|(old, new)| relative_change(old.median, new.median).abs() >= min_effect)
}

/// The largest p that is a claim (Benjamini and Hochberg): with `k` claims among `tested` metrics, their share of the tolerated rate.
fn needed(sorted: &[f64], tested: usize, rate: f64) -> f64 {
    let share = |claims: usize| rate * as_float(claims) / as_float(tested.max(1));
    let claims = (1..=sorted.len()).rev().find(|claims| sorted[claims - 1] <= share(*claims));
    // Without a claim: what the first one would need.
    share(claims.unwrap_or(1))
}

/// The answer as far as the metric alone decides it, and how its probability was found.
fn measured(pair: Pair, tests: &mut RankTests, tempering: f64) -> (ComparedMetric, Option<rank::Method>) {
    let Pair { metric, unit, direction, old, new, is_redefined } = pair;
    let (all_old, all_new) = (old.concat(), new.concat());
    let mut row = ComparedMetric {
        metric,
        unit,
        direction,
        old: summary(&all_old),
        new: summary(&all_new),
        difference: Difference::TooFew,
        effect: None,
        is_redefined,
        p: None,
    };
    let (before, after) = match (row.old, row.new) {
        (None, None) => return (row, None),
        (None, Some(_)) => return (ComparedMetric { difference: Difference::New, ..row }, None),
        (Some(_), None) => return (ComparedMetric { difference: Difference::Vanished, ..row }, None),
        (Some(before), Some(after)) => (before.median, after.median),
    };
    row.effect = (before != 0.0).then(|| relative_change(before, after));
    let tempering = if are_far_apart(&old, &new) { 1.0 } else { tempering };
    let test = tests.compare(&all_old, &all_new);
    row.p = test.map(|test| tempered(test.p, tempering));
    (row, test.map(|test| test.method))
}

/// Whether the sides are further apart than any of their series is wide: neighbours that resemble each other are not the cause.
fn are_far_apart(old: &[Vec<f64>], new: &[Vec<f64>]) -> bool {
    let range = |values: &[f64]| percentile(values, 0.0).zip(percentile(values, 1.0));
    let widest = old.iter().chain(new).filter_map(|series| range(series)).map(|(low, high)| high - low).fold(0.0, f64::max);
    let sides = range(&old.concat()).zip(range(&new.concat()));
    sides.is_some_and(|((low_old, high_old), (low_new, high_new))| (low_old - high_new).max(low_new - high_old) > widest)
}

/// What is said of a difference that is certain enough.
fn claimed(row: &ComparedMetric, min_effect: f64) -> Difference {
    let Some((old, new)) = row.old.zip(row.new).filter(|_| is_at_least(row, min_effect)) else { return Difference::Steady };
    match (row.direction, new.median < old.median) {
        (None, _) => Difference::Changed,
        (Some(Direction::Higher), true) | (Some(Direction::Lower), false) => Difference::Regressed,
        (Some(Direction::Higher), false) | (Some(Direction::Lower), true) => Difference::Improved,
    }
}

/// The few numbers of a set; `None` for no values.
fn summary(values: &[f64]) -> Option<Summary> {
    let (median, sigma) = centre_and_sigma(values)?;
    let spread = if median == 0.0 { 0.0 } else { (sigma / median).abs() };
    Some(Summary { count: values.len(), median, low: percentile(values, 0.0)?, high: percentile(values, 1.0)?, spread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;
    use muster_core::query::figures::Metric;

    pub(super) fn pair(old: Vec<Vec<f64>>, new: Vec<Vec<f64>>, direction: Option<Direction>) -> Pair {
        Pair { metric: Metric::default(), unit: "GB/s".to_owned(), direction, old, new, is_redefined: false }
    }

    fn one(old: &[f64], new: &[f64], direction: Option<Direction>) -> Pair {
        let side = |values: &[f64]| if values.is_empty() { vec![] } else { vec![values.to_vec()] };
        pair(side(old), side(new), direction)
    }

    pub(super) fn differences(pairs: &[Pair]) -> Vec<Difference> {
        let compared = compare(pairs.to_vec(), SampleUnit::Night, CompareSettings::default());
        compared.rows.iter().map(|row| row.difference).collect()
    }

    const LOW: [f64; 6] = [90.0, 91.0, 89.0, 90.5, 90.2, 89.7];
    const HIGH: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 100.2, 99.7];

    #[test]
    fn each_metric_has_a_word() {
        let slightly = HIGH.map(|value| value * 1.019);
        let rows = [
            (one(&HIGH, &LOW, Some(Direction::Higher)), Difference::Regressed),
            (one(&HIGH, &LOW, Some(Direction::Lower)), Difference::Improved),
            (one(&HIGH, &LOW, None), Difference::Changed),
            (one(&HIGH, &HIGH, Some(Direction::Higher)), Difference::Steady),
            (one(&HIGH, &slightly, Some(Direction::Higher)), Difference::Steady),
            (one(&HIGH[..2], &LOW[..2], Some(Direction::Higher)), Difference::TooFew),
            (one(&[], &LOW, None), Difference::New),
            (one(&HIGH, &[], None), Difference::Vanished),
            (one(&[], &[], None), Difference::TooFew),
        ];
        let pairs: Vec<Pair> = rows.iter().map(|(pair, _)| pair.clone()).collect();
        assert_eq!(differences(&pairs), rows.map(|(_, word)| word));
        assert_eq!(differences(&[]), []);
    }

    #[test]
    fn many_metrics_need_more_than_one() {
        let moved = one(&HIGH[..4], &LOW[..4], Some(Direction::Higher));
        assert_eq!(differences(std::slice::from_ref(&moved)), [Difference::Regressed]);
        let mut random = Random::new(5);
        let mut draw = || (0..4).map(|_| random.normal() + 50.0).collect::<Vec<f64>>();
        let still: Vec<Pair> = (0..50).map(|_| one(&draw(), &draw(), None)).collect();
        let all = [vec![moved], still].concat();
        assert!(differences(&all).iter().all(|word| *word == Difference::TooFew), "4 and 4 values cannot show one of 51");
    }

    #[test]
    fn wrong_claims_are_as_rare_as_stated() {
        let mut wrong = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut draw = || (0..14).map(|_| 100.0 + 5.0 * random.normal()).collect::<Vec<f64>>();
            let pairs: Vec<Pair> = (0..100).map(|_| one(&draw(), &draw(), None)).collect();
            wrong += usize::from(differences(&pairs).contains(&Difference::Changed));
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
            let small: Vec<Pair> = (0..100).map(|_| one(&draw(100.0, 0.1), &draw(99.0, 0.1), None)).collect();
            let none: Vec<Pair> = (0..100).map(|_| one(&draw(100.0, 5.0), &draw(100.0, 5.0), None)).collect();
            wrong += usize::from(differences(&[small, none].concat()).contains(&Difference::Changed));
        }
        assert!(wrong <= 5, "{wrong} of 40");
    }

    #[test]
    fn the_method_is_named_with_its_error_rate() {
        insta::assert_snapshot!(
            method(1, 0, 0.5, CompareSettings { false_discoveries: 0.1, min_effect: 0.05 }),
            @"rank test of Mann and Whitney over 1 metrics, step-up: at most 10 % of the claims are wrong; changes under 5 % are none; neighbouring samples resemble each other (0.50), so they say 33 % of what independent ones say"
        );
        insta::assert_snapshot!(
            compare(vec![one(&HIGH, &LOW, None)], SampleUnit::Night, CompareSettings::default()).method.text,
            @"rank test of Mann and Whitney over 1 metrics, step-up: at most 5 % of the claims are wrong; changes under 2 % are none"
        );
    }
}
