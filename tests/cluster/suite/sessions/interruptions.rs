//! Signals, crashes, and what is found afterwards.

use crate::common::{REDRAW_STEPS, STEPS, eventually};
use crate::suite::{
    manifest::{check, job, pod},
    sandbox::Sandbox,
};
use serde_json::Value;
use std::{process::Command, time::Duration};

fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

pub(crate) fn an_interrupt_deletes_what_runs_and_reports_it() {
    for manifest in [pod("echo hello; sleep 100"), job("completions: 2\n  parallelism: 2", "echo hello; sleep 100")] {
        let sandbox = Sandbox::new();
        sandbox.write("check.yaml", &check(&manifest, "parameters: { n: [1, 2] }"));
        let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
        let running = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
        eventually("two running pods", Duration::from_secs(40), || running().lines().count() >= 2);
        kill("-INT", child.id());
        let ended = sandbox.ended(&child.wait_with_output().expect("its end")).expect(130);
        assert_eq!(ended.report["totals"]["aborted"], 2, "{}", ended.report["totals"]);
        assert_eq!(sandbox.left(), [""; 0]);
    }
}

pub(crate) fn an_interrupt_at_any_step_leaves_nothing() {
    for step in STEPS {
        let sandbox = Sandbox::new();
        // The first is over while the others run.
        sandbox.write("check.yaml", &check(&pod("echo hello; sleep ${{ n }}"), "parameters: { n: [1, 20, 21] }"));
        let output = sandbox.command(&["-c", "check.yaml", "-r"]).env("RFM_INTERRUPT_AT", step).output().expect("muster");
        let ended = sandbox.ended(&output).expect(130);
        let totals = &ended.report["totals"];
        let (passed, aborted) = (totals["passed"].as_u64().unwrap_or(0), totals["aborted"].as_u64().unwrap_or(0));
        assert_eq!(passed + aborted, 3, "{step}: {totals}");
        assert!(aborted >= 2, "{step}: {totals}");
        let stored = sandbox.muster(&["results", "show", "--json"]).stdout;
        let stored: Value = serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{step}: {error}: {stored}"));
        assert_eq!(stored["cases"].as_array().map(Vec::len), Some(3), "{step}");
        assert_eq!(sandbox.left(), [""; 0], "{step}");
    }
}

pub(crate) fn what_a_killed_session_left_is_swept() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", &check(&pod("echo hello; sleep 100"), "parameters: { n: [1, 2] }"));
    let mut child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    eventually("two pods", Duration::from_secs(40), || sandbox.left().len() == 2);
    let living = sandbox.muster(&["sweep"]);
    assert_eq!(sandbox.left().len(), 2, "a living session is not swept: {}", living.stdout);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    let dry = sandbox.muster(&["sweep", "--dry-run"]);
    assert!(dry.stdout.contains("rfm-hello"), "{}\n{}", dry.stdout, dry.stderr);
    assert_eq!(sandbox.left().len(), 2);
    sandbox.muster(&["sweep"]).expect(0);
    assert_eq!(sandbox.left(), [""; 0]);
}

fn killed_at(sandbox: &Sandbox, step: &str) {
    sandbox.write("check.yaml", &check(&pod("echo hello; sleep 1"), "parameters: { n: [1, 2, 3] }"));
    let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
    let output = command.env("RFM_CRASH_AT", step).output().expect("muster");
    assert_eq!(output.status.code(), None, "not killed at {step}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn a_log_that_was_being_put_together_is_whole_even_if_its_pods_are_gone() {
    let sandbox = Sandbox::new();
    // In lines long enough that the node, which rotates at 2 MiB, times included, keeps them in one file. The runtime may lose the last
    // lines of a container that ends at once after them.
    let lines = r#"awk 'BEGIN { for (n = 1; n <= 8000; n++) printf "%0100d\n", n }'; echo done; sleep 1"#;
    let keys = "sanity: [{ found: '^0+8000$', count: 3 }, { found: '^done$', count: 3 }]";
    sandbox.write("check.yaml", &check(&job("completions: 3\n  parallelism: 3", lines), keys));
    let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
    let output = command.env("RFM_CRASH_AT", "assembling:7").output().expect("muster");
    assert_eq!(output.status.code(), None, "not killed: {}", String::from_utf8_lossy(&output.stderr));
    sandbox.kubectl(&["delete", "jobs", "-l", "rfm", "--wait=true"]);
    let ended = sandbox.muster(&["attach", "latest"]).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 1, "{}\n{}", ended.stdout, ended.stderr);
}

