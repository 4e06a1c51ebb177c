//! What is on disk, and when. Real time: the database has threads of its own, which a paused clock would overtake.

use crate::support::{Bench, Options, case};
use muster_core::{job::scheduler::Scheduler, result::Outcome};
use muster_session::engine::Ownership;
use muster_store::{JobState, Owner, Reader, Store};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

fn owner() -> Owner {
    Owner { host: "here".into(), pid: 1, start_time: 2, boot_id: "boot".into(), pid_namespace: "pid:[1]".into() }
}

#[tokio::test]
async fn a_plan_is_stored_before_its_launch_and_a_result_before_it_is_told() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.expect("a database");
    let ownership = Ownership { store: store.clone(), owner: owner(), is_new: true };
    let bench = Bench::with(Options { ownership: Some(ownership), ..Options::default() }).await;
    let reader = Reader::open(&path).await.expect("a database");

    let slow = json!({ "launch": { "delay_ms": 300 }, "statuses": [{ "state": "running" }, { "after_ms": 100, "state": "ended", "exit": 1 }] });
    let result = bench.submit(case("slow", slow).queued());
    sleep(Duration::from_millis(150)).await;
    assert_eq!(bench.fake.created(), 0, "the launch is under way");
    let id = reader.sessions(1, &|_| None).await.expect("sessions").remove(0).session.id;
    let intents: Vec<_> = reader.unfinished(&id).await.expect("intents").into_iter().map(|row| row.state).collect();
    assert_eq!((reader.open_jobs().await.expect("open jobs").len(), intents), (1, vec![JobState::Intent]));

    let result = result.await.expect("a result");
    let stored = reader.open_jobs().await.expect("open jobs");
    assert_eq!(stored.len(), 1, "kept to be looked at");
    assert_eq!(Some(&stored[0].identifier), result.identifier.as_ref());
    // The stored job alone is enough to clean up.
    assert_eq!(bench.fake.jobs().len(), 1);
    bench.fake.cleanup(&stored[0], muster_core::job::scheduler::Disposition::Delete).await.expect("cleaned");
    assert_eq!(bench.left(), 0);

    assert_eq!(bench.scenario(json!({})).await.outcome, Outcome::Pass);
    let ended = bench.engine.end().await.expect("stored");
    assert!(ended.ended.is_some() && !ended.interrupted);
    store.close().await.expect("closed");
    assert_eq!(reader.open_jobs().await.expect("open jobs").len(), 1, "what passed is cleaned");
}

#[tokio::test]
async fn without_a_place_to_write_the_plan_nothing_is_launched() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let store = Store::open(folder.path().join("results.db")).await.expect("a database");
    let ownership = Ownership { store: store.clone(), owner: owner(), is_new: true };
    let mut bench = Bench::with(Options { ownership: Some(ownership), ..Options::default() }).await;
    store.close().await.expect("closed");
    let result = bench.scenario(json!({})).await;
    assert_eq!(result.outcome.to_string(), "error{infra}");
    assert_eq!(bench.fake.created(), 0);
    let place = folder.path().display().to_string();
    insta::assert_snapshot!(result.cause.as_deref().unwrap_or_default().replace(&place, ""), @"store the plan: the results database /results.db is closed");
    assert!(bench.drain().iter().any(|line| line.starts_with("warning") && line.contains("the result is not stored")));
    assert_eq!(bench.engine.num_not_stored(), 1);
}
