//! Questions as a second front end asks them: without a command line, several at once, at a time of its own.

#![allow(clippy::unwrap_used, reason = "a test")]

use jiff::tz::TimeZone;
use muster_answers::{
    Asked, Unanswered,
    causes::causes,
    compare::compare,
    nights,
    owners::{self, Look},
    sessions,
};
use muster_core::{
    case::SessionId,
    decisions::liveness::{OwnerState, owner_state},
    query::spec::{Filter, Filters, Selection},
    result::Session,
};
use muster_host::owner;
use muster_judge::{
    night::{Night, Settings},
    sample::year::{Year, YearSpec},
};
use muster_store::{Held, Location, Owner, Reader, Store};
use muster_text::time::Timestamp;
use std::time::Duration;

const NIGHTS: usize = 45;
/// The first night: 2026-01-01.
const FIRST: i32 = 20_454;

/// A database with the nights of one invented system.
async fn database(folder: &tempfile::TempDir) -> Location {
    let location = Location::File(folder.path().join("results.db"));
    let store = Store::open(&location).await.unwrap();
    let year = Year::new(YearSpec { seed: 1, systems: 1, nights: NIGHTS, first: FIRST });
    store.write_year(&year, &owner::this_owner(), &|_| {}).await.unwrap();
    store.close().await.unwrap();
    location
}

/// The noon after the last night.
fn now() -> Timestamp {
    Timestamp::of_seconds((i64::from(FIRST) + i64::try_from(NIGHTS).unwrap()) * 86_400 + 43_200)
}

#[tokio::test]
async fn judging_a_night_writes_nothing_and_keeping_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let location = database(&folder).await;
    let reader = Reader::open(&location).await.unwrap();
    let chosen = nights::systems(&reader, now(), None, None).await.unwrap().remove(0);
    let first = nights::judged(&reader, &chosen, &Settings::default()).await.unwrap();
    assert!(!first.system().metrics.is_empty());
    assert_eq!(reader.judged(&chosen.system).await.unwrap().until, None);
    nights::keep(&reader, &first).await.unwrap();
    let reader = Reader::open(&location).await.unwrap();
    assert_eq!(reader.judged(&chosen.system).await.unwrap().until, Some(chosen.night));
    let again = nights::judged(&reader, &chosen, &Settings::default()).await.unwrap();
    assert_eq!(again.verdicts, first.verdicts);
}

#[tokio::test]
async fn a_part_of_a_night_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(&database(&folder).await).await.unwrap();
    let chosen = nights::systems(&reader, now(), None, None).await.unwrap().remove(0);
    let mut night = nights::judged(&reader, &chosen, &Settings::default()).await.unwrap();
    let partition = night.system().metrics[0].name.partition.clone();
    night.only(&partition).unwrap();
    nights::keep(&reader, &night).await.unwrap();
    assert_eq!(reader.judged(&chosen.system).await.unwrap().until, None);
}

#[tokio::test]
async fn one_reader_serves_several_questions() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(&database(&folder).await).await.unwrap();
    let asked = Asked { reader: &reader, now: now(), zone: &TimeZone::UTC, latest: &|_| {} };
    let [all, last] = ["", "last-night"].map(|text| Selection::parse(text).unwrap());
    let listed = sessions::Listed { limit: 5, outcomes: &[] };
    let (causes, compared, listed) =
        tokio::join!(causes(&asked, &last), compare(&asked, &all, &all, None), sessions::list(&asked, &all, listed));
    assert!(causes.unwrap().cases > 0);
    assert!(!compared.unwrap().0.rows.is_empty());
    assert_eq!(listed.unwrap().sessions.len(), 5);
}

#[tokio::test]
async fn what_is_not_stored_is_told_apart_from_a_database_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let location = database(&folder).await;
    let reader = Reader::open(&location).await.unwrap();
    let asked = Asked { reader: &reader, now: now(), zone: &TimeZone::UTC, latest: &|_| {} };
    let other = Filters { systems: vec![Filter::parse("other").unwrap()], ..Filters::default() };
    let selection = Selection::default().and(&other);
    assert!(matches!(causes(&asked, &selection).await, Err(Unanswered::Unknown(_))));
    let none = nights::systems(&reader, now(), None, Some(Night(FIRST - 9))).await;
    assert_eq!(
        none.unwrap_err().to_string(),
        "the night of 2025-12-23 is not stored: there are nights from 2026-01-02 to 2026-02-14"
    );
    std::fs::write(location.as_file().unwrap(), "no database").unwrap();
    assert!(matches!(causes(&asked, &Selection::default()).await, Err(Unanswered::Store(_))));
}

#[tokio::test]
async fn an_owner_elsewhere_is_judged_by_its_heartbeat_and_one_here_by_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("results.db")).await.unwrap();
    let here = owner::this_owner();
    let elsewhere = Owner { boot_id: "of another machine".to_owned(), ..here.clone() };
    let session = Session { id: SessionId("s".to_owned()), ..Session::default() };
    store.begin(&session, &elsewhere).await.unwrap();
    let reader = Reader::open(store.database().clone()).await.unwrap();
    let held = reader.held(&session.id).await.unwrap().unwrap();
    let limit = Duration::from_mins(1);
    let state = async |held: Option<&Held>, watched: Duration| {
        let look = Look { session: &session.id, first: held, watched, limit };
        owner_state(&owners::signs(Some(&reader), look).await)
    };
    assert!(matches!(state(Some(&held), Duration::ZERO).await, OwnerState::Silent { .. }));
    assert_eq!(state(Some(&held), 2 * limit).await, OwnerState::Gone);
    store.beat(&session.id, &elsewhere).await.unwrap();
    assert_eq!(state(Some(&held), 2 * limit).await, OwnerState::Alive);
    assert_eq!(state(Some(&Held { owner: here, ..held }), 2 * limit).await, OwnerState::Alive);
    assert_eq!(state(None, 2 * limit).await, OwnerState::Unknown);
}
