//! What teardowns leave: awaited, and named in the report with what removes it.

use crate::support::{Bench, Case, Options, PanicIn, Panicking, all, case};
use muster_core::result::CaseResult;
use muster_runner::fake::FakeScheduler;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

fn takes(ms: u64) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended" }] })
}

/// A play with more to it.
fn with(mut play: Value, key: &str, value: Value) -> Value {
    play[key] = value;
    play
}

/// What the report has in the end of a case that is torn down so.
async fn reported(bench: &Bench, teardown: Value) -> Vec<CaseResult> {
    all(bench, [Case { teardown: Some(teardown), ..case("build", takes(10)) }]).await;
    bench.engine.finish().await;
    bench.engine.end().await.expect("an end");
    bench.engine.kept().await
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
    assert_eq!((shown(&bench, &kept), bench.left().await), (String::new(), 0));

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
    let results = bench.engine.submit_all([build, case("user", takes(60_000)).after(&["build"])].map(Case::turn));
    sleep(Duration::from_millis(500)).await;
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    bench.engine.finish().await;
    bench.engine.end().await.expect("an end");
    sleep(Duration::from_mins(2)).await;
    assert_eq!((bench.fake.created(), bench.left().await), (3, 0), "user, build and the teardown, and nothing of them is there");
}

#[tokio::test(start_paused = true)]
async fn a_teardown_that_is_never_answered_is_named() {
    let bench = Bench::new().await;
    let kept = reported(&bench, with(takes(10), "launch", json!({ "delay_ms": 3_600_000 }))).await;
    insta::assert_snapshot!(shown(&bench, &kept), @"
    W: its teardown failed: the launch was not answered within 1m; see /stage/test/p/default/build_0123456789abcdef.teardown/rfm_job.out
    left: whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
    delete: rm -r /stage/test/p/default/build_0123456789abcdef
    delete: rm -r /stage/test/p/default/build_0123456789abcdef.teardown
    ");
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
