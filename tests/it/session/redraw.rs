//! The whole program on the API server of `tests/fake-api`: an identifier that a live object of another session
//! has is left to it, and the case goes on under another one, also when the harness is killed on the way.

use crate::{
    common::REDRAW_STEPS,
    sandbox::{Ended, Sandbox},
};
use muster_fake_api::FakeApi;
use serde_json::{Value, json};
use std::process::Command;
use tokio::runtime::Runtime;

const TAKEN: &str = "abcdefgh";

const CHECK: &str = "name: case\nvalid_systems: ['*']\nk8s_config: objects.yaml\nsanity: [{ found: hello }]\n";

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: words }
data: { who: '${{ identifier }}' }
---
apiVersion: v1
kind: Pod
metadata: { name: hello }
spec:
  restartPolicy: Never
  containers: [{ name: main, image: 'rfm.test/busybox:1', command: [echo, hello] }]
";

const SITE: &str = "name: site\nhostnames: ['.*']\npartitions: [{ name: pods, scheduler: k8s, environs: [default] }]\n\
                    environments: [{ name: default }]\n";

/// A cluster on which another session has a pod whose identifier is the first that we draw.
struct Ground {
    api: FakeApi,
    sandbox: Sandbox,
    _runtime: Runtime,
}

impl Ground {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let api = runtime.block_on(FakeApi::start()).expect("a server");
        let ground = Self { api, sandbox: Sandbox::with_check(CHECK), _runtime: runtime };
        ground.sandbox.write("objects.yaml", OBJECTS).write("site.yaml", SITE);
        ground.object("Pod", "rfm-hello-abcdefgh", "another");
        ground
    }

    /// An object of a session.
    fn object(&self, kind: &str, name: &str, session: &str) {
        let labels = json!({"rfm": TAKEN, "rfm-session": session});
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}});
        self.api.insert("default", object).expect("a known kind");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command.env("KUBECONFIG", self.api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST").env("RFM_IDENTIFIERS", TAKEN);
        command.env("MUSTER_CONFIG_FILE", self.sandbox.path("site.yaml"));
        command
    }

    fn muster(&self, args: &[&str]) -> Ended {
        self.sandbox.ended(&self.command(args).output().expect("the binary runs"))
    }

    /// Runs until the harness is killed at a step.
    fn killed_at(&self, step: &str) {
        let output = self.command(&["-c", "check.yaml", "-r"]).env("RFM_CRASH_AT", step).output().expect("the binary runs");
        assert_eq!(output.status.code(), None, "not killed at {step}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The only case of the last report.
    fn case(&self) -> Value {
        let mut report: Value = serde_json::from_str(&self.sandbox.read("reports/out/latest.json")).expect("JSON");
        assert_eq!(report["cases"].as_array().map(Vec::len), Some(1), "{report}");
        report["cases"][0].take()
    }

    /// Everything with our label: the other session's pod and nothing else.
    fn assert_only_the_others_is_left(&self, when: &str) {
        let all = ["pods", "configmaps"].map(|kind| self.api.list(kind, "default")).concat();
        let of_pod =
            |pod: &Value| (pod["metadata"]["labels"]["rfm-session"].clone(), pod["metadata"].get("deletionTimestamp").cloned());
        assert_eq!(all.iter().map(of_pod).collect::<Vec<_>>(), [(json!("another"), None)], "{when}");
    }
}

#[test]
fn an_identifier_that_is_taken_is_left_to_its_owner_and_the_case_goes_on_under_another() {
    let ground = Ground::new();
    let ended = ground.muster(&["-c", "check.yaml", "-r", "-v"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let case = ground.case();
    let identifier = case["identifier"].as_str().expect("an identifier");
    assert_ne!(identifier, TAKEN);
    assert_eq!(case["attempt"], 1);
    let reported = format!(
        "launch: identifier abcdefgh is taken by pods rfm-hello-abcdefgh in namespace default (context fake): {identifier} instead"
    );
    assert!(ended.stderr.contains(&reported), "{}", ended.stderr);
    let folder = ground.sandbox.path(case["folder"].as_str().expect("a folder"));
    let log = std::fs::read_to_string(folder.join("rfm_job.out")).expect("a stdout");
    assert_eq!(log, format!("{identifier}\n\n-------rfm-hello-{identifier}-------\nhello\n"));
    let stored = ground.muster(&["results", "show", "--json"]).stdout;
    assert!(stored.contains(identifier) && !stored.contains(TAKEN), "{stored}");
    ground.assert_only_the_others_is_left("after a pass");
}

#[test]
fn after_a_kill_between_two_identifiers_attach_finishes_the_case_once() {
    for step in REDRAW_STEPS.into_iter().chain(["launch-started", "launch-started:2", "launched"]) {
        let ground = Ground::new();
        ground.killed_at(step);
        let ended = ground.muster(&["attach"]);
        assert_eq!(ended.code, Some(0), "{step}: {}{}", ended.stdout, ended.stderr);
        assert_ne!(ground.case()["identifier"], TAKEN, "{step}");
        ground.assert_only_the_others_is_left(step);
        let swept = ground.muster(&["sweep", "--dry-run"]);
        assert!(swept.stdout.ends_with("0 job(s) would be removed\n"), "{step}: {}", swept.stdout);
    }
}

#[test]
fn after_a_kill_between_two_identifiers_sweep_leaves_what_is_the_others() {
    for step in REDRAW_STEPS.into_iter().chain(["launch-started", "launch-started:2", "launched"]) {
        let ground = Ground::new();
        ground.killed_at(step);
        let stored: Value = serde_json::from_str(&ground.muster(&["results", "show", "--json"]).stdout).expect("JSON");
        if step == "launch-started" {
            // As if it had been killed when it had created the first of its two objects.
            ground.object("ConfigMap", "rfm-words-abcdefgh", stored["session"]["id"].as_str().expect("an id"));
        }
        let ended = ground.muster(&["sweep"]);
        assert_eq!(ended.code, Some(0), "{step}: {}{}", ended.stdout, ended.stderr);
        ground.assert_only_the_others_is_left(step);
    }
}

#[test]
fn a_case_that_cannot_be_planned_again_says_so() {
    let ground = Ground::new();
    ground.killed_at("taken");
    ground
        .sandbox
        .write("check.yaml", "name: other\nvalid_systems: ['*']\nimage: 'rfm.test/busybox:1'\nexecutable: echo\nsanity: []\n");
    let ended = ground.muster(&["attach"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let cause = "its identifier is in use, and its check no longer exists, so it cannot be planned again: run it again";
    assert!(ended.stdout.contains(cause), "{}", ended.stdout);
    ground.assert_only_the_others_is_left("in the end");
}
