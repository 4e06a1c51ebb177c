//! Questions without an answer: one sentence each, exit code 2, nothing changed.

use super::{asked, empty, forty_nights};
use crate::sandbox::Sandbox;
use insta::assert_snapshot;
use std::{fmt::Write, fs};

#[test]
fn a_question_without_an_answer_is_one_sentence() {
    let sandbox = forty_nights();
    let before = fs::read(sandbox.path("r.db")).expect("the database");
    let rows: [&[&str]; 26] = [
        &["compare", "20991231-000000-zzzzzzzz", "latest"],
        &["compare", "2026", "latest"],
        &["compare", "2025-01-01..2025-01-31", "latest"],
        &["compare", "now:now-1d", "latest"],
        &["compare", "2026-11-20,tag=daily", "latest"],
        &["compare", "2026-11-20", "2026-11-21,tag=io"],
        &["compare", "?relase == '26.11'", "latest"],
        &["compare", "lastest,", "latest"],
        &["history", "nosuch"],
        &["history", "triad", "--var", "bandwith", "--period", "2026-11-01..2026-11-24"],
        &["history", "triad", "--period", "2020-01-01"],
        &["causes", "2025-01-01"],
        &["suggest-references", "hpcg", "--period", "2026-11-21..2026-11-24"],
        &["suggest-references", "--lower", "60"],
        &["suggest-references", "--upper", "40"],
        &["list", "-t", "dayly"],
        &["list", "tag=daily,system=edif"],
        &["list", "-n", "^traid"],
        &["list", "--partition", "cpu"],
        &["list", "-N", "0"],
        &["list", "-N", "many"],
        &["causes", "2026-11-21", "-n", "traid"],
        &["compare", "2026-11-20", "2026-11-21", "--on", "edif"],
        &["export", "csv", "2026-11-20", "-n", "traid"],
        &["suggest-references", "traid", "--period", "2026-11-01..2026-11-24"],
        &["show", "nosuch"],
    ];
    let mut text = String::new();
    for args in rows {
        let _ = write!(text, "$ muster results {}\n{}", args.join(" "), asked(&sandbox, args, 2));
    }
    assert_snapshot!(text);
    assert_eq!(fs::read(sandbox.path("r.db")).expect("the database"), before);
}

#[test]
fn units_that_measure_different_things_are_not_compared() {
    let sandbox = forty_nights();
    let other =
        "INSERT INTO basis VALUES (3, 's', 'c1', ''); UPDATE run_figure SET basis = 3 WHERE metric = 2 AND night > 20770;";
    muster_test_database::create(&sandbox.path("r.db"), other).expect("another unit");
    let sides = ["compare", "2026-11-01..2026-11-10", "2026-11-14..2026-11-24"];
    assert_snapshot!(asked(&sandbox, &sides, 2));
    assert!(asked(&sandbox, &[&sides[..], &["-n", "hpcg|1G"]].concat(), 0).contains("2 variables"));
}

#[test]
fn a_database_that_cannot_be_read_is_one_sentence_for_every_question() {
    let sandbox = Sandbox::new();
    empty(&sandbox, "empty.db");
    empty(&sandbox, "newer.db");
    muster_test_database::create(&sandbox.path("newer.db"), "INSERT INTO schema_version VALUES (99, '')").expect("a later one");
    let whole = forty_nights();
    let bytes = fs::read(whole.path("r.db")).expect("a database");
    fs::write(sandbox.path("truncated.db"), &bytes[..bytes.len() / 2]).expect("a file");
    fs::write(sandbox.path("text.db"), "not a database, and longer than the head of one".repeat(50)).expect("a file");
    let mut text = String::new();
    for database in ["missing.db", "empty.db", "newer.db", "truncated.db", "text.db"] {
        let questions: [&[&str]; 4] =
            [&["compare", "2026-11-01", "latest"], &["history", "triad"], &["causes"], &["suggest-references"]];
        let before = fs::read(sandbox.path(database)).ok();
        for args in questions {
            let ended = sandbox.muster(&[&["results"], args, &["--db", database]].concat());
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{database} {args:?}\n{}", ended.stderr);
            let _ = write!(text, "{database} {}: {}", args[0], ended.stderr);
        }
        assert_eq!(fs::read(sandbox.path(database)).ok(), before, "{database}");
    }
    assert_snapshot!(text);
}

#[test]
fn what_is_no_file_is_no_database_and_is_not_waited_for() {
    let sandbox = forty_nights();
    let made = std::process::Command::new("mkfifo").arg(sandbox.path("pipe")).status().expect("mkfifo");
    assert!(made.success());
    fs::create_dir(sandbox.path("folder")).expect("a folder");
    sandbox.write("check.yaml", "name: a\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
    let mut text = String::new();
    for database in ["pipe", "folder", "/dev/zero"] {
        let commands: [&[&str]; 4] = [
            &["results", "list"],
            &["results", "prune", "--dry-run"],
            &["results", "import", "r.db"],
            &["-c", "check.yaml", "--system", "local", "-r"],
        ];
        for args in commands {
            let ended = sandbox.muster(&[args, &["--db", database]].concat());
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{database} {args:?}\n{}", ended.stderr);
            let _ = write!(text, "$ muster {}\n{}", args.join(" "), ended.stderr);
        }
    }
    let import = sandbox.muster(&["results", "import", "pipe", "--db", "r.db"]);
    assert_eq!(import.code, Some(2), "{}", import.stderr);
    assert_snapshot!(text + &import.stderr);
    // Nor is what lies beside one.
    fs::rename(sandbox.path("pipe"), sandbox.path("r.db-journal")).expect("a pipe");
    let list = sandbox.muster(&["results", "list", "--db", "r.db"]);
    assert_eq!(list.stderr, "error: r.db-journal is a pipe: a results database is a file\n");
}

#[test]
fn a_mistake_in_a_site_file_ends_a_command_that_needs_its_nights() {
    let sandbox = forty_nights();
    sandbox.write("negative.yaml", "name: eidf\npartitions: []\nenvironments: []\nnights: { false_alarms: -1 }\n");
    sandbox.write("broken.yaml", "name: [eidf\n");
    for site in ["negative.yaml", "broken.yaml"] {
        for command in [&["night"][..], &["night", "explain", "triad"], &["results", "rebuild"]] {
            let refused = sandbox.muster(&[command, &["-C", site, "--db", "r.db"]].concat());
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{command:?} {site}: {}", refused.stderr);
            assert!(refused.stderr.contains(site), "{command:?}: {}", refused.stderr);
        }
    }
}
