//! A session from its beginning to its end.

use crate::support::{
    begin_in_night, check_integrity, database, held, intend, intend_as, job, launched, limits, owner, result, rules, session,
};
use muster_core::{
    job::scheduler::Disruption,
    night::NightRules,
    result::{CaseResult, Failure, Outcome},
};
use muster_store::{JobState, Reader, SessionState, Store, StoreError};
use muster_text::time::Timestamp;

#[tokio::test]
async fn a_reader_sees_a_session_as_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let first = intend(&store, &session.id, 1, 1).await.unwrap();
    let second = intend(&store, &session.id, 2, 1).await.unwrap();

    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session("0199", &|_| Some(true)).await.unwrap();
    assert_eq!((row.session, row.held, row.state), (session.clone(), held(1, 0), SessionState::Running));

    store.launched(&launched(&first), Timestamp(7));
    let done = result(2, 1, Outcome::Fail(Failure::Sanity));
    store.finished(&session.id, &done).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), [done]);
    let unfinished = reader.unfinished(&session.id).await.unwrap();
    assert_eq!(unfinished.len(), 1);
    let row = &unfinished[0];
    assert_eq!((&row.job, row.state, row.rules.as_ref()), (&launched(&first), JobState::Launched, Ok(&rules())));
    assert_eq!(row.limits, Some(limits()));
    assert_eq!((row.begun, row.launched_at, row.swept), (Some(Timestamp(1_000_000)), Some(Timestamp(7)), false));
    assert_eq!(reader.open_jobs().await.unwrap(), [launched(&first), second.clone()]);

    store.cleaned(&second);
    store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    store.cleaned(&first);
    store.end(&session.id, &owner(1), Timestamp(9), false).await.unwrap();
    store.close().await.unwrap();
    let row = reader.sessions(10, &|_| Some(false)).await.unwrap().remove(0);
    assert_eq!((row.state, row.session.ended), (SessionState::Ended, Some(Timestamp(9))));
    assert_eq!(reader.open_jobs().await.unwrap(), []);
    assert_eq!(reader.unfinished(&session.id).await.unwrap(), []);
    check_integrity(&path).await;
}

#[tokio::test]
async fn a_dead_session_is_taken_over_once_and_goes_on_with_its_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let killed = Store::open(&path).await.unwrap();
    killed.begin(&session, &owner(1)).await.unwrap();
    intend(&killed, &session.id, 1, 1).await.unwrap();
    killed.close().await.unwrap();

    let (next, late) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    next.take_over(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    let error = late.take_over(&session.id, &held(1, 0), &owner(3)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    next.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    next.end(&session.id, &owner(2), Timestamp(9), false).await.unwrap();
    next.close().await.unwrap();

    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session(&session.id.0, &|_| Some(true)).await.unwrap();
    assert_eq!((row.held, row.state), (held(2, 1), SessionState::Ended));
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 1);
    let error = late.take_over(&session.id, &held(2, 1), &owner(3)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "an ended session is nobody's: {error}");
    check_integrity(&path).await;
}

