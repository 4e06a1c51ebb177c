//! ReFrame's flags for stored results, and its files.

use super::{asked, empty, forty_nights};
use crate::sandbox::Sandbox;
use insta::assert_snapshot;
use std::{fmt::Write, path::Path};

/// What ReFrame 4.10.4 has written of a session with a retry.
fn report() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/convert/src/stored/report.json");
    std::fs::read_to_string(path).expect("a report")
}

fn flags(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    let ended = sandbox.muster(&[args, &["--db", "r.db", "--nocolor"]].concat());
    assert_eq!(ended.code, Some(code), "{args:?}\n{}{}", ended.stdout, ended.stderr);
    ended.stdout + &ended.stderr
}

#[test]
fn stored_figures_are_compared_in_reframes_syntax() {
    let sandbox = forty_nights();
    let spec = "20261119:20261125/20261101:20261107/median,max:/+job_nodelist+result_L";
    assert_snapshot!("pretty", flags(&sandbox, &["--performance-compare", spec], 0));
    let terms = ["--term-lhs", "now", "--term-rhs", "before", "--table-format", "csv", "-n", "triad"];
    assert_snapshot!("csv", flags(&sandbox, &[&["--performance-compare", spec], &terms[..]].concat(), 0));
    let by_size = "20261119:20261125?user == 'ada'/count:size,pvar/";
    assert_snapshot!("cases", flags(&sandbox, &["--list-stored-testcases", by_size, "--table-format=plain", "-t", "memory"], 0));
    assert_eq!(flags(&sandbox, &["--list-stored-sessions", "2026-11-24"], 0), asked(&sandbox, &["list", "2026-11-24"], 0));
    assert!(flags(&sandbox, &["--list-stored-sessions"], 0).contains("40 session(s)"));
    let csv = ["--list-stored-sessions", "2026-11-24", "--table-format", "csv"];
    assert_eq!(flags(&sandbox, &csv, 0), asked(&sandbox, &["list", "2026-11-24", "--format", "csv"], 0));
    assert!(flags(&sandbox, &["--describe-stored-sessions", "latest"], 0).starts_with("[\n{\n  \"report_version\""));
}

#[test]
fn a_wrong_question_in_reframes_syntax_is_one_sentence() {
    let sandbox = forty_nights();
    let rows: [&[&str]; 6] = [
        &["--performance-compare", "now-1d:now/median:/"],
        &["--performance-compare", "20261101:20261107/20251101:20251107/median:/"],
        &["--performance-compare", "20261101:20261107/20261108:20261114/avg:/"],
        &["--performance-compare", "20261101:20261107/20261108:20261114/median:/+job_nodelst"],
        &["--list-stored-sessions", "?num_failure > 0"],
        &["--performance-report", "fancy", "-l"],
    ];
    let mut text = String::new();
    for args in rows {
        let said = flags(&sandbox, args, 2);
        let _ = writeln!(text, "$ muster {}\n{}", args.join(" "), said.lines().next().unwrap_or_default());
    }
    assert_snapshot!(text);
}

#[test]
fn a_session_is_shown_beside_stored_ones_with_what_is_new() {
    let sandbox = Sandbox::new();
    empty(&sandbox, "r.db");
    let check = |name: &str, speed: u32| {
        format!(
            "name: {name}\nvalid_systems: [local]\nexecutable: echo speed {speed}\nsanity: []\n\
             perf_variables: {{ speed: {{ pattern: 'speed (\\d+)', unit: MB/s }} }}\n---\n"
        )
    };
    sandbox.write("a.check.yaml", &check("old", 100));
    let run =
        ["-c", ".", "--system", "local", "-r", "-qq", "--performance-report=now-1d:now+1d/last:/+result", "--table-format=csv"];
    assert_snapshot!("first", flags(&sandbox, &run, 0));
    sandbox.write("a.check.yaml", &(check("old", 80) + &check("new", 5)));
    assert_snapshot!("second", flags(&sandbox, &run, 0));
}

