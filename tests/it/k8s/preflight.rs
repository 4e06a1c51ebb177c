//! What a cluster says before the first launch: the cases concerned are not launched, the others run.

use crate::sandbox::{Ended, Sandbox};
use muster_fake_api::{FakeApi, Fault};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const SITE: &str = "
name: site
hostnames: ['.*']
partitions:
  - { name: here, scheduler: k8s, environs: [default] }
  - { name: nowhere, scheduler: k8s, environs: [default], sched_options: { namespace: nowhere } }
environments: [{ name: default }]
";

const CHECK: &str = r##"
name: pod
valid_systems: ['*']
variables: { cpus: 1 }
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { name: pod }
  spec:
    restartPolicy: Never
    containers:
      - name: main
        image: 'rfm.test/busybox:1'
        command: [echo, hello]
        resources: { limits: { cpu: '${{ cpus }}' } }
sanity: [{ found: hello }]
---
extends: "#pod"
name: large
valid_systems: ['site:here']
variables: { cpus: 64 }
---
name: unknown
valid_systems: ['site:here']
k8s_config: { apiVersion: nowhere.test/v1, kind: Gang, metadata: { name: gang }, spec: {} }
sanity: []
"##;

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
        ground.sandbox.write("site.yaml", SITE);
        ground
    }

    fn muster(&self, args: &[&str]) -> Ended {
        let mut command = self.sandbox.command(&[&["-C", "site.yaml", "-c", "check.yaml"], args].concat());
        command.env("KUBECONFIG", self.api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST");
        self.sandbox.ended(&command.output().expect("the binary runs"))
    }

    /// Each case with its outcome and its cause.
    fn cases(&self) -> String {
        let report: Value = serde_json::from_str(&self.sandbox.read("reports/out/latest.json")).expect("JSON");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |case: &Value| {
            let (word, why) = (text(&case["outcome"]["word"]), text(&case["outcome"]["detail"]));
            format!("{} {}: {word} {why}{}", text(&case["check"]), text(&case["partition"]), text(&case["cause"]))
        };
        let mut lines: Vec<String> = report["cases"].as_array().expect("cases").iter().map(line).collect();
        lines.sort();
        lines.join("\n")
    }

    fn created(&self) -> usize {
        self.api.requests().iter().filter(|request| request.method == "POST" && request.path.ends_with("/pods")).count()
    }
}

#[test]
fn what_cannot_run_is_not_launched_and_the_others_run() {
    let ground = Ground::new();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": {"limits.cpu": "8"}},
        "status": {"hard": {"limits.cpu": "8"}, "used": {"limits.cpu": "0"}}});
    ground.api.insert("default", quota).expect("a known kind");
    let ended = ground.muster(&["-r", "-n", "pod|large|unknown"]);
    insta::assert_snapshot!(ground.cases());
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let shown = ground.muster(&["--dry-run=server", "-n", "pod"]);
    assert!(shown.stdout.contains("# NOT LAUNCHED: there is no namespace nowhere (context fake)"), "{}", shown.stdout);
    assert!(shown.stderr.contains("did not accept 1 of 2 case(s)"), "{}", shown.stderr);
}

#[test]
fn all_missing_rights_are_named_at_once_and_nothing_is_created() {
    let ground = Ground::new();
    ground.api.deny("create", "pods");
    ground.api.deny("get", "pods/log");
    let ended = ground.muster(&["-r", "-n", "pod", "--system", "site:here"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ground.cases().contains("rights in namespace default (context fake) are missing: create pods; get pods/log"),
        "{}",
        ground.cases()
    );
    assert_eq!(ground.created(), 0);
}

#[test]
fn a_server_that_may_not_be_asked_leaves_all_to_the_launch() {
    let ground = Ground::new();
    ground.api.fault(
        Fault::status("POST", "selfsubjectrulesreviews", 403, "Forbidden", "selfsubjectrulesreviews is forbidden").times(99),
    );
    let ended = ground.muster(&["-r", "-n", "pod", "--system", "site:here"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}
