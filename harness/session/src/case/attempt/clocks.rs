//! Measures how long an attempt has waited and run. Tokio's clock, so that tests may pause it.

use muster_core::{decisions::pipeline::Elapsed, job::scheduler::JobStatus};
use muster_host::clock;
use std::time::Duration;
use tokio::time::Instant;

/// Two clocks, never one: waiting before and between, running since the first time.
pub(crate) struct Clocks {
    pending: Duration,
    pending_since: Option<Instant>,
    running_since: Option<Instant>,
    /// What ran before this process looked counts, as far as the scheduler's own times tell.
    from_status: bool,
}

impl Clocks {
    /// From now on it waits.
    pub(crate) fn start() -> Self {
        Self { pending: Duration::ZERO, pending_since: Some(Instant::now()), running_since: None, from_status: false }
    }

    /// The last of its waiting, so long, does not count.
    pub(crate) fn leave_out(&mut self, time: Duration) {
        if let Some(since) = &mut self.pending_since {
            *since += time;
        }
    }

    /// Another process launched it. How long it waited there is not known, and counts from now on.
    pub(crate) fn of_another_process() -> Self {
        Self { from_status: true, ..Self::start() }
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
            let before = match status {
                JobStatus::Running { since, .. } if self.from_status => clock::now().since(*since),
                _ => Duration::ZERO,
            };
            let now = Instant::now();
            self.running_since.get_or_insert_with(|| now.checked_sub(before).unwrap_or(now));
        }
    }

    /// What `muster_core::decisions::pipeline` decides on.
    pub(crate) fn elapsed(&self) -> Elapsed {
        Elapsed {
            pending: self.pending + self.pending_since.map_or(Duration::ZERO, |since| since.elapsed()),
            running: self.running_since.map_or(Duration::ZERO, |since| since.elapsed()),
            overdue: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::time::Timestamp;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn waiting_stands_still_while_it_runs_and_running_never_does() {
        let (pending, running) = (
            JobStatus::Pending { why: "queue".into() },
            JobStatus::Running { since: Timestamp(0), nodes: Vec::new(), partly_ended: None, has_ended: false },
        );
        let mut clocks = Clocks::start();
        let mut seen = Vec::new();
        for status in [&JobStatus::NotSeen, &pending, &running, &pending, &running] {
            clocks.saw(status);
            advance(Duration::from_secs(10)).await;
            let Elapsed { pending, running, .. } = clocks.elapsed();
            seen.push((pending.as_secs(), running.as_secs()));
        }
        assert_eq!(seen, [(10, 0), (20, 0), (20, 10), (30, 20), (30, 30)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_out_is_no_waiting() {
        let mut clocks = Clocks::start();
        advance(Duration::from_secs(10)).await;
        clocks.leave_out(Duration::from_secs(7));
        advance(Duration::from_secs(1)).await;
        assert_eq!(clocks.elapsed().pending.as_secs(), 4);
    }
}
