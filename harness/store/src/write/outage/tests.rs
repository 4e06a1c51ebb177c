//! A file that is locked for longer than a session waits.

use super::Outage;
use crate::{
    Location, Reader, Store, connect,
    sql::{Connection, query},
    write::{
        batch::Writer,
        live::States,
        tests::{owner, session, skipped},
    },
};
use muster_core::error::chain;
use muster_text::time::Timestamp;
use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A store whose patience with locks is short, with spools in the folder; also what it has to say.
async fn impatient(folder: &TempDir) -> (Store, Arc<Mutex<Vec<String>>>) {
    let database = Location::from(folder.path().join("results.db"));
    let (mut connection, mut notes) = connect::for_writing(&database).await.unwrap();
    connection.script("PRAGMA busy_timeout = 200").await.unwrap();
    let states = Arc::<States>::default();
    let mut writer = Writer::new(connection, database.clone(), Arc::clone(&states));
    writer.patience = Duration::from_millis(300);
    writer.outage = Outage::within(&folder.path().join("spool"), &database);
    notes.extend(writer.adopt().await.unwrap());
    let store = Store::start(writer, states, database, notes);
    let told = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&told);
    store.tell(move |text| all.lock().unwrap().push(text));
    (store, told)
}

/// Another process that keeps everybody else from writing.
async fn locked(store: &Store) -> Connection {
    let (mut other, _) = connect::for_writing(store.database()).await.unwrap();
    other.script("BEGIN EXCLUSIVE").await.unwrap();
    other
}

#[tokio::test]
async fn what_a_lasting_lock_keeps_out_is_in_the_spool_until_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let (store, told) = impatient(&folder).await;
    let session = session();
    store.begin(&session, &owner()).await.unwrap();
    let results: Vec<_> = (0..5).map(|number| skipped(&number.to_string(), "")).collect();
    store.finished(&session.id, &results[0]).await.unwrap();
    let mut other = locked(&store).await;
    let started = Instant::now();
    for result in &results[1..4] {
        store.finished(&session.id, result).await.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(3), "results wait no longer than once: {:?}", started.elapsed());
    assert_eq!(fs::read_dir(folder.path().join("spool")).unwrap().count(), 1);
    // What only the database can decide is refused, with the reason.
    let error = chain(&store.beat(&session.id, &owner()).await.unwrap_err());
    assert!(error.contains("database is locked"), "{error}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    other.rollback().await.unwrap();
    store.finished(&session.id, &results[4]).await.unwrap();
    store.end(&session.id, &owner(), Timestamp(2), false).await.unwrap();
    store.close().await.unwrap();
    let reader = Reader::open(store.database()).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), results);
    assert_eq!(fs::read_dir(folder.path().join("spool")).unwrap().count(), 0);
    let told = told.lock().unwrap().join("\n");
    let waited = told.contains("is locked by another process; waiting, at most 300ms");
    let kept = told.contains("is still locked; results are kept in ") && told.matches("results are kept in").count() == 1;
    assert!(waited && kept && told.contains("is free again; "), "{told}");
}

#[tokio::test]
async fn a_replay_that_is_interrupted_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = impatient(&folder).await;
    let session = session();
    store.begin(&session, &owner()).await.unwrap();
    let mut other = locked(&store).await;
    store.hurry();
    for number in 0..600 {
        store.finished(&session.id, &skipped(&number.to_string(), "")).await.unwrap();
    }
    store.close().await.unwrap_err();
    other.rollback().await.unwrap();
    // Its disk is full in the middle.
    let database = Location::from(folder.path().join("results.db"));
    let (mut connection, _) = connect::for_writing(&database).await.unwrap();
    let mut pages: i64 = query("PRAGMA page_count").fetch_scalar(&mut connection).await.unwrap();
    let mut writer = Writer::new(connection, database.clone(), Arc::default());
    writer.outage = Outage::within(&folder.path().join("spool"), &database);
    let reader = Reader::open(&database).await.unwrap();
    while reader.results(&session.id).await.unwrap().is_empty() {
        pages += 8;
        let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        writer.connection.as_mut().unwrap().script(limit).await.unwrap();
        let notes = writer.adopt().await.unwrap();
        assert!(notes[0].contains("is not written, and stays: ") && notes[0].contains("full"), "{notes:?}");
    }
    drop(writer);
    // Somebody removes one of those that are written.
    other.script("DELETE FROM attempt WHERE id = (SELECT min(id) FROM attempt)").await.unwrap();
    let (store, _) = impatient(&folder).await;
    assert!(store.notes()[0].starts_with("600 messages of a process that is gone are written"), "{:?}", store.notes());
    store.close().await.unwrap();
    assert_eq!(Reader::open(&database).await.unwrap().results(&session.id).await.unwrap().len(), 599, "none is written twice");
}

#[tokio::test]
async fn a_session_that_must_end_waits_for_no_lock_and_the_next_writer_finds_what_it_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = impatient(&folder).await;
    let session = session();
    store.begin(&session, &owner()).await.unwrap();
    let mut other = locked(&store).await;
    let (result, started) = (skipped("1", ""), Instant::now());
    store.hurry();
    store.finished(&session.id, &result).await.unwrap();
    store.end(&session.id, &owner(), Timestamp(2), true).await.unwrap();
    let error = store.close().await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let said = chain(&error);
    assert!(said.contains("results.db is locked or does not answer: 2 messages are kept in "), "{said}");
    other.rollback().await.unwrap();
    let (store, _) = impatient(&folder).await;
    assert!(store.notes()[0].starts_with("2 messages of a process that is gone are written"), "{:?}", store.notes());
    store.close().await.unwrap();
    let reader = Reader::open(store.database()).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap(), [result]);
    assert!(reader.session_of(&session.id, &|_| None).await.unwrap().unwrap().session.interrupted);
}

#[tokio::test]
async fn an_empty_spool_that_a_full_disk_has_left_is_removed_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = impatient(&folder).await;
    store.close().await.unwrap();
    let mut left = Outage::within(&folder.path().join("spool"), store.database()).unwrap().spools.new_one();
    left.append([]).unwrap();
    let path = left.path().to_owned();
    drop(left);
    assert!(path.exists());
    let (store, _) = impatient(&folder).await;
    assert_eq!((store.notes(), path.exists()), (&[][..], false));
    store.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_spool_is_touched_while_a_server_takes_a_connection_and_stays_silent() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spool");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    std::fs::File::create(&path).unwrap().set_modified(long_ago).unwrap();
    let url = format!("postgres://ada@{}/muster?sslmode=disable", silent.local_addr().unwrap());
    let connecting = tokio::spawn(super::connected(url.as_str().into(), path.clone()));
    tokio::time::sleep(super::TOUCHED_EVERY * 2).await;
    assert!(!connecting.is_finished() && std::fs::metadata(&path).unwrap().modified().unwrap() > long_ago);
    connecting.abort();
}
