//! How far each case is, and what has changed since.

use crate::support::{about, database, held, intend, name, owner, result, session};
use muster_core::{
    live::{CaseProgress, CaseState, LiveCase},
    result::{About, Outcome},
};
use muster_store::{Changes, Describe, Reader, Store};
use muster_text::time::Timestamp;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

fn describe() -> Describe {
    Arc::new(|| About { descr: "before it is planned".into(), ..about() })
}

fn progress(attempt: u32, state: CaseState, since: i64, note: &str) -> CaseProgress {
    let note = (!note.is_empty()).then(|| note.to_owned());
    CaseProgress { attempt, state, since: Timestamp(since), note, nodes: Vec::new() }
}

/// What has changed, as soon as that is something.
async fn next(reader: &Reader, since: i64) -> Changes {
    for _ in 0..200 {
        let changes = reader.changes(&session("0199live", 5).id, since).await.unwrap();
        if !changes.cases.is_empty() {
            return changes;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing has changed since {since}");
}

fn lines(changes: &Changes) -> Vec<String> {
    let line = |case: &LiveCase| {
        let CaseProgress { attempt, state, since, note, nodes } = &case.progress;
        let number = case.name.display.rsplit('=').next().unwrap();
        let outcome = case.outcome.as_ref().map_or_else(String::new, |outcome| format!(" {outcome}"));
        format!("{number}: {state} {attempt} {} {:?} {nodes:?}{outcome}", since.0, note.as_deref().unwrap_or_default())
    };
    let mut lines: Vec<_> = changes.cases.iter().map(line).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_reader_sees_what_has_changed_since_it_last_looked() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = session("0199live", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let names: Vec<_> = (0..3).map(|number| Arc::new(name(number))).collect();
    for name in &names {
        store.progress(&session.id, name, progress(1, CaseState::Waiting, 10, ""), Some(&describe()));
    }
    let reader = Reader::open(store.database()).await.unwrap();
    let waiting = next(&reader, 0).await;
    assert_eq!(lines(&waiting), ["0: waiting 1 10 \"\" []", "1: waiting 1 10 \"\" []", "2: waiting 1 10 \"\" []"]);

    store.progress(&session.id, &names[0], progress(1, CaseState::Pending, 20, "0/3 nodes have a free GPU"), None);
    store.progress(&session.id, &names[1], progress(1, CaseState::Pending, 21, ""), None);
    intend(&store, &session.id, 1, 1).await.unwrap();
    let pending = next(&reader, waiting.last).await;
    assert_eq!(lines(&pending), ["0: pending 1 20 \"0/3 nodes have a free GPU\" []", "1: pending 1 21 \"\" []"]);

    // Only the note differs: it is still the same state.
    store.progress(&session.id, &names[0], progress(1, CaseState::Pending, 30, "1/3 nodes have a free GPU"), None);
    let running = CaseProgress { nodes: vec!["gpu-07".into()], ..progress(1, CaseState::Running, 31, "") };
    store.progress(&session.id, &names[1], running, None);
    store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    let ended = next(&reader, pending.last).await;
    assert_eq!(lines(&ended), ["0: pending 1 20 \"1/3 nodes have a free GPU\" []", "1: ended 1 2400001 \"\" [\"gpu-07\"] pass"]);
    // What it was described as before it was planned is forgotten.
    assert_eq!(reader.results(&session.id).await.unwrap(), [result(1, 1, Outcome::Pass)]);

    store.progress(&session.id, &names[1], progress(2, CaseState::Waiting, 40, ""), Some(&describe()));
    assert_eq!(lines(&next(&reader, ended.last).await), ["1: waiting 2 40 \"\" []"]);
    assert_eq!(reader.changes(&session.id, 0).await.unwrap().cases.len(), 3);
    store.close().await.unwrap();
}

#[tokio::test]
async fn states_that_are_overtaken_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = session("0199live", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let name = Arc::new(name(1));
    for since in 0..10_000 {
        let state = if since % 2 == 0 { CaseState::Pending } else { CaseState::Running };
        store.progress(&session.id, &name, progress(1, state, since, ""), Some(&describe()));
    }
    store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    let changes = Reader::open(store.database()).await.unwrap().changes(&session.id, 0).await.unwrap();
    assert_eq!(lines(&changes), ["1: ended 1 2400001 \"\" [\"gpu-07\"] pass"]);
    assert!(changes.last <= 3, "{} transactions wrote a state", changes.last);
    store.close().await.unwrap();
}

#[tokio::test]
async fn more_states_than_a_transaction_holds_are_written_without_another_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = session("0199live", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    for number in 0..2_000 {
        store.progress(&session.id, &Arc::new(name(number)), progress(1, CaseState::Waiting, 1, ""), Some(&describe()));
    }
    let reader = Reader::open(store.database()).await.unwrap();
    let (mut cases, mut last) = (0, 0);
    while cases < 2_000 {
        let changes = next(&reader, last).await;
        assert!(changes.last > last);
        (cases, last) = (cases + changes.cases.len(), changes.last);
    }
    assert_eq!(cases, 2_000, "none is read twice");
    store.close().await.unwrap();
}

#[tokio::test]
async fn no_state_is_written_after_the_result_of_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = session("0199live", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    for number in 0..2_000 {
        let name = Arc::new(name(number));
        store.progress(&session.id, &name, progress(1, CaseState::Running, 1, "cleanup"), Some(&describe()));
    }
    // More states wait than one transaction takes: those of these cases may be among the others.
    for number in 0..20 {
        store.finished(&session.id, &result(number, 1, Outcome::Pass)).await.unwrap();
    }
    store.progress(&session.id, &Arc::new(name(0)), progress(2, CaseState::Waiting, 9, ""), None);
    let reader = Reader::open(store.database()).await.unwrap();
    let (mut states, mut last) = (BTreeMap::new(), 0);
    while states.len() < 2_000 || states.values().all(|state| *state != CaseState::Waiting) {
        let changes = next(&reader, last).await;
        last = changes.last;
        states.extend(changes.cases.into_iter().map(|case| (case.name.display, case.progress.state)));
    }
    let ended = states.values().filter(|state| **state == CaseState::Ended).count();
    assert_eq!(ended, 19, "of 20 that have a result, one waits for its second attempt");
    store.close().await.unwrap();
}

#[tokio::test]
async fn after_a_takeover_cases_that_were_aborted_wait_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199live", 5);
    let first = Store::open(&path).await.unwrap();
    first.begin(&session, &owner(1)).await.unwrap();
    for (number, outcome) in [(1, Outcome::Pass), (2, Outcome::Abort)] {
        first.finished(&session.id, &result(number, 1, outcome)).await.unwrap();
    }
    first.end(&session.id, &owner(1), Timestamp(9), true).await.unwrap();
    first.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let before = reader.changes(&session.id, 0).await.unwrap();
    let next_owner = Store::open(&path).await.unwrap();
    next_owner.take_over(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    let changes = reader.changes(&session.id, before.last).await.unwrap();
    assert_eq!(lines(&changes), ["2: waiting 1 2400002 \"\" []"]);
    next_owner.close().await.unwrap();
}