pub(crate) fn after_a_kill_at_any_step_attach_finishes_each_case_once() {
    for step in STEPS {
        let sandbox = Sandbox::new();
        killed_at(&sandbox, step);
        let ended = sandbox.muster(&["attach", "latest"]).expect(0);
        assert_eq!(ended.report["totals"]["passed"], 3, "{step}: {}\n{}", ended.stdout, ended.stderr);
        assert_eq!(ended.report["cases"].as_array().map(Vec::len), Some(3), "{step}");
        assert_eq!(sandbox.left(), [""; 0], "{step}");
    }
}

pub(crate) fn after_a_kill_at_any_step_sweep_leaves_nothing() {
    for step in STEPS {
        let sandbox = Sandbox::new();
        killed_at(&sandbox, step);
        sandbox.muster(&["sweep"]).expect(0);
        assert_eq!(sandbox.left(), [""; 0], "{step}");
    }
}

/// Once it is created, the database has no data of it.
pub(crate) fn a_session_that_was_killed_with_a_secret_is_attached_or_swept() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: token }\nstringData: { TOKEN: hello-from-a-secret }\n";
    let reads = pod("echo $TOKEN; sleep 2").replace("command:", "envFrom: [{ secretRef: { name: token } }], command:");
    for (step, then) in [("intent-stored", "attach"), ("launched", "attach"), ("running", "attach"), ("running", "sweep")] {
        let sandbox = Sandbox::as_admin();
        sandbox.write("objects.yaml", &format!("{secret}---\n{reads}"));
        let check = "name: case\nvalid_systems: ['*']\ntime_limit: 1m\nsanity: [{ found: ^hello-from-a-secret$ }]\nk8s_config: objects.yaml\n";
        sandbox.write("check.yaml", check);
        let output = sandbox.command(&["-c", "check.yaml", "-r"]).env("RFM_CRASH_AT", step).output().expect("muster");
        assert_eq!(output.status.code(), None, "not killed at {step}: {}", String::from_utf8_lossy(&output.stderr));
        let ended = sandbox.muster(&[then]).expect(0);
        if then == "attach" {
            assert_eq!(ended.report["totals"]["passed"], 1, "{step}: {}\n{}", ended.stdout, ended.stderr);
        }
        assert_eq!(sandbox.left(), [""; 0], "{step}, {then}");
    }
}

pub(crate) fn a_name_that_another_session_has_is_left_alone_and_the_case_goes_on() {
    let sandbox = Sandbox::new();
    let labelled = "metadata: { name: rfm-hello-abcdefgh, labels: { rfm: abcdefgh, rfm-session: another } }";
    sandbox.create(&pod("sleep 600").replace("metadata: { name: hello }", labelled));
    sandbox.write("check.yaml", &check(&pod("echo hello"), ""));
    let run = || {
        let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
        command.env("RFM_IDENTIFIERS", "abcdefgh");
        command
    };
    let ended = sandbox.ended(&run().output().expect("muster")).expect(0);
    assert_ne!(ended.case()["identifier"], "abcdefgh");
    for step in REDRAW_STEPS {
        let output = run().env("RFM_CRASH_AT", step).output().expect("muster");
        assert_eq!(output.status.code(), None, "not killed at {step}: {}", String::from_utf8_lossy(&output.stderr));
        let ended = sandbox.muster(&["attach", "latest"]).expect(0);
        assert_ne!(ended.case()["identifier"], "abcdefgh", "{step}");
    }
    assert_eq!(sandbox.left(), ["pod/rfm-hello-abcdefgh"]);
    let phase =
        sandbox.kubectl(&["get", "pod", "rfm-hello-abcdefgh", "-o", "jsonpath={.metadata.deletionTimestamp}{.status.phase}"]);
    assert_eq!(phase, "Running", "nobody has touched it");
}
