//! Every way in which a workload cannot start or is taken away: each has its own cause, none waits for ever.

use crate::common::eventually;
use crate::suite::{
    manifest::{check, container, job, jobset, pod},
    sandbox::{Ended, Sandbox, kubectl},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

/// Runs a check that cannot pass; its cause must hold all of `words`.
fn ends(sandbox: &Sandbox, text: &str, code: i32, outcome: &str, words: &[&str]) {
    holds(&sandbox.check(text).expect(code), outcome, words);
}

fn holds(ended: &Ended, outcome: &str, words: &[&str]) {
    assert_eq!(ended.outcome(), outcome, "{}", ended.cause());
    for word in words {
        assert!(ended.cause().contains(word), "`{word}` is not in: {}", ended.cause());
    }
}

pub(crate) fn a_container_out_of_memory_says_so_with_its_limit() {
    let sandbox = Sandbox::new();
    let line = "echo hello; exec tail /dev/zero";
    let text = check(&pod(line).replace("command:", "resources: { limits: { memory: 16Mi } }, command:"), "");
    // On a busy machine the container runtime may report the end before it has seen the kernel's event.
    let mut ended = sandbox.check(&text).expect(1);
    for _ in 0..2 {
        if !ended.cause().contains("not for its memory as far as the kubelet saw") {
            break;
        }
        println!("once more: {}", ended.cause());
        ended = sandbox.check(&text).expect(1);
    }
    holds(&ended, "fail workload", &["OOMKilled", "16Mi", " on n"]);
}

pub(crate) fn an_image_that_is_not_there_ends_the_case_in_time() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("rfm.test/busybox:1", "rfm.test/nothing:1");
    ends(&sandbox, &check(&manifest, "max_pending_time: 20s"), 3, "timeout pending", &["rfm.test/nothing:1", "pull"]);
}

/// Its address. It has no image, and says so.
fn empty_registry() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    address
}

pub(crate) fn an_image_that_one_of_two_containers_lacks_ends_the_case_and_is_named() {
    let (sandbox, image) = (Sandbox::new(), format!("{}/nothing:1", empty_registry()));
    let cause = format!("image {image} of container helper of pod");
    let helper = container("sleep 600").replace("name: main", "name: helper").replace("rfm.test/busybox:1", &image);
    let manifests =
        [format!("{}    - {helper}\n", pod("sleep 600")), format!("{}        - {helper}\n", job("completions: 1", "sleep 600"))];
    for manifest in manifests {
        let text = check(&manifest, "sched_options: { hopeless_after: 20s }\ntime_limit: 90s");
        ends(&sandbox, &text, 3, "error config", &[&cause]);
    }
    let text = check(&format!("{}    - {helper}\n", pod("sleep 600")), "time_limit: 5s");
    ends(&sandbox, &text, 1, "timeout run", &[&cause]);
}

pub(crate) fn an_image_name_that_is_none_ends_the_case_at_once() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("rfm.test/busybox:1", "not a name");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["no valid image name", "not a name"]);
}

pub(crate) fn an_image_that_must_not_be_pulled_ends_the_case_at_once() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("'rfm.test/busybox:1'", "'rfm.test/nothing:1', imagePullPolicy: Never");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["imagePullPolicy is Never"]);
}

pub(crate) fn a_missing_config_map_ends_the_case_after_a_grace() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("command:", "envFrom: [{ configMapRef: { name: nowhere } }], command:");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["cannot be configured", "configmap \"nowhere\" not found"]);
}

pub(crate) fn a_pod_that_fits_no_node_waits_no_longer_than_it_may() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 99 } }, command:");
    ends(&sandbox, &check(&manifest, "max_pending_time: 5s"), 3, "timeout pending", &["2 Insufficient nvidia.com/gpu"]);
}

pub(crate) fn a_job_that_fails_for_good_reports_the_output_of_its_pods() {
    let sandbox = Sandbox::new();
    ends(&sandbox, &check(&job("backoffLimit: 0", "echo hello; exit 7"), ""), 1, "fail workload", &["exit status 7"]);
}

