//! Statistics of location and spread that judges and reports both need. Values that are NaN are none.

pub use muster_text::median::median_in_place;

/// The value in the middle, or the mean of the two there; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut numbers(values))
}

/// The value below which lies this share of them (0 to 1), between two values in proportion; `None` for no values.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = numbers(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * as_float(last);
    let below = floor(place);
    let (low, high) = (sorted.get(below)?, sorted.get((below + 1).min(last))?);
    let part = place - as_float(below);
    Some(low * (1.0 - part) + high * part)
}

/// The value at this share (0 to 1) of the way from the lowest to the highest, of two the nearer one, and half way the higher one;
/// `None` for no values. So does the `quantile` of polars, with which ReFrame computes percentiles.
pub fn nearest_percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = numbers(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get(floor(share.clamp(0.0, 1.0) * as_float(last) + 0.5)).copied()
}

/// Scales the median of absolute deviations of normal noise to its standard deviation.
const TO_SIGMA: f64 = 1.482_602_218_505_602;

/// The median, and the standard deviation of normal noise that has the same median absolute deviation.
pub fn centre_and_sigma(values: &[f64]) -> Option<(f64, f64)> {
    let mut values = numbers(values);
    let centre = median_in_place(&mut values)?;
    for value in &mut values {
        *value = (*value - centre).abs();
    }
    Some((centre, TO_SIGMA * median_in_place(&mut values)?))
}

fn numbers(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| !value.is_nan()).collect()
}

/// A count as a number to compute with; exact below 2^53.
#[allow(clippy::cast_precision_loss, reason = "counts of values are far below 2^53")]
pub fn as_float(count: usize) -> f64 {
    count as f64
}

/// The integer part of a number that is not negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "callers pass places within a slice")]
pub fn floor(place: f64) -> usize {
    place.max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        let rows: [(&[f64], Option<f64>); 3] = [(&[], None), (&[f64::NAN], None), (&[9.0, f64::NAN, 1.0, 2.0], Some(2.0))];
        for (values, expected) in rows {
            assert_eq!(median(values), expected, "{values:?}");
        }
        let values = [10.0, 40.0, 20.0, 30.0];
        let of = |share| percentile(&values, share);
        assert_eq!((of(0.0), of(0.5), of(0.9), of(1.0)), (Some(10.0), Some(25.0), Some(37.0), Some(40.0)));
        assert_eq!((of(-1.0), of(2.0), percentile(&[], 0.5)), (Some(10.0), Some(40.0), None));
    }

    /// What `polars.Series.quantile` of polars 1.44 says.
    #[test]
    fn the_nearest_percentile_is_one_of_the_values() {
        let of = |values: &[f64], share| nearest_percentile(values, share);
        let values = [10.0, 40.0, 20.0, 30.0];
        let found = [0.0, 0.05, 0.25, 0.5, 0.83, 0.84, 0.95, 1.0].map(|share| of(&values, share));
        assert_eq!(found, [10.0, 10.0, 20.0, 30.0, 30.0, 40.0, 40.0, 40.0].map(Some));
        assert_eq!((of(&[1.0, 2.0], 0.5), of(&[f64::NAN], 0.5), of(&[1.0, f64::NAN], 0.99)), (Some(2.0), None, Some(1.0)));
    }

    #[test]
    fn the_spread_ignores_a_dip() {
        let (centre, sigma) = centre_and_sigma(&[98.0, 99.0, 100.0, 101.0, 102.0, 3.0, 100.0]).unwrap();
        assert!((centre - 100.0).abs() < 1e-12 && (sigma - TO_SIGMA).abs() < 1e-12, "{centre} {sigma}");
    }
}
