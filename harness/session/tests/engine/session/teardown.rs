//! What teardowns leave: awaited, and named in the report with what removes it.

use crate::support::{Bench, Case, Options, PanicIn, Panicking, all, case};
use muster_core::{
    job::{
        inventory::{Inventory, Scope},
        scheduler::{Chunks, Disposition, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler},
        workload::Workload,
    },
    result::CaseResult,
};
use muster_fake::FakeScheduler;
use muster_session::{case::QueuedCase, engine::ExecPolicy};
use muster_text::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

fn takes(ms: u64) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended" }] })
}

/// The fake, but for the launch of a teardown, which asks for nothing for an hour.
struct Hesitating(FakeScheduler);

impl Scheduler for Hesitating {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        self.0.plan(workload)
    }
    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move {
            if job.stage.extension().is_some_and(|end| end == "teardown") {
                sleep(Duration::from_hours(1)).await;
            }
            self.0.launch(job).await
        })
    }
    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        self.0.wait(job, seen)
    }
    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        self.0.collect_logs(job, from)
    }
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        self.0.cleanup(job, how)
    }
    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        self.0.inventory(scope)
    }
}

/// A scenario with more to it.
fn with(mut scenario: Value, key: &str, value: Value) -> Value {
    scenario[key] = value;
    scenario
}

/// What the report has in the end of a case that is torn down so.
async fn reported(bench: &Bench, teardown: Value) -> Vec<CaseResult> {
    all(bench, [Case { teardown: Some(teardown), ..case("build", takes(10)) }]).await;
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    bench.engine.with_leftovers().await
}

fn shown(bench: &Bench, results: &[CaseResult]) -> String {
    let mut text = String::new();
    for result in results {
        for (what, lines) in [("W", &result.warnings), ("left", &result.leftovers), ("delete", &result.delete)] {
            text.extend(lines.iter().map(|line| format!("{what}: {line}\n")));
        }
    }
    // Identifiers have eight letters.
    let text = bench.relative(&text);
    let mut pieces = text.split("rfm=");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + "rfm=IDENTIFIER" + &piece[8..])
}

#[tokio::test(start_paused = true)]
async fn what_a_teardown_could_not_remove_is_in_the_report_with_what_removes_it() {
    let bench = Bench::new().await;
    let kept = reported(&bench, with(takes(10), "cleanup", json!({ "leftovers": ["pod x: kubectl delete pod x"] }))).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"left: pod x: kubectl delete pod x");
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_of_a_teardown_is_tried_again_and_what_it_may_leave_is_named() {
    let error = |times: u32| json!({ "error": { "class": "infra", "message": "no answer", "times": times } });
    let bench = Bench::new().await;
    let kept = reported(&bench, with(takes(10), "cleanup", error(2))).await;
    assert_eq!((shown(&bench, &kept), bench.left()), (String::new(), 0));

    let bench = Bench::new().await;
    let kept = reported(&bench, with(takes(10), "cleanup", error(99))).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"
    W: the cleanup of its teardown failed: no answer
    left: whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
    ");
}

#[tokio::test(start_paused = true)]
async fn a_teardown_that_fails_is_in_the_report_with_its_folders() {
    let bench = Bench::new().await;
    let fails = json!({ "statuses": [{ "state": "running" }, { "after_ms": 10, "state": "ended", "exit": 1 }] });
    let kept = reported(&bench, fails).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"
    W: its teardown failed: exit status 1; see /stage/test/p/default/build_0123456789abcdef.teardown/rfm_job.out
    delete: rm -r /stage/test/p/default/build_0123456789abcdef
    delete: rm -r /stage/test/p/default/build_0123456789abcdef.teardown
    ");
}

#[tokio::test(start_paused = true)]
async fn a_launch_of_a_teardown_that_is_under_way_is_awaited_before_the_cleanup() {
    let bench = Bench::new().await;
    // Turned away once, then under way when the minute of an interrupted session is over.
    let slow = json!({ "not_now": [{ "why": "quota", "retry_after_ms": 30_000 }], "delay_ms": 20_000 });
    let build = Case { teardown: Some(with(takes(10), "launch", slow)), ..case("build", takes(10)) };
    let results = bench.submit_all([build, case("user", takes(60_000)).after(&["build"])].map(Case::queued));
    sleep(Duration::from_millis(500)).await;
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!((bench.fake.created(), bench.left()), (3, 0), "user, build and the teardown, and nothing of them is there");
}

