//! A harness that is killed at any step of a case's life, and another that goes on.

use crate::{
    common::{STEPS, eventually},
    sandbox::{Ended, Sandbox},
};
use serde_json::Value;
use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

const CHECK: &str = "name: three\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\n\
                     executable: 'echo $MARK >> ../ran; sleep 0.2; echo hello'\nenv_vars: { MARK: 'case ${{ n }}' }\nsanity: [{ found: hello }]\n";

/// Runs three cases and kills the harness when the second one has done a step.
fn killed_at(step: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::with_check(CHECK);
    let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
    let output = command.env("RFM_CRASH_AT", format!("{step}:2")).output().expect("the binary runs");
    // A local process runs as soon as it is launched: it is never seen waiting.
    (output.status.code().is_none()).then_some(sandbox)
}

fn attach(sandbox: &Sandbox) -> (Ended, Value) {
    let ended = sandbox.muster(&["attach"]);
    let report = sandbox.read("reports/out/latest.json");
    (ended, serde_json::from_str(&report).expect("JSON"))
}

#[test]
fn after_a_kill_at_any_step_attach_finishes_each_case_once() {
    let mut killed = 0;
    for step in STEPS {
        let Some(sandbox) = killed_at(step) else { continue };
        killed += 1;
        let (ended, report) = attach(&sandbox);
        assert_eq!(ended.code, Some(0), "{step}: {}\n{}", ended.stdout, ended.stderr);
        let names: Vec<&str> =
            report["cases"].as_array().expect("cases").iter().filter_map(|case| case["name"].as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["three %n=1", "three %n=2", "three %n=3"], "{step}");
        assert_eq!(report["totals"]["passed"], 3, "{step}: {}", report["totals"]);
        let swept = sandbox.muster(&["sweep", "--dry-run"]);
        assert!(swept.stdout.starts_with("0 job(s)"), "{step}: {}", swept.stdout);
    }
    assert!(killed >= 12, "only {killed} steps were reached");
}

#[test]
fn a_session_that_has_ended_is_not_attached() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.muster(&["-c", "check.yaml", "-r"]);
    let ended = sandbox.muster(&["attach"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("no session in") && ended.stderr.contains("was interrupted"), "{}", ended.stderr);
}

#[test]
fn who_attaches_to_a_session_that_a_signal_has_ended_is_told_how_to_go_on() {
    let sandbox =
        Sandbox::with_check("name: long\nvalid_systems: ['*']\nexecutable: 'touch \"$HOME/began\"; sleep 60'\nsanity: []\n");
    let mut child = sandbox.command(&["-c", "check.yaml", "-r"]).env("HOME", sandbox.path("")).spawn().expect("the binary runs");
    eventually("a case", Duration::from_secs(30), || sandbox.path("began").exists());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success());
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    let refused = sandbox.muster(&["attach", "2"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("interrupted by a signal: `-r --restore-session=2"), "{}", refused.stderr);
}

/// A case that lasts until a file is there, of a harness that was killed while it ran.
fn left_running() -> Sandbox {
    let check = "name: long\nvalid_systems: ['*']\nexecutable: 'touch \"$HOME/began\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done; echo hello'\nsanity: [{ found: hello }]\n";
    let sandbox = Sandbox::with_check(check);
    let mut child = sandbox.command(&["-c", "check.yaml", "-r"]).env("HOME", sandbox.path("")).spawn().expect("the binary runs");
    let began = Duration::from_secs(30);
    eventually("a running case", began, || sandbox.path("began").exists());
    // What is not waited for is committed soon.
    thread::sleep(Duration::from_millis(600));
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    sandbox
}

#[test]
fn what_sweep_has_removed_is_not_the_jobs_fault() {
    let sandbox = left_running();
    let would = sandbox.muster(&["sweep", "--dry-run"]);
    let note = |text: &str| text.lines().find(|line| line.starts_with("note: session")).map(str::to_owned);
    let said = note(&would.stdout).expect("a note");
    assert!(
        said.contains(" is not finished: `muster attach ") && said.ends_with("` continues it with all that still runs"),
        "{said}"
    );
    let swept = sandbox.muster(&["sweep"]);
    assert!(swept.stdout.contains("1 job(s) removed\n"), "{}{}", swept.stdout, swept.stderr);
    let said = note(&swept.stdout).expect("a note");
    let command = said.split('`').nth(1).expect("a command").trim_start_matches("muster ").to_owned();
    assert!(said.ends_with("` runs the rest of it"), "{said}");
    let ended = sandbox.muster(&command.split(' ').collect::<Vec<_>>());
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    assert_eq!(note(&sandbox.muster(&["sweep", "--dry-run"]).stdout), None, "it is finished");
    let case = &report["cases"][0];
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!((&case["outcome"]["word"], &case["outcome"]["detail"]), (&"disrupted".into(), &"deleted".into()), "{case}");
    assert_eq!(case["cause"], "removed by muster sweep");
}

#[test]
fn the_duration_of_a_case_counts_from_its_start_even_if_another_harness_finishes_it() {
    let sandbox = left_running();
    thread::sleep(Duration::from_secs(2));
    sandbox.write("go", "");
    let (ended, report) = attach(&sandbox);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let seconds = report["cases"][0]["times"]["total_s"].as_f64().expect("a time");
    assert!(seconds >= 2.0, "{}", report["cases"][0]);
    assert!(report["cases"][0]["times"]["launched"].is_string(), "{}", report["cases"][0]);
}

