//! Figures with a known truth: worlds of independent series for tests of the method, and a year of a site for example data.
//!
//! Everything is a function of a seed, and the same on every machine.

mod noise;
mod random;
mod world;
pub mod year;

pub use noise::Noise;
pub use random::Random;
pub use world::{Spread, World, WorldSpec};
