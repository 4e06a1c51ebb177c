//! The cluster itself breaks: each test has it for itself.

use crate::common::eventually;
use crate::suite::{
    manifest::{check, pod},
    sandbox::{Sandbox, fault, script},
};
use std::{thread, time::Duration};

pub(crate) fn a_session_outlives_a_restart_of_the_api_server() {
    let sandbox = Sandbox::new();
    let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo hello $i; sleep 1; done";
    sandbox
        .write("check.yaml", &check(&pod(line), "parameters: { n: [1, 2, 3] }\nsanity: [{ found: '^hello \\d+$', count: 12 }]"));
    let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let running = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("three running pods", Duration::from_secs(40), || running().lines().count() == 3);
    fault(&["apiserver-restart", "2"]);
    let ended = sandbox.ended(&child.wait_with_output().expect("its end")).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 3);
    assert_eq!(sandbox.left(), [""; 0]);
}

/// `tests/cluster/restarts 200` is the same by hand.
pub(crate) fn five_restarts_of_the_api_server_under_load_lose_no_case() {
    script("restarts", &["5", env!("CARGO_BIN_EXE_muster")]);
}

/// A `RoleBinding` that is replaced is absent for a moment, while cases run and others wait to be launched.
pub(crate) fn a_binding_that_is_absent_for_seconds_loses_no_case() {
    let sandbox = Sandbox::new();
    let line = "for i in 1 2 3 4; do echo hello $i; sleep 1; done";
    let cases: Vec<u32> = (1..=40).collect();
    let more = format!("parameters: {{ n: {cases:?} }}\nsanity: [{{ found: '^hello \\d+$', count: 4 }}]\nmax_pending_time: 5m");
    sandbox.write("check.yaml", &check(&pod(line), &more));
    sandbox.site("").write("site.yaml", &sandbox.read("site.yaml").replace("max_jobs: 32", "max_jobs: 8"));
    let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let running = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("running pods", Duration::from_mins(1), || running().lines().count() >= 4);
    sandbox.kubectl(&["delete", "rolebinding", "muster-suite"]);
    thread::sleep(Duration::from_secs(3));
    sandbox.kubectl(&["apply", "-f", &sandbox.path("account.yaml").to_string_lossy()]);
    let ended = sandbox.ended(&child.wait_with_output().expect("its end")).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 40, "{}", ended.stdout);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_lost_node_disrupts_its_cases_and_is_named() {
    let sandbox = Sandbox::new();
    let tolerations =
        "tolerations: [{ key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1 }]";
    let manifest = pod("echo hello; sleep 120").replace("restartPolicy", &format!("{tolerations}\n  restartPolicy"));
    sandbox.write("check.yaml", &check(&manifest, "time_limit: 2m"));
    let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let running = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("a running pod", Duration::from_secs(40), || !running().is_empty());
    let node = sandbox.kubectl(&["get", "pods", "-l", "rfm", "-o", "jsonpath={.items[0].spec.nodeName}"]);
    let number = node.trim_start_matches('n');
    fault(&["kubelet-stop", number]);
    let output = child.wait_with_output();
    fault(&["kubelet-cont", number]);
    let ended = sandbox.ended(&output.expect("its end")).expect(3);
    assert_eq!(ended.outcome(), "disrupted node", "{}", ended.cause());
    assert!(ended.cause().contains(&node), "{}", ended.cause());
    thread::sleep(Duration::from_secs(3));
}

/// Its first line is early, so its beginning is proven. At each rotation the kubelet may lose what is written while it turns to the new
/// file, which nobody sees: not as much as a file, which has 20,000 lines.
pub(crate) fn a_log_that_was_rotated_has_no_file_less_or_says_so() {
    let sandbox = Sandbox::new();
    let line = "echo begins; sleep 3; i=0; while [ $i -lt 40000 ]; do echo \"line $i of a log that is longer than a file of the node may be\"; i=$((i+1)); done; sleep 4; echo hello";
    let ended = sandbox.check(&check(&pod(line), "sanity: [{ found: hello }]"));
    let lines = sandbox.stdout(&ended).lines().filter(|line| line.starts_with("line ")).count();
    match ended.outcome().as_str() {
        "pass" => assert!(lines > 36_000, "a pass although a file is missing: {lines} lines"),
        "invalid logs" => assert!(ended.cause().contains("rotated"), "{}", ended.cause()),
        other => panic!("{other}: {}", ended.cause()),
    }
}

/// Three files of the node, each followed to its end. Where a rotation comes while lines do, which is rare, the kubelet loses some of them.
pub(crate) fn a_long_log_that_is_printed_slowly_passes_whole() {
    let sandbox = Sandbox::new();
    let words = "of a log that is printed slowly and that is longer than any file of the node may ever be ".repeat(2);
    let line = format!(
        "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo \"line $i {words}\"; [ $((i % 300)) -ne 0 ] || sleep 0.08; done; echo hello"
    );
    let more = "time_limit: 4m\nsanity: [{ found: hello }]";
    let ended = sandbox.check(&check(&pod(&line), more));
    let lines = sandbox.stdout(&ended).lines().filter(|line| line.starts_with("line ")).count();
    assert_eq!(ended.outcome(), "pass", "{}", ended.cause());
    assert!(lines > 29_000, "{lines} of 30000 lines");
}

/// Faster than they can be read, so that most of them is read when the pods have ended.
pub(crate) fn four_long_logs_that_end_together_are_read_to_their_ends() {
    let sandbox = Sandbox::new();
    let line = "head -c 8000000 /dev/zero | tr '\\000' x | fold -w 99; echo hello";
    let more =
        "time_limit: 4m\nparameters: { n: [1, 2, 3, 4] }\nsched_options: { log_rotation: warn, container_log_max_size: 2Mi }";
    let ended = sandbox.check(&check(&pod(line), more)).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 4, "{}", ended.report["totals"]);
}
