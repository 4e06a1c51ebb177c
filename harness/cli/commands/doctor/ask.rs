//! Asks the questions of a part one after the other, each on a thread of its own: a call that does not return holds up no other
//! question. None is waited for longer than its limit, and all together no longer than theirs.

use crate::{inputs::unanswered::no_answer, terminal::Terminal};
use muster_core::probe::{EACH, Probe, Probed, WHOLE, seconds};
use std::{thread, time::Duration};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout},
};

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

/// What is left of the whole time to print.
const LAST: Duration = Duration::from_secs(2);

pub struct Asker {
    limits: Limits,
    by: Instant,
    tell: Box<dyn Fn(String) + Sync + Send>,
}

impl Asker {
    /// An asker for a command that was `started` then.
    pub fn new(started: std::time::Instant, terminal: Terminal) -> Self {
        let limits = Limits { patience: Duration::from_secs(1), each: EACH, whole: WHOLE };
        let asker = Self::within(limits, move |line| terminal.note(&line));
        Self { by: Instant::from_std(started) + WHOLE - LAST, ..asker }
    }

    fn within(limits: Limits, tell: impl Fn(String) + Sync + Send + 'static) -> Self {
        Self { limits, by: Instant::now() + limits.whole, tell: Box::new(tell) }
    }

    /// All findings. `part`: what is asked about.
    pub async fn ask(&self, part: &str, questions: Vec<Probe<'static>>) -> Vec<Probed> {
        let mut found = Vec::new();
        for Probe { name, of, answer } in questions {
            let limit = self.limits.each.min(self.by.saturating_duration_since(Instant::now()));
            let of = of.map_or_else(String::new, |of| format!("{of}: "));
            let given_up = |why: String| vec![Probed::error(name, format!("{of}{why}"), None)];
            if limit.is_zero() {
                found.extend(given_up(format!("not asked: all questions together have {}", seconds(self.limits.whole))));
                continue;
            }
            let patience = self.limits.patience.min(limit);
            let mut answer = on_a_thread(limit, answer);
            let answered = if let Ok(answered) = timeout(patience, &mut answer).await {
                Some(answered)
            } else {
                (self.tell)(format!("{part}: waiting for an answer about {name}, {} at most", seconds(limit)));
                timeout(limit.saturating_sub(patience), answer).await.ok()
            };
            // Without a thread nothing answers either.
            found.extend(answered.and_then(Result::ok).unwrap_or_else(|| given_up(no_answer(limit))));
        }
        found
    }
}

/// Runs the question on a thread of its own. An answer in time drops it there; a call that does not return keeps its thread.
pub fn on_a_thread<T: Send + 'static>(limit: Duration, answer: impl Future<Output = T> + Send + 'static) -> oneshot::Receiver<T> {
    let (sender, receiver) = oneshot::channel();
    let runtime = Handle::current();
    let asked = move || {
        if let Ok(answer) = runtime.block_on(async { timeout(limit, answer).await }) {
            let _ = sender.send(answer);
        }
    };
    let _ = thread::Builder::new().name("question".into()).spawn(asked);
    receiver
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
        let expected = ("no answer within 1 s", "not asked: all questions together have 2 s");
        assert_eq!((&*found[2].what, &*found[5].what), expected);
        assert!(started.elapsed() < millis(2500) + millis(1000), "{:?}", started.elapsed());
        assert_eq!(told.lock()[0], "gpu: waiting for an answer about slow, 1 s at most");
    }

    #[tokio::test]
    async fn a_call_that_does_not_return_is_an_error_with_its_file_and_holds_up_no_other_question() {
        let millis = Duration::from_millis;
        let asker = Asker::within(Limits { patience: millis(50), each: millis(300), whole: millis(5000) }, |_| ());
        let blocks = Probe::new("stage", async {
            thread::sleep(Duration::from_mins(1));
            Vec::new()
        });
        let started = Instant::now();
        let found = asker.ask("this machine", vec![blocks.of("/scratch/stage"), after("output", 0)]).await;
        let lines: Vec<String> = found.iter().map(|one| format!("{} {}: {}", one.level, one.topic, one.what)).collect();
        assert_eq!(lines, ["error stage: /scratch/stage: no answer within 0 s", "ok output: it is so"]);
        assert!(started.elapsed() < millis(3000), "{:?}", started.elapsed());
    }
}
