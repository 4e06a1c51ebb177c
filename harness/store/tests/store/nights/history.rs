//! What attempts leave in the history of figures: nights, metrics, nodes, planned cases; and the same rows again by a rebuild.

use crate::support::{check_integrity, database, execute, measurement, name, owner, result, rows, session};
use muster_core::{
    case::SessionId,
    job::{
        scheduler::{NodeSeen, SectionExit},
        workload::Clock,
    },
    night::{NightRules, NightSpan},
    result::{CaseResult, Counting, Failure, Outcome, Purpose, Session},
    rules::perf::Measurement,
};
use muster_store::{Location, Seen, Store, Upkeep};
use muster_text::time::{Date, Timestamp};

const DAY: i64 = 86_400_000_000;

/// A moment of a night, hours after noon UTC.
fn at(night: i64, hours: i64) -> Timestamp {
    Timestamp(night * DAY + (12 + hours) * DAY / 24)
}

fn night(number: i64) -> NightSpan {
    NightRules::default().night_of(at(number, 0))
}

/// A session that begins in a night.
async fn begin(store: &Store, id: &str, number: i64, counting: Counting) -> SessionId {
    let started = at(number, 13);
    let session = Session { night: Some(night(number).date), counting, ..session(id, started.0) };
    store.begin(&session, &owner(1)).await.unwrap();
    store.plan(&session.id, &night(number), vec![name(1), name(2)]).await.unwrap();
    session.id
}

fn measured(number: u32, attempt: u32, outcome: Outcome, flops: f64) -> CaseResult {
    CaseResult { measurements: vec![measurement("flops", flops)], ..result(number, attempt, outcome) }
}

const NIGHTS: &str = "SELECT s.name || ' ' || m.variable || ' ' || n.night || ' ' || coalesce(CAST(n.value AS TEXT), 'no number') || ' n=' || n.n \
                      || ' flags=' || n.flags FROM night_figure n JOIN metric m ON m.id = n.metric JOIN subject s ON s.id = m.subject \
                      ORDER BY 1";

/// All summaries, as they are.
pub(crate) async fn summaries(path: &Location) -> Vec<String> {
    let mut all = Vec::new();
    for query in [
        r#"SELECT metric || ' ' || night || ' ' || "case" || ' ' || repeat || ' ' || coalesce(CAST(value AS TEXT), '-') || ' ' || basis
        FROM run_figure ORDER BY 1"#,
        "SELECT metric || ' ' || night || ' ' || coalesce(CAST(value AS TEXT), '-') || ' ' || n || ' ' || coalesce(CAST(spread AS TEXT), '-') || ' ' || flags
        || ' ' || basis FROM night_figure ORDER BY 1",
        "SELECT id || ' ' || subject || ' ' || variable || ' ' || key || ' ' || unit || ' ' || coalesce(direction, '-')
        FROM metric ORDER BY 1",
        "SELECT night || ' ' || subject || ' ' || node || ' ' || state FROM planned ORDER BY 1",
        "SELECT system || ' ' || night || ' ' || begins || ' ' || ends || ' ' || time_zone || ' ' || state FROM night ORDER BY 1",
    ] {
        all.extend(rows(path, query).await);
    }
    all
}

