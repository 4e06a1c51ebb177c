//! Limits that hold in the cluster itself, and causes of waiting that no time changes.

use crate::common::eventually;
use crate::suite::{
    manifest::{check, job, pod},
    sandbox::Sandbox,
};
use std::time::Duration;

/// A JobSet of one Job.
fn job_set(line: &str) -> String {
    let job = job("backoffLimit: 0", line);
    let (_, spec) = job.split_once("spec:\n").expect("a spec");
    let spec = spec.lines().fold(String::new(), |spec, line| spec + "        " + line + "\n");
    format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{ name: crews }}\nspec:\n  replicatedJobs:\n    - name: main\n      \
         template:\n        spec:\n{spec}"
    )
}

pub(crate) fn what_a_killed_session_left_ends_by_itself() {
    let sandbox = Sandbox::new();
    let line = "echo hello; sleep 600";
    let options = "sched_options: { max_lifetime: 20s }\ntime_limit: null\n";
    let checks = [("pod", pod(line)), ("job", job("completions: 1", line)), ("set", job_set(line))]
        .map(|(name, manifest)| check(&manifest, options).replacen("name: case", &format!("name: {name}"), 1));
    sandbox.write("check.yaml", &checks.join("---\n"));
    let mut child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let phases = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "-o", "jsonpath={.items[*].status.phase}"]);
    eventually("three running pods", Duration::from_mins(1), || phases() == "Running Running Running");
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    // A Job takes its pods away, and the others leave one that has failed.
    eventually("the end of the pods", Duration::from_mins(1), || !phases().contains("Running"));
    sandbox.muster(&["sweep"]).expect(0);
    // What a JobSet has made is removed by the cluster, which may be busy.
    eventually("the end of what is left", Duration::from_mins(1), || sandbox.left().is_empty());
}

pub(crate) fn a_deadline_in_the_cluster_is_a_time_limit_and_no_failure() {
    let sandbox = Sandbox::new();
    for manifest in [pod("echo hello; sleep 600"), job("completions: 1", "echo hello; sleep 600")] {
        let more = "sched_options: { max_lifetime: 5s }\ntime_limit: null\n";
        let ended = sandbox.check(&check(&manifest, more)).expect(1);
        assert_eq!(ended.outcome(), "timeout run", "{}", ended.cause());
        assert!(ended.cause().contains("max_lifetime"), "{}", ended.cause());
        assert!(sandbox.stdout(&ended).contains("hello"));
    }
}

pub(crate) fn a_pod_that_no_node_can_ever_take_is_a_mistake_after_a_while() {
    let sandbox = Sandbox::new();
    let nowhere = pod("echo hello").replace("restartPolicy", "nodeSelector: { disk: nowhere }\n  restartPolicy");
    let too_big = pod("echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 99 } }, command:");
    for (manifest, word) in [(nowhere, "node affinity/selector"), (too_big, "Insufficient nvidia.com/gpu")] {
        let ended = sandbox.check(&check(&manifest, "sched_options: { hopeless_after: 3s }")).expect(3);
        assert_eq!(ended.outcome(), "error config", "{}", ended.cause());
        assert!(ended.cause().contains(word), "{}", ended.cause());
        let patient = "sched_options: { hopeless_after: null }\nmax_pending_time: 6s";
        let ended = sandbox.check(&check(&manifest, patient)).expect(3);
        assert_eq!(ended.outcome(), "timeout pending", "{}", ended.cause());
    }
}

pub(crate) fn a_node_that_is_only_full_is_waited_for() {
    let sandbox = Sandbox::new();
    let wants = |count: u32, manifest: String| {
        let limits = format!("resources: {{ limits: {{ graphcore.ai/ipu: {count} }} }}, command:");
        manifest
            .replace("command:", &limits)
            .replace("restartPolicy", "nodeSelector: { kubernetes.io/hostname: n2 }\n  restartPolicy")
    };
    sandbox.create(&wants(6, pod("sleep 8")).replace("name: hello", "name: other"));
    eventually("the other pod", Duration::from_secs(30), || {
        sandbox.kubectl(&["get", "pod", "other", "-o", "jsonpath={.status.phase}"]) == "Running"
    });
    let ended = sandbox.check(&check(&wants(6, pod("echo hello")), "sched_options: { hopeless_after: 1s }")).expect(0);
    assert_eq!(ended.outcome(), "pass");
}
