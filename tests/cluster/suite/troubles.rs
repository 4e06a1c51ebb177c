//! Every way in which a workload cannot start or is taken away: each has its own cause, none waits for ever.

use super::{
    manifest::{check, job, pod},
    place::{Place, kubectl},
};
use crate::common::eventually;
use std::time::Duration;

/// Runs a check that cannot pass; its cause must hold all of `words`.
fn ends(place: &Place, text: &str, code: i32, outcome: &str, words: &[&str]) {
    let ended = place.check(text).expect(code);
    assert_eq!(ended.outcome(), outcome, "{}", ended.cause());
    for word in words {
        assert!(ended.cause().contains(word), "`{word}` is not in: {}", ended.cause());
    }
}

pub(crate) fn a_container_out_of_memory_says_so_with_its_limit() {
    let place = Place::new();
    let line = "echo hello; exec tail /dev/zero";
    let manifest = pod(line).replace("command:", "resources: { limits: { memory: 16Mi } }, command:");
    ends(&place, &check(&manifest, ""), 1, "fail workload", &["OOMKilled", "16Mi", " on n"]);
}

pub(crate) fn an_image_that_is_not_there_ends_the_case_in_time() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("rfm.test/busybox:1", "rfm.test/nothing:1");
    ends(&place, &check(&manifest, "max_pending_time: 20s"), 3, "timeout pending", &["rfm.test/nothing:1", "pull"]);
}

pub(crate) fn an_image_name_that_is_none_ends_the_case_at_once() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("rfm.test/busybox:1", "not a name");
    ends(&place, &check(&manifest, ""), 3, "error config", &["no valid image name", "not a name"]);
}

pub(crate) fn an_image_that_must_not_be_pulled_ends_the_case_at_once() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("'rfm.test/busybox:1'", "'rfm.test/nothing:1', imagePullPolicy: Never");
    ends(&place, &check(&manifest, ""), 3, "error config", &["imagePullPolicy is Never"]);
}

pub(crate) fn a_missing_config_map_ends_the_case_after_a_grace() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("command:", "envFrom: [{ configMapRef: { name: nowhere } }], command:");
    ends(&place, &check(&manifest, ""), 3, "error config", &["cannot be configured", "configmap \"nowhere\" not found"]);
}

pub(crate) fn a_pod_that_fits_no_node_waits_no_longer_than_it_may() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 99 } }, command:");
    ends(&place, &check(&manifest, "max_pending_time: 5s"), 3, "timeout pending", &["2 Insufficient nvidia.com/gpu"]);
}

pub(crate) fn a_job_that_fails_for_good_says_what_its_pods_said() {
    let place = Place::new();
    ends(&place, &check(&job("backoffLimit: 0", "echo hello; exit 7"), ""), 1, "fail workload", &["exit status 7"]);
}

pub(crate) fn a_running_case_ends_at_its_time_limit_and_frees_its_compute() {
    let place = Place::new();
    ends(&place, &check(&pod("echo hello; sleep 600"), "time_limit: 3s"), 1, "timeout run", &["3.0s", "time_limit"]);
    let phases = || place.kubectl(&["get", "pods", "-l", "rfm", "-o", "jsonpath={.items[*].status.phase}"]);
    eventually("the end of the pod", Duration::from_secs(20), || phases() == "Failed");
}

pub(crate) fn a_quota_that_never_fits_ends_the_case_at_once() {
    let place = Place::new();
    place.create(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: compute }\nspec: { hard: { requests.nvidia.com/gpu: 2 } }\n",
    );
    let manifest = pod("echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 4 } }, command:");
    ends(&place, &check(&manifest, ""), 3, "error config", &["compute", "requests.nvidia.com/gpu", "4", "2"]);
    let manifest =
        job("completions: 1", "echo hello").replace("command:", "resources: { limits: { nvidia.com/gpu: 4 } }, command:");
    ends(&place, &check(&manifest, ""), 3, "error config", &["compute", "requests.nvidia.com/gpu"]);
}

fn waits_for_quota(manifest: &str) {
    let place = Place::new();
    place.create("apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: compute }\nspec: { hard: { requests.cpu: 500m } }\n");
    let manifest = manifest.replace("command:", "resources: { requests: { cpu: 400m } }, command:");
    let ended = place.check(&check(&manifest, "parameters: { n: [1, 2, 3] }\nmax_pending_time: 3m")).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 3);
    assert_eq!(place.left(), [""; 0]);
}

pub(crate) fn pods_wait_for_quota_and_run_in_turn() {
    waits_for_quota(&pod("echo hello; sleep 1"));
}

