//! Decides whether a metric is at its old level again, or never left it. No I/O, and no memory: each night looks at all values.

use crate::{night::evidence::LONGEST_BASELINE, stats::shift::relative_change};
use muster_core::stats::{as_float, median};

/// With so many values since a change, its shape is said, and one whose levels are no change is closed.
pub(super) const SHAPED: usize = 10;
/// So many values have to be back at the old level.
pub(super) const BACK: usize = 3;
/// Each of so few has to be nearer to the old level: one or two values far off are no level, but they move a mean.
const FEW: usize = 5;
/// And lie apart from those of the change by so many standard deviations of a difference of means: each night looks again.
const APART: f64 = 4.0;
/// Levels are no change if so many of them are less than the smallest change.
const SURE: f64 = 3.0;
/// The standard deviation of normal noise over its mean distance from the median.
const TO_SIGMA: f64 = 1.253_314_137_315_5;

/// Whether there are enough values since a change to say that its levels are none: ten, or of noisy ones more.
pub(super) fn is_sure(before: &[f64], after: &[f64], min_effect: f64, tempering: f64) -> bool {
    let (before, after) = (last(before), last(after));
    let Some(level) = median(before) else { return false };
    let noise =
        relative_change(level, level + sigma(before).max(sigma(after)) * of_difference(before.len(), after.len(), tempering));
    after.len() >= SHAPED && (SURE * noise <= min_effect || after.len() == LONGEST_BASELINE)
}

/// The place from which on the values since a change are at the old level again.
pub(super) fn back_since(before: &[f64], after: &[f64], min_effect: f64, tempering: f64) -> Option<usize> {
    let hidden = after.len().saturating_sub(LONGEST_BASELINE);
    let (before, after) = (last(before), last(after));
    let cost = |split: usize| deviation(&after[..split]) + deviation(&after[split..]);
    let split = (1..after.len()).min_by(|a, b| f64::total_cmp(&cost(*a), &cost(*b)))?;
    let (away, back) = after.split_at(split);
    let (old, level_away, level_back) = (median(before)?, median(away)?, median(back)?);
    let is_back = relative_change(old, level_back).abs() < min_effect;
    let was_away = relative_change(old, level_away).abs() >= min_effect;
    let sigma = sigma(before).max(sigma(away));
    let apart = clipped_mean(back, level_back, sigma) - clipped_mean(away, level_away, sigma);
    let is_apart = apart.abs() >= APART * sigma * of_difference(away.len(), back.len(), tempering);
    let is_nearer = |value: &f64| (value - level_back).abs() < (value - level_away).abs();
    let is_level = back.len() > FEW || back.iter().all(is_nearer);
    (back.len() >= BACK && is_back && was_away && is_apart && is_level).then_some(hidden + split)
}

/// The last values, which are looked at.
fn last(values: &[f64]) -> &[f64] {
    &values[values.len().saturating_sub(LONGEST_BASELINE)..]
}

/// The sum of the distances to the median.
fn deviation(values: &[f64]) -> f64 {
    median(values).map_or(0.0, |level| values.iter().map(|value| (value - level).abs()).sum())
}

/// The standard deviation of normal noise with this mean distance. Rare values far off count more than in the median distance.
fn sigma(values: &[f64]) -> f64 {
    TO_SIGMA * deviation(values) / as_float(values.len().max(1))
}

/// The mean of values none of which counts as further from their median than two standard deviations.
fn clipped_mean(values: &[f64], level: f64, sigma: f64) -> f64 {
    values.iter().map(|value| value.clamp(level - 2.0 * sigma, level + 2.0 * sigma)).sum::<f64>() / as_float(values.len())
}

/// The standard deviation of the difference of two means over that of the values, which say `tempering` times as much as independent
/// ones.
fn of_difference(a: usize, b: usize, tempering: f64) -> f64 {
    ((1.0 / as_float(a) + 1.0 / as_float(b)) / tempering).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_back_when_its_last_values_are_at_the_old_level_and_apart_from_the_others() {
        let before: Vec<f64> = (0..30).map(|place| 100.0 + f64::from(place * 7 % 5 - 2) / 2.0).collect();
        let rows: [(&[f64], Option<usize>); 7] = [
            (&[90.0, 91.0, 100.0, 99.5, 100.5], Some(2)),
            (&[90.0, 91.0, 100.0, 99.5], None),
            // Three whose mean is far from the others, one of them with these.
            (&[90.0, 91.0, 90.5, 90.0, 91.0, 100.0, 94.0, 100.0], None),
            (&[90.0, 91.0, 89.0, 90.5, 90.0, 91.0], None),
            (&[90.0, 91.0, 95.0, 95.5, 95.0, 95.0], None),
            // As near as noise: it never was away.
            (&[99.0, 100.0, 100.5, 99.5, 100.0, 100.0], None),
            (&[], None),
        ];
        for (after, expected) in rows {
            assert_eq!(back_since(&before, after, 0.02, 1.0), expected, "{after:?}");
        }
    }
}
