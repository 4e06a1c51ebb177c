//! What the verdict of a night is made of, from rows as sessions leave them.

use crate::support::{about, database, execute, measurement, name, owner, result, rows, session};
use muster_core::{
    case::check_of,
    night::{FigureRules, NightRules},
    query::{figures::Basis, remarks::RemarkKind, spec::Range},
    result::{About, CaseResult, Outcome, Quarantine, Session},
    rules::perf::{Direction, Measurement},
};
use muster_judge::{
    night::{Change, ChangeId, ChangeState, Night, Plan, Turn, Value},
    stats::{shift::Shift, trend::Shape},
};
use muster_store::{Annotation, Judged, Keep, NightProgress, Reader, Store, StoredNights, Upkeep};
use muster_text::time::{Date, Timestamp};
use std::{collections::HashMap, time::Duration};

const ROWS: &str = "
INSERT INTO night VALUES ('eidf', 99, 0, 1, 'UTC', 'ended'), ('eidf', 100, 0, 1, 'UTC', 'running'), ('other', 90, 0, 1, 'UTC', 'ended');
INSERT INTO subject VALUES (1, 'eidf', 'gpu', 'gnu', 'triad %size=2G'), (2, 'eidf', 'gpu', 'gnu', 'login'), (3, 'other', 'gpu', 'gnu', 'login');
INSERT INTO metric (id, subject, variable, key, unit, direction) VALUES (10, 1, 'latency', '8', 'us', 'lower'), (11, 1, 'copy', '', 'GB/s', NULL), (12, 2, 'elapsed', '', 's', 'lower'),
    (13, 3, 'elapsed', '', 's', 'lower'), (14, 1, 'gone', '', 's', NULL);
INSERT INTO basis VALUES (1, 'us', 'a', ''), (2, 'us', 'b', 'm'), (3, 's', 'a', '');
INSERT INTO night_figure VALUES (10, 50, 9.0, 1, NULL, 0, 1), (10, 99, 1.5, 1, NULL, 0, 1), (10, 100, 1.25, 2, 0.1, 0, 2),
    (11, 100, NULL, 0, NULL, 2, 3), (12, 98, 0.5, 1, NULL, 0, 3), (13, 80, 7.0, 1, NULL, 0, 3);
INSERT INTO planned VALUES (100, 1, 0, 'run'), (100, 3, 0, 'busy'), (90, 1, 0, 'run');
INSERT INTO annotation VALUES (1, 'known', 'eidf', NULL, NULL, 'triad', 'latency', NULL, NULL, 90, 110, 'me', 'OPS-7', NULL, 0),
    (2, 'note', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 'me', 'a note', NULL, 0),
    (3, 'maintenance', 'other', NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 'me', 'of another', NULL, 0);
";

#[tokio::test]
async fn a_system_is_read_with_its_figures_plan_and_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    Store::open(&path).await.unwrap().close().await.unwrap();
    execute(&path, ROWS).await;
    let reader = Reader::open(&path).await.unwrap();

    let stored = |system: &str, first, last, future: Option<i32>| StoredNights {
        system: system.into(),
        first: Night(first),
        last: Night(last),
        future: future.map(Night),
    };
    let now = Timestamp(0);
    assert_eq!(reader.nights(now).await.unwrap(), [stored("eidf", 99, 100, None), stored("other", 90, 90, None)]);
    // A session whose clock is minutes ahead is in a night like others; one of tomorrow decides nothing, nor does a system of tomorrow.
    let ahead = "UPDATE night SET begins = 240000000 WHERE night = 100; INSERT INTO night VALUES
        ('eidf', 101, 400000000, 500000000, 'UTC', 'ended'), ('tomorrow', 101, 400000000, 500000000, 'UTC', 'ended');";
    execute(&path, ahead).await;
    assert_eq!(reader.nights(now).await.unwrap(), [stored("eidf", 99, 100, Some(101)), stored("other", 90, 90, None)]);
    let running = NightProgress { is_running: true, ended: 0, cases: 0 };
    assert_eq!(reader.night_progress("eidf", Night(100)).await.unwrap(), running);
    assert_eq!(reader.night_progress("eidf", Night(99)).await.unwrap(), NightProgress::default());

    let system = reader.night_system("eidf", Night(60), Night(100)).await.unwrap();
    let names: Vec<_> = system.metrics.iter().map(|metric| (metric.id, metric.name.label(), metric.plan)).collect();
    // Those without a figure in these nights are left out.
    let expected =
        [(12, "elapsed".into(), Plan::Unplanned), (10, "latency[8]".into(), Plan::Run), (11, "copy".into(), Plan::Run)];
    assert_eq!(names, expected);
    let latency = &system.metrics[1];
    assert_eq!((latency.direction, check_of(&latency.name.case), latency.unit.as_str()), (Some(Direction::Lower), "triad", "us"));
    let value = |night, value, segment| Value { night: Night(night), value, segment };
    assert_eq!(latency.values, [value(99, 1.5, 0), value(100, 1.25, 1)]);
    let key = |check: &str, manifest: &str| Basis { check_hash: check.into(), manifest_hash: manifest.into(), unit: "us".into() };
    assert_eq!(latency.segments, [key("a", ""), key("b", "m")]);
    assert!(system.metrics[2].values[0].value.is_nan());
    let [annotation] = system.annotations.as_slice() else { panic!("{:?}", system.annotations) };
    assert_eq!((annotation.kind, annotation.until, annotation.reason.as_str()), (RemarkKind::Known, Some(Night(110)), "OPS-7"));
    // The plan of another system is none of this one.
    let other = reader.night_system("other", Night(60), Night(90)).await.unwrap();
    assert_eq!(other.metrics.iter().map(|metric| metric.plan).collect::<Vec<_>>(), [Plan::Unknown]);
    assert!(annotation.is_about(&latency.name) && !annotation.is_about(&system.metrics[0].name));

    // A night without a plan: nobody knows what was to run.
    let system = reader.night_system("eidf", Night(60), Night(99)).await.unwrap();
    assert!(system.metrics.iter().all(|metric| metric.plan == Plan::Unknown));
}

