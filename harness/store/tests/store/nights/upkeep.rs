//! What changes results that are stored: removing, renaming, annotating, copying.

use crate::support::{check_integrity, database, execute, intend, measurement, name, owner, result, rows, session};
use muster_core::{
    case::SessionId,
    error::chain,
    night::NightRules,
    query::remarks::RemarkKind,
    result::{CaseResult, LogEnd, Outcome, Session},
};
use muster_store::{Alias, Annotation, Going, Keep, Location, Reader, Store, Upkeep};
use muster_text::time::{Date, Timestamp};
use std::time::Duration;

pub(super) const DAY: i64 = 86_400_000_000;

/// A session of a day, with one case that has a figure and a log.
pub(super) async fn add(store: &Store, id: &str, day: i64, has_ended: bool) -> SessionId {
    let started = Timestamp(day * DAY);
    let night = NightRules::default().night_of(started);
    let session = Session { night: Some(night.date), ..session(id, started.0) };
    store.begin(&session, &owner(1)).await.unwrap();
    store.plan(&session.id, &night, vec![name(1)]).await.unwrap();
    let mut result = CaseResult { measurements: vec![measurement("flops", 1.5)], ..result(1, 1, Outcome::Pass) };
    result.times.finished = started;
    let log = LogEnd { bytes: 70_000, tail: "x".repeat(60_000) };
    store.finished_with(&session.id, &result, Some(Box::new(log))).await.unwrap();
    if has_ended {
        store.end(&session.id, &owner(1), started, false).await.unwrap();
    }
    session.id
}

fn keep(now: i64, days: u64, last: usize, logs: Option<u64>) -> Keep {
    let duration = |days| Duration::from_hours(24 * days);
    Keep { now: Timestamp(now * DAY), sessions: duration(days), last, logs: logs.map(duration) }
}

async fn ids(path: &Location) -> Vec<String> {
    rows(path, "SELECT id FROM session ORDER BY started").await
}

/// How many rows each table has that belongs to sessions.
async fn left(path: &Location) -> Vec<String> {
    rows(
        path,
        r#"SELECT 'case ' || count(*) FROM "case" UNION ALL SELECT 'attempt ' || count(*) FROM attempt
        UNION ALL SELECT 'measurement ' || count(*) FROM measurement UNION ALL SELECT 'live ' || count(*) FROM live
        UNION ALL SELECT 'member ' || count(*) FROM member UNION ALL SELECT 'section ' || count(*) FROM section
        UNION ALL SELECT 'run_figure ' || count(*) FROM run_figure UNION ALL SELECT 'night_figure ' || count(*) FROM night_figure
        UNION ALL SELECT 'planned ' || count(*) FROM planned UNION ALL SELECT 'night ' || count(*) FROM night"#,
    )
    .await
}

#[tokio::test]
async fn old_sessions_go_with_all_that_belongs_to_them_and_the_file_becomes_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for day in 20_000..20_040 {
        add(&store, &format!("s{day}"), day, true).await;
    }
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let before = upkeep.size().await.unwrap();
    let keep = keep(20_040, 10, 0, Some(5));
    // Who asks first is told what then happens, and changes nothing.
    let would = Reader::open(&path).await.unwrap().would_prune(&keep, |_| Some(false)).await.unwrap();
    assert_eq!(ids(&path).await.len(), 40);
    let pruned = upkeep.prune(&keep, |_| Some(false)).await.unwrap();
    assert_eq!((pruned.sessions(), pruned.cases, pruned.logs, pruned.unswept), (31, 31, 4, 0));
    let numbers = |going: &Going| (going.sessions(), going.cases, going.logs, going.started);
    assert_eq!(numbers(&would), numbers(&pruned));
    upkeep.shrink(&pruned, before).await.unwrap();
    let after = upkeep.size().await.unwrap();
    // The size of a server is that of other tests, too.
    if path.as_file().is_some() {
        assert!(after < before / 3, "{before} bytes before, {after} after");
        let (less, said) = (before - after, would.bytes);
        assert!(less.abs_diff(said) < less / 4, "{less} bytes less, {said} said");
    }
    upkeep.close().await.unwrap();
    assert_eq!(ids(&path).await.len(), 9);
    insta::assert_snapshot!(left(&path).await.join(", "), @"case 9, attempt 9, measurement 9, live 9, member 9, section 9, run_figure 9, night_figure 9, planned 9, night 9");
    assert_eq!(rows(&path, "SELECT CAST(count(*) AS TEXT) FROM attempt_log").await, ["5"]);
    check_integrity(&path).await;
}

