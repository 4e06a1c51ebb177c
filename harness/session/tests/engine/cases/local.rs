//! The engine on real processes: the places where the scheduler `local` and the spool meet.

use crate::support::{Bench, Case, Options, case, found};
use muster_core::{
    job::{
        inventory::Scope,
        scheduler::{Exit, Scheduler},
        workload::{Limits, Program},
    },
    result::{CaseResult, Outcome},
};
use muster_local::LocalScheduler;
use muster_text::Value;
use serde_json::Map;
use std::{fs, sync::Arc, time::Duration};

async fn session() -> Bench {
    let scheduler: Arc<dyn Scheduler> = Arc::new(LocalScheduler::default());
    Bench::with(Options { scheduler: Some(scheduler), ..Options::default() }).await
}

fn script(text: &str) -> Case {
    let program = Program::Script { text: format!("#!/bin/sh\n{text}\n"), pass_env: Vec::new() };
    Case { program, own: Map::new(), ..case("case", Value::Null) }
}

async fn run(bench: &Bench, case: Case) -> Arc<CaseResult> {
    bench.submit(case.queued()).await.expect("a result")
}

fn stdout(result: &CaseResult) -> String {
    fs::read_to_string(result.folder.as_ref().expect("a folder").join("rfm_job.out")).expect("a stdout")
}

#[tokio::test]
async fn a_log_without_a_last_newline_gets_one_in_its_place() {
    let bench = session().await;
    let result = run(&bench, Case { rules: found("hello$"), ..script("printf 'one\\nhello'") }).await;
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.cause);
    let identifier = result.identifier.as_ref().expect("planned");
    let host = &result.nodes[0];
    assert_eq!(stdout(&result), format!("{identifier}\n\n-------{host}-------\none\nhello\n"));
    let folder = result.folder.as_ref().expect("a folder");
    assert!(folder.starts_with(bench.folder.path().join("output")) && folder.join("rfm_job.sh").exists());
    let sections: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("pods.json")).expect("sections")).expect("JSON");
    assert_eq!((&sections[0]["bytes"], &sections[0]["lines"]), (&Value::from(9), &Value::from(2)));
}

#[tokio::test]
async fn a_failed_script_keeps_its_stage_and_shows_its_last_lines() {
    let bench = session().await;
    let result = run(&bench, script("seq 20; echo broken >&2; exit 3")).await;
    assert_eq!(result.outcome.to_string(), "fail{workload}");
    assert_eq!(result.exits[0].exit, Exit::Code(3));
    assert!(result.log_tail.as_deref().is_some_and(|tail| tail.starts_with("12\n") && tail.ends_with("\n20\nbroken")));
    assert!(stdout(&result).contains("\nbroken\n"));
    assert!(result.times.started.is_some() && result.times.ended.is_some());
}

#[tokio::test]
async fn a_script_that_truncates_its_log_cannot_be_judged() {
    let bench = session().await;
    let result = run(&bench, Case { rules: found("hello"), ..script("echo gone; : > rfm_job.out; echo hello") }).await;
    assert_eq!(result.outcome.to_string(), "invalid{logs}", "{:?}", result.cause);
}

#[tokio::test]
async fn what_is_too_slow_or_cancelled_leaves_no_process() {
    let bench = session().await;
    let limits = Limits { pending: None, run: Some(Duration::from_millis(300)), judge: Duration::from_secs(5) };
    let slow = run(&bench, Case { limits, ..script("echo begun; sleep 600") }).await;
    assert_eq!(slow.outcome.to_string(), "timeout{run}");
    assert_eq!(slow.log_tail.as_deref(), Some("begun"));
    assert_eq!(slow.exits[0].exit, Exit::Signal(15));
    assert!(slow.times.ended.is_some_and(|ended| ended > slow.times.started.unwrap_or_default()));

    let running = bench.submit(script("echo begun; sleep 600").queued());
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.engine.cancel("enough");
    let aborted = running.await.expect("a result");
    assert_eq!(aborted.outcome, Outcome::Abort);
    let left = LocalScheduler::default().inventory(&Scope::default()).await.expect("an inventory").found;
    let own: Vec<_> = [&slow, &aborted].into_iter().filter_map(|result| result.identifier.clone()).collect();
    assert!(!left.iter().any(|job| own.contains(&job.job.identifier)), "{left:?}");
}
