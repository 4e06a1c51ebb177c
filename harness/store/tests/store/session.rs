//! A session from its beginning to its end.

use crate::support::{intend, intend_as, job, launched, limits, owner, result, rules, session};
use muster_core::{
    result::{CaseResult, Failure, Outcome},
    scheduler::{Disruption, LogMark},
    time::Timestamp,
};
use muster_store::{JobState, Reader, SessionState, Store, StoreError};

#[tokio::test]
async fn a_reader_sees_a_session_as_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let first = intend(&store, &session.id, 1, 1).await.unwrap();
    let second = intend(&store, &session.id, 2, 1).await.unwrap();

    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session("0199", &|_| true).await.unwrap();
    assert_eq!((row.session, row.owner, row.state), (session.clone(), owner(1), SessionState::Running));

    let mark = LogMark { section: "nbody-0".into(), offset: 4096, time: None };
    store.launched(&launched(&first));
    store.marks(&first, &[LogMark { offset: 1, ..mark.clone() }]);
    store.marks(&first, std::slice::from_ref(&mark));
    let done = result(2, 1, Outcome::Fail(Failure::Sanity));
    store.finished(&session.id, &done).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), [done]);
    let unfinished = reader.unfinished(&session.id).await.unwrap();
    assert_eq!(unfinished.len(), 1);
    let row = &unfinished[0];
    assert_eq!((&row.job, row.state, &row.marks, &row.rules), (&launched(&first), JobState::Launched, &vec![mark], &rules()));
    assert_eq!(row.limits, Some(limits()));
    let open: Vec<_> = reader.open_jobs().await.unwrap().into_iter().map(|open| (open.job, open.state)).collect();
    assert_eq!(open, [(launched(&first), JobState::Launched), (second.clone(), JobState::Ended)]);

    store.cleaned(&second);
    store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    store.cleaned(&first);
    store.end(&session.id, Timestamp(9), false).await.unwrap();
    store.close().await.unwrap();
    let row = reader.sessions(10, &|_| false).await.unwrap().remove(0);
    assert_eq!((row.state, row.session.ended), (SessionState::Ended, Some(Timestamp(9))));
    assert_eq!(row.counts.into_iter().collect::<Vec<_>>(), [("fail".to_owned(), 1), ("pass".to_owned(), 1)]);
    assert_eq!(reader.open_jobs().await.unwrap(), []);
    assert_eq!(reader.unfinished(&session.id).await.unwrap(), []);
    reader.integrity().await.unwrap();
}

#[tokio::test]
async fn a_dead_session_is_taken_over_once_and_goes_on_with_its_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let session = session("0199aa", 5);
    let killed = Store::open(&path).await.unwrap();
    killed.begin(&session, &owner(1)).await.unwrap();
    intend(&killed, &session.id, 1, 1).await.unwrap();
    killed.close().await.unwrap();

    let (heir, late) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    heir.take_over(&session.id, &owner(1), &owner(2)).await.unwrap();
    let error = late.take_over(&session.id, &owner(1), &owner(3)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    heir.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    heir.end(&session.id, Timestamp(9), false).await.unwrap();
    heir.close().await.unwrap();

    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session(&session.id.0, &|_| true).await.unwrap();
    assert_eq!((row.owner, row.state), (owner(2), SessionState::Ended));
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 1);
    let error = late.take_over(&session.id, &owner(2), &owner(3)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "an ended session has no heir: {error}");
    reader.integrity().await.unwrap();
}

#[tokio::test]
async fn a_plan_that_replaces_another_is_the_only_one_of_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let (old, other) = (intend(&store, &session.id, 1, 1).await.unwrap(), intend(&store, &session.id, 2, 1).await.unwrap());
    let new = job(&session.id, 7);
    intend_as(&store, 1, 1, &new, Some(&old.identifier)).await.unwrap();
    store.launched(&launched(&new));
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let unfinished: Vec<_> = reader.unfinished(&session.id).await.unwrap().into_iter().map(|row| (row.job, row.state)).collect();
    assert_eq!(unfinished, [(launched(&new), JobState::Launched), (other, JobState::Intent)]);
    assert_eq!(reader.open_jobs().await.unwrap().len(), 2);
    reader.integrity().await.unwrap();
}

#[tokio::test]
async fn of_a_case_that_was_retried_the_last_attempt_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let lost = CaseResult { identifier: None, ..result(1, 1, Outcome::Disrupted(Disruption::Evicted)) };
    let passed = result(1, 2, Outcome::Pass);
    store.finished(&session.id, &lost).await.unwrap();
    store.finished(&session.id, &passed).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), [lost, passed]);
    let row = reader.sessions(1, &|_| true).await.unwrap().remove(0);
    assert_eq!(row.counts.into_iter().collect::<Vec<_>>(), [("pass".to_owned(), 1)]);
}
