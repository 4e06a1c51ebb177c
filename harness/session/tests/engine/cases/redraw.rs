//! An identifier that somebody else's live object has is left to it, and the case goes on under another.

use crate::support::{Bench, Case, Options, case, found, session};
use muster_core::result::Outcome;
use muster_fake::{Call, FakeScheduler};
use muster_session::engine::Ownership;
use muster_store::{Owner, Reader, Store};
use muster_text::Value;
use serde_json::json;
use std::fs;
use tempfile::TempDir;

fn taken(times: u32) -> Value {
    json!({
        "launch": { "taken": times, "not_now": [{ "why": "quota" }] },
        "statuses": [{ "state": "running" }, { "after_ms": 10, "state": "ended" }],
        "logs": [{ "text": "hello\n" }],
    })
}

/// Each identifier with what was asked for it, in the order in which they were drawn.
fn lives(fake: &FakeScheduler) -> Vec<(String, Vec<Call>)> {
    let mut lives: Vec<(String, Vec<Call>)> = Vec::new();
    for (call, identifier) in fake.calls() {
        match lives.last_mut() {
            Some((last, calls)) if last == identifier.as_str() => calls.push(call),
            _ => lives.push((identifier.to_string(), vec![call])),
        }
    }
    lives
}

fn owner() -> Owner {
    Owner { host: "here".into(), pid: 1, start_time: 2, boot_id: "boot".into(), pid_namespace: "pid:[1]".into() }
}

#[tokio::test]
async fn a_case_whose_identifier_is_taken_goes_on_under_another() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.expect("a database");
    let ownership = Ownership { store: store.clone(), owner: owner(), is_new: true };
    let mut bench = Bench::with(Options { ownership: Some(ownership), ..Options::default() }).await;
    let queued = Case { rules: found("hello"), ..case("a", taken(2)) }.queued();
    let result = bench.submit(queued).await.expect("a result");
    assert_eq!((&result.outcome, result.attempt), (&Outcome::Pass, 1), "{:?}", result.cause);

    let lives = lives(&bench.fake);
    let identifier = result.identifier.as_ref().expect("an identifier").as_str();
    assert_eq!(lives.len(), 3);
    for (_, calls) in &lives[..2] {
        assert_eq!(calls, &[Call::Plan, Call::Launch, Call::Delete], "what was created before goes");
    }
    assert_eq!((lives[2].0.as_str(), &lives[2].1[..3]), (identifier, &[Call::Plan, Call::Launch, Call::Launch][..]));
    let log = fs::read_to_string(result.folder.as_ref().expect("a folder").join("rfm_job.out")).expect("a stdout");
    assert!(log.starts_with(&format!("{identifier}\n")), "{log}");
    let told = bench.drain();
    let told: Vec<&String> = told.iter().filter(|line| line.contains("taken")).collect();
    assert_eq!(told.len(), 2);
    assert!(
        told[1].ends_with(&format!("identifier {0} is taken by another user's {0}: {identifier} instead", lives[1].0)),
        "{told:?}"
    );

    store.close().await.expect("closed");
    let reader = Reader::open(&path).await.expect("a database");
    assert_eq!(reader.open_jobs().await.expect("jobs"), []);
    assert_eq!(reader.unfinished(&session().id).await.expect("jobs"), [], "the plans that came to nothing are forgotten");
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn whoever_meets_four_taken_identifiers_gives_up_and_says_so() {
    let bench = Bench::new().await;
    let result = bench.scenario(taken(9)).await;
    assert_eq!(result.outcome.to_string(), "error{infra}");
    let lives = lives(&bench.fake);
    let cause = result.cause.as_deref().unwrap_or_default().replace(&lives[3].0, "IDENTIFIER");
    insta::assert_snapshot!(cause, @"4 identifiers in a row are taken, the last by another user's IDENTIFIER: find out who creates such names");
    assert_eq!(lives.len(), 4);
    assert_eq!((bench.fake.created(), bench.left()), (0, 0));
    assert!(result.leftovers.is_empty(), "{:?}", result.leftovers);
}

#[tokio::test]
async fn beside_another_session_the_folder_of_the_taken_identifier_goes() {
    let bench = Bench::with(Options { beside_another: true, ..Options::default() }).await;
    let result = bench.scenario(json!({ "launch": { "taken": 1 }, "statuses": [{ "state": "ended", "exit": 1 }] })).await;
    assert_eq!(result.outcome.to_string(), "fail{workload}");
    let identifier = result.identifier.as_ref().expect("an identifier");
    let folders = fs::read_dir(bench.folder.path().join("stage/test/p/default")).expect("a folder");
    let folders: Vec<_> = folders.map(|entry| entry.expect("a folder").file_name().into_string().expect("text")).collect();
    assert_eq!(folders, [format!("case_0123456789abcdef.{identifier}")]);
}
