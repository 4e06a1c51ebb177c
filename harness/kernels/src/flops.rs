//! Fused multiply-adds on registers: the floating-point speed of one core or of all.
//!
//! The widest instructions that the processor has are found when it runs. A round ends when the slowest thread ends, so
//! that one throttled core shows in the figure of all.

use crate::{Error, threads, timing};
use std::{fmt::Write, hint::black_box, time::Duration};

/// `muster kernel flops`
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// How many threads; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// How long to measure
    #[arg(long, value_name = "MS", default_value_t = 300)]
    milliseconds: u64,
}

/// Twelve vector registers hide the latency of two units (4 cycles x 2) and fit into the sixteen that every way has.
const CHAINS: usize = 12;
const STEPS: usize = 1 << 14;

/// x <- 0.5 x + 1 reaches 2 from anywhere, and stays there exactly.
const FACTOR: f64 = 0.5;
const SUMMAND: f64 = 1.0;
const LIMIT: f64 = 2.0;

// It must become part of its callers: only there are the instructions of their features allowed.
#[allow(clippy::inline_always)]
#[inline(always)]
fn steps<const N: usize>(numbers: &mut [f64; MOST], fma: impl Fn(f64, f64, f64) -> f64) {
    const { assert!(N <= MOST) }
    let (factor, summand) = (black_box(FACTOR), black_box(SUMMAND));
    let mut registers: [f64; N] = std::array::from_fn(|index| numbers[index]);
    for _ in 0..STEPS {
        for x in &mut registers {
            *x = fma(*x, factor, summand);
        }
    }
    numbers[..N].copy_from_slice(&registers);
}

/// How the steps are done here, and on how many numbers at once.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    numbers: usize,
    steps: fn(&mut [f64; MOST]),
}

/// What the widest way works on; the others use the beginning of it.
const MOST: usize = CHAINS * 8;

impl Way {
    const BASELINE: Self = Self {
        name: "baseline",
        numbers: CHAINS * 2,
        // Where there is no such instruction, `mul_add` is a call of a slow function.
        steps: |numbers| steps::<{ CHAINS * 2 }>(numbers, |x, factor, summand| x * factor + summand),
    };

    #[cfg(target_arch = "aarch64")]
    fn widest() -> Self {
        Self { name: "NEON", numbers: CHAINS * 2, steps: |numbers| steps::<{ CHAINS * 2 }>(numbers, f64::mul_add) }
    }

    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "std has no safe way to call a function for a feature that was found at run time")]
    fn widest() -> Self {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has avx512f.
            Self { name: "AVX-512", numbers: CHAINS * 8, steps: |numbers| unsafe { avx512(numbers) } }
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has avx2 and fma.
            Self { name: "AVX2", numbers: CHAINS * 4, steps: |numbers| unsafe { avx2(numbers) } }
        } else {
            Self::BASELINE
        }
    }

    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    fn widest() -> Self {
        Self::BASELINE
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(numbers: &mut [f64; MOST]) {
    steps::<MOST>(numbers, f64::mul_add);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(numbers: &mut [f64; MOST]) {
    steps::<{ CHAINS * 4 }>(numbers, f64::mul_add);
}

pub(crate) fn run(options: &Options) -> Result<String, Error> {
    let (threads, way) = (threads(options.threads), Way::widest());
    let budget = Duration::from_millis(options.milliseconds);
    let rounds = timing::run(threads, budget, || [0.0; MOST], |numbers| (way.steps)(numbers))?;
    rounds.workers.iter().try_for_each(|numbers| check(&numbers[..way.numbers]))?;
    let gigaflop = (way.numbers * STEPS * 2 * threads) as f64 / 1e9;
    let mut text = String::new();
    let _ =
        writeln!(text, "flops: {threads} thread(s), {}, double precision, {} rounds", way.name, rounds.seconds_per_sweep.len());
    let _ = writeln!(text, "speed best   {:.3} GFLOP/s", gigaflop / rounds.best());
    let _ = writeln!(text, "speed median {:.3} GFLOP/s", gigaflop / rounds.median());
    let _ = writeln!(text, "all {} results are right", threads * way.numbers);
    Ok(text)
}

fn check(numbers: &[f64]) -> Result<(), Error> {
    for (index, &found) in numbers.iter().enumerate() {
        if found.to_bits() != LIMIT.to_bits() {
            return Err(Error::Wrong { index, found, expected: LIMIT });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reaches_the_limit_in_all_its_numbers() {
        for way in [Way::BASELINE, Way::widest()] {
            let mut numbers = [0.0; MOST];
            (way.steps)(&mut numbers);
            assert!(check(&numbers[..way.numbers]).is_ok(), "{}: {numbers:?}", way.name);
            assert!(numbers[way.numbers..].iter().all(|x| x.to_bits() == 0), "{} does more than it counts", way.name);
        }
    }

    #[test]
    fn a_wrong_result_is_named() {
        let mut numbers = [LIMIT; MOST];
        numbers[10] = 2.5;
        assert_eq!(
            check(&numbers).expect_err("one is wrong").to_string(),
            "element 10 is 2.5 and must be 2: this machine computes or stores wrongly"
        );
    }
}