#[tokio::test]
async fn the_first_measured_attempt_of_a_case_is_its_figure_and_no_later_one_hides_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let low = Outcome::Fail(Failure::Performance);
    let session = begin(&store, "a", 20_000, Counting::Last).await;
    // Low, then well: the low one counts. Not measured, then well: the second one does. One that was no run: no figure.
    store.finished(&session, &measured(1, 1, low, 10.5)).await.unwrap();
    store.finished(&session, &measured(1, 2, Outcome::Pass, 20.25)).await.unwrap();
    store.finished(&session, &measured(2, 1, Outcome::Fail(Failure::Sanity), 1.0)).await.unwrap();
    store.finished(&session, &measured(2, 2, Outcome::Pass, 30.5)).await.unwrap();
    let tuned = CaseResult { purpose: Purpose::Tune, ..measured(3, 1, Outcome::Pass, 99.5) };
    store.finished(&session, &tuned).await.unwrap();
    let nights = rows(&path, NIGHTS).await;
    insta::assert_snapshot!(nights.join("\n"), @"
    nbody %num_bodies=1 flops 20000 10.5 n=1 flags=0
    nbody %num_bodies=2 flops 20000 30.5 n=1 flags=0
    ");
    // Another session of the same night: the median of both. In both a later attempt changes nothing.
    let second = begin(&store, "b", 20_000, Counting::Last).await;
    store.finished(&second, &measured(1, 1, Outcome::Pass, 30.5)).await.unwrap();
    store.finished(&second, &measured(1, 2, Outcome::Pass, 500.0)).await.unwrap();
    assert_eq!(rows(&path, NIGHTS).await[0], "nbody %num_bodies=1 flops 20000 20.5 n=2 flags=0");
    store.close().await.unwrap();
}

#[tokio::test]
async fn where_every_attempt_is_a_run_each_has_its_figure() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = begin(&store, "a", 20_000, Counting::Every).await;
    for (attempt, flops) in [(1, 10.5), (2, 12.5), (3, f64::NAN), (4, 14.5)] {
        store.finished(&session, &measured(1, attempt, Outcome::Pass, flops)).await.unwrap();
    }
    assert_eq!(rows(&path, NIGHTS).await, ["nbody %num_bodies=1 flops 20000 12.5 n=3 flags=2"]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_night_says_what_it_was_to_run_and_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let states = "SELECT s.name || ' ' || p.night || ' ' || p.state FROM planned p JOIN subject s ON s.id = p.subject ORDER BY 1";
    let night_states = "SELECT night || ' ' || state FROM night ORDER BY 1";
    let first = begin(&store, "a", 20_000, Counting::Last).await;
    assert_eq!(rows(&path, states).await, ["nbody %num_bodies=1 20000 absent", "nbody %num_bodies=2 20000 absent"]);
    store.finished(&first, &result(1, 1, Outcome::Timeout(Clock::Pending))).await.unwrap();
    store.finished(&first, &result(2, 1, Outcome::Abort)).await.unwrap();
    assert_eq!(rows(&path, states).await, ["nbody %num_bodies=1 20000 busy", "nbody %num_bodies=2 20000 absent"]);
    assert_eq!(rows(&path, night_states).await, ["20000 running"]);
    store.end(&first, &owner(1), at(20_000, 14), true).await.unwrap();
    assert_eq!(rows(&path, night_states).await, ["20000 interrupted"]);
    // What ran in another session of the night has run.
    let second = begin(&store, "b", 20_000, Counting::Last).await;
    store.finished(&second, &result(1, 1, Outcome::Pass)).await.unwrap();
    store.finished(&second, &result(2, 1, Outcome::Skip)).await.unwrap();
    store.finished(&second, &result(2, 2, Outcome::Abort)).await.unwrap();
    assert_eq!(rows(&path, states).await, ["nbody %num_bodies=1 20000 run", "nbody %num_bodies=2 20000 skipped"]);
    store.close().await.unwrap();
}

fn seen(at: Timestamp, uid: &str, facts: &[(&str, &str)]) -> Seen {
    let facts = facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let node = NodeSeen { name: "gpu-07".into(), uid: uid.into(), class: "a100".into(), facts };
    Seen { at, nodes: vec![node], facts: [("cluster.gpu".to_owned(), "v1.31.2".to_owned())].into() }
}