/// Runs a case in a night.
async fn run(store: &Store, night: i64, case: CaseResult) {
    let night = NightRules::default().night_of(Timestamp(night * 86_400_000_000 + 50_000_000_000));
    let session = Session { night: Some(night.date), ..session(&format!("s{}", night.date), night.begins.0) };
    store.begin(&session, &owner(1)).await.unwrap();
    store.plan(&session.id, &night, vec![case.name.clone()]).await.unwrap();
    store.finished(&session.id, &case).await.unwrap();
    store.end(&session.id, &owner(1), night.ends, false).await.unwrap();
}

#[tokio::test]
async fn what_a_check_says_of_its_nights_is_said_of_its_metrics_until_it_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let case = |night: FigureRules| {
        let measurements = vec![measurement("flops", 1.5), measurement("warmup", 2.5)];
        CaseResult { about: About { night, ..about() }, measurements, ..result(1, 1, Outcome::Pass) }
    };
    let system = result(1, 1, Outcome::Pass).name.system;
    let rules = FigureRules { min_effect: Some(0.05), limit: Some(0.5), ignore: vec!["warmup".into()] };
    run(&store, 20_000, case(rules)).await;
    let reader = Reader::open(&path).await.unwrap();
    let night = Night(20_000);
    let of = |system: muster_judge::night::System| {
        let said = system.metrics.into_iter().map(|metric| (metric.name.variable, metric.min_effect, metric.limit));
        said.collect::<Vec<_>>()
    };
    let read = of(reader.night_system(&system, night, night).await.unwrap());
    assert_eq!(read, [("flops".to_owned(), Some(0.05), Some(0.5))]);
    // A later session of the same writer and one of another know what was said.
    run(&store, 20_001, case(FigureRules { limit: Some(0.5), ..FigureRules::default() })).await;
    store.close().await.unwrap();
    let read = of(reader.night_system(&system, night, night).await.unwrap());
    assert_eq!(read, [("flops".to_owned(), None, Some(0.5)), ("warmup".to_owned(), None, Some(0.5))]);
    let store = Store::open(&path).await.unwrap();
    run(&store, 20_002, case(FigureRules::default())).await;
    store.close().await.unwrap();
    let read = of(reader.night_system(&system, night, night).await.unwrap());
    assert_eq!(read, [("flops".to_owned(), None, None), ("warmup".to_owned(), None, None)]);
}