pub(crate) fn a_running_case_ends_at_its_time_limit_and_frees_its_compute() {
    let sandbox = Sandbox::new();
    ends(&sandbox, &check(&pod("echo hello; sleep 600"), "time_limit: 3s"), 1, "timeout run", &["3.0s", "time_limit"]);
    let phases = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "-o", "jsonpath={.items[*].status.phase}"]);
    eventually("the end of the pod", Duration::from_secs(20), || phases() == "Failed");
}

pub(crate) fn a_quota_that_never_fits_ends_the_case_at_once() {
    let sandbox = Sandbox::new();
    sandbox.create(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: compute }\nspec: { hard: { requests.nvidia.com/gpu: 2 } }\n",
    );
    let manifest = pod("echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 4 } }, command:");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["compute", "requests.nvidia.com/gpu", "4", "2"]);
    let manifest =
        job("completions: 1", "echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 4 } }, command:");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["compute", "requests.nvidia.com/gpu"]);
}

fn waits_for_quota(manifest: &str) {
    let sandbox = Sandbox::new();
    sandbox.create("apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: compute }\nspec: { hard: { requests.cpu: 500m } }\n");
    let manifest = manifest.replace("command:", "resources: { requests: { cpu: 400m } }, command:");
    let ended = sandbox.check(&check(&manifest, "parameters: { n: [1, 2, 3] }\nmax_pending_time: 3m")).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 3);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn pods_wait_for_quota_and_run_in_turn() {
    waits_for_quota(&pod("echo hello; sleep 1"));
}

pub(crate) fn jobs_wait_for_quota_and_run_in_turn() {
    waits_for_quota(&job("completions: 1", "echo hello; sleep 1"));
}

/// Runs a check beside what happens to its pod.
fn meanwhile(sandbox: &Sandbox, text: &str, happen: impl FnOnce(&str)) -> crate::suite::sandbox::Ended {
    sandbox.write("check.yaml", text);
    let child = sandbox.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let pod = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("a running pod", Duration::from_secs(40), || !pod().trim().is_empty());
    happen(pod().trim().trim_start_matches("pod/"));
    sandbox.ended(&child.wait_with_output().expect("its end"))
}

pub(crate) fn a_pod_that_somebody_deletes_is_disrupted() {
    let sandbox = Sandbox::new();
    let ended = meanwhile(&sandbox, &check(&pod("echo hello; sleep 60"), ""), |pod| {
        sandbox.kubectl(&["delete", "pod", pod, "--wait=false"]);
    });
    let ended = ended.expect(3);
    assert_eq!(ended.outcome(), "disrupted deleted", "{}", ended.cause());
}

/// It has every label of a pod of the Job, and no owner.
pub(crate) fn a_pod_that_only_looks_like_one_of_the_job_is_ignored() {
    let sandbox = Sandbox::new();
    let more = "sanity: [{ found: hello, count: 1 }, { not_found: stranger }]";
    let ended = meanwhile(&sandbox, &check(&job("completions: 1", "sleep 8; echo hello"), more), |own| {
        let labels = sandbox.kubectl(&["get", "pod", own, "-o", "jsonpath={.metadata.labels}"]);
        let mut labels: serde_json::Map<_, _> = serde_json::from_str(&labels).expect("labels");
        // With the uid among its labels the controller of Jobs adopts it, and then counts it.
        labels.retain(|label, _| !label.ends_with("controller-uid"));
        let labels = serde_json::Value::from(labels);
        sandbox.create(&pod("echo stranger").replace("name: hello }", &format!("name: stranger, labels: {labels} }}")));
    });
    let ended = ended.expect(0);
    let warnings = ended.case()["warnings"].to_string();
    assert!(warnings.contains("another owner, or none, were ignored: stranger"), "{warnings}");
    assert!(!sandbox.stdout(&ended).contains("-------stranger-------"), "{}", sandbox.stdout(&ended));
}

pub(crate) fn an_evicted_pod_is_disrupted() {
    let sandbox = Sandbox::new();
    let ended = meanwhile(&sandbox, &check(&pod("echo hello; sleep 60"), ""), |pod| {
        evict(&sandbox, pod);
    });
    let ended = ended.expect(3);
    assert_eq!(ended.outcome(), "disrupted evicted", "{}", ended.cause());
}

