//! Files that do not answer. A pipe that nobody writes to blocks who opens it, as a file system does whose server is away.

use crate::sandbox::{Ended, Sandbox};
use std::{
    process::Command,
    time::{Duration, Instant},
};

const CHECK: &str = "name: one\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n";
const SITE: &str = "name: here\npartitions: [{ name: p, scheduler: local, environs: [default] }]\n\
                    environments: [{ name: default }]\n";

fn ground() -> Sandbox {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site.yaml", SITE);
    assert!(Command::new("mkfifo").arg(sandbox.path("pipe")).status().expect("mkfifo runs").success());
    sandbox
}

/// What a command says, and how long it took. It is killed after a minute and a half.
fn timed(sandbox: &Sandbox, args: &[&str]) -> (Ended, Duration) {
    let muster = sandbox.command(args);
    let mut within = Command::new("timeout");
    within.args(["-s", "KILL", "90"]).arg(muster.get_program()).args(muster.get_args()).current_dir(sandbox.path(""));
    within.envs(muster.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let started = Instant::now();
    let ended = sandbox.ended(&within.output().expect("timeout runs"));
    (ended, started.elapsed())
}

#[test]
fn doctor_gives_up_a_file_that_is_read_before_its_questions_after_ten_seconds_and_names_it() {
    let sandbox = ground();
    for args in [
        &["-C", "pipe"][..],
        &["-C", "pipe", "--mode", "x"],
        &["-C", "site.yaml", "-c", "pipe"],
        &["-C", "site.yaml", "--system", "here", "-c", "check.yaml", "--rehearse", "pipe"],
    ] {
        let (ended, took) = timed(&sandbox, &[args, &["doctor"]].concat());
        assert_eq!(
            (ended.code, &*ended.stdout, &*ended.stderr),
            (Some(2), "", "error: pipe: no answer within 10 s\n"),
            "{args:?}"
        );
        assert!(took < Duration::from_secs(13), "{args:?}: {took:?}");
    }
}

#[test]
fn doctor_gives_up_each_file_that_it_asks_about_and_answers_what_it_can() {
    let sandbox = ground();
    let args = [
        "-C",
        "site.yaml",
        "--system",
        "here",
        "--db",
        "pipe",
        "--stage",
        "pipe",
        "--prefix",
        "pipe",
        "--quarantine",
        "pipe",
        "doctor",
    ];
    let (ended, took) = timed(&sandbox, &args);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(took < Duration::from_secs(15), "{took:?}");
    let folder = |topic: &str| {
        let mut lines = ended.stdout.lines().filter(|line| line.starts_with(&format!("  error    {topic}: ")));
        lines.next().unwrap_or_else(|| panic!("{topic}: {}", ended.stdout)).to_owned()
    };
    assert!(
        folder("database").contains("pipe is a pipe: a results database is a file (choose another with --db)"),
        "{}",
        ended.stdout
    );
    for topic in ["stage", "output", "reports"] {
        assert!(folder(topic).contains("cannot be written: not a directory"), "{}", ended.stdout);
    }
    assert_eq!(folder("quarantine"), "  error    quarantine: pipe: no answer within 10 s");
    assert!(ended.stdout.contains("\nhere:p (local)\n"), "{}", ended.stdout);
    let told = "this machine: waiting for an answer about quarantine, 10 s at most\n";
    assert_eq!(ended.stderr, told);
}

#[test]
fn a_database_that_is_no_file_is_refused_by_every_command_at_once() {
    let sandbox = ground();
    let commands: [&[&str]; 21] = [
        &["results", "list"],
        &["results", "show"],
        &["results", "causes"],
        &["results", "compare", "latest", "latest"],
        &["results", "history", "one"],
        &["results", "export", "csv"],
        &["results", "import", "pipe"],
        &["results", "suggest-references"],
        &["results", "migrate"],
        &["results", "rebuild"],
        &["results", "alias", "one", "two"],
        &["results", "annotate", "--from", "2026-11-01", "--reason", "power"],
        &["results", "delete", "20261101-000000-abcdefgh"],
        &["results", "prune", "--keep", "30d"],
        &["results", "backup", "copy.db"],
        &["--list-stored-sessions"],
        &["night"],
        &["top"],
        &["attach", "20261101-000000-abcdefgh"],
        &["sweep"],
        &["-C", "site.yaml", "-c", "check.yaml", "-r"],
    ];
    for command in commands {
        let (ended, took) = timed(&sandbox, &[&["--db", "pipe"], command].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{command:?}: {}", ended.stderr);
        // What is imported is read before the database is opened.
        let is_refused = ["pipe is a pipe: a results database is a file\n", "pipe cannot be read: it is not a regular file\n"];
        assert!(is_refused.iter().any(|end| ended.stderr.ends_with(end)), "{command:?}: {}", ended.stderr);
        assert!(took < Duration::from_secs(10), "{command:?}: {took:?}");
    }
}
