//! Asks the questions of a part one after the other. None is waited for longer than its limit, and all together no longer than theirs.

use crate::terminal::Terminal;
use muster_core::probe::{Probe, Probed, seconds};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// What takes longer is told of.
    patience: Duration,
    /// One question.
    each: Duration,
    /// All of them.
    whole: Duration,
}

const LIMITS: Limits = Limits { patience: Duration::from_secs(1), each: Duration::from_secs(10), whole: Duration::from_mins(1) };

pub struct Asker {
    limits: Limits,
    by: Instant,
    tell: Box<dyn Fn(String) + Sync + Send>,
}

impl Asker {
    /// From now on.
    pub fn new(terminal: Terminal) -> Self {
        Self::within(LIMITS, move |line| terminal.note(&line))
    }

    fn within(limits: Limits, tell: impl Fn(String) + Sync + Send + 'static) -> Self {
        Self { limits, by: Instant::now() + limits.whole, tell: Box::new(tell) }
    }

    /// All findings. `part`: what is asked about.
    pub async fn ask(&self, part: &str, questions: Vec<Probe<'_>>) -> Vec<Probed> {
        let mut found = Vec::new();
        for Probe { name, mut answer } in questions {
            let limit = self.limits.each.min(self.by.saturating_duration_since(Instant::now()));
            if limit.is_zero() {
                found.push(Probed::error(name, format!("not asked: {} are over", seconds(self.limits.whole)), None));
                continue;
            }
            let patience = self.limits.patience.min(limit);
            let answered = if let Ok(more) = timeout(patience, &mut answer).await {
                Ok(more)
            } else {
                (self.tell)(format!("{part}: waiting for an answer about {name}, {} at most", seconds(limit)));
                timeout(limit.saturating_sub(patience), answer).await
            };
            match answered {
                Ok(more) => found.extend(more),
                Err(_) => found.push(Probed::error(name, format!("no answer within {}", seconds(limit)), None)),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::{future::pending, sync::Arc};

    fn after(name: &'static str, millis: u64) -> Probe<'static> {
        Probe::new(name, async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            vec![Probed::fine(name, "it is so")]
        })
    }

    #[tokio::test]
    async fn no_question_takes_longer_than_its_limit_nor_all_than_theirs_and_slow_ones_are_told_of() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let millis = Duration::from_millis;
        let limits = Limits { patience: millis(50), each: millis(1000), whole: millis(2500) };
        let asker = Asker::within(limits, move |line| tell.lock().push(line));
        let silent = |name| Probe::new(name, pending());
        let questions = vec![after("quick", 0), after("slow", 200), silent("a"), silent("b"), silent("c"), after("last", 0)];
        let started = Instant::now();
        let found = asker.ask("gpu", questions).await;
        let lines: Vec<String> = found.iter().map(|one| format!("{} {}", one.level, one.topic)).collect();
        assert_eq!(lines, ["ok quick", "ok slow", "error a", "error b", "error c", "error last"]);
        assert_eq!((&*found[2].what, &*found[5].what), ("no answer within 1 s", "not asked: 2 s are over"));
        assert!(started.elapsed() < millis(2500) + millis(1000), "{:?}", started.elapsed());
        assert_eq!(told.lock()[0], "gpu: waiting for an answer about slow, 1 s at most");
    }
}
