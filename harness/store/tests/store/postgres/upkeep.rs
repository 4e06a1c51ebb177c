//! What a server needs when results are removed.

use super::{Place, run_cases};
use crate::support::{owner, result, session};
use muster_core::{
    case::SessionId,
    result::{LogEnd, Outcome},
};
use muster_judge::sample::Random;
use muster_store::{Keep, Location, Reader, Space, Store, Upkeep, WhyKept};
use muster_text::time::Timestamp;
use std::time::Duration;

const ALL: Keep = Keep { now: Timestamp(i64::MAX / 2), sessions: Duration::ZERO, last: 0, logs: None };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_outlives_the_connection_that_it_was_to_be_asked_on() {
    let Some(mut place) = Place::new(&[]) else { return };
    let database = place.database();
    let store = Store::open(&database).await.unwrap();
    run_cases(&store, "0199here", 2).await;
    store.close().await.unwrap();
    let reader = Reader::open(&database).await.unwrap();
    place.server.kill();
    place.server.run().unwrap();
    assert_eq!(reader.would_prune(&ALL, |_| Some(false)).await.unwrap().cases, 2);
    place.server.kill();
    place.server.run().unwrap();
    let ids = [SessionId("0199here".into())];
    assert_eq!(reader.would_delete(&ids, ALL.now, |_| Some(false)).await.unwrap().cases, 2);
}

/// A session whose cases have logs that cannot be made smaller.
async fn add(store: &Store, id: &str, started: i64) {
    let session = session(id, started);
    store.begin(&session, &owner(1)).await.unwrap();
    let mut random = Random::new(7);
    for number in 0..100 {
        let tail = (0..60_000).map(|_| char::from(b'!' + u8::try_from(random.below(90)).unwrap())).collect();
        let log = LogEnd { bytes: 60_000, tail };
        store.finished_with(&session.id, &result(number, 1, Outcome::Pass), Some(Box::new(log))).await.unwrap();
    }
    store.end(&session.id, &owner(1), Timestamp(started + 1), false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_space_of_what_is_removed_is_given_back_to_the_file_system_if_nobody_uses_the_table() {
    let Some(place) = Place::new(&[]) else { return };
    let store = Store::open(&place.database()).await.unwrap();
    let mut sizes = Vec::new();
    // What stays lies behind what goes: without writing the table again nothing is given back.
    add(&store, "0199a", 1).await;
    for (id, started, is_used) in [("0199b", 10, false), ("0199c", 20, true)] {
        add(&store, id, started).await;
        let mut upkeep = Upkeep::open(place.database()).await.unwrap();
        let before = upkeep.size().await.unwrap();
        let mut pruned = upkeep.prune(&Keep { last: 1, ..ALL }, |_| Some(false)).await.unwrap();
        assert_eq!(pruned.sessions(), 1);
        let server = &place.server;
        let space = std::thread::scope(|scope| {
            if is_used {
                scope.spawn(|| {
                    server.execute("BEGIN; LOCK TABLE muster.attempt_log IN ACCESS SHARE MODE; SELECT pg_sleep(6); COMMIT");
                });
                std::thread::sleep(Duration::from_secs(1));
            }
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(upkeep.shrink(&pruned, before)))
        });
        sizes.push((before, upkeep.size().await.unwrap(), space.unwrap()));
        pruned.bytes = 1;
        assert_eq!(upkeep.shrink(&pruned, before).await.unwrap(), Space::KeptAsLittle);
        upkeep.close().await.unwrap();
    }
    let [free, used] = &sizes[..] else { panic!("{sizes:?}") };
    assert!(free.1 + 4_000_000 < free.0 && free.2 == Space::GivenBack, "{sizes:?}");
    assert!(used.1 + 2_000_000 > used.0 && used.2 == Space::Kept(vec![("attempt_log", WhyKept::InUse)]), "{sizes:?}");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_own_the_tables_is_told_that_their_space_is_kept() {
    let Some(place) = Place::new(&[]) else { return };
    let store = Store::open(&place.database()).await.unwrap();
    add(&store, "0199a", 1).await;
    store.close().await.unwrap();
    place.server.execute(
        "CREATE ROLE pruner LOGIN; GRANT USAGE ON SCHEMA muster TO pruner;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA muster TO pruner;
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA muster TO pruner",
    );
    let mut upkeep = Upkeep::open(Location::from(place.server.url_of("pruner", "muster"))).await.unwrap();
    let before = upkeep.size().await.unwrap();
    let pruned = upkeep.prune(&ALL, |_| Some(false)).await.unwrap();
    assert_eq!(pruned.sessions(), 1);
    let Space::Kept(tables) = upkeep.shrink(&pruned, before).await.unwrap() else { panic!("the space is given back") };
    assert!(
        tables.contains(&("attempt_log", WhyKept::NotOwner)) && tables.contains(&(r#""case""#, WhyKept::NotOwner)),
        "{tables:?}"
    );
    upkeep.close().await.unwrap();
}
