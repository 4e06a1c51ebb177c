//! `--resume`: a night that was cut short is finished, each case once; anything else begins a new one.

use crate::{
    common::{STEPS, eventually},
    sandbox::{Ended, Sandbox},
};
use serde_json::Value;
use std::{process::Command, time::Duration};

const CHECK: &str = "name: three\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\n\
                     executable: 'echo ran >> \"$HOME/ran-${{ n }}\"; echo hello; sleep ${NAP:-0}'\nsanity: [{ found: hello }]\n";
const SITE: &str = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default], max_jobs: 4, pass_env: [NAP] }]\nenvironments: [{ name: default }]\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site-config/here.yaml", SITE);
    sandbox
}

fn command(sandbox: &Sandbox, more: &[&str]) -> Command {
    let mut command = sandbox.command(&[&["-c", "check.yaml", "-r", "--resume"], more].concat());
    command.env("HOME", sandbox.path("")).env("RFM_LIVENESS_LIMIT", "4");
    command
}

fn resume(sandbox: &Sandbox) -> Ended {
    sandbox.ended(&command(sandbox, &[]).output().expect("the binary runs"))
}

fn report(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON")
}

fn sessions(sandbox: &Sandbox) -> usize {
    let listed = sandbox.muster(&["results", "list"]).stdout;
    let last = listed.lines().last().unwrap_or_default();
    last.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{listed}"))
}