#[tokio::test]
async fn who_has_shown_a_sign_of_life_keeps_its_session_and_who_has_lost_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let (first, second) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    first.begin(&session, &owner(1)).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let seen = reader.held(&session.id).await.unwrap().unwrap();
    assert_eq!(seen, held(1, 0));
    first.beat(&session.id, &owner(1)).await.unwrap();
    let error = second.take_over(&session.id, &seen, &owner(2)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    second.take_over(&session.id, &held(1, 1), &owner(2)).await.unwrap();
    assert_eq!(reader.held(&session.id).await.unwrap(), Some(held(2, 2)));
    let error = first.beat(&session.id, &owner(1)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    second.beat(&session.id, &owner(2)).await.unwrap();
    second.end(&session.id, &owner(2), Timestamp(9), false).await.unwrap();
    assert_eq!(reader.held(&session.id).await.unwrap(), None);
    assert!(second.beat(&session.id, &owner(2)).await.is_err(), "an ended session has no heart");
}

#[tokio::test]
async fn who_has_lost_a_session_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let (first, second) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    first.begin(&session, &owner(1)).await.unwrap();
    second.take_over(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    let error = first.end(&session.id, &owner(1), Timestamp(9), false).await.unwrap_err();
    assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    let reader = Reader::open(&path).await.unwrap();
    assert_eq!(reader.held(&session.id).await.unwrap(), Some(held(2, 1)), "it has not ended");
    second.end(&session.id, &owner(2), Timestamp(9), false).await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_claimed_is_not_taken_over_and_keeps_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let (first, sweep, other) =
        (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    first.begin(&session, &owner(1)).await.unwrap();
    first.end(&session.id, &owner(1), Timestamp(9), true).await.unwrap();
    sweep.claim(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    for error in [
        other.take_over(&session.id, &held(1, 0), &owner(3)).await.unwrap_err(),
        other.claim(&session.id, &held(1, 0), &owner(3)).await.unwrap_err(),
        other.give_back(&session.id, &owner(3), &owner(1)).await.unwrap_err(),
    ] {
        assert!(matches!(&error, StoreError::Taken { .. }), "{error}");
    }
    sweep.give_back(&session.id, &owner(2), &owner(1)).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session_of(&session.id, &|_| Some(false)).await.unwrap().unwrap();
    assert_eq!((row.held, row.session.ended, row.session.interrupted), (held(1, 2), Some(Timestamp(9)), true));
    let prefix = muster_core::case::SessionId("0199".into());
    assert_eq!(reader.session_of(&prefix, &|_| None).await.unwrap(), None, "a prefix is not an id");
    other.take_over(&session.id, &held(1, 2), &owner(3)).await.unwrap();
}

#[tokio::test]
async fn a_session_that_a_signal_ended_is_open_again_and_its_aborted_cases_have_never_been() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let store = Store::open(&path).await.unwrap();
    store.begin(&session, &owner(1)).await.unwrap();
    let passed = intend(&store, &session.id, 1, 1).await.unwrap();
    let removed = intend(&store, &session.id, 2, 1).await.unwrap();
    let left = intend(&store, &session.id, 3, 1).await.unwrap();
    for job in [&passed, &removed, &left] {
        store.launched(&launched(job), Timestamp(7));
    }
    store.cleaned(&passed);
    store.cleaned(&removed);
    let never = CaseResult { identifier: None, ..result(4, 1, Outcome::Abort) };
    let results = [result(1, 1, Outcome::Pass), result(2, 1, Outcome::Abort), result(3, 1, Outcome::Abort), never];
    for result in &results {
        store.finished(&session.id, result).await.unwrap();
    }
    store.end(&session.id, &owner(1), Timestamp(9), true).await.unwrap();
    store.take_over(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let row = reader.session(&session.id.0, &|_| Some(true)).await.unwrap();
    assert_eq!((row.session, row.state), (session.clone(), SessionState::Running));
    assert_eq!(reader.results(&session.id).await.unwrap(), results[..1]);
    let open: Vec<_> = reader.unfinished(&session.id).await.unwrap().into_iter().map(|row| (row.job, row.state)).collect();
    assert_eq!(open, [(left, JobState::Intent)], "what may be left of it is removed before it runs again");
    for result in &results[1..] {
        store.finished(&session.id, &CaseResult { outcome: Outcome::Pass, ..result.clone() }).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 4);
    check_integrity(&path).await;
}

#[tokio::test]
async fn a_job_that_was_swept_says_so_unless_it_had_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let session = session("0199aa", 5);
    let store = Store::open(&path).await.unwrap();
    store.begin(&session, &owner(1)).await.unwrap();
    let (runs, over) = (intend(&store, &session.id, 1, 1).await.unwrap(), intend(&store, &session.id, 2, 1).await.unwrap());
    store.finished(&session.id, &result(2, 1, Outcome::Pass)).await.unwrap();
    for job in [&runs, &over] {
        store.swept(job).await.unwrap();
        store.cleaned(job);
    }
    store.close().await.unwrap();
    let unfinished = Reader::open(&path).await.unwrap().unfinished(&session.id).await.unwrap();
    assert_eq!(unfinished.iter().map(|row| (&row.job, row.swept)).collect::<Vec<_>>(), [(&runs, true)]);
}

#[tokio::test]
async fn a_plan_that_replaces_another_is_the_only_one_of_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let (old, other) = (intend(&store, &session.id, 1, 1).await.unwrap(), intend(&store, &session.id, 2, 1).await.unwrap());
    let new = job(&session.id, 7);
    intend_as(&store, 1, 1, &new, Some(&old.identifier)).await.unwrap();
    store.launched(&launched(&new), Timestamp(7));
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let unfinished: Vec<_> = reader.unfinished(&session.id).await.unwrap().into_iter().map(|row| (row.job, row.state)).collect();
    assert_eq!(unfinished, [(launched(&new), JobState::Launched), (other, JobState::Intent)]);
    assert_eq!(reader.open_jobs().await.unwrap().len(), 2);
    check_integrity(&path).await;
}

#[tokio::test]
async fn of_a_case_that_was_retried_the_last_attempt_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let lost = CaseResult { identifier: None, ..result(1, 1, Outcome::Disrupted(Disruption::Evicted)) };
    let passed = result(1, 2, Outcome::Pass);
    store.finished(&session.id, &lost).await.unwrap();
    store.finished(&session.id, &passed).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), [lost, passed]);
}

#[tokio::test]
async fn results_are_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let (first, second) = (session("0199aa", 5), session("0199bb", 6));
    for session in [&first, &second] {
        store.begin(session, &owner(1)).await.unwrap();
    }
    for attempt in 1..=5 {
        for session in [&first, &second] {
            store.finished(&session.id, &result(1, attempt, Outcome::Pass)).await.unwrap();
        }
    }
    let reader = Reader::open(&path).await.unwrap();
    let (mut parts, mut after) = (Vec::new(), 0);
    loop {
        let (results, last) = reader.results_after(&second.id, after, 2).await.unwrap();
        if results.is_empty() {
            break;
        }
        parts.push(results);
        after = last;
    }
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(parts.concat(), reader.results(&second.id).await.unwrap());
}

#[tokio::test]
async fn the_rest_of_a_session_whose_importer_was_killed_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(&folder);
    let store = Store::open(&database).await.unwrap();
    let mine = begin_in_night(&store, session("0199half", 5), &owner(1)).await;
    store.finished(&mine.id, &result(0, 1, Outcome::Pass)).await.unwrap();
    store.finished(&mine.id, &result(1, 1, Outcome::Abort)).await.unwrap();
    let reader = Reader::open(&database).await.unwrap();
    let from = reader.held(&mine.id).await.unwrap().unwrap();
    let stored = reader.results(&mine.id).await.unwrap();
    let all = [result(0, 1, Outcome::Pass), result(1, 1, Outcome::Abort), result(1, 2, Outcome::Pass)];
    let night = NightRules::default().night_of(mine.started);
    store.write_rest(&mine, &night, (&from, &owner(2)), &all, &stored).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(reader.results(&mine.id).await.unwrap(), all);
    assert_eq!(reader.held(&mine.id).await.unwrap(), None, "it has ended");
}
