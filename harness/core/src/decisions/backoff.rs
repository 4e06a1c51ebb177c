//! The pauses before a failed operation is tried again.

use std::time::Duration;

/// Pauses that double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// Returns the pause after so many failures in a row; after none it is that after one.
    pub fn after(self, failures: u32) -> Duration {
        let doubled = failures.saturating_sub(1).min(u32::BITS - 1);
        self.first.saturating_mul(1 << doubled).min(self.longest)
    }

    /// Returns the pause that follows one of this length; no pause comes before the first.
    #[must_use]
    pub fn next(self, pause: Duration) -> Duration {
        pause.saturating_mul(2).clamp(self.first, self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let rows = [
            ((1_000, 8_000), [1_000, 2_000, 4_000, 8_000, 8_000]),
            ((200, 5_000), [200, 400, 800, 1_600, 3_200]),
            ((1_000, 5_000), [1_000, 2_000, 4_000, 5_000, 5_000]),
            ((2_000, 2_000), [2_000; 5]),
        ];
        for ((first, longest), expected) in rows {
            let [first, longest] = [first, longest].map(Duration::from_millis);
            let (pauses, mut pause) = (Backoff { first, longest }, Duration::ZERO);
            for (failures, expected) in (1..).zip(expected.map(Duration::from_millis)) {
                pause = pauses.next(pause);
                assert_eq!((pauses.after(failures), pause), (expected, expected), "{pauses:?} {failures}");
            }
            assert_eq!((pauses.after(0), pauses.after(u32::MAX), pauses.next(Duration::MAX)), (first, longest, longest));
        }
    }
}
