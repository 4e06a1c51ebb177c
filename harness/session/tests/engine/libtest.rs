//! The libtest-mimic front.

use crate::support::{Bench, Case, case};
use libtest_mimic::{Arguments, FormatSetting};
use muster_core::decisions::pipeline::Skips;
use muster_session::front::libtest::{Submitted, printing, run, silent};
use serde_json::{Value, json};
use std::fs;

#[test]
fn libtest_counts_what_the_engine_found_and_prints_its_causes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let bench = runtime.block_on(Bench::new());
    let fails = json!({ "statuses": [{ "state": "ended", "exit": 7 }] });
    let submit = || {
        let cases = [
            case("passes", json!({})),
            case("fails", fails.clone()),
            Case { skip: Some("no GPU".into()), ..case("skips", Value::Null) },
        ];
        let submit = |case: Case| {
            let _inside = runtime.enter();
            let queued = case.queued();
            let name = (*queued.name).clone();
            Submitted { case: name, scheduler: "fake".into(), result: bench.submit(queued) }
        };
        cases.map(submit).into_iter().collect::<Vec<_>>()
    };
    let counts = |arguments: &Arguments| {
        let conclusion = run(arguments, submit(), Skips::Accepted);
        (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored)
    };
    assert_eq!(counts(&silent()), (1, 1, 1));

    let log = bench.folder.path().join("libtest.log");
    let logfile = Some(log.display().to_string());
    let arguments = Arguments { logfile, test_threads: Some(1), ..printing(FormatSetting::Json, 3) };
    assert_eq!(counts(&arguments), (1, 1, 1));
    let text = fs::read_to_string(log).expect("a log");
    let text = text.lines().filter(|line| !line.contains("\"suite\"")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(text, @r#"
{ "type": "test", "event": "started", "name": "passes @test:p+default" }
{ "type": "test", "name": "passes @test:p+default", "event": "ok" }
{ "type": "test", "event": "started", "name": "fails @test:p+default" }
{ "type": "test", "name": "fails @test:p+default", "event": "failed", "stdout": "Error: \"fail{workload}: exit status 7\"\n" }
{ "type": "test", "event": "started", "name": "skips @test:p+default" }
{ "type": "test", "name": "skips @test:p+default", "event": "ignored" }
"#);
}