fn evict(sandbox: &Sandbox, pod: &str) {
    let body = format!(
        "{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{pod}\",\"namespace\":\"{}\"}}}}",
        sandbox.namespace
    );
    sandbox.write("eviction.json", &body);
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", sandbox.namespace);
    kubectl(&["create", "--raw", &path, "-f", &sandbox.path("eviction.json").to_string_lossy()]);
}

fn drain(sandbox: &Sandbox, pod: &str) {
    let node = sandbox.kubectl(&["get", "pod", pod, "-o", "jsonpath={.spec.nodeName}"]);
    kubectl(&["drain", &node, "--pod-selector=rfm", "--force", "--ignore-daemonsets", "--timeout=60s"]);
    kubectl(&["uncordon", &node]);
}

/// As a program that writes a checkpoint does.
const ENDS_WITH_0: &str = "trap 'exit 0' TERM; echo hello; while :; do sleep 0.2; done";

pub(crate) fn a_program_that_ends_with_0_because_its_pod_is_told_to_end_is_disrupted() {
    type Way = fn(&Sandbox, &str);
    // Else a Job counts a pod as failed that is told to end and has not ended a moment later, and starts another.
    let waits = "podReplacementPolicy: Failed";
    let jobset = jobset(1, ENDS_WITH_0).replace("backoffLimit: 0", &format!("backoffLimit: 0\n          {waits}"));
    let kinds = [pod(ENDS_WITH_0), job(waits, ENDS_WITH_0), jobset];
    let ways: [(&str, Way); 3] = [
        ("deleted", |sandbox, pod| drop(sandbox.kubectl(&["delete", "pod", pod, "--wait=false"]))),
        ("evicted", evict),
        ("evicted", drain),
    ];
    for (why, end) in ways {
        for manifest in &kinds {
            let sandbox = Sandbox::new();
            let ended = meanwhile(&sandbox, &check(manifest, ""), |pod| end(&sandbox, pod)).expect(3);
            assert_eq!(ended.outcome(), format!("disrupted {why}"), "{}\n{manifest}", ended.cause());
        }
    }
}

pub(crate) fn a_container_that_its_node_kills_and_that_ends_with_0_has_failed() {
    let sandbox = Sandbox::new();
    let manifest =
        pod("echo hello; tail /dev/zero; exit 0").replace("command:", "resources: { limits: { memory: 16Mi } }, command:");
    ends(&sandbox, &check(&manifest, ""), 1, "fail workload", &["exit status 0 without success", "OOMKilled", "16Mi"]);
    let probe = "livenessProbe: { exec: { command: ['false'] }, initialDelaySeconds: 2, periodSeconds: 1, failureThreshold: 1 }, command:";
    for manifest in [pod(ENDS_WITH_0), job("completions: 1", ENDS_WITH_0)] {
        let manifest = manifest.replace("command:", probe);
        ends(&sandbox, &check(&manifest, ""), 1, "fail workload", &["Liveness probe failed"]);
        sandbox.check(&check(&manifest, "sanity: [{ found: hello }, { exit: any }]")).expect(0);
    }
}

pub(crate) fn a_preempted_pod_is_disrupted() {
    let sandbox = Sandbox::new();
    let class = format!("urgent-{}", sandbox.namespace);
    let on_one_node =
        |manifest: String| manifest.replace("restartPolicy", "nodeSelector: { kubernetes.io/hostname: n1 }\n  restartPolicy");
    let manifest = pod("echo hello; sleep 60").replace("command:", "resources: { limits: { graphcore.ai/ipu: 6 } }, command:");
    let manifest = on_one_node(manifest);
    let ended = meanwhile(&sandbox, &check(&manifest, ""), |_| {
        sandbox.create(&format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{ name: {class} }}\nvalue: 1000\n---\n{}",
            on_one_node(pod("sleep 1"))
                .replace("name: hello", "name: urgent")
                .replace("command:", "resources: { limits: { graphcore.ai/ipu: 8 } }, command:")
                .replace("restartPolicy", &format!("priorityClassName: {class}\n  restartPolicy"))
        ));
    });
    kubectl(&["delete", "priorityclass", &class]);
    let ended = ended.expect(3);
    assert_eq!(ended.outcome(), "disrupted preempted", "{}", ended.cause());
}

