//! Queues and slots.

use crate::support::{Bench, Case, Options, all, case, tally};
use muster_core::{job::workload::Limits, result::Outcome, rules::Rules};
use muster_session::{
    case::{QueuedCase, StoredCase, Work},
    engine::ExecPolicy,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn takes(ms: u64) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended" }] })
}

fn order_of(lines: &[String], word: &str) -> Vec<String> {
    lines.iter().filter_map(|line| line.strip_prefix(word)).map(|rest| rest.split(' ').next().unwrap_or("").to_owned()).collect()
}

/// The largest number of jobs on the server, looked at between all changes.
async fn most_at_once(bench: &Bench, millis: u64) -> usize {
    let mut most = 0;
    for _ in 0..millis {
        most = most.max(bench.fake.jobs().len());
        sleep(Duration::from_millis(1)).await;
    }
    most
}

#[tokio::test(start_paused = true)]
async fn no_more_than_max_jobs_run_at_once_and_no_fewer() {
    let bench = Bench::new().await;
    let submitted: Vec<_> =
        (0..20).map(|n| bench.submit(Case { max_jobs: 3, ..case(&format!("c{n}"), takes(10)) }.queued())).collect();
    assert_eq!(most_at_once(&bench, 200).await, 3);
    for result in submitted {
        assert_eq!(result.await.expect("a result").outcome, Outcome::Pass);
    }
}

/// Attempts at these cases that another session has launched, as a process finds them that takes it over.
async fn launched(before: &Bench, names: &[&str], ms: u64) -> Vec<QueuedCase> {
    let cases = names.iter().map(|name| Case { max_jobs: 9, ..case(name, takes(ms)) }.queued());
    before.engine.submit_all(cases);
    while before.fake.jobs().len() < names.len() {
        sleep(Duration::from_millis(1)).await;
    }
    let queued = |name: &&str| {
        let queued = case(name, Value::Null).queued();
        let job = before.fake.jobs().into_iter().find(|job| job.case == queued.name.to_string()).expect("it runs");
        let limits = Limits { pending: None, run: None, judge: Duration::from_secs(5) };
        let (rules, launched, may_run, swept) = (Rules::default(), true, false, false);
        let stored = StoredCase { job, rules, limits, launched, may_run, started: None, launched_at: None, swept };
        QueuedCase { work: Work::Stored { stored: Box::new(stored), render: None }, ..queued }
    };
    names.iter().map(queued).collect()
}

#[tokio::test(start_paused = true)]
async fn jobs_that_were_taken_over_count() {
    for policy in [ExecPolicy::Async, ExecPolicy::Serial] {
        let before = Bench::new().await;
        let started = launched(&before, &["x", "y", "z"], 100).await;
        let bench = Bench::with(Options { policy, fake: before.fake.clone(), ..Options::default() }).await;
        let new = (0..4).map(|n| Case { max_jobs: 2, ..case(&format!("c{n}"), takes(10)) }.queued());
        bench.engine.submit_all(new.chain(started));
        assert_eq!(most_at_once(&bench, 90).await, 3, "{policy:?}: nothing begins while they run");
        assert_eq!(most_at_once(&bench, 5).await, 3, "{policy:?}");
        sleep(Duration::from_millis(10)).await;
        let limit = if policy == ExecPolicy::Serial { 1 } else { 2 };
        assert_eq!(most_at_once(&bench, 100).await, limit, "{policy:?}");
        let results = bench.engine.finish().await;
        // Two sessions have followed the others.
        let new = results.iter().filter(|result| result.name.display.starts_with('c'));
        assert_eq!((results.len(), tally(new).get("pass")), (7, Some(&4)), "{policy:?}: {:?}", tally(&results));
    }
}

#[tokio::test(start_paused = true)]
async fn cases_begin_in_the_order_of_their_submission() {
    let mut bench = Bench::new().await;
    all(&bench, (0..6).map(|n| case(&format!("c{n}"), takes(10)))).await;
    assert_eq!(order_of(&bench.drain(), "begun "), ["c0", "c1", "c2", "c3", "c4", "c5"]);
}

