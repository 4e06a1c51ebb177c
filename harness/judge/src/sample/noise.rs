//! Kinds of noise of benchmarks. Each has the mean 0 and the standard deviation 1; lower is slower.

use crate::sample::random::Random;

/// The shape of a metric's noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    Gauss,
    Uniform,
    /// Student's t with three degrees of freedom: some nights are far off, on both sides.
    HeavyTails,
    /// Most nights are near the best one, and some are slow.
    LongTail,
    /// Two levels without a reason: a page layout, a place of the process.
    TwoModes,
}

impl Noise {
    pub const ALL: [Self; 5] = [Self::Gauss, Self::Uniform, Self::HeavyTails, Self::LongTail, Self::TwoModes];

    pub fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Gauss => random.normal(),
            Self::Uniform => random.between(-1.0, 1.0) * 3_f64.sqrt(),
            // Its variance is 3.
            Self::HeavyTails => {
                let (normal, chi) = (random.normal(), (0..3).map(|_| random.normal().powi(2)).sum::<f64>());
                normal / (chi / 3.0).sqrt() / 3_f64.sqrt()
            }
            // Exponential.
            Self::LongTail => 1.0 + libm::log(random.uniform()),
            // Three nights of ten lie 2 lower; within a mode the standard deviation is 0.4.
            Self::TwoModes => {
                let mode = if random.chance(0.3) { -1.4 } else { 0.6 };
                (mode + 0.4 * random.normal()) / (0.84_f64 + 0.16).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_same_mean_and_spread() {
        for noise in Noise::ALL {
            let mut random = Random::new(3);
            let draws: Vec<f64> = (0..200_000).map(|_| noise.draw(&mut random)).collect();
            let mean = draws.iter().sum::<f64>() / 2e5;
            let sigma = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e5).sqrt();
            // The fourth moment of t3 is infinite: its spread converges slowly.
            assert!(mean.abs() < 0.02 && (sigma - 1.0).abs() < 0.1, "{noise:?}: {mean} {sigma}");
        }
    }
}
