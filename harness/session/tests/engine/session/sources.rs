//! Where the cases of a session come from.

use crate::support::{Bench, case};
use muster_core::{
    decisions::attempts::Attempts,
    result::{CaseResult, Counting},
};
use muster_session::{
    case::QueuedCase,
    session_loop::{
        self,
        source::{Batch, Next, SoFar, Source},
        taken_over::TakenOver,
    },
};
use muster_text::time::Timestamp;
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

fn queued(name: &str, attempt: u32) -> QueuedCase {
    QueuedCase { attempt, ..case(name, json!({ "statuses": [{ "state": "ended" }] })).queued() }
}

fn batch(number: u32, names: &str) -> Next {
    let items = names.split_whitespace().map(|name| queued(name, number)).collect();
    Next::More(Batch { items, number, title: (number > 1).then(|| format!("round {number}")), ..Batch::default() })
}

/// Runs a source from what is known already. The attempts in the order of their endings, and the events.
async fn run(bench: &mut Bench, source: &mut impl Source, known: &[(&str, u32)]) -> (Vec<String>, Vec<String>) {
    let mut attempts = Attempts::new(Counting::Last);
    for (name, attempt) in known {
        let name = (*queued(name, 0).name).clone();
        attempts.add(Arc::new(CaseResult { name, attempt: *attempt, ..CaseResult::default() }));
    }
    let is_known = |result: &CaseResult| known.contains(&(&*result.name.display, result.attempt));
    session_loop::run(&bench.engine, source, &Arc::default(), &mut attempts).await;
    let line = |result: &Arc<CaseResult>| format!("{} {}", result.name.display, result.attempt);
    let ended = attempts.kept().into_iter().filter(|result| !is_known(result)).map(line).collect();
    (ended, bench.drain())
}

/// Three rounds of the same cases.
struct Thrice(u32);

impl Source for Thrice {
    fn next(&mut self, _: Timestamp, so_far: &SoFar<'_>) -> Next {
        if !so_far.is_idle {
            return Next::Wait;
        }
        self.0 += 1;
        if self.0 > 3 { Next::Done(None) } else { batch(self.0, "a b") }
    }
}

/// Proposes a case when one has ended, without waiting for the others.
struct Proposes(u32);

impl Source for Proposes {
    fn next(&mut self, _: Timestamp, so_far: &SoFar<'_>) -> Next {
        let ended = u32::try_from(so_far.attempts.kept().len()).unwrap_or(u32::MAX);
        match self.0 {
            4 if so_far.is_idle => Next::Done(None),
            given if given < 4 && given <= ended => {
                self.0 += 1;
                batch(1, &format!("c{given}"))
            }
            _ => Next::Wait,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_is_asked_again_with_the_results_so_far() {
    let (ended, _) = run(&mut Bench::new().await, &mut Proposes(0), &[]).await;
    assert_eq!(ended.join(", "), "c0 1, c1 1, c2 1, c3 1");
}

#[tokio::test(start_paused = true)]
async fn what_another_process_has_ended_is_not_run_again_and_what_it_has_started_is_continued() {
    type Row<'a> = (&'a [(&'a str, u32)], &'a [(&'a str, u32)], &'a str);
    let rows: [Row<'_>; 5] = [
        (&[], &[], "a 1, b 1, a 2, b 2, a 3, b 3"),
        (&[("a", 1)], &[("b", 1)], "b 1, a 2, b 2, a 3, b 3"),
        (&[("a", 1), ("b", 1), ("a", 2)], &[], "b 2, a 3, b 3"),
        (&[("a", 1), ("b", 1), ("b", 2)], &[("a", 2)], "a 2, a 3, b 3"),
        // Nothing gives it any more.
        (&[("a", 3), ("b", 3)], &[("b", 4)], "b 4"),
    ];
    for (ended, started, expected) in rows {
        let mut bench = Bench::new().await;
        let started = started.iter().map(|(name, attempt)| queued(name, *attempt)).collect();
        let mut source = TakenOver { started, made_again: Vec::new(), continued: BTreeSet::new(), rest: Thrice(0) };
        let (told, events) = run(&mut bench, &mut source, ended).await;
        assert_eq!(told.join(", "), expected, "{ended:?}");
        let titles = events.iter().filter(|line| line.starts_with("round")).count();
        let rounds = expected.split(", ").filter_map(|line| line.split_once(' ')).map(|(_, number)| number);
        let rounds: std::collections::BTreeSet<_> =
            rounds.filter(|number| (2..4).any(|round| **number == round.to_string())).collect();
        assert_eq!(titles, rounds.len(), "{ended:?}: a round that runs nothing is not shown");
    }
}