#[tokio::test]
async fn the_newest_what_runs_and_what_may_have_left_something_stay_however_old_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for (id, day, has_ended) in [("old", 1, true), ("runs", 2, false), ("unswept", 3, true), ("b", 4, true), ("a", 5, true)] {
        let session = add(&store, id, day, false).await;
        if id == "unswept" {
            intend(&store, &session, 2, 1).await.unwrap();
        }
        if has_ended {
            store.end(&session, &owner(1), Timestamp(day * DAY), false).await.unwrap();
        }
    }
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let pruned = upkeep.prune(&keep(20_000, 10, 2, None), |_| Some(true)).await.unwrap();
    assert_eq!((pruned.sessions(), pruned.logs, pruned.unswept), (1, 0, 1));
    assert_eq!(ids(&path).await, ["runs", "unswept", "b", "a"]);
    // Nobody sees its owner, and it began long ago.
    let pruned = upkeep.prune(&keep(20_000, 10, 2, None), |_| None).await.unwrap();
    assert_eq!((pruned.sessions(), ids(&path).await.len()), (1, 3));
    upkeep.close().await.unwrap();
    check_integrity(&path).await;
}

#[tokio::test]
async fn a_session_is_deleted_from_its_night_and_another_one_of_the_night_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for (id, has_ended) in [("one", true), ("two", true), ("runs", false)] {
        add(&store, id, 20_000, has_ended).await;
    }
    store.close().await.unwrap();
    let id = |id: &str| SessionId(id.into());
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let now = Timestamp(20_001 * DAY);
    let mut refused = Vec::new();
    for ids in [vec![id("one"), id("three")], vec![id("one"), id("runs")]] {
        refused.push(chain(&upkeep.delete(&ids, now, |_| Some(true)).await.unwrap_err()));
    }
    insta::assert_snapshot!(refused.join("\n"), @r"
    no session begins with `three`
    session runs still runs: end it first
    ");
    assert_eq!(ids(&path).await.len(), 3, "nothing is deleted");
    let figures = "SELECT n || ' ' || value FROM night_figure";
    assert_eq!(rows(&path, figures).await, ["3 1.5"]);
    upkeep.delete(&[id("one")], now, |_| Some(true)).await.unwrap();
    assert_eq!(rows(&path, figures).await, ["2 1.5"]);
    upkeep.delete(&[id("two"), id("runs")], now, |_| Some(false)).await.unwrap();
    assert_eq!(left(&path).await.iter().filter(|row| !row.ends_with(" 0")).count(), 0);
    upkeep.close().await.unwrap();
    check_integrity(&path).await;
}