#[tokio::test]
async fn the_metrics_of_a_case_are_in_quarantine_if_it_was_in_the_last_night() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let quarantine = Quarantine { reason: "OPS-7".into(), until: Date::parse("2030-01-01").unwrap() };
    let case = CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(1, 1, Outcome::Pass) };
    run(&store, 20_000, CaseResult { quarantine: Some(quarantine), ..case.clone() }).await;
    run(&store, 20_002, case.clone()).await;
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    for (night, expected) in [(20_000, true), (20_001, true), (20_002, false)] {
        let system = reader.night_system(&case.name.system, Night(19_000), Night(night)).await.unwrap();
        let found: Vec<_> = system.metrics.iter().map(|metric| metric.is_quarantined).collect();
        assert_eq!(found, [expected], "{night}");
    }
    // Also under the name that it has by now.
    let rename =
        format!("INSERT INTO alias VALUES ('{}', 'renamed', 'me', 0); UPDATE subject SET name = 'renamed';", case.name.display);
    execute(&path, Box::leak(rename.into_boxed_str())).await;
    let system = reader.night_system(&case.name.system, Night(19_000), Night(20_000)).await.unwrap();
    assert!(system.metrics[0].is_quarantined);
}

#[tokio::test]
async fn a_case_that_ran_under_its_new_name_since_is_not_in_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let quarantine = Quarantine { reason: "OPS-7".into(), until: Date::parse("2030-01-01").unwrap() };
    let old = CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(1, 1, Outcome::Pass) };
    let mut new = old.clone();
    new.name = muster_core::case::CaseName { display: "gemm2".into(), check: "gemm2".into(), ..name(2) };
    run(&store, 20_000, CaseResult { quarantine: Some(quarantine), ..old.clone() }).await;
    run(&store, 20_002, new).await;
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.rename((&old.name.display, "gemm2"), "ada", Timestamp(0)).await.unwrap();
    upkeep.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    for (night, expected) in [(20_000, true), (20_001, true), (20_002, false)] {
        let system = reader.night_system(&old.name.system, Night(19_000), Night(night)).await.unwrap();
        let found: Vec<_> = system.metrics.iter().map(|metric| (metric.name.case.as_str(), metric.is_quarantined)).collect();
        assert_eq!(found, [("gemm2", expected)], "{night}");
    }
    // What was called otherwise is found by both names.
    for name in [old.name.clone(), muster_core::case::CaseName { display: "gemm2".into(), ..old.name.clone() }] {
        let nights: Vec<i64> = reader
            .occurrences(&name, (Night(19_000), Night(21_000)))
            .await
            .unwrap()
            .iter()
            .map(|occurrence| occurrence.night.days())
            .collect();
        assert_eq!(nights, [20_002, 20_000], "{name:?}");
    }
}

#[tokio::test]
async fn the_parameters_of_a_case_are_those_that_its_new_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    run(&store, 20_000, CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(1, 1, Outcome::Pass) }).await;
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.rename(("nbody %num_bodies", "gravity %stars"), "ada", Timestamp(0)).await.unwrap();
    upkeep.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let sessions = reader
        .select(&Range { nights: Some((Night(20_000), Night(20_000))), ..Range::default() }, Timestamp(0), 9)
        .await
        .unwrap()
        .sessions;
    let parameters = ("gravity".to_owned(), vec![("stars".to_owned(), "1".to_owned())]);
    let expected = std::collections::BTreeMap::from([("gravity %stars=1".to_owned(), parameters)]);
    assert_eq!(reader.parameters(&sessions).await.unwrap(), expected);
}

/// What a night has found, with all that a change may have.
fn change(metric: i64, opened: i32, state: ChangeState) -> Change {
    let night = |back: i32| Night(opened - back);
    Change {
        id: ChangeId { metric, opened: night(0) },
        since: night(2),
        since_interval: (night(3), night(1)),
        turn: Turn::Worse,
        before: 100.0,
        after: 95.5,
        effect: Some(Shift { estimate: -0.045, low: -0.06, high: -0.03 }),
        evidence: 4.1e4,
        tempering: 0.75,
        needed_alone: 2400.0,
        shape: Some(Shape::Step),
        state,
    }
}

