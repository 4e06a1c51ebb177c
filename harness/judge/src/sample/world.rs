//! Worlds of series that do not know of each other, as in the simulations of the method.

use crate::sample::{noise::Noise, random::Random};

/// The spread of the noise of metrics, as a share of their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Log-normal around a median.
    LogNormal { median: f64, sigma: f64 },
    /// Evenly between two.
    Uniform { low: f64, high: f64 },
    /// All metrics have the same.
    Fixed(f64),
}

impl Spread {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::LogNormal { median, sigma } => median * libm::exp(sigma * random.normal()),
            Self::Uniform { low, high } => random.between(low, high),
            Self::Fixed(value) => value,
        }
    }
}

/// The properties of a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldSpec {
    pub seed: u64,
    pub metrics: usize,
    pub nights: usize,
    pub spread: Spread,
    pub noise: Noise,
    /// The share of nights in which a metric is 15 % lower.
    pub dips: f64,
    /// Autocorrelation of the noise.
    pub phi: f64,
    /// The relative difference of Saturdays and Sundays.
    pub weekend: f64,
    /// The relative change a night.
    pub drift: f64,
    /// The number of metrics, the first ones, that move by `step` at night `at`.
    pub moved: usize,
    pub step: f64,
    pub at: usize,
}

impl Default for WorldSpec {
    fn default() -> Self {
        let spread = Spread::LogNormal { median: 0.02, sigma: 0.45 };
        let (seed, metrics, nights, noise) = (1, 200, 80, Noise::Gauss);
        Self {
            seed,
            metrics,
            nights,
            spread,
            noise,
            dips: 0.01,
            phi: 0.0,
            weekend: 0.0,
            drift: 0.0,
            moved: 0,
            step: -0.05,
            at: 40,
        }
    }
}

/// Values, and what they were made with.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// The values by metric and night.
    pub values: Vec<Vec<f64>>,
    /// The standard deviation of each metric over its level.
    pub spreads: Vec<f64>,
}

const DIP: f64 = -0.15;

impl World {
    pub fn new(spec: &WorldSpec) -> Self {
        let root = Random::new(spec.seed);
        let series = |metric: usize| series(spec, metric, &mut root.part(metric as u64));
        let (spreads, values) = (0..spec.metrics).map(series).unzip();
        Self { values, spreads }
    }
}

fn series(spec: &WorldSpec, metric: usize, random: &mut Random) -> (f64, Vec<f64>) {
    let spread = spec.spread.draw(random);
    let level = libm::exp(random.between(2.0, 8.0));
    let mut state = spec.noise.draw(random);
    let mut value = |night: usize| {
        if night > 0 {
            state = spec.phi * state + (1.0 - spec.phi * spec.phi).sqrt() * spec.noise.draw(random);
        }
        let dip = if random.chance(spec.dips) { DIP } else { 0.0 };
        let weekend = if night % 7 >= 5 { spec.weekend } else { 0.0 };
        let step = if metric < spec.moved && night >= spec.at { spec.step } else { 0.0 };
        let drift = (1.0 + spec.drift).powi(i32::try_from(night).unwrap_or(i32::MAX));
        level * drift * (1.0 + spread * state) * (1.0 + dip) * (1.0 + weekend) * (1.0 + step)
    };
    let values = (0..spec.nights).map(&mut value).collect();
    (spread, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_changes_nothing_else() {
        let spec = WorldSpec { metrics: 3, moved: 1, ..WorldSpec::default() };
        let (moved, still) = (World::new(&spec), World::new(&WorldSpec { moved: 0, ..spec }));
        assert_eq!(moved.values[1..], still.values[1..]);
        assert_eq!(moved.values[0][..40], still.values[0][..40]);
        assert!((moved.values[0][40] / still.values[0][40] - 0.95).abs() < 1e-12);
        assert_ne!(still.values[0], still.values[1]);
    }
}
