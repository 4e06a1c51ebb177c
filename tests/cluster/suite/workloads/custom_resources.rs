//! Custom resources and queues: JobSet, a resource with an operator of its own, Kueue.

use crate::common::eventually;
use crate::suite::{
    manifest::{check, container, job, jobset, pod},
    sandbox::{Ended, Sandbox, kubectl},
};
use std::{
    collections::BTreeSet,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

pub(crate) fn a_jobset_ends_by_its_own_conditions() {
    let sandbox = Sandbox::new();
    let ended = sandbox.check(&check(&jobset(2, "echo hello"), "sanity: [{ found: hello, count: 2 }]")).expect(0);
    assert_eq!(sandbox.stdout(&ended).matches("hello").count(), 2);
    assert_eq!(sandbox.left(), [""; 0]);
}

/// The first life prints another rate than the second, and it alone converges.
pub(crate) fn of_a_jobset_that_was_restarted_only_the_last_life_is_judged() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path("shared");
    std::fs::create_dir(&shared).expect("a folder");
    let line = "[ -e /shared/tried ] || { touch /shared/tried; echo converged; echo rate 100; exit 1; }; echo rate 50";
    let volume = format!("volumes: [{{ name: shared, hostPath: {{ path: {} }} }}]", shared.display());
    let manifest = jobset(1, line)
        .replace("spec:\n  replicatedJobs", "spec:\n  failurePolicy: { maxRestarts: 1 }\n  replicatedJobs")
        .replace("command:", "volumeMounts: [{ name: shared, mountPath: /shared }], command:")
        .replace("restartPolicy: Never", &format!("restartPolicy: Never\n              nodeName: n1\n              {volume}"));
    let more = "sanity: [{ found: rate, count: 1 }, { not_found: converged }]\n\
                perf_variables: { rate: { pattern: 'rate (?<value>\\d+)', unit: x } }";
    let ended = sandbox.check(&check(&manifest, more)).expect(0);
    let figures: Vec<_> =
        ended.case()["measurements"].as_array().into_iter().flatten().map(|one| one["value"].as_f64()).collect();
    assert_eq!(figures, [Some(50.0)], "{}", ended.case());
    assert!(sandbox.stdout(&ended).ends_with("#not-judged-------\nconverged\nrate 100\n"), "{}", sandbox.stdout(&ended));
}

/// A kind and the operator that makes something of its objects, a script of the shell.
pub(crate) struct Custom {
    /// Of the definition.
    pub(crate) name: &'static str,
    pub(crate) definition: &'static str,
    /// Its first argument is a folder of its own, `NS` the namespace.
    pub(crate) operator: &'static str,
}

const IPUJOB: Custom = Custom { name: "ipujobs.graphcore.ai", definition: CRD, operator: OPERATOR };

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ipujobs.graphcore.ai }
spec:
  group: graphcore.ai
  scope: Namespaced
  names: { kind: IPUJob, plural: ipujobs, singular: ipujob, shortNames: [ij] }
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: { status: {} }
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
";

/// A small operator: for every IPUJob of one namespace it makes `jobInstances` pods of its template, owned by it, and says
/// in `status` how far they are. A shell loop around kubectl, as simple as one can be. With `REPLACES` it makes what is deleted again, as
/// a StatefulSet does.
const OPERATOR: &str = r#"
cd "$1"
while sleep 0.3; do
  for name in $(kubectl -n "$NS" get ipujobs -o jsonpath='{.items[*].metadata.name}'); do
    kubectl -n "$NS" get ipujob "$name" -o json > job.json || continue
    python3 - "$NS" <<'END' > pods.json
