//! A harness that is killed at any step of a case's life, and another that goes on.

use crate::{
    common::STEPS,
    sandbox::{Ended, Sandbox},
};
use serde_json::Value;

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
