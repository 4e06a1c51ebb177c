//! The libtest-mimic front.

use crate::support::{Bench, Case, case};
use libtest_mimic::{Arguments, FormatSetting};
use muster_core::decisions::{
    pipeline::Skips,
    rounds::{Policy, Threshold},
};
use muster_session::{
    event::Event,
    front::libtest::{Frontend, printing, run, silent},
};
use serde_json::{Value, json};
use std::{fs, thread};

#[test]
fn libtest_counts_what_the_engine_found_and_prints_its_causes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let mut bench = runtime.block_on(Bench::new());
    let fails = json!({ "statuses": [{ "state": "ended", "exit": 7 }] });
    let cases = || {
        let skips = Case { skip: Some("no GPU".into()), ..case("skips", Value::Null) };
        [case("passes", json!({})), case("fails", fails.clone()), skips].map(Case::queued)
    };
    let folder = bench.folder.path().to_owned();
    let mut counts = |arguments: &Arguments| {
        let cases = cases();
        let names = cases.iter().map(|case| (&*case.name, "fake".into()));
        let (mut frontend, submitted) = Frontend::of(Policy::Retry { max: 1, threshold: Threshold::Percent(100) }, names);
        {
            let _inside = runtime.enter();
            bench.engine.submit_all(cases);
        }
        let events = &mut bench.events;
        let conclusion = thread::scope(|scope| {
            scope.spawn(move || {
                let mut ended = 0;
                while ended < 3 {
                    let event = events.blocking_recv().expect("the session goes on");
                    ended += usize::from(matches!(event, Event::Finished(_)));
                    frontend.saw(&event);
                }
            });
            run(arguments, submitted, Skips::Accepted)
        });
        (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored)
    };
    assert_eq!(counts(&silent()), (1, 1, 1));

    let log = folder.join("libtest.log");
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
