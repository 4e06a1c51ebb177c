//! The end of a session before its time.

use crate::support::{Bench, Case, Options, Silent, all, case, tally};
use muster_core::{job::scheduler::Scheduler, result::Outcome};
use muster_fake::{Call, FakeScheduler};
use muster_session::case::{QueuedCase, Work};
use muster_session::front::signals::Signals;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

fn life() -> Value {
    json!({
        "launch": { "delay_ms": 30 },
        "statuses": [{ "state": "pending", "why": "queue" }, { "after_ms": 10, "state": "running" }, { "after_ms": 40, "state": "ended" }],
        "logs": [{ "after_ms": 20, "text": "hello\n" }],
        "cleanup": { "delay_ms": 5 },
    })
}

/// Cancels after so many microseconds of a paused clock.
fn cancel_after(bench: &Bench, micros: u64) {
    let engine = bench.engine.clone();
    tokio::spawn(async move {
        sleep(Duration::from_micros(micros)).await;
        engine.cancel("interrupted by SIGINT");
    });
}

#[tokio::test(start_paused = true)]
async fn whenever_a_session_is_cancelled_nothing_is_left_on_the_server() {
    let (mut created, mut aborted, mut passed) = (0, 0, 0);
    // A step of 311 µs against phases of 30, 40 and 5 ms: every phase is hit many times.
    for n in 0..300_u64 {
        let bench = Bench::new().await;
        cancel_after(&bench, n * 311);
        let result = bench.scenario(life()).await;
        match result.outcome {
            Outcome::Abort => aborted += 1,
            Outcome::Pass => passed += 1,
            ref other => panic!("{other} after {} µs", n * 311),
        }
        // What a client that went away had begun would be there by now.
        sleep(Duration::from_secs(1)).await;
        assert_eq!(bench.left(), 0, "after {} µs", n * 311);
        assert!(bench.engine.in_flight().is_empty());
        created += bench.fake.created();
    }
    assert!(aborted > 100 && passed > 10 && created > 200, "{aborted} aborted, {passed} passed, {created} created");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_cases_cancelled_together_leave_nothing() {
    let bench = Bench::new().await;
    cancel_after(&bench, 45_000);
    let results = all(&bench, (0..300).map(|n| Case { max_jobs: 100, ..case(&format!("c{n}"), life()) })).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(bench.left(), 0, "{:?}", tally(&results));
    assert!(results.iter().any(|result| result.outcome == Outcome::Abort));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_aborted_without_a_job_and_with_the_reason() {
    let mut bench = Bench::new().await;
    cancel_after(&bench, 60_000);
    let results = all(&bench, (0..5).map(|n| case(&format!("c{n}"), life()))).await;
    let launches = bench.fake.calls().into_iter().filter(|(call, _)| *call == Call::Launch).count();
    assert_eq!(launches, 1);
    assert!(results[1..].iter().all(|result| result.outcome == Outcome::Abort && result.identifier.is_none()));
    assert_eq!(results[4].cause.as_deref(), Some("interrupted by SIGINT"));
    assert!(bench.drain().contains(&"cancelling: interrupted by SIGINT".to_owned()));
    assert!(bench.engine.is_cancelled());
}

/// To stop and to remove the job would take twenty minutes.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_has_one_limit_and_says_what_may_be_left() {
    let scheduler = Some(Arc::new(Silent(FakeScheduler::default())) as Arc<dyn Scheduler>);
    let mut bench = Bench::with(Options { scheduler, ..Options::default() }).await;
    let forever = json!({ "statuses": [{ "state": "running" }, { "after_ms": 500_000_000, "state": "ended" }], "logs": [{ "text": "hello\n" }] });
    cancel_after(&bench, 1_000_000);
    let result = bench.scenario(forever).await;
    let due = bench.engine.end_is_due().expect("it was cancelled");
    let late = tokio::time::Instant::now().saturating_duration_since(due);
    assert!(late < Duration::from_secs(20), "{late:?}");
    assert_eq!(result.outcome, Outcome::Abort);
    let identifier = result.identifier.as_ref().expect("an identifier");
    assert!(result.leftovers.iter().any(|left| left.contains("`muster sweep` removes it")), "{:?}", result.leftovers);
    let told = format!(
        "warning the session has been ending for 11m30s: no server is waited for any more; what may be left of {} ({identifier}): \
         `muster sweep` removes it",
        result.name
    );
    let events = bench.drain();
    assert!(events.contains(&told), "{events:?}");
    let progress: Vec<&String> = events.iter().filter(|event| event.contains("it waits for")).collect();
    let first = format!(
        "warning the session has been ending for 10.0s: it waits for the end of {} ({identifier}), 11m20s more at most; \
         interrupted again it leaves that to `muster sweep`",
        result.name
    );
    assert_eq!((progress.first(), progress.len()), (Some(&&first), 7), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn between_plan_and_launch_it_leaves_nothing_behind() {
    let bench = Bench::new().await;
    let mut queued = case("a", life()).queued();
    let engine = bench.engine.clone();
    let Work::New(render) = queued.work else { panic!("a new case") };
    queued.work = Work::New(Arc::new(move |facts| {
        engine.cancel("enough");
        render(facts)
    }));
    let result = bench.submit(queued).await.expect("a result");
    assert_eq!((&result.outcome, &result.folder), (&Outcome::Abort, &None));
    let calls: Vec<_> = bench.fake.calls().into_iter().map(|(call, _)| call).collect();
    assert_eq!(calls, [Call::Plan]);
    assert!(!bench.folder.path().join("stage/test/p/default/a_0123456789abcdef").exists());
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_begun_is_awaited_and_then_deleted() {
    let bench = Bench::new().await;
    cancel_after(&bench, 10_000);
    let result = bench.scenario(life()).await;
    assert_eq!(result.outcome, Outcome::Abort);
    assert_eq!(bench.fake.created(), 1);
    let calls: Vec<_> = bench.fake.calls().into_iter().map(|(call, _)| call).collect();
    assert_eq!(calls[..2], [Call::Plan, Call::Launch]);
    // Stopped, so that the log can end; then removed.
    let cleanups: Vec<_> = calls.into_iter().filter(|call| matches!(call, Call::Stop | Call::Delete)).collect();
    assert_eq!(cleanups, [Call::Stop, Call::Delete]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_does_not_wait_for_room_or_for_a_retry() {
    let not_now = json!({ "launch": { "not_now": [{ "why": "quota", "retry_after_ms": 3_000_000 }] } });
    let error = json!({ "launch": { "error": { "class": "infra", "message": "reset", "times": 9, "retry_after_ms": 60_000 } } });
    for scenario in [not_now, error] {
        let bench = Bench::new().await;
        cancel_after(&bench, 1_000_000);
        let begun = tokio::time::Instant::now();
        assert_eq!(bench.scenario(scenario).await.outcome, Outcome::Abort);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_air_can_be_named_at_any_moment() {
    let bench = Bench::new().await;
    let running = bench.submit(case("a", json!({ "statuses": [{ "state": "running" }] })).queued());
    sleep(Duration::from_secs(5)).await;
    let in_flight = bench.engine.in_flight();
    assert_eq!(in_flight.len(), 1);
    assert_eq!(in_flight[0].case.display, "a");
    bench.engine.cancel("enough");
    let result = running.await.expect("a result");
    assert_eq!(result.identifier.as_ref(), Some(&in_flight[0].job.identifier));
    assert!(bench.engine.in_flight().is_empty());
}

#[tokio::test]
async fn the_first_signal_cancels_and_the_second_names_what_is_left() {
    let mut bench = Bench::new().await;
    let stubborn = json!({ "statuses": [{ "state": "running" }], "cleanup": { "delay_ms": 3_600_000 } });
    let running = bench.submit(case("a", stubborn).queued());
    let mut signals = Signals::listen().expect("handlers");
    let engine = bench.engine.clone();
    let supervised = tokio::spawn(async move { signals.supervise(&engine).await });
    while bench.fake.created() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    raise(Signal::TERM);
    while !bench.engine.is_cancelled() {
        sleep(Duration::from_millis(1)).await;
    }
    // A terminal that goes away says so several times, and is nobody's impatience.
    raise(Signal::HUP);
    // `timeout` signals a process, and then its group.
    raise(Signal::TERM);
    sleep(Duration::from_millis(50)).await;
    assert!(!supervised.is_finished());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    raise(Signal::INT);
    supervised.await.expect("no panic");
    let left = bench.engine.in_flight();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].case.display, "a");
    assert!(bench.drain().contains(&"cancelling: interrupted by SIGTERM".to_owned()));
    drop(running);
}

fn raise(signal: Signal) {
    kill_process(getpid(), signal).expect("a signal");
}

#[tokio::test(start_paused = true)]
async fn a_case_whose_scheduler_has_not_answered_does_not_begin_after_too_many_failures() {
    let bench = Bench::with(Options { maxfail: Some(1), ..Options::default() }).await;
    let (answer, asked) = watch::channel(None);
    let waits =
        QueuedCase { answer: Some(asked), max_jobs: 2, ..case("waits", json!({ "statuses": [{ "state": "ended" }] })).queued() };
    let waits = bench.submit(waits);
    bench.scenario(json!({ "statuses": [{ "state": "ended", "exit": 1 }] })).await;
    answer.send_replace(Some(Arc::default()));
    let result = waits.await.expect("a result");
    assert_eq!((&result.outcome, result.cause.as_deref()), (&Outcome::Abort, Some("after 1 failure (--maxfail)")));
    assert_eq!(bench.fake.created(), 1);
}