#[tokio::test]
async fn a_name_with_another_uid_is_another_node_and_facts_hold_until_they_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let descriptions = [
        (20_000, "one", [("kernel", "6.1"), ("driver", "550")]),
        (20_001, "one", [("kernel", "6.1"), ("driver", "570")]),
        (20_002, "two", [("kernel", "6.1"), ("driver", "570")]),
    ];
    for (number, uid, facts) in descriptions {
        let session = begin(&store, &format!("s{number}"), number, Counting::Last).await;
        store.seen(&session, seen(at(number, 13), uid, &facts)).await.unwrap();
        store.finished(&session, &measured(1, 1, Outcome::Pass, 5.0)).await.unwrap();
    }
    store.close().await.unwrap();
    let members = "SELECT (SELECT count(*) FROM attempt b WHERE b.id <= a.id) || ' ' || m.rank || ' ' || n.uid FROM member m JOIN attempt a ON a.id = m.attempt \
                   JOIN node n ON n.id = m.node ORDER BY 1";
    assert_eq!(rows(&path, members).await, ["1 0 one", "2 0 one", "3 0 two"]);
    let facts = "SELECT n.uid || ' ' || f.key || ' ' || f.value || ' ' || ((f.from_time - 1728000000000000) / 86400000000) || ' ' \
                 || coalesce(CAST((f.until - f.from_time) / 86400000000 AS TEXT), 'holds') FROM node_fact f JOIN node n ON n.id = f.node ORDER BY 1";
    assert_eq!(
        rows(&path, facts).await,
        [
            "one driver 550 1 1",
            "one driver 570 2 holds",
            "one kernel 6.1 1 holds",
            "two driver 570 3 holds",
            "two kernel 6.1 3 holds"
        ]
    );
    assert_eq!(rows(&path, "SELECT facts FROM session ORDER BY started LIMIT 1").await, [r#"{"cluster.gpu":"v1.31.2"}"#]);
}

fn of_section(section: &str, node: &str, value: f64) -> Measurement {
    Measurement { section: Some(section.into()), node: Some(node.into()), ..measurement("rate", value) }
}

#[tokio::test]
async fn sections_their_nodes_images_and_times_are_stored_and_the_end_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = begin(&store, "a", 20_000, Counting::Last).await;
    let exit = |number: i64| SectionExit {
        section: format!("pod-{number}"),
        section_id: Some(format!("u{number}/main")),
        node: Some(format!("n{number}")),
        image: Some(format!("busybox@sha256:{number}")),
        started: Some(Timestamp(number)),
        ended: Some(Timestamp(number + 5)),
        ..SectionExit::default()
    };
    let gang = CaseResult {
        nodes: vec!["n1".into(), "n2".into()],
        exits: vec![exit(1), exit(2)],
        measurements: vec![of_section("pod-1", "n1", 4.25), of_section("pod-2", "n2", 6.25)],
        ..result(1, 1, Outcome::Pass)
    };
    let log = muster_core::result::LogEnd { bytes: 1_000_000, tail: "the end".into() };
    store.finished_with(&session, &gang, Some(Box::new(log))).await.unwrap();
    store.close().await.unwrap();
    let sections = "SELECT s.position || ' ' || s.name || ' ' || s.uid || ' ' || n.name || ' ' || s.image || ' ' || s.started || ' ' \
                    || s.ended FROM section s JOIN node n ON n.id = s.node ORDER BY 1";
    assert_eq!(rows(&path, sections).await, ["0 pod-1 u1 n1 busybox@sha256:1 1 6", "1 pod-2 u2 n2 busybox@sha256:2 2 7"]);
    assert_eq!(rows(&path, NIGHTS).await, ["nbody %num_bodies=1 rate 20000 5.25 n=1 flags=0"]);
    assert_eq!(rows(&path, "SELECT bytes || ' ' || tail FROM attempt_log").await, ["1000000 the end"]);
}