#[tokio::test(start_paused = true)]
async fn a_teardown_that_is_never_answered_is_named() {
    let fake = FakeScheduler::default();
    let options = Options { fake: fake.clone(), scheduler: Some(Arc::new(Hesitating(fake))), ..Options::default() };
    let bench = Bench::with(options).await;
    let kept = reported(&bench, takes(10)).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"
    W: its teardown failed: the launch was not answered within 1m; see /stage/test/p/default/build_0123456789abcdef.teardown/rfm_job.out
    left: whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
    delete: rm -r /stage/test/p/default/build_0123456789abcdef
    delete: rm -r /stage/test/p/default/build_0123456789abcdef.teardown
    ");
    sleep(Duration::from_hours(2)).await;
    assert_eq!((bench.fake.created(), bench.left()), (1, 0), "nothing is created after the cleanup");
}

#[tokio::test(start_paused = true)]
async fn a_teardown_is_launched_again_after_an_outage_and_under_another_identifier_if_its_own_is_taken() {
    let outage = json!({ "error": { "class": "outage", "message": "no route", "times": 9 } });
    // The case itself has drawn the first.
    let taken = json!({ "taken": 3 });
    for launch in [outage, taken] {
        let bench = Bench::new().await;
        let kept = reported(&bench, with(takes(10), "launch", launch.clone())).await;
        assert_eq!((shown(&bench, &kept), bench.fake.created(), bench.left()), (String::new(), 2, 0), "{launch}");
    }
    let bench = Bench::new().await;
    let kept = reported(&bench, with(takes(10), "launch", json!({ "taken": 99 }))).await;
    let shown = shown(&bench, &kept);
    assert!(shown.contains("its teardown failed: 4 identifiers in a row are taken, the last by another user's"), "{shown}");
    assert_eq!((bench.fake.created(), bench.left()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_teardown_that_runs_when_the_session_is_cancelled_has_a_minute_from_then() {
    let endless = json!({ "statuses": [{ "state": "running" }] });
    let never = with(takes(10), "launch", json!({ "error": { "class": "outage", "message": "no route", "times": 999 } }));
    for (teardown, why) in [(endless, "still running"), (never, "not launched")] {
        let bench = Bench::new().await;
        all(&bench, [Case { teardown: Some(teardown), ..case("build", takes(10)) }]).await;
        sleep(Duration::from_secs(8)).await;
        let begun = Instant::now();
        bench.engine.cancel("Ctrl-C");
        bench.engine.finish().await;
        bench.engine.tear_down().await;
        let took = begun.elapsed();
        assert!(took >= Duration::from_mins(1) && took < Duration::from_secs(65), "{took:?}");
        let shown = shown(&bench, &bench.engine.with_leftovers().await);
        assert!(shown.contains(&format!("its teardown failed: {why} 1m after the session was cancelled")), "{shown}");
        assert_eq!(bench.left(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_at_once_ends_the_teardown_that_runs_and_begins_none() {
    let endless = json!({ "statuses": [{ "state": "running" }] });
    let bench = Bench::new().await;
    let build = |name| Case { teardown: Some(endless.clone()), ..case(name, takes(10)) };
    let cases = [build("a"), build("b"), case("user", takes(60_000)).after(&["a", "b"])];
    let results = bench.submit_all(cases.map(Case::queued));
    sleep(Duration::from_secs(5)).await;
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    let engine = bench.engine.clone();
    let end = tokio::spawn(async move { engine.tear_down().await });
    sleep(Duration::from_secs(5)).await;
    assert!(bench.engine.in_flight().iter().all(|attempt| attempt.tears_down) && bench.left() == 1);
    let created = bench.fake.created();
    bench.engine.leave().await;
    assert_eq!((bench.engine.in_flight().len(), bench.left()), (0, 0));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(bench.fake.created(), created, "what is not torn down is left to who goes on");
    assert!(!end.is_finished(), "the session has not ended");
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_something_is_torn_down_is_cleaned_up_after() {
    let fake = FakeScheduler::default();
    let panicking = Panicking { fake: fake.clone(), when: PanicIn::Cleanup };
    let options = Options { fake, scheduler: Some(Arc::new(panicking)), ..Options::default() };
    let bench = Bench::with(options).await;
    let kept = reported(&bench, takes(10)).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"
    W: cleanup failed: panicked: the scheduler has a bug
    W: the cleanup of its teardown failed: panicked: the scheduler has a bug
    left: whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
    left: whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
    ");
}

#[tokio::test(start_paused = true)]
async fn all_teardowns_of_a_cancelled_session_share_one_minute() {
    let endless = json!({ "statuses": [{ "state": "running" }] });
    let bench = Bench::new().await;
    let build = |name| Case { teardown: Some(endless.clone()), ..case(name, takes(10)) };
    let cases = [build("a"), build("b"), build("c"), case("user", takes(60_000)).after(&["a", "b", "c"])];
    let results = bench.submit_all(cases.map(Case::queued));
    sleep(Duration::from_secs(5)).await;
    let begun = Instant::now();
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    assert!(begun.elapsed() < Duration::from_secs(75), "{:?}", begun.elapsed());
    let kept = bench.engine.with_leftovers().await;
    let shown = shown(&bench, &kept);
    assert_eq!(shown.matches("its teardown failed: not launched 1m after").count(), 2, "{shown}");
    assert_eq!(bench.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_round_replaces_what_the_last_one_has_kept_for_users_that_failed() {
    let bench = Bench::new().await;
    let fails = json!({ "statuses": [{ "state": "running" }, { "after_ms": 10, "state": "ended", "exit": 1 }] });
    for attempt in 1..=3 {
        let build = Case { teardown: Some(takes(10)), ..case("build", takes(10)) };
        let cases = [build, case("user", fails.clone()).after(&["build"])].map(Case::queued);
        let cases = cases.map(|case| QueuedCase { attempt, ..case });
        if attempt > 1 {
            bench.engine.begin_round(&cases, "once more".into()).await;
            assert_eq!(bench.engine.not_torn_down().len(), 0, "round {attempt}");
        }
        bench.engine.submit_all(cases);
        bench.engine.finish().await;
        assert_eq!(bench.engine.not_torn_down().len(), 1, "round {attempt}");
    }
    let stages = bench.folder.path().join("stage/test/p/default");
    let builds = || {
        let names = std::fs::read_dir(&stages).expect("stage folders").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("build_")).collect::<Vec<_>>()
    };
    assert_eq!(builds(), ["build_0123456789abcdef.3"]);
    bench.engine.tear_down().await;
    assert_eq!((builds().len(), bench.fake.created()), (0, 9), "three rounds of a fixture, its user and its teardown");
}

/// Six fixtures of failed users, and one that three of them need.
#[tokio::test(start_paused = true)]
async fn teardowns_at_the_end_use_the_slots_of_their_partition_and_keep_their_order() {
    for (policy, seconds) in [(ExecPolicy::Async, 4), (ExecPolicy::Serial, 7)] {
        let bench = Bench::with(Options { policy, ..Options::default() }).await;
        let built = |name: &str| Case { teardown: Some(takes(1000)), max_jobs: 2, ..case(name, takes(10)) };
        let fails = json!({ "statuses": [{ "state": "running" }, { "after_ms": 10, "state": "ended", "exit": 1 }] });
        let failed_user = |name: &str, fixture: &str| Case { max_jobs: 2, ..case(name, fails.clone()) }.after(&[fixture]);
        let mut cases = vec![built("base"), failed_user("u", "base")];
        for number in 0..6 {
            let (fixture, user) = (format!("f{number}"), format!("u{number}"));
            cases.push(if number < 3 { built(&fixture).after(&["base"]) } else { built(&fixture) });
            cases.push(failed_user(&user, &fixture));
        }
        all(&bench, cases).await;
        bench.engine.finish().await;
        let started = Instant::now();
        bench.engine.tear_down().await;
        let took = started.elapsed();
        assert!(took >= Duration::from_secs(seconds) && took < Duration::from_secs(seconds + 1), "{policy:?}: {took:?}");
        assert_eq!(bench.engine.not_torn_down().len(), 0);
    }
}