/// The job that runs already has the only slot: what was lost of the fixture is not made again beside it.
#[test]
fn a_job_that_was_taken_over_counts_for_max_jobs() {
    const CHECKS: &str = "\
name: prepare
executable: 'echo begin >> \"$HOME/ran\"; sleep 0.2; echo end >> \"$HOME/ran\"'
sanity: []
---
name: user
valid_systems: ['*']
fixtures: { prepared: { check: prepare, scope: environment } }
executable: 'echo begin >> \"$HOME/ran\"; sleep 0.2; echo end >> \"$HOME/ran\"'
sanity: []
---
name: long
valid_systems: ['*']
executable: 'echo begin >> \"$HOME/ran\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done; echo end >> \"$HOME/ran\"'
sanity: []
";
    let sandbox = Sandbox::with_check(CHECKS);
    sandbox.write("site.yaml", "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [e], max_jobs: 1 }]\nenvironments: [{ name: e }]\n");
    let command = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("HOME", sandbox.path(""));
        command
    };
    let marks = || std::fs::read_to_string(sandbox.path("ran")).unwrap_or_default();
    let mut child = command(&["-C", "site.yaml", "-c", "check.yaml", "-r", "-n", "long|user"]).spawn().expect("the binary runs");
    let limit = Duration::from_mins(1);
    eventually("the second job", limit, || marks().lines().count() == 3);
    thread::sleep(Duration::from_millis(600));
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    let stages = std::fs::read_dir(sandbox.path("stage/here/p/e")).expect("stage folders").flatten().map(|entry| entry.path());
    let prepared = stages.filter(|path| path.to_string_lossy().contains("/prepare_")).collect::<Vec<_>>();
    std::fs::remove_dir_all(&prepared[0]).expect("removed");
    let attached = command(&["attach"]).spawn().expect("the binary runs");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(marks().lines().count(), 3, "nothing begins beside the job that runs: {}", marks());
    sandbox.write("go", "");
    let ended = sandbox.ended(&attached.wait_with_output().expect("its end"));
    let pairs: Vec<String> = marks().lines().map(str::to_owned).collect();
    assert_eq!(pairs, ["begin", "end"].repeat(4), "{}\n{}", ended.stdout, ended.stderr);
}

/// A fixture that passes, is lost with its folder, fails when it is made again, and passes when it is retried.
#[test]
fn a_fixture_that_fails_when_it_is_made_again_is_retried() {
    const CHECKS: &str = "\
name: prepare
executable: 'echo >> \"$HOME/ran\"; sleep 1; test $(wc -l < \"$HOME/ran\") -ne 2'
sanity: []
---
name: user
valid_systems: ['*']
fixtures: { prepared: { check: prepare, scope: environment } }
executable: echo
sanity: []
";
    // The second process may be killed as well, when it has made the fixture again and not judged that.
    for is_killed_again in [false, true] {
        let sandbox = Sandbox::with_check(CHECKS);
        let command = |args: &[&str]| {
            let mut command = sandbox.command(args);
            command.env("HOME", sandbox.path(""));
            command
        };
        let killed = |args: &[&str], at: &str| {
            let output = command(args).env("RFM_CRASH_AT", at).output().expect("the binary runs");
            assert_eq!(output.status.code(), None, "{at} was not reached");
        };
        killed(&["-c", "check.yaml", "-r", "--max-retries", "1"], "reported");
        std::fs::remove_dir_all(sandbox.path("stage")).expect("stage folders");
        if is_killed_again {
            killed(&["attach"], "ended");
        }
        let ended = sandbox.ended(&command(&["attach"]).output().expect("the binary runs"));
        assert_eq!(ended.code, Some(0), "{is_killed_again}: {}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("Retrying 2 failed case(s) (retry 1/1)"), "{is_killed_again}: {}", ended.stdout);
        assert_eq!(sandbox.read("ran").lines().count(), 3, "{is_killed_again}: {}\n{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn the_teardown_of_an_attempt_before_does_not_run_beside_a_retry_that_was_taken_over() {
    const CHECKS: &str = "\
name: data
executable: 'mkdir -p \"$HOME/shared\"; [ -e \"$HOME/first\" ] || { touch \"$HOME/first\"; exit 1; }; touch \"$HOME/began\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done; ls -d \"$HOME/shared\"'
teardown_cmds: 'echo >> \"$HOME/torn\"; rm -rf \"$HOME/shared\"'
sanity: [{ found: shared }]
---
name: user
valid_systems: ['*']
fixtures: { d: { check: data, scope: environment } }
executable: 'ls -d \"$HOME/shared\"'
sanity: [{ found: shared }]
";
    let sandbox = Sandbox::with_check(CHECKS);
    let command = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("HOME", sandbox.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut killed = command(&["-c", "check.yaml", "-r", "--max-retries", "1"]).spawn().expect("the binary runs");
    eventually("the second attempt", Duration::from_secs(30), || sandbox.path("began").exists());
    killed.kill().expect("kill -9");
    killed.wait().expect("its end");
    let torn = || std::fs::read_to_string(sandbox.path("torn")).unwrap_or_default().lines().count();
    assert_eq!(torn(), 1, "the first attempt was torn down");
    let attached = command(&["attach"]).spawn().expect("the binary runs");
    // Long enough for a teardown, were there one.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(torn(), 1, "what runs now was torn down");
    sandbox.write("go", "");
    let ended = sandbox.ended(&attached.wait_with_output().expect("its end"));
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}