/// Ten nights with two sessions each, retries, runs that are no numbers, another check, sections.
async fn history(path: &Location) {
    let store = Store::open(path).await.unwrap();
    for number in 20_000..20_010 {
        for (id, counting) in [("a", Counting::Last), ("b", Counting::Every)] {
            let session = begin(&store, &format!("{id}{number}"), number, counting).await;
            for case in 1..=3 {
                for attempt in 1..=2 {
                    #[allow(clippy::cast_precision_loss)]
                    let flops = f64::from(case * 100 + attempt) + number as f64 / 7.0;
                    let mut result = measured(case, attempt, Outcome::Pass, if case == 3 { f64::NAN } else { flops });
                    if number > 20_005 {
                        result.about.check_hash = "changed".into();
                    }
                    result.measurements.push(of_section("p0", "gpu-07", flops));
                    result.measurements.push(of_section("p1", "gpu-07", flops / 3.0));
                    store.finished(&session, &result).await.unwrap();
                }
            }
            store.end(&session, &owner(1), at(number, 14), false).await.unwrap();
        }
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_rebuild_writes_the_same_rows_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    history(&path).await;
    // A node that only a section names.
    let store = Store::open(&path).await.unwrap();
    let session = begin(&store, "sections", 20_010, Counting::Last).await;
    let exit = SectionExit { section: "p2".into(), node: Some("gpu-09".into()), ..SectionExit::default() };
    let mut result = CaseResult { exits: vec![exit], ..measured(1, 1, Outcome::Pass, 5.0) };
    result.measurements.push(of_section("p2", "gpu-09", 6.0));
    store.finished(&session, &result).await.unwrap();
    store.close().await.unwrap();
    let before = summaries(&path).await;
    assert!(before.len() > 200, "{} rows", before.len());
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let rebuilt = upkeep.rebuild(|_| panic!("every session has its night")).await.unwrap();
    upkeep.close().await.unwrap();
    assert_eq!((rebuilt.placed, rebuilt.attempts), (0, 121));
    assert_eq!(summaries(&path).await, before);
    check_integrity(&path).await;
}

#[tokio::test]
async fn sessions_of_earlier_versions_get_their_nights_and_figures_by_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let [now, earlier] = ["now.db", "earlier.db"].map(|name| folder.path().join(name));
    history(&now.clone().into()).await;
    let expected = summaries(&now.clone().into()).await;
    // As a version before left it: no nights, no figures, no members.
    std::fs::copy(&now, &earlier).unwrap();
    let earlier = Location::from(earlier);
    execute(
        &earlier,
        "DELETE FROM run_figure; DELETE FROM night_figure; DELETE FROM member; DELETE FROM section; \
         DELETE FROM planned; DELETE FROM night; DELETE FROM metric; DELETE FROM subject; DELETE FROM basis; DELETE FROM node; \
         UPDATE session SET night = NULL, facts = '{}'",
    )
    .await;
    let mut upkeep = Upkeep::open(&earlier).await.unwrap();
    assert_eq!(upkeep.num_unplaced().await.unwrap(), 20);
    let rebuilt = upkeep.rebuild(|_| NightRules::default()).await.unwrap();
    assert_eq!((rebuilt.placed, rebuilt.attempts), (20, 120));
    upkeep.close().await.unwrap();
    // The third case was planned by nobody, and ran.
    let is_plan = |row: &String| row.split(' ').count() == 4 && (row.ends_with(" run") || row.ends_with(" absent"));
    let rest = |rows: Vec<String>| rows.into_iter().filter(|row| !is_plan(row));
    let of = |rows| rest(rows).collect::<Vec<_>>();
    assert_eq!(of(summaries(&earlier).await), of(expected));
    check_integrity(&earlier).await;
}

