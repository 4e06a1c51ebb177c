//! A reader that goes away, places that cannot be written, other users, and what jobs leave.

use crate::{
    common::eventually,
    sandbox::{Sandbox, terminal},
};
use insta::assert_snapshot;
use muster_report::style::sanitize;
use std::{
    fmt::Write,
    fs,
    io::{BufRead, BufReader},
    os::unix::ffi::OsStrExt,
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
fn a_full_disk_under_standard_output_is_reported_once_and_is_exit_code_3() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let sandbox = Sandbox::with_check(GOOD);
    let run = ["-c", "check.yaml", "-r", "--db", "r.db", "--report-file", "report.json"];
    let rows: [&[&str]; 9] = [
        &run,
        &[&run[..], &["--format", "json"]].concat(),
        &[&run[..], &["--format", "pretty"]].concat(),
        &["-c", "check.yaml", "-l"],
        &["-c", "check.yaml", "--describe"],
        &["-c", "check.yaml", "config", "show"],
        &["results", "show", "--json", "--db", "r.db"],
        &["kernel", "flops", "--help"],
        &["--help"],
    ];
    for args in rows {
        let mut command = sandbox.command(args);
        let ended = sandbox.ended(&command.stdout(full.try_clone().expect("a file")).output().expect("runs"));
        let sentence = "error: standard output could not be written: No space left on device (os error 28)\n";
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), sentence), "{args:?}");
    }
    assert_eq!(sandbox.read("report.json").matches("\"pass\"").count(), 4, "the session went on");
}

#[test]
fn a_session_without_user_in_its_environment_has_the_name_of_the_account() {
    let sandbox = Sandbox::with_check(GOOD);
    let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
    let ended = sandbox.ended(&command.env_remove("USER").env_remove("LOGNAME").output().expect("runs"));
    let account = std::process::Command::new("id").arg("-un").output().expect("id");
    let account = String::from_utf8_lossy(&account.stdout).trim().to_owned();
    assert!(ended.stdout.contains(&format!("launched by:       {account}@")), "{}", ended.stdout);
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_before_anything_runs() {
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
    assert_snapshot!(ended.stderr, @"note: neither HOME nor an absolute XDG_STATE_HOME is set: results go to ./muster/results.db; choose a place with --db");
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

/// The widths of the lines of each picture of the live view in which something runs, in order.
fn pictures(screen: &str) -> Vec<Vec<usize>> {
    let drawn = screen.split("\x1b[?2026l").filter_map(|update| update.rsplit_once("\x1b[J").map(|(_, drawn)| drawn));
    let lines = |drawn: &str| {
        let first = drawn.lines().position(|line| line.contains(['⠋', '⠙', '⠸', '⠴', '⠦', '⠇']))?;
        Some(drawn.lines().skip(first).map(|line| sanitize(line.trim_matches('\r')).chars().count()).collect())
    };
    drawn.filter_map(lines).collect()
}

#[test]
fn the_live_view_follows_its_terminal_when_that_is_resized() {
    use rustix::termios::{Winsize, tcsetwinsize};
    let size = |columns, rows| Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let sandbox = Sandbox::with_check(&GOOD.replace("sleep 0.1", "sleep 3"));
    let (ours, theirs) = terminal();
    tcsetwinsize(&ours, size(100, 40)).expect("a size");
    let mut command = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]);
    command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLUMNS");
    command.stdin(theirs()).stdout(theirs()).stderr(theirs());
    let mut child = command.spawn().expect("runs");
    drop((command, theirs));
    let mut seen = Vec::new();
    let mut reader = BufReader::new(ours.try_clone().expect("a handle"));
    let is_wide = |seen: &[u8]| pictures(&String::from_utf8_lossy(seen)).iter().flatten().any(|width| (50..100).contains(width));
    while !is_wide(&seen) {
        assert_ne!(reader.read_until(b'm', &mut seen).expect("lives"), 0);
    }
    tcsetwinsize(&ours, size(50, 10)).expect("a size");
    seen.clear();
    // The other end is gone when the program is.
    while let Ok(1..) = reader.read_until(b'm', &mut seen) {}
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    let after = pictures(&String::from_utf8_lossy(&seen));
    // One may have been drawn while it was resized.
    let drawn = &after[1..];
    assert!(drawn.len() > 3, "{after:?}");
    assert!(drawn.iter().all(|lines| lines.len() <= 5 && lines.iter().all(|width| *width < 50)), "{drawn:?}");
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
fn a_variable_that_is_no_text_is_refused() {
    let sandbox = Sandbox::new();
    let value = std::ffi::OsStr::from_bytes(b"zz\xe9");
    let ended = sandbox.ended(&sandbox.command(&["-l"]).env("MUSTER_NAME", value).output().expect("the binary runs"));
    assert_eq!((ended.code, &*ended.stderr), (Some(2), "error: the variable MUSTER_NAME is not UTF-8 text\n"));
}

#[test]
fn an_unknown_variable_is_reported_and_one_with_a_mistake_is_named() {
    let sandbox = Sandbox::with_check(GOOD);
    let with = |name: &str, value: &str| {
        sandbox.ended(&sandbox.command(&["-c", "check.yaml", "-l"]).env(name, value).output().expect("runs"))
    };
    let slip = with("MUSTER_EXCLUED", "x");
    assert_eq!(slip.code, Some(0));
    assert_eq!(slip.stderr, "warning: unknown variable MUSTER_EXCLUED: did you mean MUSTER_EXCLUDE?\n");
    let wrong = with("MUSTER_MAXFAIL", "few");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.starts_with("error: MUSTER_MAXFAIL=few: invalid value 'few'"), "{}", wrong.stderr);
}
