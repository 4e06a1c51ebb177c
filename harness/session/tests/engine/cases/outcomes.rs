//! Every row of the table of outcomes that a scheduler can bring about, with the sentence that a user reads.

use crate::support::{Bench, Case, Options, PanicIn, Panicking, all, case, found};
use muster_core::{job::workload::Limits, result::Outcome, rules::Rules};
use muster_fake::{Call, FakeScheduler};
use muster_text::Value;
use serde_json::json;
use std::{fmt::Write, sync::Arc, time::Duration};

async fn table(rows: impl IntoIterator<Item = (&str, Value)>) -> String {
    let mut table = String::new();
    for (name, scenario) in rows {
        let bench = Bench::new().await;
        let queued = Case { rules: found("hello"), ..case(name, scenario) }.queued();
        let result = bench.submit(queued).await.expect("a result");
        let left = bench.left();
        let cause = result.cause.as_deref().unwrap_or("-");
        let phase = result.phase.as_str();
        writeln!(table, "{name} | {} | {phase} | {left} left | {cause}", result.outcome).expect("a line");
        for warning in result.warnings.iter().chain(&result.leftovers) {
            writeln!(table, "    {}", warning.replace(result.identifier.as_ref().expect("planned").as_str(), "IDENTIFIER"))
                .expect("a line");
        }
    }
    table
}

fn runs_until(end: &Value) -> Value {
    json!({
        "statuses": [{ "after_ms": 10, "state": "running", "nodes": ["n1"] }, end],
        "logs": [{ "after_ms": 20, "text": "hello\n" }],
    })
}

fn ended() -> Value {
    runs_until(&json!({ "after_ms": 50, "state": "ended" }))
}

