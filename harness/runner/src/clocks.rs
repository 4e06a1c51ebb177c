//! How long an attempt has waited and run. Tokio's clock, so that tests may pause it.

use muster_core::{pipeline::Elapsed, scheduler::JobStatus};
use std::time::Duration;
use tokio::time::Instant;

/// Two clocks, never one: waiting before and between, running since the first time.
pub(crate) struct Clocks {
    pending: Duration,
    pending_since: Option<Instant>,
    running_since: Option<Instant>,
}

impl Clocks {
    /// From now on it waits.
    pub(crate) fn start() -> Self {
        Self { pending: Duration::ZERO, pending_since: Some(Instant::now()), running_since: None }
    }

    /// Takes note of a status, and of when it came.
    pub(crate) fn saw(&mut self, status: &JobStatus) {
        let waits = matches!(status, JobStatus::NotSeen | JobStatus::Pending { .. });
        match (waits, self.pending_since) {
            (true, None) => self.pending_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.pending += since.elapsed();
                self.pending_since = None;
            }
            _ => {}
        }
        if !waits {
            self.running_since.get_or_insert_with(Instant::now);
        }
    }

    /// What `muster_core::pipeline` decides on.
    pub(crate) fn elapsed(&self) -> Elapsed {
        Elapsed {
            pending: self.pending + self.pending_since.map_or(Duration::ZERO, |since| since.elapsed()),
            running: self.running_since.map_or(Duration::ZERO, |since| since.elapsed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::time::Timestamp;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn waiting_stands_still_while_it_runs_and_running_never_does() {
        let (pending, running) =
            (JobStatus::Pending { why: "queue".into() }, JobStatus::Running { since: Timestamp(0), nodes: Vec::new() });
        let mut clocks = Clocks::start();
        let mut seen = Vec::new();
        for status in [&JobStatus::NotSeen, &pending, &running, &pending, &running] {
            clocks.saw(status);
            advance(Duration::from_secs(10)).await;
            let Elapsed { pending, running } = clocks.elapsed();
            seen.push((pending.as_secs(), running.as_secs()));
        }
        assert_eq!(seen, [(10, 0), (20, 0), (20, 10), (30, 20), (30, 30)]);
    }
}