#[test]
fn latest_is_the_session_before_and_what_selects_nothing_is_said() {
    let sandbox = Sandbox::new();
    empty(&sandbox, "r.db");
    let check = |speed: &str| {
        format!(
            "name: one\nvalid_systems: [local]\nexecutable: echo speed {speed}\nsanity: []\n\
             perf_variables: {{ speed: {{ pattern: 'speed (\\d+)', unit: MB/s }} }}\nreference: {{ '*': {{ speed: [100, null, null] }} }}\n"
        )
    };
    let run = |spec: &str| {
        let spec = format!("--performance-report={spec}");
        sandbox.muster(&["-c", "a.check.yaml", "--system", "local", "-r", "--table-format=csv", &spec, "--db", "r.db"])
    };
    sandbox.write("a.check.yaml", &check("100"));
    let first = run("latest/last:/");
    assert!(first.code == Some(0) && first.stderr.contains("nothing to compare with: no session is stored before this one"));
    sandbox.write("a.check.yaml", &check("80"));
    let second = run("latest/last:/");
    assert!(second.stdout.contains("MB/s,80,100,"), "{}{}", second.stdout, second.stderr);
    for (spec, why) in [
        ("2099-01-01../last:/", "2099-01-01.."),
        ("system=zzz/last:/", "zzz"),
        ("?foo == 1/last:/", "`foo`"),
        ("20990101:20990201/last:/", "no session is in `20990101:20990201`"),
    ] {
        let said = run(spec).stderr;
        assert!(said.contains(why), "{spec}: {said}");
    }
    // A column that no figure has is found before anything runs.
    let wrong = run("latest/last:/zzzzzz");
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("no figure has a column `zzzzzz`. There are name, ")
            && wrong.stderr.contains("nothing was launched")
    );
    assert!(!wrong.stdout.contains("RUN"), "{}", wrong.stdout);
    // A database that cannot be read may have it.
    let unread = ["-c", "a.check.yaml", "--system", "local", "-r", "--performance-report=latest/last:/z", "--db", "a.check.yaml"];
    let unread = sandbox.muster(&unread);
    assert_eq!(unread.code, Some(2), "{}", unread.stderr);
    assert!(unread.stderr.contains("the columns of stored sessions cannot be read: "), "{}", unread.stderr);
    assert!(!unread.stderr.contains("no figure has a column"), "{}", unread.stderr);
}

#[test]
fn an_imported_session_is_shown_with_what_reframe_kept() {
    let sandbox = Sandbox::new();
    empty(&sandbox, "r.db");
    sandbox.write("report.json", &report());
    asked(&sandbox, &["import", "report.json"], 0);
    let shown = sandbox.muster(&["results", "show", "12a40e08", "--db", "r.db"]).stdout;
    assert!(shown.contains("/home/ada/checks/out/stage/generic/default/builtin/broken_retry1"), "{shown}");
    assert!(shown.contains("ReFrame 4.10.4, where it ran"), "{shown}");
    assert!(!shown.contains("muster -c") && !shown.contains("printed nothing"), "{shown}");
}

#[test]
fn reframes_report_and_database_become_sessions_once() {
    let sandbox = Sandbox::new();
    empty(&sandbox, "r.db");
    sandbox.write("report.json", &report());
    assert_eq!(asked(&sandbox, &["import", "report.json"], 0), "imported 1 session(s) with 7 result(s) and 10 figure(s)\n");
    let tables = "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, session_end_unix REAL, json_blob TEXT, report_file TEXT);
        CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, environ TEXT, job_completion_time_unix REAL, session_uuid TEXT, uuid TEXT,
            FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE);
        CREATE TABLE metadata(schema_version TEXT); INSERT INTO metadata VALUES ('1.0');";
    let text = report();
    let row =
        |uuid: &str, text: &str| format!("INSERT INTO sessions VALUES ('{uuid}', 1.0, 2.0, '{}', '');", text.replace('\'', "''"));
    let (first, second) = ("12a40e08-b356-4dd0-999f-cd5e9650952f", "99a40e08-b356-4dd0-999f-cd5e9650952f");
    let rows = row(first, &text) + &row(second, &text.replace(first, second));
    muster_test_database::create(&sandbox.path("reframe.db"), &(tables.to_owned() + &rows)).expect("a database");
    let said = asked(&sandbox, &["import", "reframe.db"], 0);
    assert_eq!(said, "imported 1 session(s) with 7 result(s) and 10 figure(s); 1 were stored already\n");
    let shown = asked(&sandbox, &["show", "99a40e08"], 0);
    assert!(shown.contains("2 failed") || shown.contains("stream %size=2G"), "{shown}");
    assert!(asked(&sandbox, &["list"], 0).contains("2 session(s)"));
    for (name, text) in [("other.json", "{}"), ("text", "not JSON"), ("empty.json", "[]")] {
        sandbox.write(name, text);
    }
    muster_test_database::create(&sandbox.path("other.db"), "CREATE TABLE bookmarks (url TEXT)").expect("a database");
    let refused: String = ["other.json", "text", "empty.json", "other.db", "missing.json", "r.db"]
        .iter()
        .map(|file| asked(&sandbox, &["import", "report.json", file], 2))
        .collect();
    assert_snapshot!(refused);
    assert!(asked(&sandbox, &["list"], 0).contains("2 session(s)"), "nothing of a command that fails is stored");
}