#[tokio::test(start_paused = true)]
async fn what_the_workload_does_decides_what_is_judged() {
    let gone = |how: &str| {
        runs_until(&json!({ "after_ms": 50, "state": "gone", "disruption": how, "cause": format!("{how} by somebody") }))
    };
    let rows = [
        ("it passes", ended()),
        ("it fails", runs_until(&json!({ "after_ms": 50, "state": "ended", "exit": 3 }))),
        ("it is killed", runs_until(&json!({ "after_ms": 50, "state": "ended", "signal": 9 }))),
        ("it says nothing", json!({})),
        ("it runs for ever", json!({ "statuses": [{ "state": "running" }] })),
        ("it waits for ever", json!({ "statuses": [{ "state": "pending", "why": "0/3 nodes have a free GPU" }] })),
        ("it is never seen", json!({ "statuses": [{ "state": "not_seen" }] })),
        ("it is preempted", gone("preempted")),
        ("it is evicted", gone("evicted")),
        ("its node dies", gone("node")),
        ("it is deleted", gone("deleted")),
        ("it ends evicted", runs_until(&json!({ "after_ms": 50, "state": "ended", "signal": 9, "disruption": "evicted" }))),
    ];
    insta::assert_snapshot!(table(rows).await, @r"
it passes | pass | sanity | 0 left | -
it fails | fail{workload} | run | 1 left | exit status 3 on n1
it is killed | fail{workload} | run | 1 left | killed by signal 9 (SIGKILL) on n1
it says nothing | fail{sanity} | sanity | 1 left | `hello` not found
it runs for ever | timeout{run} | run | 1 left | still running after 10m (time_limit)
it waits for ever | timeout{pending} | run | 1 left | still waiting after 1h (max_pending_time): 0/3 nodes have a free GPU
it is never seen | timeout{pending} | run | 1 left | not seen within 1h (max_pending_time)
it is preempted | disrupted{preempted} | run | 1 left | preempted by somebody
it is evicted | disrupted{evicted} | run | 1 left | evicted by somebody
its node dies | disrupted{node} | run | 1 left | node by somebody
it is deleted | disrupted{deleted} | run | 1 left | deleted by somebody
it ends evicted | disrupted{evicted} | run | 1 left | the job was ended by the site
");
}

/// The time limit is 10 minutes.
#[tokio::test(start_paused = true)]
async fn what_an_outage_hides_at_the_time_limit_is_waited_for_and_judged_by_its_own_times() {
    let outage = |after: u64, times: u32, rest: &[Value]| {
        let error = json!({ "class": "outage", "message": "ask the server", "times": times });
        let mut scenario = runs_until(&json!({ "after_ms": after, "error": error }));
        scenario["statuses"].as_array_mut().expect("a list").extend_from_slice(rest);
        scenario
    };
    let ended = |after: u64| [json!({ "after_ms": after, "state": "ended" })];
    let rows = [
        ("it ended before the limit", outage(590_000, 5, &ended(590_001))),
        ("it ended before the limit, and the outage is long", outage(100_000, 80, &ended(100_001))),
        ("it ended after the limit", outage(590_000, 5, &ended(605_000))),
        ("it has not ended", outage(590_000, 5, &[])),
        ("nobody knows", outage(590_000, 999, &[])),
    ];
    insta::assert_snapshot!(table(rows).await, @r"
it ended before the limit | pass | sanity | 0 left | -
it ended before the limit, and the outage is long | pass | sanity | 0 left | -
it ended after the limit | timeout{run} | run | 1 left | still running after 10m (time_limit)
it has not ended | timeout{run} | run | 1 left | still running after 10m (time_limit)
nobody knows | timeout{run} | run | 1 left | still running after 10m (time_limit)
");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_step_is_an_outcome_with_a_cause() {
    let error = |class: &str, times: u32| json!({ "class": class, "message": "ask the server", "times": times });
    let with = |key: &str, value: Value| {
        let mut scenario = ended();
        scenario[key] = value;
        scenario
    };
    let wait = |error: Value| {
        let mut scenario = runs_until(&json!({ "after_ms": 10, "error": error }));
        scenario["statuses"].as_array_mut().expect("a list").push(json!({ "after_ms": 60_000, "state": "ended" }));
        scenario
    };
    let logs = |error: Value| with("logs", json!([{ "text": "hello\n" }, { "after_ms": 20, "error": error }]));
    let rows = [
        ("plan", json!({ "launhc": {} })),
        ("launch, wrong for good", with("launch", json!({ "error": error("config", 1) }))),
        ("launch, unsupported", with("launch", json!({ "error": error("unsupported", 1) }))),
        ("launch, three times", with("launch", json!({ "error": error("infra", 3) }))),
        ("launch, four times", with("launch", json!({ "error": error("infra", 4) }))),
        ("launch, an outage of 4m 55s", with("launch", json!({ "error": error("outage", 40) }))),
        ("launch, an outage for ever", with("launch", json!({ "error": error("outage", 999) }))),
        (
            "launch, answer lost",
            with("launch", json!({ "error": { "class": "gone", "message": "read the answer", "created": true } })),
        ),
        ("launch, no answer", with("launch", json!({ "delay_ms": 70_000 }))),
        ("wait, three times", wait(error("infra", 3))),
        ("wait, four times", wait(error("infra", 4))),
        ("wait, an outage of 4m 55s", wait(error("outage", 40))),
        ("wait, an outage for ever", runs_until(&json!({ "after_ms": 10, "error": error("outage", 999) }))),
        ("wait, gone", wait(error("gone", 1))),
        ("wait, wrong", wait(error("config", 1))),
        ("logs, three times", logs(error("infra", 3))),
        ("logs, for ever", logs(error("infra", 99))),
        ("logs, forbidden", logs(error("config", 1))),
        ("logs, a gap", with("logs", json!([{ "text": "hello\n" }, { "gap": "the log was rotated" }]))),
        ("logs, endless", with("logs", json!([{ "text": "hello\n" }, { "endless": true }]))),
        ("cleanup, three times", with("cleanup", json!({ "error": error("infra", 3) }))),
        ("cleanup, for ever", with("cleanup", json!({ "error": error("infra", 99) }))),
        ("cleanup, no answer", with("cleanup", json!({ "delay_ms": 70_000 }))),
        ("cleanup, leftovers", with("cleanup", json!({ "leftovers": ["volume v1: kubectl delete pv v1"] }))),
    ];
    insta::assert_snapshot!(table(rows).await, @r"
plan | error{config} | plan | 0 left | the scenario cannot be read: unknown field `launhc`, expected one of `launch`, `statuses`, `logs`, `files`, `cleanup`
launch, wrong for good | error{config} | launch | 0 left | ask the server
launch, unsupported | error{config} | launch | 0 left | ask the server
launch, three times | pass | sanity | 0 left | -
launch, four times | error{infra} | launch | 0 left | ask the server
launch, an outage of 4m 55s | pass | sanity | 0 left | -
launch, an outage for ever | error{infra} | launch | 0 left | ask the server
launch, answer lost | error{infra} | launch | 1 left | read the answer
launch, no answer | error{infra} | launch | 0 left | the launch was not answered within 1m
    whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
wait, three times | pass | sanity | 0 left | -
wait, four times | error{infra} | run | 1 left | ask the server
wait, an outage of 4m 55s | pass | sanity | 0 left | -
wait, an outage for ever | timeout{pending} | run | 1 left | not seen within 1h (max_pending_time)
wait, gone | disrupted{deleted} | run | 1 left | ask the server
wait, wrong | error{config} | run | 1 left | ask the server
logs, three times | pass | sanity | 0 left | -
logs, for ever | invalid{logs} | run | 1 left | the log of fake has a gap: ask the server
logs, forbidden | invalid{logs} | run | 1 left | the log of fake has a gap: ask the server
logs, a gap | invalid{logs} | run | 1 left | the log of fake has a gap: the log was rotated
logs, endless | invalid{logs} | run | 1 left | the log of fake has a gap: the log did not end after the job, and nothing more of it came for 30 s
cleanup, three times | pass | sanity | 0 left | -
cleanup, for ever | pass | sanity | 1 left | -
    cleanup failed: ask the server
    whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
cleanup, no answer | pass | sanity | 1 left | -
    cleanup failed: no answer within 1m
    whatever is marked rfm=IDENTIFIER on fake (session s1): `muster sweep` removes it
cleanup, leftovers | pass | sanity | 1 left | -
    volume v1: kubectl delete pv v1
");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_scheduler_is_contained_and_cleaned_up() {
    let mut table = String::new();
    for when in [PanicIn::Plan, PanicIn::Launch, PanicIn::Wait, PanicIn::Logs, PanicIn::Cleanup] {
        let fake = FakeScheduler::default();
        let scheduler = Arc::new(Panicking { fake: fake.clone(), when });
        let bench = Bench::with(Options { scheduler: Some(scheduler), fake, ..Options::default() }).await;
        let result = bench.scenario(ended()).await;
        let cause = result.cause.as_deref().unwrap_or("-");
        writeln!(table, "{when:?}: {} | {cause} | {:?}", result.outcome, result.warnings).expect("a line");
        assert!(bench.engine.in_flight().is_empty(), "{when:?}");
        // The next case of the same session has its slot.
        assert!(!matches!(bench.scenario(ended()).await.outcome, Outcome::Abort), "{when:?}");
    }
    insta::assert_snapshot!(table, @r#"
Plan: error{infra} | planning panicked: the scheduler has a bug | []
Launch: error{infra} | the launch panicked: the scheduler has a bug | []
Wait: error{infra} | a step of this case panicked: the scheduler has a bug | []
Logs: invalid{logs} | collecting the log panicked | []
Cleanup: pass | - | ["cleanup failed: panicked: the scheduler has a bug"]
"#);
}

#[tokio::test(start_paused = true)]
async fn a_result_says_where_when_and_how_to_look_further() {
    let bench = Bench::new().await;
    let scenario = json!({
        "statuses": [
            { "after_ms": 1000, "state": "running", "nodes": ["n1", "n2"] },
            { "after_ms": 61_000, "state": "ended", "exit": 1, "cause": "OOMKilled: used more than 4Gi" },
        ],
        "logs": [
            { "after_ms": 2000, "section": "pod-0", "node": "n1", "text": "one\ntwo" },
            { "after_ms": 3000, "section": "pod-1", "node": "n3", "text": "three\n" },
        ],
    });
    let result = bench.scenario(scenario).await;
    let identifier = result.identifier.clone().expect("planned");
    let (started, ended) = (result.times.started.expect("started"), result.times.ended.expect("ended"));
    assert_eq!(ended.since(started), Duration::from_mins(1));
    assert!(result.times.begun <= result.times.launched.expect("launched"));
    assert_eq!(result.nodes, ["n1", "n2", "n3"]);
    let exits: Vec<_> = result.exits.iter().map(|exit| (exit.section.as_str(), exit.node.as_deref())).collect();
    assert_eq!(exits, [("pod-0", Some("n1")), ("pod-1", Some("n3"))]);
    assert_eq!(result.log_tail.as_deref(), Some("one\ntwo"));
    let folder = result.folder.as_deref().expect("a folder");
    let text = std::fs::read_to_string(folder.join("rfm_job.out")).expect("a stdout");
    assert_eq!(text, format!("{identifier}\n\n-------pod-0-------\none\ntwo\n\n-------pod-1-------\nthree\n"));
    let commands = bench.relative(&[result.look.join("\n"), result.delete.join("\n")].join("\n"));
    insta::assert_snapshot!(commands, @r"
less /stage/test/p/default/case_0123456789abcdef/rfm_job.out
rm -r /stage/test/p/default/case_0123456789abcdef
");
}

#[tokio::test(start_paused = true)]
async fn a_mistake_that_shows_at_launch_and_a_skip_launch_nothing() {
    let mut bench = Bench::new().await;
    let cases = [
        Case { mistake: Some("`${{ partition.extras.gpu }}`: no such key"), ..case("wrong", Value::Null) },
        Case { skip: Some("one process only".into()), ..case("skipped", Value::Null) },
    ];
    let results = all(&bench, cases).await;
    assert_eq!(bench.fake.calls(), []);
    assert!(results.iter().all(|result| result.identifier.is_none() && result.folder.is_none()));
    insta::assert_snapshot!(bench.drain().join("\n"), @r"
begun wrong
finished wrong error{config}
finished skipped skip
");
    assert_eq!(results[1].cause.as_deref(), Some("one process only"));
}

#[tokio::test(start_paused = true)]
async fn a_site_without_room_is_asked_again_while_the_clock_for_waiting_runs() {
    let mut bench = Bench::new().await;
    let full =
        |n: usize| json!({ "launch": { "not_now": vec![json!({ "why": "quota: 8 of 8 GPUs", "retry_after_ms": 60_000 }); n] } });
    let limits = Limits { pending: Some(Duration::from_secs(150)), run: None, judge: Duration::from_secs(5) };
    let results = all(&bench, [Case { limits, ..case("patient", full(2)) }, Case { limits, ..case("impatient", full(9)) }]).await;
    assert_eq!(results[0].outcome, Outcome::Pass);
    insta::assert_snapshot!(results[1].cause.as_deref().unwrap_or_default(), @"still waiting after 2m30s (max_pending_time): quota: 8 of 8 GPUs");
    insta::assert_snapshot!(bench.drain().join("\n"), @r"
begun patient
phase patient launch
phase patient launch: quota: 8 of 8 GPUs
phase patient sanity
phase patient cleanup
finished patient pass
begun impatient
phase impatient launch
phase impatient launch: quota: 8 of 8 GPUs
finished impatient timeout{pending}
");
}

#[tokio::test(start_paused = true)]
async fn what_was_created_without_room_for_the_rest_is_removed_before_the_next_attempt() {
    let bench = Bench::new().await;
    let part = || json!({ "not_now": [{ "why": "3 of 4 instances", "created": true }] });
    let results = all(&bench, [case("fleet", json!({ "launch": part() }))]).await;
    assert_eq!(results[0].outcome, Outcome::Pass, "{:?}", results[0].cause);
    let calls: Vec<Call> = bench.fake.calls().into_iter().map(|(call, _)| call).collect();
    assert_eq!(calls[..4], [Call::Plan, Call::Launch, Call::Delete, Call::Launch]);
    let stuck = json!({ "launch": part(), "cleanup": { "leftovers": ["instance i-1"] } });
    let results = all(&bench, [case("stuck", stuck)]).await;
    let [.., stuck] = &results[..] else { panic!() };
    assert_eq!(stuck.outcome.to_string(), "error{infra}");
    insta::assert_snapshot!(stuck.cause.as_deref().unwrap_or_default(), @"3 of 4 instances, and what it created before is not removed: instance i-1");
    assert_eq!(stuck.leftovers, ["instance i-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_clock_for_running_begins_with_the_first_task() {
    let bench = Bench::new().await;
    let limits =
        Limits { pending: Some(Duration::from_secs(100)), run: Some(Duration::from_secs(100)), judge: Duration::from_secs(5) };
    let scenario = json!({ "statuses": [
        { "state": "pending", "why": "queue" },
        { "after_ms": 90_000, "state": "running" },
        { "after_ms": 180_000, "state": "ended" },
    ] });
    let results = all(&bench, [Case { limits, rules: Rules::default(), ..case("slow", scenario) }]).await;
    assert_eq!(results[0].outcome, Outcome::Pass, "{:?}", results[0].cause);
}