#[tokio::test]
async fn the_plan_and_the_state_of_a_night_are_those_of_the_sessions_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let started = Timestamp(20_000 * DAY);
    let night = NightRules::default().night_of(started);
    // `whole` has a result of all that it planned, one of them restored; `killed` began one case of three.
    for (id, planned, ran, interrupted) in [
        ("all", vec![1, 2, 3], vec![1, 2, 3], true),
        ("whole", vec![1], vec![1, 4], false),
        ("killed", vec![1, 2, 5], vec![1], true),
    ] {
        let session = Session {
            night: Some(night.date),
            num_cases: planned.len().max(ran.len()).try_into().unwrap(),
            ..session(id, started.0)
        };
        store.begin(&session, &owner(1)).await.unwrap();
        store.plan(&session.id, &night, planned.into_iter().map(name).collect()).await.unwrap();
        for number in ran {
            let restored_from = (number == 4).then(|| SessionId("all".into()));
            store.finished(&session.id, &CaseResult { restored_from, ..result(number, 1, Outcome::Pass) }).await.unwrap();
        }
        store.end(&session.id, &owner(1), started, interrupted).await.unwrap();
    }
    store.close().await.unwrap();
    let plan = "SELECT s.name || ' ' || p.state FROM planned p JOIN subject s ON s.id = p.subject
        UNION ALL SELECT 'night ' || state FROM night ORDER BY 1";
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let mut after = vec![rows(&path, plan).await.join(", ")];
    for id in ["all", "killed", "whole"] {
        upkeep.delete(&[SessionId(id.into())], Timestamp(20_001 * DAY), |_| Some(false)).await.unwrap();
        after.push(rows(&path, plan).await.join(", "));
    }
    upkeep.close().await.unwrap();
    insta::assert_snapshot!(after.join("\n"), @"
    nbody %num_bodies=1 run, nbody %num_bodies=2 run, nbody %num_bodies=3 run, nbody %num_bodies=5 absent, night interrupted
    nbody %num_bodies=1 run, nbody %num_bodies=2 absent, nbody %num_bodies=3 absent, nbody %num_bodies=5 absent, night interrupted
    nbody %num_bodies=1 run, night ended
    ");
    check_integrity(&path).await;
}

#[tokio::test]
async fn sessions_write_while_others_are_removed_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    for day in 1..150 {
        add(&store, &format!("old{day}"), day, true).await;
    }
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for day in 20_000..20_100 {
                add(&store, &format!("new{day}"), day, true).await;
            }
        }
    });
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let copy = folder.path().join("copy.db");
    if path.as_file().is_some() {
        upkeep.backup(&copy).await.unwrap();
    }
    let pruned = upkeep.prune(&keep(20_200, 400, 0, None), |_| Some(false)).await.unwrap();
    upkeep.shrink(&pruned, 0).await.unwrap();
    if path.as_file().is_some() {
        upkeep.backup(&copy).await.unwrap();
    }
    upkeep.close().await.unwrap();
    writing.await.unwrap();
    store.close().await.unwrap();
    assert_eq!(pruned.sessions(), 149);
    assert_eq!(ids(&path).await.len(), 100);
    check_integrity(&path).await;
    if path.as_file().is_none() {
        return;
    }
    check_integrity(&copy.clone().into()).await;
    // A copy is a database like any other.
    let reader = Reader::open(&copy).await.unwrap();
    let sessions = reader.sessions(1_000, &|_| Some(false)).await.unwrap();
    for row in &sessions {
        assert!(reader.results(&row.session.id).await.unwrap().len() <= 1);
    }
}

#[tokio::test]
async fn a_copy_takes_the_place_of_a_database_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    add(&store, "a", 1, true).await;
    store.close().await.unwrap();
    let other = folder.path().join("notes.txt");
    std::fs::write(&other, "not a database").unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let mut refused = Vec::new();
    for target in [&other, &path, &folder.path().join("missing/copy.db")] {
        refused.push(chain(&upkeep.backup(target).await.unwrap_err()).replace(&folder.path().display().to_string(), "FOLDER"));
    }
    insta::assert_snapshot!(refused.join("\n"), @"
    no backup to FOLDER/notes.txt: a file is there that is no results database
    no backup to FOLDER/results.db: it is the database itself
    no backup to FOLDER/missing/copy.db: No such file or directory (os error 2)
    ");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "not a database");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains(".part")).count(), 0);
}