#[tokio::test]
async fn a_night_of_23_hours_is_one_and_the_hour_that_is_shown_twice_is_in_one_night() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let zone = muster_text::time::Zone::parse("Europe/London").unwrap();
    let rules = NightRules { zone, ..NightRules::default() };
    // 28 March 2026, 12:00 until the next day, when clocks go forward at 01:00; 24 October, when they go back at 02:00.
    for (id, date, hours) in [("spring", "2026-03-28", 13), ("autumn", "2026-10-24", 13), ("again", "2026-10-24", 14)] {
        let started = Timestamp(Date::parse(date).unwrap().days() * DAY + (11 + hours) * DAY / 24);
        let night = rules.night_of(started);
        let session = Session { night: Some(night.date), ..session(id, started.0) };
        store.begin(&session, &owner(1)).await.unwrap();
        store.plan(&session.id, &night, vec![name(1)]).await.unwrap();
    }
    store.close().await.unwrap();
    let nights = "SELECT night || ' ' || ((ends - begins) / 3600000000) || 'h ' || time_zone FROM night \
                  ORDER BY 1";
    assert_eq!(rows(&path, nights).await, ["20540 23h Europe/London", "20750 25h Europe/London"]);
}

#[tokio::test]
async fn a_node_that_was_known_by_its_name_is_the_machine_that_is_described_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let first = begin(&store, "a", 20_000, Counting::Last).await;
    store.finished(&first, &measured(1, 1, Outcome::Pass, 5.0)).await.unwrap();
    for (number, class) in [(20_001, "a100"), (20_002, "a100"), (20_003, "h100")] {
        let session = begin(&store, &format!("s{number}"), number, Counting::Last).await;
        let mut seen = seen(at(number, 13), "one", &[("kernel", "6.1")]);
        seen.nodes[0].class = class.to_owned();
        store.seen(&session, seen).await.unwrap();
        store.finished(&session, &measured(1, 1, Outcome::Pass, 5.0)).await.unwrap();
    }
    store.close().await.unwrap();
    let nodes = "SELECT n.name || ' ' || n.uid || ' ' || n.class || ' ' || (n.last_seen / 86400000000) || ' ' || count(*) FROM node n \
                 JOIN member m ON m.node = n.id GROUP BY n.id, n.name, n.uid, n.class, n.last_seen";
    assert_eq!(rows(&path, nodes).await, ["gpu-07 one h100 20004 4"]);
    assert_eq!(rows(&path, "SELECT key || ' ' || value FROM node_fact").await, ["kernel 6.1"]);
}

#[tokio::test]
async fn two_machines_of_one_name_that_are_described_at_once_are_two_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let first = begin(&store, "a", 20_000, Counting::Last).await;
    store.finished(&first, &measured(1, 1, Outcome::Pass, 5.0)).await.unwrap();
    let session = begin(&store, "b", 20_001, Counting::Last).await;
    let [mut both, other] =
        [("one", "550"), ("two", "570")].map(|(uid, driver)| seen(at(20_001, 13), uid, &[("driver", driver)]));
    both.nodes.extend(other.nodes);
    store.seen(&session, both).await.unwrap();
    store.close().await.unwrap();
    let facts =
        "SELECT n.name || ' ' || n.uid || ' ' || f.value FROM node n LEFT JOIN node_fact f ON f.node = n.id ORDER BY n.id";
    assert_eq!(rows(&path, facts).await, ["gpu-07 one 550", "gpu-07 two 570"]);
}

#[tokio::test]
async fn of_two_checks_in_a_night_the_later_counts_whichever_is_written_first() {
    for order in [[1, 2], [2, 1]] {
        let folder = tempfile::tempdir().unwrap();
        let path = database(&folder);
        let store = Store::open(&path).await.unwrap();
        for hour in order {
            let session = Session { night: Some(night(20_000).date), ..session(&format!("s{hour}"), at(20_000, hour).0) };
            store.begin(&session, &owner(1)).await.unwrap();
            let mut result = measured(1, 1, Outcome::Pass, f64::from(u8::try_from(hour).unwrap()) + 0.5);
            result.about.check_hash = format!("hash{hour}");
            store.finished(&session.id, &result).await.unwrap();
        }
        store.close().await.unwrap();
        assert_eq!(rows(&path, NIGHTS).await, ["nbody %num_bodies=1 flops 20000 2.5 n=1 flags=1"]);
    }
}
