//! Statistics of short series: distribution-free where that is possible, the same bits on every machine.
//!
//! ```text
//! normal        PHI and its inverse
//! exponential   several at once
//! rank          the exact distribution of Mann and Whitney's U, also with ties; the test
//! shift         Hodges and Lehmann's estimate of a ratio, with its interval
//! trend         Theil and Sen's line, a step or a drift, autocorrelation of ranks
//! ```
//! Where values lie is in [`muster_core::stats`]. Logarithms and single exponentials come from libm, those of [`exponential`] from sums and products. The functions of the platform
//! differ in their last bits.

pub mod exponential;
pub mod normal;
pub mod rank;
pub mod shift;
pub mod trend;