#[test]
fn a_session_that_was_killed_at_any_step_is_finished_and_the_next_is_a_new_one() {
    let mut kills = 0;
    // `attach` has gone through all of them.
    for step in STEPS.iter().step_by(3) {
        let sandbox = sandbox();
        let killed = command(&sandbox, &[]).env("RFM_CRASH_AT", format!("{step}:2")).output().expect("the binary runs");
        if killed.status.code().is_some() {
            continue;
        }
        kills += 1;
        let ended = resume(&sandbox);
        assert_eq!(ended.code, Some(0), "{step}: {}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("sweep: 0 job(s) removed"), "{step}: {}", ended.stderr);
        let report = report(&sandbox);
        let counts = (&report["totals"]["passed"], report["cases"].as_array().map(Vec::len));
        assert_eq!(counts, (&Value::from(3), Some(3)), "{step}");
        assert_eq!(sessions(&sandbox), 1, "{step}");
        assert_eq!(resume(&sandbox).code, Some(0));
        assert_eq!(sessions(&sandbox), 2, "{step}: what is finished is not gone on with");
    }
    assert!(kills >= 3, "a session of local cases takes most steps: {kills}");
}

#[test]
fn a_session_that_a_signal_ended_is_finished_and_its_aborted_cases_run_again() {
    let sandbox = sandbox();
    let child = command(&sandbox, &["--exec-policy", "serial"]).env("NAP", "1").spawn().expect("the binary runs");
    eventually("the second case", Duration::from_secs(30), || sandbox.path("ran-2").exists());
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    let interrupted = sandbox.ended(&child.wait_with_output().expect("its end"));
    assert_eq!(interrupted.code, Some(130), "{}", interrupted.stderr);
    assert!(!interrupted.stderr.contains("sweep:"), "{}", interrupted.stderr);
    let first = report(&sandbox);
    assert_eq!((&first["totals"]["passed"], &first["totals"]["aborted"]), (&1.into(), &2.into()), "{}", first["totals"]);
    let ended = resume(&sandbox);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let whole = report(&sandbox);
    assert_eq!((&whole["totals"]["passed"], &whole["totals"]["aborted"]), (&3.into(), &0.into()), "{}", whole["totals"]);
    assert_eq!(whole["cases"].as_array().map(Vec::len), Some(3));
    assert_eq!((sandbox.read("ran-1").lines().count(), sandbox.read("ran-2").lines().count()), (1, 2));
    assert_eq!(sessions(&sandbox), 1);
    let stored = sandbox.muster(&["results", "show"]).stdout;
    assert!(stored.contains("ended") && !stored.contains("interrupted"), "{stored}");
}

#[test]
fn another_selection_is_another_session() {
    let sandbox = sandbox();
    command(&sandbox, &[]).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
    // With folders of its own: those of the first session are as it left them.
    let other = sandbox.ended(&command(&sandbox, &["-n", "n=1", "--stage=other"]).output().expect("the binary runs"));
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    assert_eq!((report(&sandbox)["cases"].as_array().map(Vec::len), sessions(&sandbox)), (Some(1), 2));
    let ended = resume(&sandbox);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!((report(&sandbox)["cases"].as_array().map(Vec::len), sessions(&sandbox)), (Some(3), 2));
}

#[test]
fn other_settings_are_another_session_and_flags_that_do_not_apply_are_named() {
    let sandbox = sandbox();
    sandbox.write(
        "check.yaml",
        &CHECK.replace("executable", "variables: { x: 0 }\nexecutable").replace("echo hello", "echo hello ${{ x }}"),
    );
    command(&sandbox, &["-S", "x=1"]).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
    let run = |more: &[&str]| sandbox.ended(&command(&sandbox, more).output().expect("the binary runs"));
    let same = run(&["-S", "x=1", "--max-retries=2", "--prefix=elsewhere", "-q"]);
    assert_eq!((same.code, sessions(&sandbox)), (Some(0), 1), "{}", same.stderr);
    let note = "continues with the flags of its own command line; these differ here: --max-retries, --prefix\n";
    assert!(same.stderr.contains(note), "{}", same.stderr);
    assert!(!sandbox.path("elsewhere").exists());
    command(&sandbox, &["-S", "x=1"]).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
    // What came after it has its folders: it is not gone on with any more.
    let here = format!("node={}", rustix::system::uname().nodename().to_string_lossy());
    for (more, number) in [(["-S", "x=2"], 3), (["-J", &here], 4), (["-S", "x=1"], 5)] {
        let other = run(&more);
        assert_eq!((other.code, sessions(&sandbox)), (Some(0), number), "{}", other.stderr);
        assert!(!other.stderr.contains("continues with the flags"), "{}", other.stderr);
    }
}

#[test]
fn a_secret_of_the_command_line_has_to_be_given_again() {
    let sandbox = sandbox();
    sandbox.write(
        "check.yaml",
        &CHECK
            .replace("executable", "variables: { token: none }\nexecutable")
            .replace("echo hello", "test ${{ token }} = ab && echo hello"),
    );
    command(&sandbox, &["-S", "token=ab"]).env("RFM_CRASH_AT", "intent-stored:2").output().expect("the binary runs");
    let ended = sandbox.ended(&command(&sandbox, &["-S", "token=ab"]).output().expect("the binary runs"));
    assert_eq!((ended.code, sessions(&sandbox)), (Some(0), 1), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_session_whose_files_are_gone_is_not_continued_and_a_new_one_starts() {
    for gone in ["folder", "check.yaml"] {
        let sandbox = sandbox();
        let folder = sandbox.path("elsewhere");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::copy(sandbox.path("check.yaml"), folder.join("check.yaml")).expect("a copy");
        let site = sandbox.path("site-config");
        let flags = ["-C", site.to_str().expect("a path"), "--db", "../shared.db"];
        command(&sandbox, &flags).current_dir(&folder).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
        let lost = if gone == "folder" { folder } else { folder.join(gone) };
        std::fs::rename(&lost, sandbox.path("lost")).expect("renamed");
        let new =
            sandbox.ended(&command(&sandbox, &["-C", "site-config", "--db", "shared.db"]).output().expect("the binary runs"));
        assert_eq!(new.code, Some(0), "{gone}: {}", new.stderr);
        assert!(
            new.stderr.contains("cannot be continued: ") && new.stderr.contains(": a new one starts"),
            "{gone}: {}",
            new.stderr
        );
        assert!(new.stdout.contains("3 pass"), "{gone}: {}", new.stdout);
    }
}

#[test]
fn of_two_that_resume_one_session_the_slower_starts_another() {
    let sandbox = sandbox();
    for round in 0..3 {
        command(&sandbox, &["-q"]).env("RFM_CRASH_AT", "running:2").output().expect("the binary runs");
        let both: Vec<_> = (0..2).map(|_| command(&sandbox, &["-q"]).env("NAP", "1").spawn().expect("runs")).collect();
        for child in both {
            let ended = sandbox.ended(&child.wait_with_output().expect("its end"));
            assert_eq!(ended.code, Some(0), "{round}: {}{}", ended.stdout, ended.stderr);
        }
    }
}

#[test]
fn the_exit_code_is_the_sessions_whatever_is_swept() {
    let sandbox = sandbox();
    sandbox.write("check.yaml", &CHECK.replace("found: hello", "found: goodbye"));
    let ended = resume(&sandbox);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("sweep:"), "{}", ended.stderr);
}

#[test]
fn what_would_be_another_session_is_bad_usage() {
    let sandbox = sandbox();
    let rows: [(&[&str], &str); 5] = [
        (&["--restore-session"], "--restore-session"),
        (&["--failed"], "--failed"),
        (&["--reruns=2"], "--reruns"),
        (&["--duration=1m"], "--duration"),
        (&["--rehearse=play.yaml"], "--rehearse"),
    ];
    for (flags, named) in rows {
        let ended = sandbox.ended(&command(&sandbox, flags).output().expect("the binary runs"));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{named}");
        let why = format!("--resume finishes an interrupted session of the same cases, or starts one: leave {named} out");
        assert!(ended.stderr.contains(&why), "{named}: {}", ended.stderr);
    }
}