#[tokio::test]
async fn a_copy_is_not_put_beside_the_log_of_the_earlier_one_and_two_at_once_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    add(&store, "a", 1, true).await;
    store.close().await.unwrap();
    let (mut upkeep, mut another) = (Upkeep::open(&path).await.unwrap(), Upkeep::open(&path).await.unwrap());
    let copy = folder.path().join("copy.db");
    let log = folder.path().join("copy.db-wal");
    std::fs::write(&log, "pages").unwrap();
    let error = chain(&upkeep.backup(&copy).await.unwrap_err()).replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(error, @"no backup to FOLDER/copy.db: FOLDER/copy.db-wal is there: something writes to the earlier copy, or was killed while it did; end it, and remove FOLDER/copy.db-wal");
    assert!(!copy.exists());
    std::fs::remove_file(&log).unwrap();
    // Another process is in the middle of its copy; one was killed long ago.
    let [theirs, old] = ["copy.db.1.part", "copy.db.2.part"].map(|name| folder.path().join(name));
    std::fs::write(&theirs, "half").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    std::fs::File::create(&old).unwrap().set_modified(long_ago).unwrap();
    let both = tokio::join!(upkeep.backup(&copy), another.backup(&copy));
    both.0.unwrap();
    both.1.unwrap();
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "half");
    assert!(!old.exists());
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains(".part")).count(), 1);
    check_integrity(&copy.into()).await;
}

#[tokio::test]
async fn a_copy_replaces_the_target_of_a_link_and_never_a_pipe() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    Store::open(&path).await.unwrap().close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let [pipe, link, first, dangling, to_pipe] =
        ["pipe", "link", "first.db", "dangling", "to_pipe"].map(|name| folder.path().join(name));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("first.db", &link).unwrap();
    symlink("second.db", &dangling).unwrap();
    symlink("pipe", &to_pipe).unwrap();
    std::fs::write(&first, "").unwrap();
    for refused in [&pipe, &to_pipe] {
        let error = chain(&upkeep.backup(refused).await.unwrap_err());
        assert_eq!(error, format!("no backup to {}: it is not a regular file", refused.display()));
        assert!(std::fs::metadata(refused).unwrap().file_type().is_fifo());
    }
    for (target, real) in [(&link, "first.db"), (&dangling, "second.db")] {
        upkeep.backup(target).await.unwrap();
        assert!(target.is_symlink());
        check_integrity(&folder.path().join(real).into()).await;
    }
    upkeep.close().await.unwrap();
}

#[tokio::test]
async fn a_renamed_parameter_keeps_its_history_and_names_that_mean_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    add(&store, "a", 20_000, true).await;
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let now = Timestamp(20_001 * DAY);
    let renamed = upkeep.rename(("nbody %num_bodies", "nbody %bodies"), "ada", now).await.unwrap();
    assert_eq!(renamed, 1);
    let mut refused = Vec::new();
    for names in [("nbody %num_bodies", "x"), ("nbdy", "x"), ("nbody %bodies", "nbody %num_bodies"), ("nothing like it", "x")] {
        let error = chain(&upkeep.rename(names, "ada", now).await.unwrap_err());
        refused.push(error.replace(&path.display().to_string(), "DATABASE"));
    }
    insta::assert_snapshot!(refused.join("\n"), @"
    `nbody %num_bodies` has an alias already: `nbody %bodies`
    no check, parameter or case in the results database DATABASE is called `nbdy`: did you mean `nbody`?
    `nbody %bodies` cannot become `nbody %num_bodies`, which is another name of it
    no check, parameter or case in the results database DATABASE is called `nothing like it`
    ");
    upkeep.close().await.unwrap();
    // A later session, whose check has the new name.
    let store = Store::open(&path).await.unwrap();
    add(&store, "b", 20_001, true).await;
    store.close().await.unwrap();
    let history = "SELECT s.name || ' ' || f.night FROM night_figure f JOIN metric m ON m.id = f.metric \
                   JOIN subject s ON s.id = m.subject ORDER BY f.night";
    assert_eq!(rows(&path, history).await, ["nbody %bodies=1 19999", "nbody %bodies=1 20000"]);
    let planned = "SELECT s.name || ' ' || p.night FROM planned p JOIN subject s ON s.id = p.subject ORDER BY p.night";
    assert_eq!(rows(&path, planned).await, ["nbody %bodies=1 19999", "nbody %bodies=1 20000"]);
    check_integrity(&path).await;
}