pub(crate) fn jobs_wait_for_quota_and_run_in_turn() {
    waits_for_quota(&job("completions: 1", "echo hello; sleep 1"));
}

/// Runs a check beside what happens to its pod.
fn meanwhile(place: &Place, text: &str, happen: impl FnOnce(&str)) -> super::place::Ended {
    place.write("check.yaml", text);
    let child = place.command(&["-c", "check.yaml", "-r"]).spawn().expect("muster");
    let pod = || place.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("a running pod", Duration::from_secs(40), || !pod().trim().is_empty());
    happen(pod().trim().trim_start_matches("pod/"));
    place.ended(&child.wait_with_output().expect("its end"))
}

pub(crate) fn a_pod_that_somebody_deletes_is_disrupted() {
    let place = Place::new();
    let ended = meanwhile(&place, &check(&pod("echo hello; sleep 60"), ""), |pod| {
        place.kubectl(&["delete", "pod", pod, "--wait=false"]);
    });
    let ended = ended.expect(3);
    assert_eq!(ended.outcome(), "disrupted deleted", "{}", ended.cause());
}

pub(crate) fn an_evicted_pod_is_disrupted() {
    let place = Place::new();
    let ended = meanwhile(&place, &check(&pod("echo hello; sleep 60"), ""), |pod| {
        let body = format!(
            "{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{pod}\",\"namespace\":\"{}\"}}}}",
            place.namespace
        );
        place.write("eviction.json", &body);
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", place.namespace);
        kubectl(&["create", "--raw", &path, "-f", &place.path("eviction.json").to_string_lossy()]);
    });
    let ended = ended.expect(3);
    assert_eq!(ended.outcome(), "disrupted evicted", "{}", ended.cause());
}

pub(crate) fn a_preempted_pod_is_disrupted() {
    let place = Place::new();
    let class = format!("urgent-{}", place.namespace);
    let on_one_node =
        |manifest: String| manifest.replace("restartPolicy", "nodeSelector: { kubernetes.io/hostname: n1 }\n  restartPolicy");
    let manifest = pod("echo hello; sleep 60").replace("command:", "resources: { limits: { graphcore.ai/ipu: 6 } }, command:");
    let manifest = on_one_node(manifest);
    let ended = meanwhile(&place, &check(&manifest, ""), |_| {
        place.create(&format!(
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
    let place = Place::new();
    ends(&place, &check(&pod("echo hello"), "namespace: nowhere"), 3, "error config", &["nowhere", "namespace"]);
}

pub(crate) fn a_namespace_that_is_going_away_is_named() {
    let place = Place::new();
    place.create("apiVersion: v1\nkind: ConfigMap\nmetadata: { name: anchor, finalizers: [rfm.test/anchor] }\n");
    kubectl(&["delete", "namespace", &place.namespace, "--wait=false"]);
    ends(&place, &check(&pod("echo hello"), ""), 3, "error config", &["being terminated"]);
    place.kubectl(&["patch", "configmap", "anchor", "--type=merge", "-p", "{\"metadata\":{\"finalizers\":null}}"]);
}

pub(crate) fn an_object_that_the_server_refuses_says_which_field() {
    let place = Place::new();
    let manifest = pod("echo hello").replace("name: main", "name: No_Name");
    ends(&place, &check(&manifest, ""), 3, "error config", &["containers[0].name", "No_Name"]);
}

pub(crate) fn the_server_says_beforehand_what_it_would_refuse() {
    let place = Place::new();
    place.write("check.yaml", &check(&pod("echo hello"), ""));
    let ended = place.muster(&["-c", "check.yaml", "--dry-run=server"]).expect(0);
    assert!(ended.stdout.contains("# accepted by the API server"), "{}", ended.stdout);
    place.write("check.yaml", &check(&pod("echo hello").replace("name: main", "name: No_Name"), ""));
    let ended = place.muster(&["-c", "check.yaml", "--dry-run=server"]).expect(2);
    assert!(ended.stdout.contains("# REFUSED by the API server: ") && ended.stdout.contains("No_Name"), "{}", ended.stdout);
    assert_eq!(place.left(), [""; 0]);
}

pub(crate) fn a_kind_that_the_cluster_does_not_know_is_named() {
    let place = Place::new();
    let manifest =
        pod("echo hello").replace("apiVersion: v1", "apiVersion: nowhere.test/v1").replace("kind: Pod", "kind: Gadget");
    ends(&place, &check(&manifest, ""), 3, "error config", &["Gadget", "nowhere.test"]);
}