#[tokio::test(start_paused = true)]
async fn results_stand_in_the_order_of_their_endings() {
    let mut bench = Bench::new().await;
    bench.engine.submit_all((0..4_u64).map(|n| Case { max_jobs: 4, ..case(&format!("c{n}"), takes(400 - 100 * n)) }.queued()));
    let results = bench.engine.finish().await;
    assert_eq!(order_of(&bench.drain(), "finished "), ["c3", "c2", "c1", "c0"]);
    let ended: Vec<_> = results.iter().map(|result| result.name.display.as_str()).collect();
    assert_eq!(ended, ["c3", "c2", "c1", "c0"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_site_holds_up_only_its_own_partition() {
    let mut bench = Bench::new().await;
    let full = json!({ "launch": { "not_now": [{ "why": "quota", "retry_after_ms": 600_000 }] } });
    all(
        &bench,
        [
            case("p-first", full),
            case("p-second", takes(10)),
            Case { partition: "q", ..case("q-first", takes(10)) },
            Case { partition: "q", ..case("q-second", takes(10)) },
        ],
    )
    .await;
    assert_eq!(order_of(&bench.drain(), "finished "), ["q-first", "q-second", "p-first", "p-second"]);
}

#[tokio::test(start_paused = true)]
async fn serial_runs_one_case_at_a_time_over_all_partitions() {
    let mut bench = Bench::with(Options { policy: ExecPolicy::Serial, ..Options::default() }).await;
    let begun = Instant::now();
    all(
        &bench,
        (0..6).map(|n| Case {
            partition: if n % 2 == 0 { "p" } else { "q" },
            max_jobs: 8,
            ..case(&format!("c{n}"), takes(1000))
        }),
    )
    .await;
    assert!(begun.elapsed() >= Duration::from_secs(6));
    let lines = bench.drain();
    let turns: Vec<_> = lines.iter().filter(|line| line.starts_with("begun") || line.starts_with("finished")).collect();
    assert!(turns.chunks(2).all(|pair| pair[0].starts_with("begun") && pair[1].starts_with("finished")), "{turns:?}");
}

#[tokio::test(start_paused = true)]
async fn after_maxfail_failures_the_rest_is_aborted() {
    let bench = Bench::with(Options { maxfail: Some(2), ..Options::default() }).await;
    let fails = |ms: u64| json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended", "exit": 1 }] });
    // Two fail while a third still runs: that one is let end.
    let cases = (0..10).map(|n| Case {
        max_jobs: 3,
        ..case(
            &format!("c{n}"),
            match n {
                0 | 1 => fails(10 + n),
                2 => takes(500),
                _ => takes(10),
            },
        )
    });
    let results = all(&bench, cases).await;
    assert_eq!(results[2].outcome, Outcome::Pass);
    let aborted: Vec<_> = results.iter().filter(|result| result.outcome == Outcome::Abort).collect();
    assert!(aborted.len() >= 6, "{:?}", tally(&results));
    assert_eq!(aborted[0].cause.as_deref(), Some("after 2 failures (--maxfail)"));
    assert!(!bench.engine.is_cancelled(), "a session that ends by its own rule is not interrupted");
    let late = bench.submit(case("late", takes(1)).queued()).await.expect("a result");
    assert_eq!(late.outcome, Outcome::Abort);
}

#[tokio::test(start_paused = true)]
async fn a_partition_without_a_scheduler_is_a_mistake_of_that_case_only() {
    let bench = Bench::new().await;
    let results = all(&bench, [Case { partition: "nowhere", ..case("a", takes(1)) }, case("b", takes(1))]).await;
    insta::assert_snapshot!(results[0].cause.as_deref().unwrap_or_default(), @"partition nowhere has no scheduler in this session");
    assert_eq!(results[1].outcome, Outcome::Pass);
}
