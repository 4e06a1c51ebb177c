//! Rounds of equal work, run by all threads at once and timed from outside.

use crate::Error;
use std::{
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// A round must outlast the wake-up of the slowest thread by far, or it measures the barrier.
const ROUND: Duration = Duration::from_millis(10);
/// The first rounds fault pages in and let the clock of the processor rise.
const WARM_UP: usize = 2;
const FEWEST_ROUNDS: usize = 5;

/// What all threads together did.
pub(crate) struct Rounds<W> {
    /// Seconds that one sweep of all threads took, a figure a round, ascending.
    pub(crate) seconds_per_sweep: Vec<f64>,
    /// The threads' workers, to be checked.
    pub(crate) workers: Vec<W>,
}

impl<W> Rounds<W> {
    /// The fastest round: what the machine can do when nothing disturbs it.
    pub(crate) fn best(&self) -> f64 {
        self.seconds_per_sweep.first().copied().unwrap_or(f64::NAN)
    }

    /// The round in the middle: what it does.
    pub(crate) fn median(&self) -> f64 {
        self.seconds_per_sweep.get(self.seconds_per_sweep.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Lets `threads` workers sweep in step for at least `budget`. Each makes its own worker, so that its memory lies near it.
pub(crate) fn run<W: Send>(
    threads: usize,
    budget: Duration,
    make: impl Fn() -> W + Sync,
    sweep: impl Fn(&mut W) + Sync,
) -> Result<Rounds<W>, Error> {
    let sweeps = sweeps_per_round(&make, &sweep);
    let (barrier, over) = (Barrier::new(threads), AtomicBool::new(false));
    let mut done = thread::scope(|scope| {
        let member = |leads: bool| {
            let (barrier, over, make, sweep) = (&barrier, &over, &make, &sweep);
            move || {
                let mut worker = make();
                let mut times = Vec::new();
                let begun = Instant::now();
                loop {
                    barrier.wait();
                    if over.load(Ordering::Relaxed) {
                        return (worker, times);
                    }
                    let round = Instant::now();
                    for _ in 0..sweeps {
                        sweep(black_box(&mut worker));
                    }
                    barrier.wait();
                    if leads {
                        times.push(round.elapsed().as_secs_f64() / f64::from(sweeps));
                        if begun.elapsed() >= budget && times.len() >= WARM_UP + FEWEST_ROUNDS {
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }
        };
        let all: Vec<_> = (0..threads).map(|index| scope.spawn(member(index == 0))).collect();
        all.into_iter().map(|thread| thread.join().map_err(|_| Error::Thread)).collect::<Result<Vec<_>, _>>()
    })?;
    let mut seconds_per_sweep = done.first_mut().map(|(_, times)| times.split_off(WARM_UP)).unwrap_or_default();
    seconds_per_sweep.sort_by(f64::total_cmp);
    Ok(Rounds { seconds_per_sweep, workers: done.into_iter().map(|(worker, _)| worker).collect() })
}

/// How many sweeps make a round of [`ROUND`], found by doubling.
fn sweeps_per_round<W>(make: impl Fn() -> W, sweep: impl Fn(&mut W)) -> u32 {
    let mut worker = make();
    sweep(&mut worker);
    let mut sweeps = 1_u32;
    loop {
        let begun = Instant::now();
        for _ in 0..sweeps {
            sweep(black_box(&mut worker));
        }
        if begun.elapsed() >= ROUND || sweeps >= 1 << 30 {
            return sweeps;
        }
        sweeps *= 2;
    }
}
