//! What is called, and said, in which order.

use crate::support::{Bench, case};
use muster_fake::Call;
use muster_text::Value;
use serde_json::json;

fn calls(bench: &Bench) -> Vec<Call> {
    bench.fake.calls().into_iter().map(|(call, _)| call).collect()
}

/// `wait` and `collect` run side by side: their order among each other means nothing.
fn without_collect(calls: Vec<Call>) -> Vec<Call> {
    calls.into_iter().filter(|call| *call != Call::Collect).collect()
}

#[tokio::test(start_paused = true)]
async fn each_ending_has_its_own_cleanup() {
    use Call::{Collect, Delete, Launch, Plan, Stop, Wait};
    let run = |end: Value| json!({ "statuses": [{ "state": "running" }, end] });
    let infra = |times: u32| json!({ "class": "infra", "message": "reset", "times": times });
    let rows = [
        ("a pass is deleted", run(json!({ "after_ms": 5, "state": "ended" })), vec![Plan, Launch, Wait, Wait, Delete]),
        ("a failure is kept", run(json!({ "after_ms": 5, "state": "ended", "exit": 1 })), vec![Plan, Launch, Wait, Wait, Stop]),
        (
            "what is too slow is stopped once, and asked how it ended",
            json!({ "statuses": [{ "state": "running" }] }),
            vec![Plan, Launch, Wait, Wait, Stop, Wait],
        ),
        (
            "what is gone is stopped, for something may be left",
            run(json!({ "after_ms": 5, "state": "gone", "disruption": "deleted" })),
            vec![Plan, Launch, Wait, Wait, Stop],
        ),
        (
            "a failed launch is stopped",
            json!({ "launch": { "error": infra(9) } }),
            vec![Plan, Launch, Launch, Launch, Launch, Stop],
        ),
        ("a launch that works later", json!({ "launch": { "error": infra(1) } }), vec![Plan, Launch, Launch, Wait, Delete]),
        (
            "no room, then room",
            json!({ "launch": { "not_now": [{ "why": "quota" }] } }),
            vec![Plan, Launch, Launch, Wait, Delete],
        ),
        (
            "never room",
            json!({ "launch": { "not_now": vec![json!({ "why": "quota", "retry_after_ms": 4_000_000 }); 2] } }),
            vec![Plan, Launch, Launch],
        ),
        ("a bad plan", json!({ "launch": 5 }), vec![Plan]),
        (
            "a cleanup that works later",
            json!({ "cleanup": { "error": infra(2) } }),
            vec![Plan, Launch, Wait, Delete, Delete, Delete],
        ),
    ];
    for (name, scenario, expected) in rows {
        let bench = Bench::new().await;
        bench.scenario(scenario).await;
        let calls = calls(&bench);
        assert_eq!(without_collect(calls.clone()), expected, "{name}");
        let launched = expected.contains(&Wait);
        assert_eq!(calls.contains(&Collect), launched, "{name}");
        assert!(bench.engine.in_flight().is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_life_of_a_case_in_order() {
    let mut bench = Bench::new().await;
    let scenario = json!({
        "statuses": [
            { "state": "pending", "why": "image pull" },
            { "after_ms": 100, "state": "running", "nodes": ["n1", "n2", "n3"] },
            { "after_ms": 900, "state": "ended" },
        ],
        "logs": [{ "after_ms": 200, "text": "hello\n" }],
    });
    bench.submit(case("a", scenario).queued()).await.expect("a result");
    insta::assert_snapshot!(bench.drain().join("\n"), @r"
begun a
phase a launch
phase a run: image pull
phase a run: running on n1 and 2 more
phase a sanity
phase a cleanup
finished a pass
");
}
