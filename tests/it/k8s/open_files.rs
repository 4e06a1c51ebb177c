//! Few open files and many pods, on the API server of `tests/fake-api`: each log is a connection, and each connection a file.

use crate::sandbox::Sandbox;
use muster_fake_api::FakeApi;
use serde_json::Value;
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

const SITE: &str = "name: site\nhostnames: ['.*']\npartitions:\n  - { name: pods, scheduler: k8s, environs: [default], max_jobs: 200 }\n  \
                    - { name: here, scheduler: local, environs: [default] }\nenvironments: [{ name: default }]\n";

const SPEC: &str = "metadata: { annotations: { fake-api/script: 'run; lines 20 50ms; exit 0' } }
spec:
  restartPolicy: Never
  containers: [{ name: main, image: 'rfm.test/busybox:1', command: [echo, hello] }]
";

fn indented(text: &str, by: usize) -> String {
    text.lines().fold(String::new(), |text, line| text + &" ".repeat(by) + line + "\n")
}

/// A session with these limits of open files, and its report.
fn run(soft: u32, hard: u32, checks: &str) -> Value {
    let runtime = Runtime::new().expect("a runtime");
    let api = runtime.block_on(FakeApi::start()).expect("a server");
    let sandbox = Sandbox::with_check(checks);
    sandbox.write("site.yaml", SITE);
    let muster = sandbox.command(&["-c", "check.yaml", "-r"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -S -n {soft}; ulimit -H -n {hard}; exec \"$0\" \"$@\"")]);
    shell.arg(muster.get_program()).args(muster.get_args()).current_dir(sandbox.path("."));
    for (name, value) in muster.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.env("KUBECONFIG", api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST");
    shell.env("MUSTER_CONFIG_FILE", sandbox.path("site.yaml")).stdin(Stdio::null());
    let output = shell.output().expect("a shell");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains("Too many open files"), "{text}");
    serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON")
}

#[test]
fn a_hundred_and_fifty_pods_pass_with_a_hundred_open_files() {
    let values = (0..150).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let sanity = "sanity: [{ found: '^line \\d+$', count: 20 }]";
    let pod = format!("apiVersion: v1\nkind: Pod\n{}", SPEC.replace("{ annot", "{ name: crowd, annot"));
    let check = format!(
        "name: crowd\nvalid_systems: ['site:pods']\nparameters: {{ n: [{values}] }}\n{sanity}\nk8s_config:\n{}",
        indented(&pod, 2)
    );
    let report = run(100, 100, &check);
    assert_eq!(report["totals"]["passed"], 150, "{}", report["totals"]);
}

#[test]
fn a_job_of_a_hundred_and_fifty_pods_passes_with_a_hundred_open_files() {
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{ name: crowd }}\nspec:\n  completions: 150\n  parallelism: 150\n  template:\n{}",
        indented(SPEC, 4)
    );
    let sanity = "sanity: [{ found: '^line \\d+$', count: 3000 }]";
    let check = format!("name: crowd\nvalid_systems: ['site:pods']\n{sanity}\nk8s_config:\n{}", indented(&job, 2));
    let report = run(100, 100, &check);
    assert_eq!(report["totals"]["passed"], 1, "{}", report["totals"]);
}

#[test]
fn a_local_job_has_the_limit_of_open_files_that_muster_was_started_with() {
    let pod = indented(
        &format!(
            "apiVersion: v1\nkind: Pod\n{}",
            SPEC.replace("lines 20 50ms", "log hello").replace("{ annot", "{ name: crowd, annot")
        ),
        2,
    );
    let checks = format!(
        "name: crowd\nvalid_systems: ['site:pods']\nsanity: [{{ found: hello }}]\nk8s_config:\n{pod}---\n\
         name: job\nvalid_systems: ['site:here']\nexecutable: 'ulimit -S -n; ulimit -H -n'\n\
         sanity: [{{ found: '^123$' }}, {{ found: '^456$' }}]\n"
    );
    let report = run(123, 456, &checks);
    assert_eq!(report["totals"]["passed"], 2, "{}", report["totals"]);
}