pub(crate) fn a_namespace_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    ends(&sandbox, &check(&pod("echo hello"), "namespace: nowhere"), 3, "error config", &["nowhere", "namespace"]);
}

pub(crate) fn a_namespace_that_is_going_away_is_named() {
    // With the namespace go its accounts.
    let sandbox = Sandbox::as_admin();
    sandbox.create("apiVersion: v1\nkind: ConfigMap\nmetadata: { name: anchor, finalizers: [rfm.test/anchor] }\n");
    kubectl(&["delete", "namespace", &sandbox.namespace, "--wait=false"]);
    ends(&sandbox, &check(&pod("echo hello"), ""), 3, "error config", &["being terminated"]);
    sandbox.kubectl(&["patch", "configmap", "anchor", "--type=merge", "-p", "{\"metadata\":{\"finalizers\":null}}"]);
}

pub(crate) fn an_object_that_the_server_refuses_says_which_field() {
    let sandbox = Sandbox::new();
    let manifest = pod("echo hello").replace("name: main", "name: No_Name");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["containers[0].name", "No_Name"]);
}

pub(crate) fn the_server_says_beforehand_what_it_would_refuse() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", &check(&pod("echo hello"), ""));
    let ended = sandbox.muster(&["-c", "check.yaml", "--dry-run=server"]).expect(0);
    assert!(ended.stdout.contains("# accepted by the server"), "{}", ended.stdout);
    sandbox.write("check.yaml", &check(&pod("echo hello").replace("name: main", "name: No_Name"), ""));
    let ended = sandbox.muster(&["-c", "check.yaml", "--dry-run=server"]).expect(2);
    assert!(ended.stdout.contains("# REFUSED by the server: ") && ended.stdout.contains("No_Name"), "{}", ended.stdout);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_kind_that_the_cluster_does_not_know_is_named() {
    let sandbox = Sandbox::new();
    let manifest =
        pod("echo hello").replace("apiVersion: v1", "apiVersion: nowhere.test/v1").replace("kind: Pod", "kind: Gadget");
    ends(&sandbox, &check(&manifest, ""), 3, "error config", &["Gadget", "nowhere.test"]);
}

/// A Job whose pods all run at once, each until it has been looked at.
fn gang(pods: u32, seconds: u32) -> String {
    let spec = format!("completions: {pods}\n  parallelism: {pods}\n  completionMode: Indexed\n  backoffLimit: 0");
    job(&spec, &format!("echo hello; sleep {seconds}"))
}

pub(crate) fn a_gang_larger_than_the_quota_is_a_mistake_at_once() {
    let sandbox = Sandbox::new();
    sandbox.create("apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: few }\nspec: { hard: { pods: 4 } }\n");
    ends(&sandbox, &check(&gang(8, 60), ""), 3, "error config", &["8 pods of 1 each", "quota few has 4"]);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_gang_waits_until_all_of_it_has_room() {
    let sandbox = Sandbox::new();
    sandbox.create("apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: few }\nspec: { hard: { pods: 4 } }\n");
    // Two that are launched in the same moment do not get half of the quota each.
    let ended = sandbox.check(&check(&gang(3, 2), "parameters: { n: [1, 2, 3] }\nmax_pending_time: 3m")).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 3);
    sandbox.create(&pod("sleep 100").replace("name: hello", "name: other"));
    sandbox.create(&pod("sleep 100").replace("name: hello", "name: another"));
    let waits = check(&gang(3, 2), "max_pending_time: 4s");
    ends(&sandbox, &waits, 3, "timeout pending", &["quota few", "pods requested 3, used 2, limited 4"]);
    let names = sandbox.kubectl(&["get", "pods", "-l", "rfm", "-o", "name"]);
    assert_eq!(names, "", "nothing of it was created");
}

pub(crate) fn a_gang_that_gets_only_a_part_of_its_pods_waits_and_names_the_quota() {
    let sandbox = Sandbox::new();
    // What a quota with scopes counts only the server knows, so that the Job is let in.
    sandbox.create(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: scoped }\nspec: { hard: { pods: 2 }, scopes: [NotTerminating] }\n",
    );
    let text = check(&gang(4, 100), "max_pending_time: 25s\ntime_limit: 2m");
    ends(&sandbox, &text, 3, "timeout pending", &["2 of 4 pods exist", "quota scoped"]);
}