#[tokio::test]
async fn an_alias_that_is_taken_back_leaves_history_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    add(&store, "a", 20_000, true).await;
    add(&store, "b", 20_001, true).await;
    store.close().await.unwrap();
    let state = async || {
        let figures = "SELECT s.name || ' ' || f.night || ' ' || f.value FROM night_figure f JOIN metric m ON m.id = f.metric \
                       JOIN subject s ON s.id = m.subject ORDER BY s.name, f.night";
        let planned = "SELECT s.name || ' ' || p.night || ' ' || p.state FROM planned p JOIN subject s ON s.id = p.subject \
                       ORDER BY s.name, p.night";
        [rows(&path, figures).await, rows(&path, planned).await].concat()
    };
    let before = state().await;
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    upkeep.rename(("nbody", "gravity"), "ada", Timestamp(5)).await.unwrap();
    let aliases = Reader::open(&path).await.unwrap().aliases().await.unwrap();
    assert_eq!(aliases, [Alias { old: "nbody".into(), new: "gravity".into(), author: "ada".into(), created: Timestamp(5) }]);
    assert!(state().await.iter().all(|row| row.starts_with("gravity")));
    let error = chain(&upkeep.unrename("nbdy").await.unwrap_err()).replace(&path.display().to_string(), "DATABASE");
    assert_eq!(error, "no alias in the results database DATABASE is called `nbdy`: did you mean `nbody`?");
    assert_eq!(upkeep.unrename("nbody").await.unwrap(), "gravity");
    assert_eq!(state().await, before);
    upkeep.close().await.unwrap();
    check_integrity(&path).await;
}

#[tokio::test]
async fn an_annotation_is_about_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    add(&store, "a", 20_000, true).await;
    store.close().await.unwrap();
    let mut upkeep = Upkeep::open(&path).await.unwrap();
    let annotation = Annotation {
        kind: RemarkKind::Maintenance,
        system: Some("eidf".into()),
        partition: None,
        environ: None,
        name: Some("nbody".into()),
        variable: Some("flops".into()),
        node: Some("gpu-07".into()),
        session: Some("a".into()),
        from: Date::of_days(20_000),
        until: Some(Date::of_days(20_001)),
        author: "ada".into(),
        reason: "cooling".into(),
        link: None,
        created: Timestamp(5),
    };
    assert_eq!(upkeep.annotate(&annotation).await.unwrap(), 1);
    execute(&path, "INSERT INTO metric (subject, variable, key, unit) SELECT min(id), 'latency', '8', 'us' FROM subject").await;
    let row = Annotation { variable: Some("latency[8]".into()), ..annotation.clone() };
    assert_eq!(upkeep.annotate(&row).await.unwrap(), 2);
    let wrong = [
        Annotation { system: Some("eidg".into()), ..annotation.clone() },
        Annotation { name: Some("nbdy".into()), ..annotation.clone() },
        Annotation { variable: Some("bandwidth".into()), ..annotation.clone() },
        Annotation { variable: Some("latency[9]".into()), ..annotation.clone() },
        Annotation { node: Some("gpu-70".into()), ..annotation.clone() },
    ];
    let mut refused = Vec::new();
    for wrong in wrong {
        let error = chain(&upkeep.annotate(&wrong).await.unwrap_err());
        refused.push(error.replace(&path.display().to_string(), "DATABASE"));
    }
    insta::assert_snapshot!(refused.join("\n"), @"
    no system in the results database DATABASE is called `eidg`: did you mean `eidf`?
    no check or case in the results database DATABASE is called `nbdy`: did you mean `nbody`?
    no variable in the results database DATABASE is called `bandwidth`
    no variable in the results database DATABASE is called `latency[9]`: did you mean `latency[8]`?
    no node in the results database DATABASE is called `gpu-70`: did you mean `gpu-07`?
    ");
    let stored = "SELECT kind || ' ' || system || ' ' || name || ' ' || variable || ' ' || node || ' ' || from_night || ' ' || until \
                  || ' ' || author || ' ' || reason FROM annotation WHERE id = 1";
    assert_eq!(rows(&path, stored).await, ["maintenance eidf nbody flops gpu-07 20000 20001 ada cooling"]);
}