#[tokio::test]
async fn changes_are_kept_until_history_below_them_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let case = CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(1, 1, Outcome::Pass) };
    for night in [20_000, 20_001, 20_004] {
        run(&store, night, case.clone()).await;
    }
    store.close().await.unwrap();
    let system = case.name.system.as_str();
    let reader = Reader::open(&path).await.unwrap();
    let metric = reader.night_system(system, Night(19_000), Night(20_004)).await.unwrap().metrics[0].id;
    let judged = reader.judged(system).await.unwrap();
    assert_eq!(judged.until, None);

    let mut upkeep = Upkeep::open(path.clone()).await.unwrap();
    let tonight = (Night(20_004), Night(20_004));
    let looked = reader.judged_system(system, tonight, &HashMap::new(), judged).await.unwrap();
    let open = change(metric, 20_001, ChangeState::Open);
    let bare = Change { effect: None, shape: None, ..change(metric, 20_004, ChangeState::Open) };
    assert!(upkeep.keep_changes(judged, Night(20_004), &[open.clone(), bare.clone()], &looked).await.unwrap());
    // Whoever has read an older history stores nothing.
    let outdated = Judged { revision: judged.revision - 1, ..judged };
    assert!(!upkeep.keep_changes(outdated, Night(20_005), &[], &looked).await.unwrap());
    let of = async |before: i32| reader.changes_before(system, Night(before)).await.unwrap().remove(&metric).unwrap_or_default();
    assert_eq!(reader.judged(system).await.unwrap().until, Some(Night(20_004)));
    assert_eq!(of(20_005).await, [open.clone(), bare.clone()]);
    assert_eq!(of(20_004).await, std::slice::from_ref(&open));
    let worse = async |night: i32| {
        let levels = reader.worse_levels(&case.name, Night(night)).await.unwrap();
        levels.iter().map(|change| change.id.opened.0).collect::<Vec<_>>()
    };
    assert_eq!((worse(20_004).await, worse(20_001).await, worse(19_998).await), (vec![20_004, 20_001], vec![20_001], vec![]));

    // What became of a change takes the place of what was known, and is known from its night on.
    let recovered = ChangeState::Recovered { since: Night(20_002), found: Night(20_004) };
    let recovered = Change { state: recovered, ..open.clone() };
    let judged = reader.judged(system).await.unwrap();
    assert!(upkeep.keep_changes(judged, Night(20_004), std::slice::from_ref(&recovered), &looked).await.unwrap());
    assert_eq!(of(20_005).await, [recovered.clone(), bare]);
    assert_eq!(of(20_004).await, std::slice::from_ref(&open));
    assert_eq!((worse(20_004).await, worse(20_003).await), (vec![20_004], vec![20_004, 20_001]));

    // An annotation has the nights from its first one on judged again.
    let maintenance = Annotation {
        kind: RemarkKind::Maintenance,
        system: Some(system.to_owned()),
        partition: None,
        environ: None,
        name: None,
        variable: None,
        node: None,
        session: None,
        from: Date::of_days(20_004),
        until: None,
        author: "me".into(),
        reason: "cables".into(),
        link: None,
        created: Timestamp(0),
    };
    upkeep.annotate(&maintenance).await.unwrap();
    let again = reader.judged(system).await.unwrap();
    assert_eq!((again.until, again.revision), (Some(Night(20_003)), judged.revision + 1));
    assert_eq!(of(20_005).await, [open]);
    assert!(!upkeep.keep_changes(judged, Night(20_004), &[], &looked).await.unwrap());
    upkeep.rebuild(|_| NightRules::default()).await.unwrap();
    assert_eq!(reader.judged(system).await.unwrap().until, None);
    assert_eq!(of(20_005).await, []);
    upkeep.close().await.unwrap();
}

/// A session of a day whose only figure has a direction or none.
async fn measured(store: &Store, id: &str, day: i64, direction: Option<Direction>) -> Session {
    let started = Timestamp(day * 86_400_000_000);
    let night = NightRules::default().night_of(started);
    let session = Session { night: Some(night.date), ..session(id, started.0) };
    store.begin(&session, &owner(1)).await.unwrap();
    store.plan(&session.id, &night, vec![name(1)]).await.unwrap();
    let measurements = vec![Measurement { direction, ..measurement("flops", 1.5) }];
    let mut result = CaseResult { measurements, ..result(1, 1, Outcome::Pass) };
    result.times.finished = started;
    store.finished(&session.id, &result).await.unwrap();
    session
}

/// Judges a night, and stores that.
async fn judge(reader: &Reader, upkeep: &mut Upkeep, night: Night) {
    let judged = reader.judged("eidf").await.unwrap();
    let looked = reader.judged_system("eidf", (night, night), &HashMap::new(), judged).await.unwrap();
    assert!(upkeep.keep_changes(judged, night, &[], &looked).await.unwrap());
}

