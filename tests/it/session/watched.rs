//! A session that others look at, while it runs and afterwards, without the right to write anything of it.

use crate::{
    common::{copy_environment, eventually},
    sandbox::{Ended, NOBODY, Sandbox, terminal},
};
use rustix::termios::{Winsize, tcsetwinsize};
use std::{
    fs::{self, File},
    io::Read,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions:\n  - { name: fake, scheduler: fake, environs: [default] }\n  - { name: busy, scheduler: fake, environs: [default], max_jobs: 1 }\nenvironments: [{ name: default }]\n";

/// One case ends, one runs, one is pending, and of two that run one after the other the second waits.
const CHECKS: &str = "\
name: quick
valid_systems: ['here:fake']
sanity: [{ found: nothing of this }]
---
name: runs
valid_systems: ['here:fake']
parameters: { size: [64, 128] }
fake: { statuses: [{ state: running, nodes: [gpu-07, gpu-08] }, { after_ms: 100000, state: ended }] }
sanity: []
---
name: queued
valid_systems: ['here:fake']
fake: { statuses: [{ state: pending, why: 0/3 nodes have a free GPU }, { after_ms: 100000, state: ended }] }
sanity: []
---
name: serial
valid_systems: ['here:busy']
parameters: { n: [1, 2] }
fake: { statuses: [{ state: running }, { after_ms: 100000, state: ended }] }
sanity: []
";

/// A session that runs until it is killed.
struct Running {
    sandbox: Sandbox,
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start() -> Self {
        let sandbox = Sandbox::with_check(CHECKS);
        sandbox.write("site-config/here.yaml", SITE);
        let args = ["-c", "check.yaml", "-r", "--db", "state/r.db", "--file-mode", "0644"];
        let child = sandbox.command(&args).spawn().expect("runs");
        let running = Self { sandbox, child };
        let is_stored = || running.results(&["results", "show"], None).stdout.contains("quick");
        eventually("a stored result", Duration::from_secs(30), is_stored);
        running
    }

    fn results(&self, args: &[&str], user: Option<&Path>) -> Ended {
        let mut command = self.sandbox.command(&[args, &["--db", "state/r.db"]].concat());
        if let Some(binary) = user {
            let from = command;
            command = Command::new(binary);
            copy_environment(&from, &mut command);
            command.args(from.get_args()).current_dir(self.sandbox.path("")).uid(NOBODY).gid(NOBODY);
        }
        self.sandbox.ended(&command.output().expect("the binary runs"))
    }
}

#[test]
fn another_user_reads_the_results_of_a_session_while_it_runs_and_after_it_was_killed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("!!! SKIPPED: reading as another user needs root");
        return;
    }
    let mut running = Running::start();
    let binary = running.sandbox.for_everybody();
    let state = running.sandbox.path("state");
    let files = || {
        let folder = fs::read_dir(&state).expect("a folder");
        let mut names: Vec<_> = folder.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    assert_eq!(before, ["r.db", "r.db-shm", "r.db-wal"]);
    for moment in ["while it runs", "after it was killed"] {
        for command in [&["results", "list"][..], &["results", "show"]] {
            let ended = running.results(command, Some(&binary));
            assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{moment}: {}", ended.stdout);
        }
        assert!(running.results(&["results", "show"], Some(&binary)).stdout.contains("quick"), "{moment}");
        running.child.kill().expect("killed");
        running.child.wait().expect("killed");
    }
    assert_eq!(files(), before, "a reader leaves nothing");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(running.sandbox.path("state/r.db"), private).expect("a file");
    let refused = running.results(&["results", "list"], Some(&binary));
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert_eq!(refused.stderr, "error: open the results database state/r.db: Permission denied (os error 13)\n");
}

#[test]
fn top_prints_one_object_of_the_session_that_runs() {
    let running = Running::start();
    let object = || -> serde_json::Value {
        let ended = running.results(&["top", "--json"], None);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
        serde_json::from_str(&ended.stdout).expect("one object")
    };
    let cases = || object()["cases"].clone();
    let expected = serde_json::json!({
        "total": 6, "waiting": 1, "pending": 1, "running": 3, "ended": 1, "passed": 0, "failed": 1, "other": 0
    });
    eventually("the states of six cases", Duration::from_secs(10), || cases() == expected);
    let object = object();
    assert_eq!(object["session"]["state"], "running");
    assert_eq!(object["reasons"], serde_json::json!([{ "reason": "0/3 nodes have a free GPU", "cases": 1 }]));
    assert_eq!(object["nodes"], serde_json::json!([{ "node": "gpu-07", "cases": 2 }, { "node": "gpu-08", "cases": 2 }]));
    assert_eq!(object["pending"][0]["case"], "queued @here:fake+default");
    let failed = &object["failed"][0];
    assert_eq!((&failed["case"], &failed["outcome"]), (&"quick @here:fake+default".into(), &"fail{sanity}".into()));
    assert!(failed["cause"].as_str().is_some_and(|cause| cause.contains("nothing of this")), "{failed}");
}

