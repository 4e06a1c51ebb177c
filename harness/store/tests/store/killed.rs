//! Several processes on one file, and processes that end in the middle of things. The children are this test binary,
//! called again for `child`.

use crate::{
    nights::history::summaries,
    support::{begin_in_night, check_integrity, database, intend, launched, owner, result, session},
};
use muster_core::{case::SessionId, result::Outcome};
use muster_store::{Location, Reader, SessionState, Store, Upkeep};
use muster_text::time::Timestamp;
use std::{
    collections::{BTreeSet, hash_map::RandomState},
    hash::BuildHasher,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

const PRODUCERS: u32 = 8;

/// Runs a session of `cases` cases in a process of its own; on its standard error it says what is committed.
fn spawn(database: &Location, session: &str, cases: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "killed::child"])
        .env("MUSTER_STORE_TEST", format!("{session} {cases} {}", database.as_argument().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other side of the tests of this file"]
async fn child() {
    let Ok(orders) = std::env::var("MUSTER_STORE_TEST") else { return };
    let [id, cases, path]: [&str; 3] = orders.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let cases: u32 = cases.parse().unwrap();
    let store = Store::open(path).await.unwrap();
    let session = begin_in_night(&store, session(id, 1), &owner(std::process::id())).await;
    let tasks: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (store, session) = (store.clone(), session.id.clone());
            tokio::spawn(async move {
                for number in (producer..cases).step_by(PRODUCERS as usize) {
                    let job = intend(&store, &session, number, 1).await.unwrap();
                    say(&format!("intent {number}\n"));
                    store.launched(&launched(&job), Timestamp(7));
                    store.finished(&session, &result(number, 1, Outcome::Pass)).await.unwrap();
                    say(&format!("finished {number}\n"));
                    store.cleaned(&job);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    store.end(&session.id, &owner(std::process::id()), Timestamp(2), false).await.unwrap();
    store.close().await.unwrap();
}

/// In one write, so that what arrives is whole lines.
fn say(line: &str) {
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Kills the child when it has said `lines` lines, and returns the numbers of intents and results that it said.
fn kill_after(mut child: Child, lines: usize) -> [BTreeSet<u32>; 2] {
    let mut said = [BTreeSet::new(), BTreeSet::new()];
    for (count, line) in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok).enumerate() {
        if count == lines {
            child.kill().unwrap();
        }
        match line.split_once(' ') {
            Some(("intent", number)) => drop(said[0].insert(number.parse().unwrap())),
            Some(("finished", number)) => drop(said[1].insert(number.parse().unwrap())),
            _ => panic!("the child failed: {line}"),
        }
    }
    child.wait().unwrap();
    said
}

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}

async fn committed(reader: &Reader, session: &SessionId) -> [BTreeSet<u32>; 2] {
    let number = |display: &str| display.rsplit('=').next().unwrap().parse().unwrap();
    let results = reader.results(session).await.unwrap();
    assert!(results.iter().all(|result| result.measurements.len() == 2), "a result without its measurements");
    let finished: BTreeSet<u32> = results.iter().map(|result| number(&result.name.display)).collect();
    assert_eq!(finished.len(), results.len(), "a result is there twice");
    let unfinished = reader.unfinished(session).await.unwrap();
    let intents = unfinished.iter().map(|row| number(&row.name.display)).chain(finished.iter().copied()).collect();
    [intents, finished]
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    for round in 0..20 {
        let id = SessionId(format!("killed{round}"));
        let lines = usize::try_from(random(600)).unwrap();
        let [intents, finished] = kill_after(spawn(&path, &id.0, 5_000), lines);
        assert!(intents.len() + finished.len() > lines, "the child ended by itself");

        let reader = Reader::open(&path).await.unwrap();
        check_integrity(&path).await;
        let row = reader.session(&id.0, &|_| Some(false)).await.unwrap();
        assert_eq!((row.state, row.session.ended), (SessionState::Interrupted, None));
        let stored = committed(&reader, &id).await;
        assert!(stored[0].is_superset(&intents), "an intent is lost after {lines} lines");
        assert!(stored[1].is_superset(&finished), "a result is lost after {lines} lines");
    }
    // Figures were written with their results: a rebuild finds the same.
    let before = summaries(&path).await;
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.rebuild(|_| panic!("every session has its night")).await.unwrap();
    upkeep.close().await.unwrap();
    assert_eq!(summaries(&path).await, before);
    // The file is as good as new.
    let store = Store::open(&path).await.unwrap();
    let session = session("after", 9);
    store.begin(&session, &owner(1)).await.unwrap();
    intend(&store, &session.id, 1, 1).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_kill_while_the_tables_are_made_leaves_none_or_all() {
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        let mut child = spawn(&(&path).into(), "young", 5_000);
        while !path.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_micros(random(8_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let reader = Reader::of_writer(&path).await.unwrap();
        check_integrity(&path.into()).await;
        reader.sessions(10, &|_| Some(false)).await.unwrap();
    }
}

#[tokio::test]
async fn processes_that_begin_and_write_at_once_lose_nothing() {
    const CASES: u32 = 400;
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let ids = ["one", "two", "three", "four", "five", "six"];
    let children: Vec<_> = ids.map(|id| (id, spawn(&path, id, CASES))).into_iter().collect();
    for (_, child) in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let reader = Reader::open(&path).await.unwrap();
    check_integrity(&path).await;
    for id in ids {
        let row = reader.session(id, &|_| Some(false)).await.unwrap();
        assert_eq!(row.state, SessionState::Ended);
        let results = reader.results(&row.session.id).await.unwrap();
        assert_eq!(results.iter().filter(|result| result.outcome == Outcome::Pass).count(), CASES as usize);
        assert_eq!(committed(&reader, &row.session.id).await[1], (0..CASES).collect());
    }
    assert_eq!(reader.open_jobs().await.unwrap(), []);
}
