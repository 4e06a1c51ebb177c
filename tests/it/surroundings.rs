//! A reader that goes away, places that cannot be written, company, and what jobs leave behind.

use crate::{common::eventually, sandbox::Sandbox};
use insta::assert_snapshot;
use std::{
    fmt::Write,
    fs,
    io::{BufRead, BufReader},
    time::Duration,
};

const GOOD: &str = "name: good\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\nexecutable: sleep 0.1; echo hello\nsanity: [{ found: hello }]\n";

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let rows: [&[&str]; 3] = [&[], &["--format", "json"], &["--format", "pretty"]];
    for format in rows {
        let sandbox = Sandbox::with_check(GOOD);
        let args = [&["-c", "check.yaml", "-r", "--db", "r.db", "--report-file", "report.json"], format].concat();
        let mut child = sandbox.command(&args).spawn().expect("runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{format:?}");
        assert_eq!(sandbox.read("report.json").matches("\"pass\"").count(), 4, "three cases and their count");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_runs() {
    let sandbox = Sandbox::with_check(GOOD);
    sandbox.write("file", "");
    sandbox.write("garbage.db", "this is no database, and long enough to be looked at\n");
    let rows: [&[&str]; 5] = [
        &["--stage", "file"],
        &["--prefix", "file"],
        &["--report-file", "file/report.json"],
        &["--report-file", "."],
        &["--db", "garbage.db"],
    ];
    let mut text = String::new();
    for place in rows {
        let args = [&["-c", "check.yaml", "-r"], place].concat();
        let ended = sandbox.muster(&args);
        let _ = writeln!(text, "$ muster {}\n[{}] {}", args.join(" "), ended.code.unwrap_or(-1), ended.stderr);
        assert_eq!(ended.stdout, "", "{place:?}: something ran");
    }
    assert_snapshot!(text);
}

#[test]
fn results_that_go_where_nobody_looks_are_announced() {
    let sandbox = Sandbox::with_check(GOOD);
    let mut command = sandbox.command(&["-c", "check.yaml", "-r", "-n", "n=1"]);
    let ended = sandbox.ended(&command.env_remove("XDG_STATE_HOME").env_remove("HOME").output().expect("runs"));
    assert_snapshot!(ended.stderr, @"note: neither HOME nor XDG_STATE_HOME is set: results go to ./muster/results.db; choose a place with --db");
    assert!(sandbox.path("muster/results.db").exists());
}

#[test]
fn the_newest_run_report_has_a_name_of_its_own() {
    let sandbox = Sandbox::with_check(GOOD);
    let newest = || {
        let ended = sandbox.muster(&["-c", "check.yaml", "-r", "-n", "n=1", "--db", "r.db"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let newest = fs::read_link(sandbox.path("reports/out/latest.json")).expect("a link");
        assert!(ended.stdout.contains(&format!("reports/out/{}\n", newest.display())), "{}", ended.stdout);
        newest
    };
    assert_ne!(newest(), newest());
    let named = sandbox.muster(&["-c", "check.yaml", "-r", "-n", "n=1", "--db", "r.db", "--report-file", "x/{sessionid}.json"]);
    assert_eq!(named.code, Some(0), "{}", named.stderr);
    let name = fs::read_dir(sandbox.path("x")).expect("a folder").flatten().next().expect("a report").file_name();
    assert!(name.to_string_lossy().starts_with("20"), "{name:?}");
}

#[test]
fn two_sessions_share_a_prefix_and_a_database() {
    let sandbox = Sandbox::with_check(GOOD);
    let args = ["-c", "check.yaml", "-r", "-q", "--db", "r.db"];
    let both: Vec<_> = (0..2).map(|_| sandbox.command(&args).spawn().expect("runs")).collect();
    for child in both {
        let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
    let listed = sandbox.muster(&["results", "list", "--db", "r.db"]);
    assert_eq!(listed.stdout.matches("3/3").count(), 2, "{}", listed.stdout);
}

/// A terminal of its own: our end, and the program's.
fn terminal() -> (fs::File, impl Fn() -> fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
    let path = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("text");
    let theirs = move || fs::OpenOptions::new().read(true).write(true).open(&path).expect("the other end");
    (ours.into(), theirs)
}

#[test]
fn a_session_outlives_its_terminal() {
    let sandbox = Sandbox::with_check(&GOOD.replace("sleep 0.1", "sleep 1"));
    let (ours, theirs) = terminal();
    let mut command = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db", "--report-file", "report.json"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(theirs()).stdout(theirs()).stderr(theirs());
    let mut child = command.spawn().expect("runs");
    drop((command, theirs));
    let mut seen = Vec::new();
    let mut reader = BufReader::new(ours);
    while !String::from_utf8_lossy(&seen).contains("0/3") {
        assert_ne!(reader.read_until(b'm', &mut seen).expect("lives"), 0);
    }
    drop(reader);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    assert_eq!(sandbox.read("report.json").matches("\"pass\"").count(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_daemon_does_not_outlive_its_session() {
    let sandbox = Sandbox::with_check(
        "name: daemon\nvalid_systems: ['*']\nexecutable: setsid sh -c 'echo $$ > ../../../../../pid; exec sleep 300' & sleep 0.3; echo done\nsanity: [{ found: done }]\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--db", "r.db"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("daemon @local:default+default left a process running"), "{}", ended.stderr);
    let pid = sandbox.read("pid");
    eventually("the end of the daemon", Duration::from_secs(5), || !fs::exists(format!("/proc/{}", pid.trim())).unwrap_or(true));
}

#[test]
fn a_variable_that_means_nothing_is_told_and_one_with_a_mistake_is_named() {
    let sandbox = Sandbox::with_check(GOOD);
    let with = |name: &str, value: &str| {
        sandbox.ended(&sandbox.command(&["-c", "check.yaml", "-l"]).env(name, value).output().expect("runs"))
    };
    let slip = with("MUSTER_EXCLUED", "x");
    assert_eq!(slip.code, Some(0));
    assert_eq!(slip.stderr, "warning: the variable MUSTER_EXCLUED means nothing to muster: did you mean MUSTER_EXCLUDE?\n");
    let wrong = with("MUSTER_MAXFAIL", "few");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.starts_with("error: MUSTER_MAXFAIL=few: invalid value 'few'"), "{}", wrong.stderr);
}