#[test]
fn top_ends_with_its_session_and_says_how_that_ended() {
    let quick = Sandbox::with_check("name: quick\nvalid_systems: ['*']\nsanity: []\n");
    quick.write("site-config/here.yaml", SITE);
    let run = quick.muster(&["-c", "check.yaml", "-r", "--system", "here:fake", "--db", "state/r.db"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let top = quick.muster(&["top", "--db", "state/r.db"]);
    assert_eq!((top.code, &*top.stderr), (Some(0), ""));
    assert!(top.stdout.contains(" has ended after ") && top.stdout.contains("1 passed, 0 failed"), "{}", top.stdout);

    let mut running = Running::start();
    let top = running.sandbox.command(&["top", "--db", "state/r.db"]).spawn().expect("runs");
    std::thread::sleep(Duration::from_millis(1500));
    running.child.kill().expect("killed");
    running.child.wait().expect("killed");
    let top = running.sandbox.ended(&top.wait_with_output().expect("ends"));
    assert_eq!((top.code, &*top.stderr), (Some(0), ""), "{}", top.stdout);
    let lines: Vec<_> = top.stdout.lines().collect();
    assert_eq!(lines[0], "FAIL quick @here:fake+default: `nothing of this` not found");
    assert!(lines.len() > 2 && lines[1].contains("1/6  "), "{lines:#?}");
    let last = lines.last().expect("a line");
    assert!(last.contains(" was interrupted: its process is gone. 5 of 6 cases have no result; `muster attach "), "{last}");
    assert!(last.contains(" --db [FOLDER]/state/r.db` goes on with it"), "{last}");
    let object = running.results(&["top", "--json"], None).stdout;
    let object: serde_json::Value = serde_json::from_str(&object).expect("one object");
    assert_eq!((&object["session"]["state"], &object["session"]["interrupted"]), (&"interrupted".into(), &true.into()));
    assert!(running.results(&["results", "list"], None).stdout.contains("interrupted"));
}

#[test]
fn top_refuses_an_unknown_session_and_ends_at_a_signal() {
    let running = Running::start();
    let unknown = running.results(&["top", "nosuch"], None);
    assert_eq!((unknown.code, &*unknown.stderr), (Some(2), "error: no session begins with `nosuch`\n"));
    let missing = running.sandbox.muster(&["top", "--db", "nowhere.db"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stdout);
    let top = running.sandbox.command(&["top", "--db", "state/r.db"]).spawn().expect("runs");
    std::thread::sleep(Duration::from_millis(1500));
    let status = Command::new("kill").args(["-INT", &top.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    assert_eq!(top.wait_with_output().expect("ends").status.code(), Some(130));
}

/// The program on a terminal of 80 columns, and our end of that.
fn on_terminal(sandbox: &Sandbox, args: &[&str]) -> (Child, File) {
    let (ours, theirs) = terminal();
    tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    let mut command = sandbox.command(args);
    command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLUMNS");
    (command.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().expect("runs"), ours)
}

/// What the program writes, until all of these words have come.
fn read_until(ours: &mut File, words: &[&str]) -> String {
    let mut seen = Vec::new();
    let mut block = [0; 4096];
    loop {
        // The other end is gone when the program is.
        let Ok(count @ 1..) = ours.read(&mut block) else { return String::from_utf8_lossy(&seen).into_owned() };
        seen.extend(&block[..count]);
        let text = String::from_utf8_lossy(&seen);
        if !words.is_empty() && words.iter().all(|word| text.contains(word)) {
            return text.into_owned();
        }
    }
}

#[test]
fn on_a_terminal_both_views_tell_cases_apart_and_keep_nothing_stale() {
    let sandbox =
        Sandbox::with_check(&CHECKS.replace("name: runs", "name: a_check_with_a_name_that_is_far_too_long_for_a_column"));
    sandbox.write("site-config/here.yaml", SITE);
    let (mut session, mut screen) = on_terminal(&sandbox, &["-c", "check.yaml", "-r", "--db", "state/r.db"]);
    read_until(&mut screen, &["… %size=64 @fake ", "… %size=128 @fake "]);
    let (mut top, mut watching) = on_terminal(&sandbox, &["top", "--db", "state/r.db"]);
    let seen = read_until(
        &mut watching,
        &[
            "… %size=64 @fake ",
            "nodes    2: gpu-07 2, gpu-08 2",
            "pending  1 0/3 nodes have a free GPU",
            // On a busy machine it is judged later.
            "FAIL quick",
            "1/6  3 running  1 pending",
        ],
    );
    assert!(seen.contains("FAIL quick"), "{seen}");
    assert!(seen.contains("1/6  3 running  1 pending") && seen.contains("  1 waiting"), "{seen}");
    let status = Command::new("kill").args(["-INT", &session.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    let seen = read_until(&mut screen, &[]);
    assert_eq!(session.wait().expect("ends").code(), Some(130));
    let (_, after) = seen.split_once("interrupted by SIGINT: stopping").expect("a note");
    assert!(!after.contains("running on gpu-07"), "{after}");
    let seen = read_until(&mut watching, &[]);
    assert_eq!(top.wait().expect("ends").code(), Some(0));
    let (_, last) = seen.rsplit_once("\x1b[J").expect("the view is taken down");
    assert!(last.contains(" was interrupted after ") && !last.contains('░'), "{last}");
}

/// What is on a terminal of 80 columns after this was written to it, for the sequences that our views use.
fn screen(written: &str) -> Vec<String> {
    let mut lines = vec![Vec::new()];
    let (mut row, mut column) = (0_usize, 0);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let mut sequence = String::new();
                let end = rest.by_ref().skip(1).find(|c| {
                    sequence.push(*c);
                    c.is_ascii_alphabetic()
                });
                match end {
                    Some('A') => row -= sequence.trim_end_matches('A').parse::<usize>().expect("a count"),
                    Some('J') => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    _ => {}
                }
            }
            c => {
                if column == 80 {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let line: &mut Vec<char> = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.into_iter().map(String::from_iter).collect()
}

#[test]
fn what_is_said_beside_a_live_view_stays_and_nothing_of_the_view_does() {
    let sandbox = Sandbox::with_check(
        "name: slow\nvalid_systems: ['here:fake']\nparameters: { n: [1, 2, 3, 4] }\n\
         fake: { statuses: [{ state: running }, { after_ms: 100000, state: ended }] }\nsanity: []\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let (mut session, mut terminal) = on_terminal(&sandbox, &["-c", "check.yaml", "-r", "--db", "state/r.db"]);
    let mut seen = read_until(&mut terminal, &["0/4  4 running"]);
    let status = Command::new("kill").args(["-INT", &session.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    seen += &read_until(&mut terminal, &[]);
    assert_eq!(session.wait().expect("ends").code(), Some(130));
    let lines = screen(&seen);
    let text = lines.join("\n");
    let note = "interrupted by SIGINT: stopping what runs, then reporting; a second signal, afte\nr 1 s or more, ends the process within seconds";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert_eq!(text.matches("[    ABORT ]").count(), 4, "{text}");
    assert!(!text.contains('░') && !lines.iter().any(|line| line.trim_end().ends_with("stopping")), "{text}");
    assert!(!lines.iter().any(|line| line.contains("slow") && !line.contains('[') && line.contains(" running ")), "{text}");
}

/// Looks that start nothing, with the results of an earlier session.
const LOOKS: [&[&str]; 4] = [
    &["-c", "check.yaml", "-l", "--restore-session=latest"],
    &["-c", "check.yaml", "--describe", "--restore-session=latest"],
    &["-c", "check.yaml", "--dry-run", "--restore-session=latest"],
    &["sweep", "--dry-run"],
];

#[test]
fn a_look_needs_no_right_to_write_to_the_database() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("!!! SKIPPED: reading as another user needs root");
        return;
    }
    let sandbox = Sandbox::with_check("name: quick\nvalid_systems: ['*']\nsanity: []\n");
    sandbox.write("site-config/here.yaml", SITE);
    let options = ["--db", "state/r.db", "--file-mode", "0644"];
    let run = sandbox.muster(&[&["-c", "check.yaml", "-r", "--system", "here:fake"], &options[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let binary = sandbox.for_everybody();
    for look in LOOKS {
        let mut command = Command::new(&binary);
        command.args([look, &options[..]].concat()).current_dir(sandbox.path("")).uid(NOBODY).gid(NOBODY);
        let ended = sandbox.ended(&command.output().expect("the binary runs"));
        assert_eq!(ended.code, Some(0), "{look:?}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_look_changes_no_database_that_a_run_would_bring_up_to_date() {
    let sandbox = Sandbox::with_check("name: quick\nvalid_systems: ['*']\nsanity: []\n");
    sandbox.write("site-config/here.yaml", SITE).write("empty.db", "");
    let old = "CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied TEXT NOT NULL) STRICT;
               INSERT INTO schema_version VALUES (1, '2026-01-01');";
    muster_test_database::create(&sandbox.path("old.db"), old).expect("a database");
    for (file, schema) in [("empty.db", 0), ("old.db", 1)] {
        let before = fs::read(sandbox.path(file)).expect("a file");
        for look in LOOKS {
            let ended = sandbox.muster(&[look, &["--db", file]].concat());
            assert_eq!(ended.code, Some(2), "{look:?}: {}{}", ended.stdout, ended.stderr);
            let why = format!("has schema {schema}, and this muster reads schema 16: `muster results migrate --db {file}`");
            assert!(ended.stderr.contains(&why), "{look:?}: {}", ended.stderr);
        }
        assert_eq!(fs::read(sandbox.path(file)).expect("a file"), before, "{file}");
    }
}
