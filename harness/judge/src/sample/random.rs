//! Random numbers that are the same for ever: a stored seed has to mean the same after any update.

use crate::stats::normal;
use muster_core::stats::floor;

/// The generator xoshiro256++ of Blackman and Vigna, started by splitmix64.
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }))
    }

    /// Another generator, for a part that others do not disturb when they draw more.
    #[must_use]
    pub fn part(&self, number: u64) -> Self {
        Self::new(self.0[0] ^ number.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(17))
    }

    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.0;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Evenly between 0 and 1, neither of them included.
    #[allow(clippy::cast_precision_loss, reason = "52 bits are exact")]
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// One of `0..count`; 0 if there is none.
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn below(&mut self, count: usize) -> usize {
        floor(self.uniform() * count as f64)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Normal, mean 0, standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        normal::quantile(self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let mut random = Random::new(1);
        let first = [random.next_u64(), random.next_u64()];
        let mut again = Random::new(1);
        assert_eq!(first, [again.next_u64(), again.next_u64()]);
        assert_ne!(Random::new(2).next_u64(), first[0]);
        assert_ne!(Random::new(1).part(1).next_u64(), Random::new(1).part(2).next_u64());
        // A change of these is a change of all example data.
        assert_eq!(first, [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d]);
    }

    #[test]
    fn numbers_have_the_moments_of_their_distribution() {
        let mut random = Random::new(7);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let hits = (0..10_000).filter(|_| random.chance(0.2)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
