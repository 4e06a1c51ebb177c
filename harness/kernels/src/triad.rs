//! `a[i] = b[i] + s * c[i]`: bandwidth of memory or, with a small working set, of a cache.
//!
//! Counted as STREAM counts: 24 bytes an element, the read that some processors do before a store left out.

use crate::{Error, threads, timing};
use std::{fmt::Write, hint::black_box, time::Duration};

const SCALAR: f64 = 3.0;
const BYTES_PER_ELEMENT: usize = 3 * size_of::<f64>();

/// `muster kernel triad`
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The three arrays of each thread together, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 65536, value_parser = clap::value_parser!(u32).range(1..))]
    kib: u32,
    /// How many threads; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// How long to measure
    #[arg(long, value_name = "MS", default_value_t = 300)]
    milliseconds: u64,
}

struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Arrays {
    fn new(elements: usize) -> Self {
        let pattern = |period: usize| (0..elements).map(|index| (index % period) as f64).collect();
        Self { a: vec![0.0; elements], b: pattern(7), c: pattern(5) }
    }

    fn sweep(&mut self) {
        for ((a, b), c) in self.a.iter_mut().zip(&self.b).zip(&self.c) {
            *a = b + SCALAR * c;
        }
        black_box(&mut self.a);
    }

    fn check(&self) -> Result<(), Error> {
        for (index, &found) in self.a.iter().enumerate() {
            let expected = (index % 7) as f64 + SCALAR * (index % 5) as f64;
            if found.to_bits() != expected.to_bits() {
                return Err(Error::Wrong { index, found, expected });
            }
        }
        Ok(())
    }
}

pub(crate) fn run(options: &Options) -> Result<String, Error> {
    let threads = threads(options.threads);
    let elements = (options.kib as usize * 1024 / BYTES_PER_ELEMENT).max(1);
    let rounds = timing::run(threads, Duration::from_millis(options.milliseconds), || Arrays::new(elements), Arrays::sweep)?;
    rounds.workers.iter().try_for_each(Arrays::check)?;
    let gigabytes = (elements * BYTES_PER_ELEMENT * threads) as f64 / 1e9;
    let mut text = String::new();
    let _ = writeln!(text, "triad: {threads} thread(s), {} KiB each, {} rounds", options.kib, rounds.seconds_per_sweep.len());
    let _ = writeln!(text, "bandwidth best   {:.3} GB/s", gigabytes / rounds.best());
    let _ = writeln!(text, "bandwidth median {:.3} GB/s", gigabytes / rounds.median());
    let _ = writeln!(text, "all {} elements are right", elements * threads);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_named() {
        let mut arrays = Arrays::new(100);
        arrays.sweep();
        assert!(arrays.check().is_ok());
        arrays.a[41] += 0.5;
        let error = arrays.check().expect_err("element 41 is wrong").to_string();
        assert_eq!(error, "element 41 is 9.5 and must be 9: this machine computes or stores wrongly");
    }

    #[test]
    fn the_smallest_working_set_has_one_element() {
        let text = run(&Options { kib: 1, threads: 2, milliseconds: 1 }).expect("measures");
        assert!(text.contains("triad: 2 thread(s), 1 KiB each"), "{text}");
        assert!(text.ends_with("all 84 elements are right\n"), "{text}");
    }
}
