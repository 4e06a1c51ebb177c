//! Logs: from chunks to a stdout.

use crate::support::{Bench, Case, case, found};
use muster_core::{
    job::stdout::Section,
    result::{CaseResult, Outcome},
    rules::{LogAction, LogLimit, Rules},
};
use serde_json::{Value, json};
use std::fmt::Write;

fn text(result: &CaseResult) -> String {
    let identifier = result.identifier.as_ref().expect("planned").to_string();
    let path = result.folder.as_ref().expect("a folder").join("rfm_job.out");
    std::fs::read_to_string(path).expect("a stdout").replace(&identifier, "IDENTIFIER")
}

fn sections(result: &CaseResult) -> Vec<Section> {
    let path = result.folder.as_ref().expect("a folder").join("pods.json");
    serde_json::from_slice(&std::fs::read(path).expect("sections")).expect("JSON")
}

fn ended_after(logs: &Value) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": 5000, "state": "ended" }], "logs": logs })
}

#[tokio::test(start_paused = true)]
async fn sections_that_arrive_interleaved_become_one_text_in_their_order() {
    let bench = Bench::new().await;
    let logs = json!([
        { "after_ms": 1, "section": "pod-0", "node": "n0", "text": "a1\n" },
        { "after_ms": 2, "section": "pod-1", "text": "b1\n" },
        { "after_ms": 3, "section": "pod-0", "text": "a2\n" },
        { "after_ms": 4, "section": "pod-1", "text": "b2 without a newline" },
        { "after_ms": 5, "section": "pod-2" },
    ]);
    let result = bench.scenario(ended_after(&logs)).await;
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.cause);
    insta::assert_snapshot!(text(&result), @r"
IDENTIFIER

-------pod-0-------
a1
a2

-------pod-1-------
b1
b2 without a newline

-------pod-2-------
");
    let mut table = String::new();
    for section in sections(&result) {
        let Section { origin, offset, bytes, lines, exit, gaps, .. } = section;
        writeln!(table, "{} {offset} {bytes} {lines:?} {exit:?} {gaps:?}", origin.title()).expect("a line");
    }
    insta::assert_snapshot!(table, @r"
pod-0 30 6 Some(2) Some(Code(0)) []
pod-1 57 23 Some(2) Some(Code(0)) []
pod-2 102 0 Some(0) Some(Code(0)) []
");
    let left: Vec<_> = std::fs::read_dir(result.folder.as_ref().expect("a folder")).expect("a folder").collect();
    assert_eq!(left.len(), 2, "stdout and sections, and no spool: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_taken_up_where_it_broke() {
    let bench = Bench::new().await;
    let reset = json!({ "class": "infra", "message": "stream reset" });
    let logs = json!([
        { "after_ms": 1, "text": "one\n" },
        { "after_ms": 2, "error": reset },
        { "after_ms": 3, "text": "two\n" },
        { "after_ms": 4, "error": reset },
        { "after_ms": 5, "text": "three\n" },
    ]);
    let result = bench.scenario(ended_after(&logs)).await;
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.cause);
    insta::assert_snapshot!(text(&result), @r"
IDENTIFIER

-------fake-------
one
two
three
");
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_for_as_long_as_more_of_it_comes() {
    let bench = Bench::new().await;
    let lines: Vec<Value> = (0..10).map(|n| json!({ "after_ms": 6_000 + 25_000 * n, "text": format!("line {n}\n") })).collect();
    let result = bench.scenario(ended_after(&json!(lines))).await;
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.cause);
    assert!(text(&result).ends_with("line 8\nline 9\n"), "{}", text(&result));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_goes_on_does_not_hold_up_a_session_that_is_cancelled() {
    let bench = Bench::new().await;
    let lines: Vec<Value> = (0..1_000).map(|n| json!({ "after_ms": 6_000 + 1_000 * n, "text": format!("line {n}\n") })).collect();
    let begun = tokio::time::Instant::now();
    let cancel = async {
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        bench.engine.cancel("interrupted by SIGINT");
    };
    let (result, ()) = tokio::join!(bench.scenario(ended_after(&json!(lines))), cancel);
    assert_eq!(result.outcome, Outcome::Abort, "{:?}", result.cause);
    assert!(begun.elapsed().as_secs() < 70, "{:?}", begun.elapsed());
    assert!(text(&result).contains("line 50\n"), "what had come is kept");
}

#[tokio::test(start_paused = true)]
async fn a_case_that_is_stopped_keeps_the_log_it_has() {
    let bench = Bench::new().await;
    let scenario = json!({
        "statuses": [{ "state": "running" }],
        "logs": [{ "after_ms": 1, "text": "so far\n" }, { "after_ms": 9_000_000, "text": "never said\n" }],
    });
    let result = bench.scenario(scenario).await;
    assert_eq!(result.outcome.to_string(), "timeout{run}");
    assert_eq!(result.log_tail.as_deref(), Some("so far"));
    insta::assert_snapshot!(text(&result), @r"
IDENTIFIER

-------fake-------
so far
");
}

#[tokio::test(start_paused = true)]
async fn a_large_log_is_mapped_and_judged_whole() {
    let bench = Bench::new().await;
    let line = format!("{}\n", "x".repeat(1023));
    let logs = json!([{ "text": line.repeat(300) }, { "text": "hello at the end\n" }]);
    let large = Case { rules: found("hello at the end"), ..case("large", ended_after(&logs)) };
    let result = bench.submit(large.queued()).await.expect("a result");
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.cause);
    assert_eq!(sections(&result)[0].lines, Some(301));
}

#[tokio::test(start_paused = true)]
async fn beyond_its_limit_a_log_is_not_read_and_the_job_runs_on() {
    let logs: Vec<Value> = (0..10).map(|n| json!({ "after_ms": n * 100, "text": "012345678\n" })).collect();
    for (action, outcome) in [(LogAction::Invalid, "invalid{logs}"), (LogAction::Warn, "pass")] {
        let bench = Bench::new().await;
        let rules = Rules { log_limit: Some(LogLimit { bytes: 25, action }), ..Rules::default() };
        let limited = Case { rules, ..case("case", ended_after(&json!(logs))) };
        let result = bench.submit(limited.queued()).await.expect("a result");
        assert_eq!(result.outcome.to_string(), outcome, "{:?}", result.cause);
        assert_eq!(sections(&result)[0].bytes, 20, "whole lines");
        let told = "the log is longer than 25 bytes (max_log): what follows was not kept";
        let says = |text: &String| text.contains(told);
        assert!(result.cause.iter().chain(&result.warnings).any(says), "{:?}", result.warnings);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_waits_for_its_turn_is_not_taken_for_silent() {
    let alive = |seconds: u64| json!({ "after_ms": seconds * 1_000 });
    let end = |seconds: u64| json!({ "after_ms": seconds * 1_000, "text": "the end\n" });
    let rows = [
        (json!([{ "text": "line\n" }, alive(25), alive(50), alive(75), end(100)]), "pass"),
        (json!([{ "text": "line\n" }, alive(25), end(100)]), "invalid{logs}"),
    ];
    for (logs, outcome) in rows {
        let bench = Bench::new().await;
        let statuses = json!([{ "state": "running" }, { "after_ms": 100, "state": "ended" }]);
        let case = Case { rules: found("the end"), ..case("waits", json!({ "statuses": statuses, "logs": logs })) };
        let result = bench.submit(case.queued()).await.expect("a result");
        assert_eq!(result.outcome.to_string(), outcome, "{:?}", result.cause);
    }
}
