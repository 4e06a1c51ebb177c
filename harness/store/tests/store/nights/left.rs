//! What history is after something was removed, and which names may become one.

use super::upkeep::{DAY, add};
use crate::support::{database, measurement, name, owner, result, rows, session};
use muster_core::{
    error::chain,
    night::NightRules,
    result::{CaseResult, Outcome, Session},
    rules::perf::{Direction, Measurement},
};
use muster_store::{Store, Upkeep};
use muster_text::time::Timestamp;

#[tokio::test]
async fn a_metric_is_what_the_sessions_that_are_left_say_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    add(&store, "one", 20_000, true).await;
    let described = "SELECT unit || ' ' || direction || ' ' || is_ignored FROM metric";
    let before = rows(&path, described).await;
    let night = NightRules::default().night_of(Timestamp(20_001 * DAY));
    let other = Session { night: Some(night.date), ..session("other", 20_001 * DAY) };
    store.begin(&other, &owner(1)).await.unwrap();
    store.plan(&other.id, &night, vec![name(1)]).await.unwrap();
    let turned = Measurement { direction: Some(Direction::Lower), unit: "s".into(), ..measurement("flops", 1.5) };
    store.finished(&other.id, &CaseResult { measurements: vec![turned], ..result(1, 1, Outcome::Pass) }).await.unwrap();
    store.end(&other.id, &owner(1), Timestamp(20_001 * DAY), false).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(rows(&path, described).await, ["s lower 0"]);
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.delete(&[other.id], Timestamp(20_002 * DAY), |_| Some(false)).await.unwrap();
    assert_eq!(rows(&path, described).await, before);
    upkeep.close().await.unwrap();
}

#[tokio::test]
async fn two_cases_of_one_session_do_not_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let night = NightRules::default().night_of(Timestamp(20_000 * DAY));
    let session = Session { night: Some(night.date), ..session("both", 20_000 * DAY) };
    store.begin(&session, &owner(1)).await.unwrap();
    store.plan(&session.id, &night, vec![name(1), name(2)]).await.unwrap();
    for number in [1, 2] {
        let result = CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(number, 1, Outcome::Pass) };
        store.finished(&session.id, &result).await.unwrap();
    }
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let names = ("nbody %num_bodies=1", "nbody %num_bodies=2");
    let refused = upkeep.rename(names, "ada", Timestamp(5)).await.unwrap_err();
    let why = "cannot become `nbody %num_bodies=2`: session both has both `nbody %num_bodies=";
    assert!(chain(&refused).contains(why), "{}", chain(&refused));
    assert_eq!(upkeep.rename(("nbody %num_bodies=1", "nbody %num_bodies=3"), "ada", Timestamp(5)).await.unwrap(), 1);
    upkeep.close().await.unwrap();
}
