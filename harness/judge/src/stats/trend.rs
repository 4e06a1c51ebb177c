//! Series in the order of their nights: their line, a step or a drift, and whether neighbours resemble each other.

use muster_core::stats::{as_float, median, median_in_place};
use muster_text::words;

/// A straight line over places 0, 1, 2, ...
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub intercept: f64,
    /// The slope for each place.
    pub slope: f64,
}

/// The line of Theil and Sen: the median of the slopes between all pairs of values. `None` for fewer than two values.
pub fn theil_sen(values: &[f64]) -> Option<Line> {
    let slope_from = |place: usize| {
        let later = values.iter().skip(place + 1).enumerate();
        later.map(move |(distance, value)| (value - values[place]) / as_float(distance + 1))
    };
    let mut slopes: Vec<f64> = (0..values.len()).flat_map(slope_from).collect();
    let slope = median_in_place(&mut slopes)?;
    let mut starts: Vec<f64> = values.iter().enumerate().map(|(place, value)| value - slope * as_float(place)).collect();
    Some(Line { intercept: median_in_place(&mut starts)?, slope })
}

words! {
    /// The shape of a change.
    pub enum Shape {
        /// Two levels.
        Step = "step",
        /// One line.
        Drift = "drift",
    }
}

/// Returns whether two levels or one line describe the values before and after a change better, by the Bayesian information
/// criterion. Deviations are taken as they are, not squared, so that a dip does not decide.
pub fn shape(before: &[f64], after: &[f64]) -> Shape {
    let around = |values: &[f64]| median(values).map_or(0.0, |level| values.iter().map(|value| (value - level).abs()).sum());
    let all = [before, after].concat();
    let Some(line) = theil_sen(&all) else { return Shape::Step };
    let along: f64 =
        all.iter().enumerate().map(|(place, value)| (value - line.intercept - line.slope * as_float(place)).abs()).sum();
    let n = as_float(all.len());
    // -2 ln of the likelihood of Laplace noise, whose scale is the mean deviation, up to what both have.
    let criterion = |deviation: f64, parameters: f64| 2.0 * n * libm::log(deviation / n) + parameters * libm::log(n);
    // Two levels and the place of the step; a level and a slope.
    let (step, drift) = (criterion(around(before) + around(after), 3.0), criterion(along, 2.0));
    if drift < step { Shape::Drift } else { Shape::Step }
}

/// Returns how much the rank of a value resembles that of the next: 0 for values in random order, up to 1. `None`: the values
/// are too few, or equal.
pub fn rank_autocorrelation(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let centre = as_float(values.len());
    // Twice the mean rank of equal values, from 0, less the mean. Each with each is fastest for the few values there are.
    let doubled_rank = |value: f64| {
        let mut rank = 0_u32;
        for other in values {
            rank += u32::from(*other < value) + u32::from(*other <= value);
        }
        f64::from(rank) - centre
    };
    let (mut squares, mut products, mut previous) = (0.0, 0.0, 0.0);
    for value in values {
        let rank = doubled_rank(*value);
        squares += rank * rank;
        products += rank * previous;
        previous = rank;
    }
    (squares > 0.0).then(|| products / squares)
}

/// The number of the last values of a series that are compared with their neighbours.
pub const NEIGHBOURS: usize = 40;
/// The least number of values for that.
pub const LEAST_NEIGHBOURS: usize = 10;
/// So many constant series count as series without autocorrelation, at most: they keep one other from deciding alone, and do not hide
/// what many others say.
const CONSTANT: usize = 2;

/// Returns how much neighbours resemble each other: the median over series of the autocorrelation of their ranks. That of values
/// in random order is 1/n less than 0.
pub fn autocorrelation<'a>(series: impl Iterator<Item = &'a [f64]>) -> f64 {
    let (mut all, mut constant) = (Vec::new(), 0);
    for values in series {
        let last = &values[values.len().saturating_sub(NEIGHBOURS)..];
        match rank_autocorrelation(last) {
            Some(phi) if last.len() >= LEAST_NEIGHBOURS => all.push(phi + 1.0 / as_float(last.len())),
            Some(_) => {}
            None => constant += 1,
        }
    }
    all.resize(all.len() + constant.min(CONSTANT), 0.0);
    median(&all).unwrap_or(0.0)
}

/// Autocorrelation below this is none.
const UNCORRELATED: f64 = 0.05;

/// c: how much values of this autocorrelation say, as a share of what independent ones say. The variance of their mean is 1/c times as
/// large.
pub fn tempering(autocorrelation: f64) -> f64 {
    if autocorrelation < UNCORRELATED { 1.0 } else { (1.0 - autocorrelation) / (1.0 + autocorrelation) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ignores_a_dip() {
        let mut values: Vec<f64> = (0..20).map(|place| 5.0 + 0.5 * f64::from(place)).collect();
        values[7] = -100.0;
        let Line { intercept, slope } = theil_sen(&values).unwrap();
        assert!((intercept - 5.0).abs() < 1e-12 && (slope - 0.5).abs() < 1e-12, "{intercept} {slope}");
        assert_eq!(theil_sen(&[1.0]), None);
    }

    #[test]
    fn steps_and_drifts_are_told_apart() {
        let noise = |place: u32| f64::from(place * 7 % 5) / 10.0;
        let step: Vec<f64> = (0..40).map(|place| if place < 25 { 10.0 } else { 8.0 } + noise(place)).collect();
        let drift: Vec<f64> = (0..40).map(|place| 10.0 - 0.1 * f64::from(place) + noise(place)).collect();
        assert_eq!(shape(&step[..25], &step[25..]), Shape::Step);
        assert_eq!(shape(&drift[..25], &drift[25..]), Shape::Drift);
        assert_eq!(shape(&[1.0; 5], &[2.0; 10]), Shape::Step);
        assert_eq!(shape(&[], &[]), Shape::Step);
    }

    #[test]
    fn few_constant_series_count_as_uncorrelated() {
        let (rising, constant): (Vec<f64>, _) = ((0..40).map(f64::from).collect(), vec![1.0; 40]);
        let of = |rising_count: usize, constant_count: usize| {
            let rising = std::iter::repeat_n(&*rising, rising_count);
            autocorrelation(rising.chain(std::iter::repeat_n(&*constant, constant_count)))
        };
        assert_eq!((of(0, 0), of(0, 5), of(1, 19)), (0.0, 0.0, 0.0));
        assert!(of(1, 0) > 0.9 && of(3, 100) > 0.9, "{} {}", of(1, 0), of(3, 100));
        assert_eq!((tempering(0.04), tempering(0.5), tempering(-0.5)), (1.0, 1.0 / 3.0, 1.0));
    }

    #[test]
    fn neighbours_that_resemble_each_other_are_autocorrelated() {
        let rising: Vec<f64> = (0..40).map(f64::from).collect();
        let alternating: Vec<f64> = (0..40).map(|place| f64::from(place % 2)).collect();
        assert!(rank_autocorrelation(&rising).unwrap() > 0.9);
        assert!(rank_autocorrelation(&alternating).unwrap() < -0.9);
        assert_eq!((rank_autocorrelation(&[1.0; 9]), rank_autocorrelation(&[1.0, 2.0])), (None, None));
        // Ranks only: any rising function of the values gives the same bits.
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        assert_eq!(rank_autocorrelation(&values), rank_autocorrelation(&values.map(|value: f64| value.powi(3) + 7.0)));
    }
}
