//! Sessions whose process cannot be seen from here: on another host, in another container, or taken over by another process.
//!
//! Another PID namespace stands for another container, another host name in it for another host. Making one takes the rights of root.

use crate::{
    common::{copy_environment, eventually},
    sandbox::{Ended, Sandbox},
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write, pipe},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// After so many seconds without a heartbeat a session counts as abandoned; the owner gives four.
const LIMIT: &str = "4";

/// Cases that last, until a file says that they may end.
const CHECK: &str = "name: three\nvalid_systems: ['s:p']\nparameters: { n: [1, 2, 3] }\n\
                     executable: 'touch ../began-${{ n }}; while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done; echo hello'\nsanity: [{ found: hello }]\n";

const SITE: &str = "name: s\nhostnames: ['.*']\npartitions:\n- { name: p, scheduler: local, environs: [default], max_jobs: 4 }\n- { name: f, scheduler: fake, environs: [default] }\nenvironments: [{ name: default }]\n";

/// The same in another container, on a host of this name.
fn elsewhere(sandbox: &Sandbox, host: &str, args: &[&str]) -> Command {
    contained(sandbox, host, args, "exit $?")
}

/// The same, with what the shell of the container does after the program.
fn contained(sandbox: &Sandbox, host: &str, args: &[&str], after: &str) -> Command {
    let inner = here(sandbox, args);
    let mut command = Command::new("unshare");
    command.args(["--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    // Not the first process itself: that one cannot be killed from within.
    command.args([&format!("hostname {host}; \"$@\"; {after}"), "sh"]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().expect("a folder"));
    copy_environment(&inner, &mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn here(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    command.env("RFM_LIVENESS_LIMIT", LIMIT).env("HOME", sandbox.path(""));
    command
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Ended {
    sandbox.ended(&here(sandbox, args).output().expect("the binary runs"))
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A sandbox, where namespaces can be made.
fn sandbox(test: &str) -> Option<Sandbox> {
    let can = Command::new("unshare").args(["--uts", "--pid", "--fork", "--mount-proc", "true"]).output();
    if can.is_ok_and(|output| output.status.success()) {
        let sandbox = Sandbox::with_check(CHECK);
        sandbox.write("site-config/s.yaml", SITE);
        return Some(sandbox);
    }
    eprintln!("SKIPPED: {test}: PID namespaces cannot be made here (needs root and unshare)");
    None
}

/// Runs the three cases there, until all of them run.
fn running(sandbox: &Sandbox, host: &str) -> Child {
    let child = elsewhere(sandbox, host, &["-c", "check.yaml", "-r"]).spawn().expect("unshare runs");
    let started = |n: u32| glob_exists(sandbox, &format!("began-{n}"));
    eventually("three running cases", Duration::from_secs(30), || (1..=3).all(started));
    child
}

fn glob_exists(sandbox: &Sandbox, name: &str) -> bool {
    fn search(folder: &std::path::Path, name: &str) -> bool {
        fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
            entry.file_name() == name || entry.file_type().is_ok_and(|kind| kind.is_dir()) && search(&entry.path(), name)
        })
    }
    search(&sandbox.path("stage"), name)
}

fn ended(sandbox: &Sandbox, child: Child) -> Ended {
    let output: Output = child.wait_with_output().expect("its end");
    sandbox.ended(&output)
}

/// A session that was killed there, at its second case. The container lives until the jobs that it began are over: their
/// scripts would be killed with it.
fn killed(sandbox: &Sandbox, host: &str) {
    sandbox.write("go", "");
    let after = "code=$?; set -- /proc/[0-9]*; while [ $# -gt 1 ]; do sleep 0.05; set -- /proc/[0-9]*; done; exit $code";
    let mut command = contained(sandbox, host, &["-c", "check.yaml", "-r"], after);
    let output = command.env("RFM_CRASH_AT", "running:2").output().expect("unshare");
    assert_ne!(output.status.code(), Some(0), "not killed");
}

/// The program of `elsewhere`, as it is seen from here.
fn inner(unshare: &Child) -> String {
    let child = |pid: &str| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let first = |pids: String| pids.split_whitespace().next().unwrap_or_default().to_owned();
    first(child(&first(child(&unshare.id().to_string()))))
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().expect("kill").success());
}

/// Stops a process, but not while it writes: it would hold the lock of the database.
fn freeze(sandbox: &Sandbox, pid: &str) {
    let database = sandbox.path("state/muster/results.db");
    let is_stopped = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
    loop {
        signal("-STOP", pid);
        eventually("a process that is stopped", Duration::from_secs(10), is_stopped);
        if !muster_test_database::is_being_written(&database).expect("a database") {
            return;
        }
        signal("-CONT", pid);
        thread::sleep(Duration::from_millis(20));
    }
}

/// A session of three other cases that run, in another container, whose process is frozen: it may live.
fn frozen(sandbox: &Sandbox) -> Child {
    sandbox.write("other.yaml", &CHECK.replace("name: three", "name: other").replace("began-", "other-"));
    let child = elsewhere(sandbox, "far-away", &["-c", "other.yaml", "-r"]).spawn().expect("unshare runs");
    eventually("three running cases", Duration::from_secs(30), || (1..=3).all(|n| glob_exists(sandbox, &format!("other-{n}"))));
    freeze(sandbox, &inner(&child));
    child
}

fn kill(mut child: Child) {
    child.kill().expect("kill -9");
    child.wait().expect("its end");
}

fn passed(sandbox: &Sandbox) -> u64 {
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    report["totals"]["passed"].as_u64().expect("a number")
}

#[test]
fn a_session_in_another_container_of_the_same_name_is_neither_swept_nor_taken_over() {
    let Some(sandbox) = sandbox("a_session_in_another_container_of_the_same_name_is_neither_swept_nor_taken_over") else {
        return;
    };
    let child = running(&sandbox, &host());
    let swept = run(&sandbox, &["sweep"]);
    assert!(swept.stdout.starts_with("0 job(s)"), "{}\n{}", swept.stdout, swept.stderr);
    for args in [&["attach"][..], &["-c", "check.yaml", "-r", "--restore-session"]] {
        let refused = run(&sandbox, args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}\n{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("is still running, as process "), "{args:?}: {}", refused.stderr);
    }
    sandbox.write("go", "");
    let ended = ended(&sandbox, child);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(passed(&sandbox), 3);
}

#[test]
fn a_session_that_was_killed_on_another_host_is_taken_over_when_it_has_been_silent_for_long_enough() {
    let Some(sandbox) =
        sandbox("a_session_that_was_killed_on_another_host_is_taken_over_when_it_has_been_silent_for_long_enough")
    else {
        return;
    };
    killed(&sandbox, "far-away");
    let listed = run(&sandbox, &["results", "list"]);
    assert!(listed.stdout.contains("unknown"), "{}", listed.stdout);
    let started = Instant::now();
    let ended = run(&sandbox, &["attach"]);
    assert!(started.elapsed() >= Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("waiting for a heartbeat of process ") && ended.stderr.contains(" on far-away"),
        "{}",
        ended.stderr
    );
    assert_eq!(passed(&sandbox), 3);
}

#[test]
fn who_waits_for_a_sign_of_life_is_interrupted_by_ctrl_c() {
    let Some(sandbox) = sandbox("who_waits_for_a_sign_of_life_is_interrupted_by_ctrl_c") else { return };
    killed(&sandbox, "far-away");
    let mut attach = here(&sandbox, &["attach"]);
    let mut child = attach.env("RFM_LIVENESS_LIMIT", "600").spawn().expect("the binary runs");
    let mut output = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains("waiting for a heartbeat") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("text"), 0, "it does not wait");
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    output.read_to_string(&mut line).expect("text");
    assert_eq!(child.wait().expect("its end").code(), Some(130), "{line}");
    assert!(line.contains("interrupted by SIGINT: nothing was launched"), "{line}");
    assert_eq!(run(&sandbox, &["attach"]).code, Some(0), "it is still there to be taken over");
}

#[test]
fn a_session_that_was_killed_on_another_host_can_be_restored_from() {
    let Some(sandbox) = sandbox("a_session_that_was_killed_on_another_host_can_be_restored_from") else { return };
    killed(&sandbox, "far-away");
    let ended = run(&sandbox, &["-c", "check.yaml", "-r", "--restore-session"]);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(passed(&sandbox), 3);
}

#[test]
fn of_two_that_take_a_session_over_at_the_same_time_one_gets_it() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site-config/s.yaml", SITE).write("go", "");
    here(&sandbox, &["-c", "check.yaml", "-r"]).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
    let children: Vec<Child> = (0..4).map(|_| here(&sandbox, &["attach", "2"]).spawn().expect("the binary runs")).collect();
    let ends: Vec<Ended> = children.into_iter().map(|child| ended(&sandbox, child)).collect();
    let winners = ends.iter().filter(|end| end.code == Some(0)).count();
    let output: Vec<&str> = ends.iter().map(|end| end.stderr.as_str()).collect();
    assert_eq!(winners, 1, "{output:#?}");
    let refused = |end: &&Ended| {
        let why = ["taken over by another process", "is still running", "has ended"];
        end.code == Some(2) && why.iter().any(|why| end.stderr.contains(why))
    };
    assert_eq!(ends.iter().filter(refused).count(), 3, "{output:#?}");
    assert_eq!(passed(&sandbox), 3);
}

/// Between the takeover and the first case a process reads, renders and connects. Here it waits for its stdout, which nobody reads.
#[test]
fn who_prepares_for_a_session_that_it_has_taken_over_keeps_it() {
    let Some(sandbox) = sandbox("who_prepares_for_a_session_that_it_has_taken_over_keeps_it") else { return };
    killed(&sandbox, "far-away");
    let (mut reader, mut writer) = pipe().expect("a pipe");
    writer.write_all(&vec![b' '; 65536]).expect("a full pipe");
    let mut first = elsewhere(&sandbox, "near-by", &["attach"]).stdout(writer).spawn().expect("unshare runs");
    let mut notes = BufReader::new(first.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains("of 3 case(s)") {
        line.clear();
        assert_ne!(notes.read_line(&mut line).expect("text"), 0, "it does not take over");
    }
    let second = run(&sandbox, &["attach"]);
    assert_eq!(second.code, Some(2), "{}\n{}", second.stdout, second.stderr);
    assert!(second.stderr.contains("is still running, as process "), "{}", second.stderr);
    let printed = thread::spawn(move || reader.read_to_string(&mut line).map(|_| line));
    assert_eq!(first.wait().expect("its end").code(), Some(0), "{:?}", printed.join());
    assert_eq!(passed(&sandbox), 3);
}

#[test]
fn who_has_lost_its_session_while_it_was_frozen_leaves_it_alone() {
    let Some(sandbox) = sandbox("who_has_lost_its_session_while_it_was_frozen_leaves_it_alone") else { return };
    let play = "name: slow\nvalid_systems: ['s:f']\nfake: { statuses: [{ state: running, nodes: [node-1] }, { after_ms: 60000, state: ended, exit: 0 }] }\nsanity: []\n";
    sandbox.write("check.yaml", play);
    let frozen = elsewhere(&sandbox, "far-away", &["-c", "check.yaml", "-r", "-v"]).spawn().expect("unshare runs");
    let stored =
        || sandbox.path("state/muster/results.db").exists() && run(&sandbox, &["results", "list"]).stdout.contains("1 session");
    eventually("a session", Duration::from_secs(30), stored);
    freeze(&sandbox, &inner(&frozen));
    let mut attached = here(&sandbox, &["attach", "2"]).spawn().expect("the binary runs");
    let taken = || run(&sandbox, &["results", "list"]).stdout.contains("running");
    eventually("a session that is taken over", Duration::from_secs(30), taken);
    signal("-CONT", &inner(&frozen));
    let left = ended(&sandbox, frozen);
    assert_eq!(left.code, Some(3), "{}\n{}", left.stdout, left.stderr);
    assert!(left.stderr.contains("was taken over by another process"), "{}", left.stderr);
    assert!(taken(), "it has not ended what is not its own");
    attached.kill().expect("kill -9");
    attached.wait().expect("its end");
}

#[test]
fn what_was_taken_over_while_sweep_waited_for_another_session_is_left_alone() {
    let Some(sandbox) = sandbox("what_was_taken_over_while_sweep_waited_for_another_session_is_left_alone") else { return };
    let frozen = frozen(&sandbox);
    let killed = here(&sandbox, &["-c", "check.yaml", "-r"]).spawn().expect("the binary runs");
    eventually("three running cases", Duration::from_secs(30), || (1..=3).all(|n| glob_exists(&sandbox, &format!("began-{n}"))));
    kill(killed);
    let mut sweep = here(&sandbox, &["sweep"]).env("RFM_LIVENESS_LIMIT", "10").spawn().expect("the binary runs");
    let mut notes = BufReader::new(sweep.stderr.take().expect("stderr"));
    let mut text = String::new();
    while !text.contains("waiting for a heartbeat") {
        assert_ne!(notes.read_line(&mut text).expect("text"), 0, "it does not wait: {text}");
    }
    let attached = here(&sandbox, &["attach"]).spawn().expect("the binary runs");
    let taken = || run(&sandbox, &["results", "list"]).stdout.contains("running");
    eventually("a session that is taken over", Duration::from_secs(30), taken);
    notes.read_to_string(&mut text).expect("text");
    let swept = ended(&sandbox, sweep);
    assert!(text.contains("was taken over meanwhile: nothing of it is removed"), "{text}\n{}", swept.stdout);
    assert!(swept.stdout.contains("3 job(s) removed\n"), "those of the other: {}", swept.stdout);
    sandbox.write("go", "");
    let attached = ended(&sandbox, attached);
    assert_eq!(attached.code, Some(0), "{}\n{}", attached.stdout, attached.stderr);
    assert_eq!(passed(&sandbox), 3);
    kill(frozen);
}

#[test]
fn a_session_that_is_resumed_does_not_wait_for_the_owners_of_others() {
    let Some(sandbox) = sandbox("a_session_that_is_resumed_does_not_wait_for_the_owners_of_others") else { return };
    let frozen = frozen(&sandbox);
    sandbox.write("check.yaml", "name: quick\nvalid_systems: ['s:p']\nexecutable: 'true'\nsanity: []\n");
    let mut command = here(&sandbox, &["-c", "check.yaml", "-r", "--resume"]);
    let ended = sandbox.ended(&command.env("RFM_LIVENESS_LIMIT", "600").output().expect("the binary runs"));
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("sweep: 0 job(s)") && !ended.stderr.contains("waiting for"), "{}", ended.stderr);
    kill(frozen);
}

#[test]
fn a_session_that_tears_down_for_longer_than_the_limit_is_still_owned() {
    let Some(sandbox) = sandbox("a_session_that_tears_down_for_longer_than_the_limit_is_still_owned") else { return };
    let check = "name: build\nexecutable: 'true'\nteardown_cmds: 'touch \"$HOME/tearing\"; sleep 12'\nsanity: []\n---\n\
                 name: user\nvalid_systems: ['s:p']\nfixtures: { b: { check: build, scope: environment } }\nexecutable: 'false'\nsanity: []\n";
    sandbox.write("check.yaml", check);
    let child = elsewhere(&sandbox, "far-away", &["-c", "check.yaml", "-r"]).spawn().expect("unshare runs");
    eventually("a teardown", Duration::from_secs(30), || sandbox.path("tearing").exists());
    let refused = run(&sandbox, &["attach"]);
    assert!(refused.stderr.contains("is still running, as process "), "{}", refused.stderr);
    let ended = ended(&sandbox, child);
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
fn a_process_with_the_mark_of_a_session_that_is_not_stored_is_left_alone() {
    let sandbox = Sandbox::with_check("name: quick\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
    sandbox.write("site-config/s.yaml", SITE);
    for _ in 0..2 {
        assert_eq!(run(&sandbox, &["-c", "check.yaml", "-r"]).code, Some(0));
    }
    // Nothing, and the beginning of the ids of all sessions.
    for session in ["", "0", "2"] {
        let mut marked = Command::new("sleep");
        let marked = marked.arg("60").env("RFM_ID", "abcdefgh").env("RFM_SESSION", session).spawn().expect("sleep runs");
        let swept = run(&sandbox, &["sweep", "--dry-run"]);
        kill(marked);
        assert_eq!(swept.code, Some(0), "{session:?}: {}\n{}", swept.stdout, swept.stderr);
        assert!(!swept.stdout.contains("abcdefgh"), "{session:?}: {}", swept.stdout);
    }
}

#[test]
fn a_session_whose_process_still_writes_reports_is_not_resumed_and_nothing_of_it_runs() {
    let sandbox = Sandbox::with_check(
        "name: daemon\nvalid_systems: ['*']\nexecutable: 'setsid sleep 300 & echo $! > \"$HOME/daemon\"; touch \"$HOME/began\"; sleep \"$NAP\"'\nsanity: []\n",
    );
    sandbox.write("site-config/s.yaml", &SITE.replace("max_jobs: 4", "max_jobs: 4, pass_env: [NAP]"));
    let args = ["-c", "check.yaml", "-r", "--resume"];
    let (unread, mut stdout) = std::io::pipe().expect("a pipe");
    let mut command = here(&sandbox, &args);
    command.env("NAP", "300").stdout(stdout.try_clone().expect("a pipe"));
    let mut blocked = command.spawn().expect("the binary runs");
    drop(command);
    eventually("a running case", Duration::from_secs(30), || sandbox.path("began").exists());
    // Until the pipe is full, and closed.
    let fill = thread::spawn(move || while stdout.write_all(&[b'\n'; 4096]).is_ok() {});
    thread::sleep(Duration::from_secs(1));
    signal("-INT", &blocked.id().to_string());
    let ended_in_database = || run(&sandbox, &["results", "list"]).stdout.contains("interrupted");
    eventually("an end that is stored", Duration::from_secs(30), ended_in_database);
    let daemon = sandbox.read("daemon");
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.trim())).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "the daemon is ended before the end is stored: {status}");
    let mut other = here(&sandbox, &args);
    let other = sandbox.ended(&other.env("NAP", "0").output().expect("the binary runs"));
    assert_eq!(other.code, Some(0), "{}\n{}", other.stdout, other.stderr);
    assert!(other.stderr.contains("is still running: a new one starts"), "{}", other.stderr);
    assert!(blocked.try_wait().expect("a state").is_none(), "it still writes");
    drop(unread);
    fill.join().expect("a closed pipe");
    assert_eq!(ended(&sandbox, blocked).code, Some(130));
}
