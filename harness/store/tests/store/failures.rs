//! What cannot be written or found.

use crate::support::{database, intend, job, limits, owner, result, session};
use muster_core::{
    case::SessionId,
    error::chain,
    result::{Outcome, Purpose},
};
use muster_store::{Reader, Store, StoreError};
use muster_text::time::Timestamp;
use std::os::unix::ffi::OsStringExt;
use tempfile::TempDir;

async fn store(folder: &TempDir) -> Store {
    Store::open(database(folder)).await.unwrap()
}

async fn reader(folder: &TempDir) -> Reader {
    Reader::open(database(folder)).await.unwrap()
}

#[tokio::test]
async fn an_identifier_used_twice_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = session("0199aa", 1);
    store.begin(&session, &owner(1)).await.unwrap();
    // Polled together, so that they are one transaction.
    let (one, other, again) =
        tokio::join!(intend(&store, &session.id, 1, 1), intend(&store, &session.id, 2, 1), intend(&store, &session.id, 1, 2));
    one.unwrap();
    other.unwrap();
    let error = chain(&again.unwrap_err());
    let unique =
        ["UNIQUE constraint failed: job.session, job.identifier (code 2067)", "\"job_session_identifier_key\" (code 23505)"];
    assert!(unique.iter().any(|text| error.ends_with(text)), "{error}");
    store.finished(&session.id, &result(2, 1, Outcome::Pass)).await.unwrap();
    assert_eq!(reader(&folder).await.unfinished(&session.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_is_begun_before_anything_is_written_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = session("0199aa", 1);
    let error = intend(&store, &session.id, 1, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::NotStarted { .. }), "{error:?}");
    store.begin(&session, &owner(1)).await.unwrap();
    store.end(&session.id, &owner(1), Timestamp(2), false).await.unwrap();
    let error = store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap_err();
    assert!(matches!(error, StoreError::NotStarted { .. }), "{error:?}");
}

#[tokio::test]
async fn nothing_is_written_after_the_close_and_everything_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = session("0199aa", 1);
    store.begin(&session, &owner(1)).await.unwrap();
    let job = intend(&store, &session.id, 1, 1).await.unwrap();
    store.cleaned(&job);
    store.close().await.unwrap();
    let error = intend(&store, &session.id, 2, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Closed { .. }), "{error:?}");
    store.launched(&job, Timestamp(7));
    assert_eq!(reader(&folder).await.open_jobs().await.unwrap(), []);
}

#[tokio::test]
async fn another_sessions_job_can_be_marked_as_cleaned() {
    let folder = tempfile::tempdir().unwrap();
    let dead = store(&folder).await;
    let session = session("0199aa", 1);
    dead.begin(&session, &owner(1)).await.unwrap();
    let job = intend(&dead, &session.id, 1, 1).await.unwrap();
    let sweep = store(&folder).await;
    sweep.cleaned(&job);
    sweep.close().await.unwrap();
    assert_eq!(reader(&folder).await.open_jobs().await.unwrap(), []);
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = session("0199aa", 1);
    store.begin(&session, &owner(1)).await.unwrap();
    let mut job = job(&session.id, 1);
    job.stage = std::ffi::OsString::from_vec(b"stage/\xff".to_vec()).into();
    let (name, about, rules) = (crate::support::name(1), crate::support::about(), crate::support::rules());
    let intent = muster_store::Intent {
        session: &session.id,
        name: &name,
        about: &about,
        attempt: 1,
        purpose: Purpose::Run,
        job: &job,
        rules: &rules,
        limits: &limits(),
        begun: muster_text::time::Timestamp(1),
        replaces: None,
    };
    let error = chain(&store.intent(&intent).await.unwrap_err());
    assert_eq!(error, "store the job of nbody %num_bodies=1 @eidf:gpu-service+default: path contains invalid UTF-8 characters");
}

#[tokio::test]
async fn a_file_that_is_no_database_or_not_there_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none/results.db");
    let error = Reader::open(&missing).await.unwrap_err();
    assert!(matches!(&error, StoreError::Missing { database } if *database == (&missing).into()), "{error:?}");
    assert!(!missing.exists());
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to look like one: ".repeat(40)).unwrap();
    let error = chain(&Store::open(&text).await.unwrap_err());
    assert!(error.ends_with("notes.txt: file is not a database (code 26)"), "{error}");
    let below_a_file = Store::open(text.join("results.db")).await.unwrap_err();
    assert!(matches!(below_a_file, StoreError::Folder { .. }), "{below_a_file:?}");
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id_if_it_is_the_only_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    for (id, started) in [("0199aa", 1), ("0199ab", 2), ("0199", 3), ("0200", 4)] {
        store.begin(&session(id, started), &owner(1)).await.unwrap();
    }
    let reader = reader(&folder).await;
    let find = async |prefix: &str| reader.session(prefix, &|_| Some(false)).await.map(|row| row.session.id.0);
    assert_eq!(find("02").await.unwrap(), "0200");
    assert_eq!(find("0199").await.unwrap(), "0199");
    assert!(matches!(find("7").await.unwrap_err(), StoreError::NoSession { .. }));
    assert!(matches!(find("%").await.unwrap_err(), StoreError::NoSession { .. }));
    let StoreError::ManySessions { matches, .. } = find("0199a").await.unwrap_err() else { panic!("not ambiguous") };
    assert_eq!(matches, [SessionId("0199ab".into()), SessionId("0199aa".into())]);
    let newest: Vec<_> = reader.sessions(2, &|_| Some(false)).await.unwrap().into_iter().map(|row| row.session.id.0).collect();
    assert_eq!(newest, ["0200", "0199"]);
}
