//! Finds changes of figures that can be trusted. Figures in, verdicts out. Pure: no store, no clock, no environment.
//!
//! ```text
//! System (metrics: values by night, changes; annotations) -> night::judge -> NightVerdicts
//!     segment    the values that may be compared        stats    ranks, ratios, lines
//!     evidence   how unlikely they are without a change
//!     family     one error rate for all metrics of a system
//! two sets of values a metric -> compare::compare -> Compared
//! figures of a metric -> suggest::suggest -> a reference
//! sample         figures with a known truth, for tests and for example data
//! trial          how often the method is right on such figures
//! ```
//! The method has a page: `docs/night.md`.

pub mod compare;
pub mod night;
pub mod sample;
pub mod stats;
pub mod suggest;
pub mod trial;

/// The version of the method: a verdict that was stored says by which it was reached.
pub const METHOD: u32 = 2;
