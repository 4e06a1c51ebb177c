//! What a cluster says before the first launch: the cases concerned are not launched, the others run.

use crate::{
    common::eventually,
    sandbox::{Ended, Sandbox},
};
use muster_fake_api::{FakeApi, Fault};
use serde_json::{Value, json};
use std::{fs::File, net::TcpListener, process::Command, time::Duration};
use tokio::runtime::Runtime;

pub(super) const SITE: &str = "
name: site
hostnames: ['.*']
partitions:
  - { name: here, scheduler: k8s, environs: [default] }
  - { name: nowhere, scheduler: k8s, environs: [default], sched_options: { namespace: nowhere } }
environments: [{ name: default }]
";

pub(super) const CHECK: &str = r##"
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

pub(super) fn kubeconfig_of(server: &TcpListener) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "silent",
        "clusters": [{ "name": "silent", "cluster": { "server": format!("http://{}", server.local_addr().expect("an address")) } }],
        "contexts": [{ "name": "silent", "context": { "cluster": "silent", "user": "me" } }],
        "users": [{ "name": "me", "user": {} }],
    })
    .to_string()
}

/// The server takes connections, and answers none.
#[test]
fn who_only_looks_says_what_it_waits_for_and_how_long() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox = Sandbox::with_check(&CHECK.replace("['*']", "['site:here']"));
    sandbox.write("site.yaml", SITE).write("kubeconfig", &kubeconfig_of(&server));
    let started = |args: &[&str], err: &str| {
        let mut command = sandbox.command(&[args, &["-C", "site.yaml"]].concat());
        command.env("KUBECONFIG", sandbox.path("kubeconfig")).env("NO_PROXY", "*").env_remove("KUBERNETES_SERVICE_HOST");
        command
            .stdout(File::create(sandbox.path("out")).expect("a file"))
            .stderr(File::create(sandbox.path(err)).expect("a file"));
        command.spawn().expect("the binary runs")
    };
    let running =
        [started(&["-c", "check.yaml", "-n", "pod", "--dry-run=server"], "dry"), started(&["sweep", "--dry-run"], "sweep")];
    for (err, told) in [
        ("dry", "no answer yet from k8s: a server that does not answer is given up after 1m"),
        ("sweep", "no answer yet from k8s: the sweep waits for it, 1m for each place that does not answer"),
    ] {
        eventually("a line about the server", Duration::from_secs(12), || sandbox.read(err).contains(told));
    }
    for mut child in running {
        child.kill().and_then(|()| child.wait()).expect("its end");
    }
}

/// Takes connections, and answers none.
#[test]
fn cases_wait_for_the_answer_of_their_own_server_only_and_a_long_wait_is_told() {
    let pods = CHECK.replace("['*']", "['site:here', 'site:nowhere']");
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox =
        Sandbox::with_check(&format!("{pods}---\nname: quick\nvalid_systems: ['site:local']\nexecutable: echo\nsanity: []\n"));
    sandbox.write(
        "site.yaml",
        &SITE.replace("environments:", "  - { name: local, scheduler: local, environs: [default] }\nenvironments:"),
    );
    sandbox.write("kubeconfig", &kubeconfig_of(&server));
    let mut command = sandbox.command(&["-C", "site.yaml", "-c", "check.yaml", "-n", "pod|quick", "-r"]);
    command.env("KUBECONFIG", sandbox.path("kubeconfig")).env("NO_PROXY", "*").env_remove("KUBERNETES_SERVICE_HOST");
    command.stdout(File::create(sandbox.path("out")).expect("a file")).stderr(File::create(sandbox.path("err")).expect("a file"));
    let mut child = command.spawn().expect("the binary runs");
    // The nodes of a silent server are waited for, too: 5 s before the first case.
    eventually("the case of this machine", Duration::from_secs(9), || sandbox.read("out").contains("OK ] (1/3) quick"));
    for partition in ["here", "nowhere"] {
        let told = format!("warning: no answer yet from k8s (partition {partition}): its cases wait for it");
        eventually("a line about the server", Duration::from_secs(8), || sandbox.read("err").contains(&told));
    }
    assert!(!sandbox.read("out").contains("RUN      ] pod"), "{}", sandbox.read("out"));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success());
    assert_eq!(child.wait().expect("its end").code(), Some(130), "{}", sandbox.read("err"));
    assert!(sandbox.read("out").contains("2 aborted"), "{}", sandbox.read("out"));
}
