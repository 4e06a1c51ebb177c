//! Complete lines to who listens, from schedulers that send a log and from those in whose file it grows.

use crate::support::{Bench, Case, Options, case};
use muster_core::job::{scheduler::Scheduler, workload::Program};
use muster_fake::FakeScheduler;
use muster_local::LocalScheduler;
use muster_session::log::lines::NewLines;
use muster_text::Value;
use serde_json::{Map, json};
use std::{fs, sync::Arc};
use tokio::sync::mpsc::{Receiver, channel};

async fn bench(scheduler: Arc<dyn Scheduler>) -> (Bench, Receiver<NewLines>) {
    let (lines, heard) = channel(64);
    (Bench::with(Options { scheduler: Some(scheduler), lines: Some(lines), ..Options::default() }).await, heard)
}

fn text(lines: &NewLines) -> String {
    assert_eq!((&*lines.case.display, lines.missed), ("case", 0));
    String::from_utf8(lines.text.clone()).expect("UTF-8")
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_gives_each_line_once() {
    let (bench, mut heard) = bench(Arc::new(FakeScheduler::default())).await;
    let result = bench.scenario(json!({
        "statuses": [{ "state": "running" }, { "after_ms": 5000, "state": "ended" }],
        "logs": [
            { "after_ms": 1, "text": "one\ntw" },
            { "after_ms": 2, "error": { "class": "infra", "message": "read on" } },
            { "after_ms": 3, "text": "o\nthree" },
        ],
    }));
    assert_eq!(result.await.outcome.to_string(), "pass");
    let mut all = String::new();
    while let Ok(lines) = heard.try_recv() {
        all += &text(&lines);
    }
    assert_eq!(all, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn lines_of_a_file_are_heard_while_its_job_runs_and_anew_when_it_is_truncated() {
    let (bench, mut heard) = bench(Arc::new(LocalScheduler::default())).await;
    let go = bench.folder.path().join("go");
    let wait = format!("while [ ! -e {0} ]; do sleep 0.02; done; rm {0}", go.display());
    let text_of_script = format!("#!/bin/sh\nprintf 'one\\ntw'; {wait}; echo o; {wait}; : > /dev/stderr; printf 'anew\\nlast'\n");
    let program = Program::Script { text: text_of_script, pass_env: Vec::new() };
    let result = bench.submit(Case { program, own: Map::new(), ..case("case", Value::Null) }.queued());
    for expected in ["one\n", "two\n"] {
        assert_eq!(text(&heard.recv().await.expect("lines")), expected);
        fs::write(&go, "").expect("a file");
    }
    assert_eq!(result.await.expect("a result").outcome.to_string(), "invalid{logs}");
    let mut all = String::new();
    while let Ok(lines) = heard.try_recv() {
        all += &text(&lines);
    }
    assert_eq!(all, "anew\nlast\n");
}