#[test]
fn what_is_exported_is_imported_again() {
    let sandbox = forty_nights();
    let digest = r#"UPDATE "case" SET about = replace(about, '"num_tasks":1', '"num_tasks":1,"check_hash":"c1"')"#;
    muster_test_database::create(&sandbox.path("r.db"), digest).expect("digests of checks");
    let exported = asked(&sandbox, &["export", "json", "2026-11-20..2026-11-24"], 0);
    assert_eq!(exported.matches(r#""check_hash": "c1""#).count(), 30, "figures of another check stay apart");
    sandbox.write("export.json", &exported);
    empty(&sandbox, "copy.db");
    let copied = sandbox.muster(&["results", "import", "export.json", "--db", "copy.db"]);
    assert_eq!(copied.stdout, "imported 5 session(s) with 30 result(s) and 15 figure(s)\n", "{}", copied.stderr);
    let again = sandbox.muster(&["results", "export", "json", "--db", "copy.db"]);
    assert_eq!(again.stdout, exported, "to the last digit");
    // Imported figures are history, too.
    let history = sandbox.muster(&["results", "history", "size=1G", "--period", "2026-11-20..2026-11-24", "--db", "copy.db"]);
    assert!(history.stdout.contains("5 runs"), "{}{}", history.stdout, history.stderr);
    let csv = asked(&sandbox, &["export", "csv", "2026-11-20..2026-11-24", "-n", "triad"], 0);
    assert_eq!((csv.lines().count(), csv.matches("name,sysenv").count()), (11, 1), "{csv}");
}

#[test]
fn two_imports_of_a_file_at_once_store_each_session_once() {
    let sandbox = forty_nights();
    sandbox.write("export.json", &asked(&sandbox, &["export", "json"], 0));
    empty(&sandbox, "copy.db");
    let import = || sandbox.command(&["results", "import", "export.json", "--db", "copy.db"]).spawn().expect("an import");
    let both = [import(), import()].map(|child| sandbox.ended(&child.wait_with_output().expect("it ends")));
    let mut stored = 0;
    for ended in &both {
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
        let number = |text: &str| text.trim().split(' ').next().and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
        let (imported, known) = ended.stdout.split_once(';').unwrap_or((&ended.stdout, "0"));
        let imported = number(imported.trim_start_matches("imported "));
        assert_eq!(imported + number(known), 40, "{}", ended.stdout);
        stored += imported;
    }
    assert_eq!(stored, 40);
    let again = sandbox.muster(&["results", "export", "json", "--db", "copy.db"]);
    assert_eq!(again.stdout, sandbox.read("export.json"), "nothing is lost and nothing is there twice");
}

#[test]
fn a_report_of_a_version_without_digests_continues_the_history() {
    let sandbox = forty_nights();
    let digest = r#"UPDATE "case" SET about = replace(about, '"num_tasks":1', '"num_tasks":1,"check_hash":"c1"')"#;
    muster_test_database::create(&sandbox.path("r.db"), digest).expect("digests of checks");
    let mut old: serde_json::Value =
        serde_json::from_str(&asked(&sandbox, &["export", "json", "2026-11-01..2026-11-10"], 0)).expect("JSON");
    for session in old.as_array_mut().expect("a list") {
        let head = session["session"].as_object_mut().expect("a session");
        head.retain(|key, _| !matches!(key.as_str(), "counting" | "extras"));
        for case in session["cases"].as_array_mut().expect("cases") {
            let later = ["check_hash", "manifest_hash", "hidden", "flaky", "quarantine", "restored_from"];
            case.as_object_mut().expect("a case").retain(|key, _| !later.contains(&key.as_str()));
        }
    }
    sandbox.write("old.json", &old.to_string());
    sandbox.write("new.json", &asked(&sandbox, &["export", "json", "2026-11-11..2026-11-24"], 0));
    empty(&sandbox, "copy.db");
    let on_copy = |args: &[&str]| {
        let ended = sandbox.muster(&[&["results"], args, &["--db", "copy.db"]].concat());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    assert!(on_copy(&["import", "old.json", "new.json"]).starts_with("imported 24 session(s)"));
    let history = on_copy(&["history", "size=1G", "--period", "2026-11-01..2026-11-24"]);
    assert!(history.contains("24 runs") && !history.contains("another check"), "{history}");
    let suggested = on_copy(&["suggest-references", "size=1G", "--period", "2026-11-01..2026-11-24"]);
    assert!(suggested.contains("24 runs"), "{suggested}");
}

#[test]
fn the_sessions_of_a_selection_are_deleted_and_an_empty_one_is_refused() {
    let sandbox = forty_nights();
    let deleted = |selection: &str| {
        let ended = sandbox.muster(&["--delete-stored-sessions", selection, "--db", "r.db"]);
        (ended.code, ended.stdout + ended.stderr.lines().next().unwrap_or_default())
    };
    let dry = sandbox.muster(&["--delete-stored-sessions", "2026-11-20..2026-11-24", "--dry-run", "--db", "r.db"]);
    assert!(
        dry.code == Some(0) && dry.stdout.starts_with("would delete 5 session(s) with 30 case(s)"),
        "{}{}",
        dry.stdout,
        dry.stderr
    );
    let said: Vec<String> =
        ["", "2031-01-01", "2026-11-20..2026-11-24"].iter().map(|selection| format!("{:?}", deleted(selection))).collect();
    assert_snapshot!(said.join("\n"), @r#"
    (Some(2), "error: invalid value '' for '--delete-stored-sessions <SELECTION>': it is empty: say which sessions, as in 2026-11-24 or now-1y:now-90d")
    (Some(2), "error: no session is in `2031-01-01`: nothing is deleted")
    (Some(0), "deleted 5 session(s) with 30 case(s), started from 2026-11-20 to 2026-11-24\n")
    "#);
    let left = asked(&sandbox, &["list", "-N", "100"], 0);
    assert!(left.contains("35 session(s)") && !left.contains("2026-11-20"), "{left}");
}