/// What a mesh does: every pod of the namespace gets a container that never ends by itself.
fn inject_a_sidecar(sandbox: &Sandbox) -> String {
    let name = format!("mesh-{}", sandbox.namespace);
    let command = "echo mesh; trap 'exit 143' TERM; while :; do sleep 0.2; done";
    sandbox.create(&format!(
        "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmissionPolicy\nmetadata: {{ name: {name} }}\nspec:\n  \
         failurePolicy: Fail\n  reinvocationPolicy: Never\n  matchConstraints:\n    \
         namespaceSelector: {{ matchLabels: {{ kubernetes.io/metadata.name: {namespace} }} }}\n    \
         resourceRules: [{{ apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods] }}]\n  mutations:\n    \
         - patchType: JSONPatch\n      jsonPatch:\n        expression: >-\n          \
         [JSONPatch{{op: \"add\", path: \"/spec/containers/-\", value: Object.spec.containers{{name: \"mesh\",\n          \
         image: \"rfm.test/busybox:1\", command: [\"sh\", \"-c\", \"{command}\"]}}}}]\n---\n\
         apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {{ name: {name} }}\n\
         spec: {{ policyName: {name} }}\n",
        namespace = sandbox.namespace
    ));
    sandbox.write("probe.yaml", &pod("true"));
    let probe = sandbox.path("probe.yaml").to_string_lossy().into_owned();
    eventually("the injection", Duration::from_secs(40), || {
        sandbox.kubectl(&["create", "--dry-run=server", "-o", "jsonpath={.spec.containers[*].name}", "-f", &probe]) == "main mesh"
    });
    name
}

pub(crate) fn an_injected_sidecar_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let policy = inject_a_sidecar(&sandbox);
    sandbox.write(
        "check.yaml",
        &[
            check(&pod("echo hello"), "time_limit: 2m").replacen("name: case", "name: good-pod", 1),
            check(&job("completions: 2\n  parallelism: 2", "echo hello"), "time_limit: 2m").replacen(
                "name: case",
                "name: good-job",
                1,
            ),
            check(&pod("echo hello; exit 3"), "time_limit: 2m").replacen("name: case", "name: bad-pod", 1),
        ]
        .join("---\n"),
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    for kind in ["mutatingadmissionpolicybindings", "mutatingadmissionpolicies"] {
        kubectl(&["delete", kind, &policy]);
    }
    let cases = ended.report["cases"].as_array().expect("cases").clone();
    let words = |case: &serde_json::Value| {
        format!("{} {}", case["check"].as_str().unwrap_or_default(), case["outcome"]["word"].as_str().unwrap_or_default())
    };
    let mut outcomes: Vec<String> = cases.iter().map(words).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["bad-pod fail", "good-job pass", "good-pod pass"], "{}\n{}", ended.stdout, ended.stderr);
    let output = cases.iter().map(|case| case["warnings"].to_string()).collect::<String>();
    assert!(output.contains("mesh keeps"), "{output}");
    // What failed is kept, and takes nothing any more.
    let phases = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "-o", "jsonpath={.items[*].status.phase}"]);
    eventually("the end of the pod that is kept", Duration::from_secs(30), || phases() == "Failed");
}

pub(crate) fn a_time_limit_says_which_containers_had_ended() {
    let sandbox = Sandbox::new();
    let beside = container("sleep 600").replace("name: main", "name: helper");
    let manifest = format!("{}    - {beside}\n", pod("echo hello"));
    let text = check(&manifest, "time_limit: 8s");
    ends(&sandbox, &text, 1, "timeout run", &["container main has exited with 0", "helper still runs"]);
}

pub(crate) fn a_site_names_the_containers_that_decide() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "site.yaml",
        &sandbox.read("site.yaml").replace("sched_options: {", "sched_options: { primary_containers: [main],"),
    );
    let beside = container("sleep 600").replace("name: main", "name: helper");
    let manifest = format!("{}    - {beside}\n", pod("echo hello"));
    sandbox.check(&check(&manifest, "time_limit: 2m")).expect(0);
    assert_eq!(sandbox.left(), [""; 0]);
}
