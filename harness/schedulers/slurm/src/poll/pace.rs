//! Decides when to look at the queue: a plan without a clock of its own.
//!
//! ```text
//! a launch, a change of a state         after poll_min
//! an exit file that was not there       at once, but never sooner than a part of poll_min after the last look
//! nothing changes                       half as long again, to poll_max; three times that if everything waits
//! squeue is slow twice in a row         never more often than a twentieth of the time is spent in it, but after a minute
//! it does not answer                    5 s, then twice as long, to 20 s
//! ```

use crate::plan::Policy;
use muster_core::decisions::backoff::Backoff;
use std::time::Duration;

const GROWTH: f64 = 1.5;
/// The share of the time that squeue may take.
const SHARE: u32 = 20;
/// A queue that is not seen for longer than this says too little of limits that are over.
const SLOWEST: Duration = Duration::from_mins(1);
/// A cluster with many waiting jobs is asked less often.
const PENDING: u32 = 3;
/// After a hint, a look may follow the last one so soon.
const HINT: f64 = 0.4;
const OUTAGE: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(20) };
const JITTER: f64 = 0.2;

/// The limits of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub min: Duration,
    pub max: Duration,
}

impl Bounds {
    pub(crate) fn of(policy: &Policy) -> Self {
        Self { min: policy.poll_min, max: policy.poll_max }
    }

    /// Jobs of several partitions are looked at together: as often as one of them asks for.
    pub(crate) fn least(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.min(other.max) }
    }
}

/// How long it is until the next look, counted from the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    pause: Duration,
    failures: u32,
    took: Duration,
    /// The least that it may be, for a squeue that is slow.
    least: Duration,
}

impl Pace {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { pause: bounds.min, failures: 0, took: Duration::ZERO, least: Duration::ZERO }
    }

    /// The queue was looked at. `changed`: some state is another; `all_wait`: nothing runs.
    #[must_use]
    pub(crate) fn looked(self, bounds: Bounds, took: Duration, changed: bool, all_wait: bool) -> Self {
        let max = if all_wait { bounds.max * PENDING } else { bounds.max };
        let pause = if changed { bounds.min } else { self.pause.mul_f64(GROWTH).min(max) };
        // One slow answer says nothing of the next.
        let least = (took.min(self.took) * SHARE).min(SLOWEST);
        Self { pause: pause.max(least), failures: 0, took, least }
    }

    /// It did not answer.
    #[must_use]
    pub(crate) fn failed(self) -> Self {
        let failures = self.failures + 1;
        Self { pause: OUTAGE.after(failures), failures, ..self }
    }

    /// The pause after the last look. `random`: from 0 to 1.
    pub(crate) fn pause(self, random: f64) -> Duration {
        self.pause.mul_f64(1.0 + JITTER * (random - 0.5))
    }

    /// The longest pause after a launch, from now.
    pub(crate) fn after_launch(self, bounds: Bounds) -> Duration {
        if self.failures > 0 { self.pause } else { bounds.min.max(self.least) }
    }

    /// The shortest pause after the last look if something is known to have happened.
    pub(crate) fn after_hint(self, bounds: Bounds) -> Duration {
        if self.failures > 0 { self.pause } else { bounds.min.mul_f64(HINT).max(self.least / 2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { min: Duration::from_secs(1), max: Duration::from_secs(10) };
    const QUICK: Duration = Duration::from_millis(10);

    fn pauses(looks: usize, all_wait: bool) -> Vec<f64> {
        let mut pace = Pace::new(BOUNDS);
        let mut pauses = Vec::new();
        for _ in 0..looks {
            pauses.push(pace.pause(0.5).as_secs_f64());
            pace = pace.looked(BOUNDS, QUICK, false, all_wait);
        }
        pauses
    }

    #[test]
    fn a_queue_that_does_not_change_is_looked_at_less_often() {
        assert_eq!(pauses(8, false), [1.0, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10.0, 10.0]);
        assert_eq!(pauses(12, true).last(), Some(&30.0));
        let changed = Pace::new(BOUNDS).looked(BOUNDS, QUICK, false, false).looked(BOUNDS, QUICK, true, false);
        assert_eq!(changed.pause(0.5), Duration::from_secs(1));
    }

    #[test]
    fn an_hour_of_running_jobs_takes_less_than_four_hundred_looks() {
        let (mut pace, mut time, mut looks) = (Pace::new(BOUNDS), 0.0, 0);
        while time < 3600.0 {
            time += pace.pause(0.0).as_secs_f64();
            pace = pace.looked(BOUNDS, QUICK, false, false);
            looks += 1;
        }
        assert!(looks <= 410, "{looks}");
    }

    #[test]
    fn a_slow_squeue_is_spared_and_one_that_fails_is_left_alone() {
        let looked = |pace: Pace, seconds| pace.looked(BOUNDS, Duration::from_secs(seconds), true, false);
        let once = looked(Pace::new(BOUNDS), 12);
        assert_eq!((once.pause(0.5), once.after_hint(BOUNDS).as_millis()), (BOUNDS.min, 400), "one slow answer is nothing");
        let slow = looked(looked(Pace::new(BOUNDS), 2), 2);
        assert_eq!(slow.pause(0.5), Duration::from_secs(40));
        assert_eq!(slow.after_hint(BOUNDS), Duration::from_secs(20));
        assert_eq!(looked(slow, 12).pause(0.5), Duration::from_secs(40));
        assert_eq!(looked(looked(slow, 12), 12).pause(0.5), SLOWEST);
        let mut pace = Pace::new(BOUNDS);
        let failing: Vec<u64> = (0..6)
            .map(|_| {
                pace = pace.failed();
                pace.pause(0.5).as_secs()
            })
            .collect();
        assert_eq!(failing, [5, 10, 20, 20, 20, 20]);
        assert_eq!(pace.looked(BOUNDS, QUICK, true, false).pause(0.5), Duration::from_secs(1));
    }

    #[test]
    fn the_pause_is_spread_by_a_tenth_each_way() {
        let pace = Pace::new(BOUNDS);
        assert_eq!((pace.pause(0.0).as_millis(), pace.pause(1.0).as_millis()), (900, 1100));
    }
}
