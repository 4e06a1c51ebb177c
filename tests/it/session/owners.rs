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
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Output, Stdio},
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
    let inner = here(sandbox, args);
    let mut command = Command::new("unshare");
    command.args(["--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    // Not the first process itself: that one cannot be killed from within.
    command.args([&format!("hostname {host}; \"$@\"; exit $?"), "sh"]).arg(inner.get_program()).args(inner.get_args());
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

/// A session that was killed there, at its second case.
fn killed(sandbox: &Sandbox, host: &str) {
    sandbox.write("go", "");
    let output =
        elsewhere(sandbox, host, &["-c", "check.yaml", "-r"]).env("RFM_CRASH_AT", "running:2").output().expect("unshare");
    assert_ne!(output.status.code(), Some(0), "not killed");
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
    assert!(line.contains("interrupted by SIGINT: nothing was changed"), "{line}");
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

#[test]
fn who_has_lost_its_session_while_it_was_frozen_leaves_it_alone() {
    let Some(sandbox) = sandbox("who_has_lost_its_session_while_it_was_frozen_leaves_it_alone") else { return };
    let play = "name: slow\nvalid_systems: ['s:f']\nfake: { statuses: [{ state: running, nodes: [node-1] }, { after_ms: 60000, state: ended, exit: 0 }] }\nsanity: []\n";
    sandbox.write("check.yaml", play);
    let frozen = elsewhere(&sandbox, "far-away", &["-c", "check.yaml", "-r", "-v"]).spawn().expect("unshare runs");
    let child = |pid: &str| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default().trim().to_owned();
    let inner = || child(&child(&frozen.id().to_string()));
    let stored =
        || sandbox.path("state/muster/results.db").exists() && run(&sandbox, &["results", "list"]).stdout.contains("1 session");
    eventually("a session", Duration::from_secs(30), stored);
    let signal = |name: &str, pid: &str| assert!(Command::new("kill").args([name, pid]).status().expect("kill").success());
    signal("-STOP", &inner());
    let mut attached = here(&sandbox, &["attach", "2"]).spawn().expect("the binary runs");
    let taken = || run(&sandbox, &["results", "list"]).stdout.contains("running");
    eventually("a session that is taken over", Duration::from_secs(30), taken);
    let pid = inner();
    signal("-CONT", &pid);
    let left = ended(&sandbox, frozen);
    assert_eq!(left.code, Some(3), "{}\n{}", left.stdout, left.stderr);
    assert!(left.stderr.contains("was taken over by another process"), "{}", left.stderr);
    assert!(taken(), "it has not ended what is not its own");
    attached.kill().expect("kill -9");
    attached.wait().expect("its end");
}
