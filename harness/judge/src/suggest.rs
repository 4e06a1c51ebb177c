//! References from figures: the median, and percentiles as bounds.

use crate::stats::location::{centre_and_sigma, percentile};
use muster_core::{
    query::answers::{SuggestedReference, TooFewRuns},
    rules::perf::Direction,
};

/// What is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuggestSettings {
    /// The percentiles that become the bounds, 1 to 99.
    pub lower: u8,
    pub upper: u8,
    /// At least so many runs, whatever the percentiles need.
    pub min_runs: usize,
}

/// The reference that figures suggest. A direction leaves the better side open.
///
/// # Errors
/// Too few runs for the percentiles: a percentile of 5 needs 20.
pub fn suggest(
    values: &[f64],
    direction: Option<Direction>,
    settings: SuggestSettings,
) -> Result<SuggestedReference, TooFewRuns> {
    let (wants_lower, wants_upper) = match direction {
        Some(Direction::Higher) => (true, false),
        Some(Direction::Lower) => (false, true),
        None => (true, true),
    };
    let rare = [wants_lower.then_some(settings.lower), wants_upper.then_some(100_u8.saturating_sub(settings.upper))];
    let rarest = rare.into_iter().flatten().min().unwrap_or(50).max(1);
    let needed = settings.min_runs.max(100_usize.div_ceil(rarest.into()));
    let too_few = TooFewRuns { needed };
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if values.len() < needed {
        return Err(too_few);
    }
    let (value, sigma) = centre_and_sigma(&values).ok_or(too_few)?;
    let bound = |percent: u8| Some(threshold(value, percentile(&values, f64::from(percent) / 100.0)?));
    Ok(SuggestedReference {
        value,
        lower: if wants_lower { bound(settings.lower).map(|low| outwards(low.min(0.0), -1.0)) } else { None },
        upper: if wants_upper { bound(settings.upper).map(|high| outwards(high.max(0.0), 1.0)) } else { None },
        spread: (value != 0.0).then(|| (sigma / value).abs()),
    })
}

/// A bound as a check writes it: a share of the value, mirrored below zero, absolute around zero.
fn threshold(value: f64, bound: f64) -> f64 {
    match value {
        0.0 => bound,
        value if value < 0.0 => 1.0 - bound / value,
        value => bound / value - 1.0,
    }
}

/// Three digits, away from the value: none of the figures that were within comes to lie outside.
fn outwards(threshold: f64, sign: f64) -> f64 {
    if threshold == 0.0 {
        return 0.0;
    }
    let scale = libm::pow(10.0, 2.0 - libm::floor(libm::log10(threshold.abs())));
    sign * libm::ceil(threshold.abs() * scale - 1e-9) / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: SuggestSettings = SuggestSettings { lower: 5, upper: 95, min_runs: 1 };

    fn hundred(scale: f64, offset: f64) -> Vec<f64> {
        (0..=100).map(|n| offset + scale * f64::from(n)).collect()
    }

    #[test]
    fn the_median_and_percentiles_become_a_reference() {
        let rows = [
            (hundred(1.0, 950.0), Some(Direction::Higher), (1000.0, Some(-0.045), None)),
            (hundred(1.0, 950.0), Some(Direction::Lower), (1000.0, None, Some(0.045))),
            (hundred(1.0, 950.0), None, (1000.0, Some(-0.045), Some(0.045))),
            (hundred(1.0, -1050.0), None, (-1000.0, Some(-0.045), Some(0.045))),
            (hundred(1.0, -50.0), None, (0.0, Some(-45.0), Some(45.0))),
            (vec![7.0; 40], None, (7.0, Some(0.0), Some(0.0))),
        ];
        for (values, direction, expected) in rows {
            let of = suggest(&values, direction, SETTINGS).expect("enough");
            let close = |a: Option<f64>, b: Option<f64>| a.zip(b).map_or(a == b, |(a, b)| (a - b).abs() < 1e-9);
            assert!(
                close(Some(of.value), Some(expected.0)) && close(of.lower, expected.1) && close(of.upper, expected.2),
                "{of:?} {expected:?}"
            );
        }
    }

    #[test]
    fn too_few_runs_are_refused_and_how_many_are_needed_is_said() {
        let needed =
            |count: usize, settings| suggest(&vec![1.0; count], Some(Direction::Higher), settings).err().map(|few| few.needed);
        assert_eq!(needed(19, SETTINGS), Some(20));
        assert_eq!(needed(20, SETTINGS), None);
        assert_eq!(needed(99, SuggestSettings { lower: 1, ..SETTINGS }), Some(100));
        assert_eq!(needed(29, SuggestSettings { min_runs: 30, ..SETTINGS }), Some(30));
        assert_eq!(suggest(&[f64::NAN; 40], None, SETTINGS), Err(TooFewRuns { needed: 20 }));
    }

    #[test]
    fn a_bound_is_rounded_away_from_the_value() {
        assert_eq!((outwards(-0.021_34, -1.0), outwards(0.0, 1.0), outwards(1.234, 1.0)), (-0.0214, 0.0, 1.24));
    }
}