import json, sys
job = json.load(open("job.json"))
template = job["spec"]["workers"]["template"]
items = []
for i in range(job["spec"]["jobInstances"]):
    owner = {"apiVersion": job["apiVersion"], "kind": "IPUJob", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
    metadata = {"name": f"{job['metadata']['name']}-worker-{i}", "namespace": sys.argv[1], "ownerReferences": [owner],
                "labels": template.get("metadata", {}).get("labels", {})}
    items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
END
    [ -e "made-$name" ] || { kubectl create -f pods.json >/dev/null 2>&1 && [ -z "$REPLACES" ] && touch "made-$name"; }
  done
done
"#;

/// One that runs, until this is dropped.
pub(crate) struct Operator(Child);

impl Operator {
    pub(crate) fn start(sandbox: &Sandbox, custom: &Custom) -> Self {
        Self::that_replaces(sandbox, custom, "")
    }

    /// `replaces`: not empty if it makes again what is deleted.
    fn that_replaces(sandbox: &Sandbox, custom: &Custom, replaces: &str) -> Self {
        static DEFINED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        if defined.insert(custom.name) {
            sandbox.write("crd.yaml", custom.definition);
            kubectl(&["apply", "-f", &sandbox.path("crd.yaml").to_string_lossy()]);
        }
        kubectl(&["wait", "--for=condition=established", "--timeout=30s", &format!("crd/{}", custom.name)]);
        let mut shell = Command::new("sh");
        shell
            .process_group(0)
            .args(["-c", custom.operator, "operator"])
            .arg(sandbox.path("."))
            .env("NS", &sandbox.namespace)
            .env("REPLACES", replaces);
        Self(shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell"))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // What the shell has started, too.
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

pub(crate) fn an_ipujob_of_three_instances_ends_when_its_pods_have() {
    let sandbox = Sandbox::new();
    let _operator = Operator::start(&sandbox, &IPUJOB);
    let manifest = format!(
        "apiVersion: graphcore.ai/v1alpha1\nkind: IPUJob\nmetadata: {{ generateName: mnist-training- }}\nspec:\n  jobInstances: 3\n  \
         ipusPerJobInstance: \"1\"\n  workers:\n    template:\n      spec:\n        restartPolicy: Never\n        containers: [{}]\n",
        container("echo hello; sleep 1")
    );
    let more = "k8s_resource: ipujob\nsanity: [{ found: hello, count: 3 }]";
    let ended = sandbox.check(&check(&manifest, more)).expect(0);
    assert_eq!(sandbox.stdout(&ended).matches("-------rfm-mnist-training-").count(), 3);
    assert_eq!(sandbox.kubectl(&["get", "ipujobs,pods", "-o", "name"]), "");
}

/// Each start of the pod prints another figure; the first two are deleted and made again under their name.
fn replaced_twice(more: &str, code: i32) -> (Sandbox, Ended) {
    let sandbox = Sandbox::new();
    let _operator = Operator::that_replaces(&sandbox, &IPUJOB, "yes");
    let shared = sandbox.path("shared");
    std::fs::create_dir(&shared).expect("a folder");
    let line = "n=$(($(cat /shared/n || echo 0) + 1)); echo $n > /shared/n; echo \"figure: $((25 * n + 25))\"; \
                i=0; while [ $i -lt 200 ]; do echo noise $i; i=$((i + 1)); done; \
                [ $n -eq 3 ] || sleep 60; echo hello";
    let volume = format!("volumes: [{{ name: shared, hostPath: {{ path: {} }} }}]", shared.display());
    let manifest = format!(
        "apiVersion: graphcore.ai/v1alpha1\nkind: IPUJob\nmetadata: {{ name: again }}\nspec:\n  jobInstances: 1\n  workers:\n    \
         template:\n      spec:\n        restartPolicy: Never\n        terminationGracePeriodSeconds: 1\n        nodeName: n1\n        \
         {volume}\n        containers: [{}]\n",
        container(line).replace("command:", "volumeMounts: [{ name: shared, mountPath: /shared }], command:")
    );
    let more = format!("{more}\nperf_variables: {{ figure: {{ pattern: 'figure: (?<value>\\d+)', unit: x }} }}");
    sandbox.write("check.yaml", &check(&manifest, &more));
    let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    for start in 1..=2 {
        eventually("the start of a pod", Duration::from_secs(40), || {
            std::fs::read_to_string(shared.join("n")).is_ok_and(|text| text.trim() == start.to_string())
        });
        std::thread::sleep(Duration::from_secs(1));
        sandbox.kubectl(&["delete", "pods", "-l", "rfm", "--wait"]);
    }
    let ended = sandbox.ended(&child.wait_with_output().expect("its end")).expect(code);
    (sandbox, ended)
}

pub(crate) fn of_pods_that_had_one_name_only_the_last_is_judged() {
    let (sandbox, ended) = replaced_twice("sanity: [{ found: hello }, { found: 'figure: \\d+', count: 1 }]", 0);
    let figures: Vec<f64> =
        ended.case()["measurements"].as_array().into_iter().flatten().filter_map(|one| one["value"].as_f64()).collect();
    assert_eq!(figures, [100.0], "{}", ended.case());
    let stdout = sandbox.stdout(&ended);
    let titles: Vec<_> = stdout.lines().filter_map(|line| line.strip_prefix("-------")?.strip_suffix("-------")).collect();
    let output: Vec<_> = stdout.lines().filter(|line| line.starts_with("figure")).collect();
    assert_eq!(output, ["figure: 100", "figure: 75", "figure: 50"], "{stdout}");
    assert!(titles[1] == format!("{}#2", titles[0]) && titles[2] == format!("{}#3", titles[0]), "{titles:?}");
    let warnings = ended.case()["warnings"].to_string();
    assert!(warnings.contains("2 pods were replaced under the same name, and only the last is judged"), "{warnings}");
}

pub(crate) fn a_pod_whose_log_fills_the_limit_is_not_judged_in_the_place_of_the_last() {
    let (sandbox, ended) = replaced_twice("sanity: [{ found: 'figure: \\d+' }]\nmax_log: 1KiB\nmax_log_action: warn", 1);
    assert_eq!(ended.outcome(), "invalid logs", "{}", ended.case());
    assert!(ended.cause().contains("no line of it was kept"), "{}", ended.cause());
    let stdout = sandbox.stdout(&ended);
    let earlier = stdout.split_once("#3-------\n").map(|(_, log)| log);
    assert!(earlier.is_some_and(|log| log.contains("figure: 50\n")), "{stdout}");
}

pub(crate) fn a_failed_instance_of_a_custom_resource_fails_the_case() {
    let sandbox = Sandbox::new();
    let _operator = Operator::start(&sandbox, &IPUJOB);
    let manifest = format!(
        "apiVersion: graphcore.ai/v1alpha1\nkind: IPUJob\nmetadata: {{ name: bad }}\nspec:\n  jobInstances: 1\n  workers:\n    \
         template:\n      spec:\n        restartPolicy: Never\n        containers: [{}]\n",
        container("echo hello; exit 5")
    );
    let ended = sandbox.check(&check(&manifest, "")).expect(1);
    assert!(ended.cause().contains("exit status 5"), "{}", ended.cause());
}

/// The queue of `tests/cluster` has four GPUs; this holds them all until it is released.
fn all_gpus_taken(sandbox: &Sandbox, seconds: u32) -> String {
    let name = format!("blocker-{}", sandbox.namespace);
    let blocker = job("completions: 1", &format!("sleep {seconds}"))
        .replace("name: crew", &format!("name: {name}, labels: {{ kueue.x-k8s.io/queue-name: eidf095ns-user-queue }}"))
        .replace("command:", "resources: { requests: { cpu: 10m, memory: 8Mi }, limits: { nvidia.com/gpu: 4 } }, command:");
    sandbox.create(&blocker);
    eventually("the admission of what holds the quota", Duration::from_secs(30), || {
        sandbox.kubectl(&["get", "job", &name, "-o", "jsonpath={.spec.suspend}"]).trim() == "false"
    });
    name
}

/// A check of a manifest that wants two GPUs of the queue.
fn in_the_queue(manifest: &str, more: &str) -> String {
    let manifest = manifest
        .replace("metadata: { name:", "metadata: { labels: { kueue.x-k8s.io/queue-name: eidf095ns-user-queue }, name:")
        .replace("command:", "resources: { requests: { cpu: 10m, memory: 8Mi }, limits: { nvidia.com/gpu: 2 } }, command:");
    check(&manifest, &format!("{more}\nvalid_systems: ['test:gpu-service']")).replacen("valid_systems: ['*']\n", "", 1)
}

fn waits_in_the_queue(sandbox: &Sandbox, manifest: &str) {
    let blocker = all_gpus_taken(sandbox, 8);
    let ended = sandbox.check(&in_the_queue(manifest, "max_pending_time: 2m"));
    sandbox.kubectl(&["delete", "job", &blocker]);
    let ended = ended.expect(0);
    assert_eq!(ended.outcome(), "pass");
    assert_eq!(sandbox.left(), [""; 0]);
}

/// One after the other: they share the queue.
pub(crate) fn a_queued_pod_and_a_queued_job_wait_for_quota_and_run() {
    let (sandbox, _turn) = Sandbox::queued();
    waits_in_the_queue(&sandbox, &pod("echo hello"));
    waits_in_the_queue(&sandbox, &job("completions: 2\n  parallelism: 1", "echo hello"));
}

pub(crate) fn a_case_that_ends_in_a_queue_leaves_it() {
    let (sandbox, _turn) = Sandbox::queued();
    let blocker = all_gpus_taken(&sandbox, 600);
    let kinds = [pod("echo hello"), job("completions: 1", "echo hello"), jobset(1, "echo hello")];
    let checks = kinds.iter().enumerate().map(|(number, manifest)| {
        in_the_queue(manifest, "max_pending_time: 20s").replacen("name: case", &format!("name: case{number}"), 1)
    });
    let begun = Instant::now();
    let ended = sandbox.check(&checks.collect::<Vec<_>>().join("---\n"));
    let took = begun.elapsed();
    has_left_the_queue(&sandbox);
    sandbox.kubectl(&["delete", "job", &blocker]);
    let ended = ended.expect(3);
    assert!(took < Duration::from_secs(50), "{took:?}: {}", ended.stdout);
    let cases = ended.report["cases"].as_array().expect("cases");
    for case in cases {
        let cause = case["cause"].as_str().unwrap_or_default();
        assert!(cause.contains("still waiting after 20") && cause.contains("waits in Kueue"), "{cause}");
        assert!(!case.to_string().contains("kubectl"), "neither kept nor left: {case}");
        let events = format!("{}/diag/kueue.yaml", case["folder"].as_str().expect("a folder"));
        assert!(sandbox.read(&events).contains("QuotaReserved"), "{events}");
    }
    assert_eq!(cases.len(), 3);
}

fn has_left_the_queue(sandbox: &Sandbox) {
    eventually("the end of all that was queued", Duration::from_secs(20), || {
        let there = sandbox.kubectl(&["get", "pods,jobs,jobsets.jobset.x-k8s.io,workloads.kueue.x-k8s.io", "-o", "name"]);
        !["rfm-hello-", "rfm-crew-", "rfm-set-"].iter().any(|name| there.contains(name))
    });
}

pub(crate) fn what_a_queue_would_resume_is_deleted_at_its_time_limit() {
    let (sandbox, _turn) = Sandbox::queued();
    let ended = sandbox.check(&in_the_queue(&jobset(1, "echo hello; sleep 600"), "time_limit: 5s")).expect(1);
    assert_eq!(ended.outcome(), "timeout run", "{}", ended.cause());
    assert!(sandbox.stdout(&ended).contains("hello"));
    has_left_the_queue(&sandbox);
}

pub(crate) fn a_queue_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    let manifest =
        job("completions: 1", "echo hello").replace("name: crew", "name: crew, labels: { kueue.x-k8s.io/queue-name: nowhere }");
    let ended = sandbox.check(&check(&manifest, "max_pending_time: 30s")).expect(3);
    assert!(ended.cause().contains("nowhere"), "{}", ended.cause());
}