#[tokio::test]
async fn figures_that_come_late_and_figures_that_are_removed_are_not_among_those_that_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for day in 20_001..20_010 {
        let session = measured(&store, &format!("s{day}"), day, None).await;
        store.end(&session.id, &owner(1), session.started, false).await.unwrap();
    }
    let late = measured(&store, "late", 20_005, None).await;
    let reader = Reader::open(&path).await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let last = reader.nights(Timestamp(20_020 * 86_400_000_000)).await.unwrap()[0].last;
    judge(&reader, &mut upkeep, last).await;
    assert_eq!(reader.judged("eidf").await.unwrap().until, Some(last));

    // Of a session that another process continues, without an end.
    let measurements = vec![measurement("flops", 2.5)];
    store.finished(&late.id, &CaseResult { measurements, ..result(2, 1, Outcome::Pass) }).await.unwrap();
    let judged = reader.judged("eidf").await.unwrap();
    assert!(judged.until.is_some_and(|until| until < last.before(3)), "{judged:?}");

    judge(&reader, &mut upkeep, last).await;
    let keep = Keep { now: Timestamp(20_010 * 86_400_000_000), sessions: Duration::from_hours(72), last: 0, logs: None };
    upkeep.prune(&keep, |_| Some(false)).await.unwrap();
    let judged = reader.judged("eidf").await.unwrap();
    assert_eq!(judged.until, Some(last), "what was found stays");
    let kept = reader.judged_system("eidf", (last, last), &HashMap::new(), judged).await.unwrap().system;
    let from_rows = Judged { until: None, ..judged };
    assert_eq!(kept, reader.judged_system("eidf", (last, last), &HashMap::new(), from_rows).await.unwrap().system);
    upkeep.close().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_is_imported_of_an_earlier_night_does_not_say_what_a_metric_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    for (id, day, direction) in
        [("new", 20_010, Some(Direction::Higher)), ("old", 20_001, None), ("next", 20_011, Some(Direction::Lower))]
    {
        let store = Store::open(&path).await.unwrap();
        measured(&store, id, day, direction).await;
        store.close().await.unwrap();
        let expected = if id == "next" { "lower" } else { "higher" };
        assert_eq!(rows(&path, "SELECT direction FROM metric").await, [expected], "{id}");
    }
}

#[tokio::test]
async fn what_was_said_of_a_check_holds_under_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    measured(&store, "s", 20_001, None).await;
    store.close().await.unwrap();
    execute(
        &path,
        "INSERT INTO annotation (kind, name, from_night, author, reason, created) VALUES ('known', 'nbody', 1, 'me', 'x', 0)",
    )
    .await;
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.rename(("nbody", "gravity"), "me", Timestamp(0)).await.unwrap();
    upkeep.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    assert_eq!(reader.remarks().await.unwrap()[0].name.as_deref(), Some("gravity"));
    let system = reader.night_system("eidf", Night(0), Night(30_000)).await.unwrap();
    assert!(system.annotations[0].is_about(&system.metrics[0].name), "{:?}", system.annotations);
}

#[tokio::test]
async fn of_a_night_with_many_runs_the_newest_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for run in 0..8 {
        measured(&store, &format!("s{run}"), 20_001, None).await;
    }
    store.close().await.unwrap();
    execute(&path, "UPDATE session SET version = '0.' || substr(id, 2)").await;
    execute(&path, "UPDATE attempt SET finished = finished + id").await;
    let reader = Reader::open(&path).await.unwrap();
    let runs = reader.occurrences(&name(1), (Night(0), Night(30_000))).await.unwrap();
    let runs: Vec<_> = runs.iter().rev().collect();
    assert_eq!(runs.len(), 8);
    assert_eq!(reader.facts(&runs, &runs).await.unwrap()["muster"], "0.3 and 0.4 and 0.5 and 0.6 and 0.7");
}

#[tokio::test]
async fn an_annotation_was_said_in_the_last_night_of_which_a_session_had_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for day in [20_001, 20_002, 20_004] {
        measured(&store, &format!("s{day}"), day, None).await;
    }
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let nights = reader.nights_between("eidf", Night(0), Night(30_000)).await.unwrap();
    let started = rows(&path, "SELECT CAST(started AS TEXT) FROM session ORDER BY started").await;
    let started: Vec<i64> = started.iter().map(|at| at.parse().unwrap()).collect();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    for created in [1, started[1], started[2] - 1, started[2]] {
        let (system, reason) = (Some("eidf".to_owned()), created.to_string());
        let annotation = Annotation {
            kind: RemarkKind::Dismiss,
            system,
            partition: None,
            environ: None,
            name: None,
            variable: None,
            node: None,
            session: None,
            from: Date::of_days(10),
            until: None,
            author: "me".into(),
            reason,
            link: None,
            created: Timestamp(created),
        };
        upkeep.annotate(&annotation).await.unwrap();
    }
    upkeep.close().await.unwrap();
    let system = reader.night_system("eidf", Night(0), Night(30_000)).await.unwrap();
    let said: Vec<Night> = system.annotations.iter().filter_map(|annotation| annotation.said).collect();
    assert_eq!(said, [Night(10), nights[1], nights[1], nights[2]]);
}
