//! Tests of whole plans: renaming, labels, places and refusals. Longer than other files, so that its rows stand together.

use super::*;
use crate::api::QUEUE_LABEL;
use crate::client::Contexts;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        descriptor::{Descriptor, Schedulers},
        workload::Limits,
    },
    secret::Secrets,
};
use muster_text::yaml;
use proptest::prelude::*;
use serde_json::{Map, json};
use std::path::PathBuf;

const NBODY_POD: &str = include_str!("../../../../../checks/nbody/pod.yaml");
const NBODY_JOB: &str = include_str!("../../../../../checks/nbody/job.yaml");
const IPU_JOB: &str = include_str!("../../../../../checks/ipu/ipujob.yaml");

fn documents_of(text: &str) -> Vec<Value> {
    let parsed = yaml::parse(muster_text::diagnostic::FileId::default(), text);
    parsed.documents.iter().map(|document| yaml::to_value(document).expect("a manifest")).collect()
}

fn workload(manifest: Vec<Value>) -> Workload {
    Workload {
        identifier: Identifier::parse("abcdefgh").expect("eight letters"),
        session: SessionId("s1".to_owned()),
        case: CaseName {
            display: "nbody %n=1".to_owned(),
            check: "nbody".to_owned(),
            hash: "01234567".to_owned(),
            system: "eidf".to_owned(),
            partition: "gpu".to_owned(),
            environ: "default".to_owned(),
            hidden: String::new(),
        },
        stage: PathBuf::from("stage"),
        staging: None,
        keep_files: Vec::new(),
        program: Program::Own { env_vars: Vec::new() },
        scheduler: crate::SCHEDULER.own_name().into(),
        own: Map::from_iter([(CONFIG.to_owned(), manifest.into())]),
        shared: Map::new(),
        num_tasks: 1,
        sched_options: json!({}),
        limits: Limits { pending: None, run: None, judge: Duration::from_mins(5) },
        keep_failed: None,
    }
}

fn with(manifest: Vec<Value>, sched_options: Value) -> Workload {
    Workload { sched_options, ..workload(manifest) }
}

fn patched(manifest: Vec<Value>, patch: Value) -> Workload {
    let mut workload = workload(manifest);
    workload.own.insert(PATCH.to_owned(), patch);
    workload
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] } })
}

fn job(name: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] } } } })
}

fn planned(workload: &Workload) -> Handle {
    plan(workload, &Contexts::unknown()).unwrap_or_else(|mistakes| panic!("{mistakes:?}")).handle
}

/// Whatever is a secret: each word of a plan, and each number.
#[test]
fn a_plan_in_which_everything_is_masked_reads_back() {
    static ALL: &[&Descriptor] = &[&crate::SCHEDULER];
    for text in [NBODY_POD, NBODY_JOB, IPU_JOB] {
        let options = json!({ "labels": { "team": "hpc" }, "hopeless_after": "5m", "log_rotation": "warn", "context": "x",
                               "container_log_max_size": "2Mi" });
        let workload = with(documents_of(text), options);
        let handle = planned(&workload);
        let stored = serde_json::to_value(&handle).unwrap();
        let text = stored.to_string();
        let job = muster_core::job::scheduler::Job::of(&workload, crate::SCHEDULER.own_name(), stored.into());
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let secrets = Secrets::new(words.map(|word| ("token", word)));
        let masked = Handle::of(&job.without(&secrets, &Schedulers::new(ALL))).expect("a handle");
        let shape = |handle: &Handle| {
            let names = handle.objects.iter().map(|object| (object.resource.clone(), object.name.clone()));
            (names.collect::<Vec<_>>(), handle.place.clone(), handle.workload, handle.rules.clone(), handle.keep_seconds)
        };
        assert_eq!(shape(&masked), shape(&handle));
        assert_ne!(main_of(&masked)["spec"], main_of(&handle)["spec"], "nothing was masked");
        assert_eq!((masked.log_file, handle.log_file), (Some(2 << 20), Some(2 << 20)));
    }
}

fn main_of(handle: &Handle) -> &Value {
    &handle.workload().expect("a workload").manifest
}

fn yaml_of(handle: &Handle) -> String {
    let texts: Vec<String> = handle.objects.iter().map(|object| yaml::to_text(&object.manifest)).collect();
    texts.join("---\n")
}

/// What is wrong, and what to do.
fn mistakes_of(workload: &Workload) -> String {
    let mistakes = plan(workload, &Contexts::unknown()).expect_err("a mistake");
    let line = |mistake: &Diagnostic| format!("{}\n  {}", mistake.message, mistake.hint.as_deref().unwrap_or("-"));
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_nbody_job_is_renamed_and_labelled_wherever_metadata_is() {
    let handle = planned(&workload(documents_of(NBODY_JOB)));
    insta::assert_snapshot!(yaml_of(&handle));
    assert_eq!((handle.expected_pods, handle.place.namespace.as_str()), (Some(3), "default"));
    assert_eq!(handle.rules.pods.selector.as_deref(), Some("batch.kubernetes.io/job-name=rfm-jobtest-abcdefgh"));
}

#[test]
fn the_nbody_pod_and_the_ipujob_keep_their_own_names_limits() {
    let handle = planned(&workload(documents_of(NBODY_POD)));
    assert_eq!(main_of(&handle)["metadata"]["name"], "rfm-cuda-test-podabcdefgh");
    let handle = planned(&workload(documents_of(IPU_JOB)));
    insta::assert_snapshot!(yaml_of(&handle));
    assert_eq!((handle.expected_pods, handle.rules.name_max), (Some(1), Some(36)));
}

#[test]
fn long_names_are_shortened_and_stay_unique() {
    let long = "x".repeat(60);
    let map = |end: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("{long}{end}") } });
    let mut main = pod(&long);
    main["spec"]["volumes"] = json!([{ "name": "v", "configMap": { "name": format!("{long}-b") } }]);
    let handle = planned(&workload(vec![map("-a"), map("-b"), main]));
    let names: Vec<&str> = handle.objects.iter().map(|object| object.name.as_str()).collect();
    assert!(names.iter().all(|name| name.len() <= 63 && name.starts_with("rfm-x") && name.ends_with("-abcdefgh")), "{names:?}");
    assert_ne!(names[0], names[1]);
    assert_eq!(main_of(&handle)["spec"]["volumes"][0]["configMap"]["name"], names[1]);
}

#[test]
fn the_manifest_in_memory_is_the_same_after_many_cases() {
    let workload = patched(documents_of(NBODY_JOB), json!({ "spec": { "completions": 5 } }));
    let before = workload.clone();
    let first = planned(&workload);
    for _ in 0..3 {
        assert_eq!(planned(&workload), first);
    }
    assert_eq!(workload, before);
    assert!(!yaml_of(&first).contains("rfm-rfm-"));
}

#[test]
fn namespace_context_and_k8s_resource_reach_the_plan() {
    let contexts = Contexts {
        named: [("one".to_owned(), Some("its-own".to_owned())), ("two".to_owned(), None)].into(),
        current: Some("one".to_owned()),
        ..Contexts::default()
    };
    let rows = [
        (json!({}), "one", "its-own"),
        (json!({ "namespace": "mine" }), "one", "mine"),
        (json!({ "context": "two" }), "two", "default"),
        (json!({ "context": "two", "namespace": "mine" }), "two", "mine"),
    ];
    for (options, context, namespace) in rows {
        let handle = plan(&with(vec![pod("p")], options.clone()), &contexts).expect("a plan").handle;
        assert_eq!((handle.place.context.as_deref(), handle.place.namespace.as_str()), (Some(context), namespace), "{options}");
        assert_eq!(main_of(&handle)["metadata"]["namespace"], namespace);
    }
    let unknown = plan(&with(vec![pod("p")], json!({ "context": "tow" })), &contexts).expect_err("no such context");
    assert_eq!(unknown[0].message, "no context `tow` in the kubeconfig; known: two, one");

    let two = || vec![pod("server"), job("load"), pod("client")];
    for (resource, kind, name) in [
        ("job", "Job", "rfm-load-abcdefgh"),
        ("jobs.batch", "Job", "rfm-load-abcdefgh"),
        ("po/client", "Pod", "rfm-client-abcdefgh"),
    ] {
        let handle = planned(&with(two(), json!({ "k8s_resource": resource })));
        let main = handle.workload().expect("a workload");
        assert_eq!((main.resource.kind.as_str(), main.name.as_str()), (kind, name));
        assert_eq!(handle.workload, 2, "the workload comes last");
    }
}

#[test]
fn section_0_row_10_every_object_of_a_manifest_is_planned_helpers_first_and_references_follow() {
    let manifest = documents_of(
        "
apiVersion: batch/v1
kind: Job
metadata: { name: train }
spec:
  template:
    spec:
      serviceAccountName: runner
      restartPolicy: Never
      subdomain: train
      containers:
        - name: main
          envFrom: [{ configMapRef: { name: settings } }, { secretRef: { name: outside } }]
          volumeMounts: [{ name: settings, mountPath: /etc/train }]
      volumes: [{ name: settings, configMap: { name: settings } }]
---
apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: ConfigMap, metadata: { name: settings, annotations: { metadata: x } }, data: { metadata: 'name: settings' } }
  - { apiVersion: v1, kind: ServiceAccount, metadata: { name: runner } }
---
apiVersion: v1
kind: Service
metadata: { name: train }
spec: { clusterIP: None, selector: {} }
",
    );
    let handle = planned(&workload(manifest));
    insta::assert_snapshot!(yaml_of(&handle));
    assert_eq!(handle.workload, 3);
}

#[test]
fn a_service_selects_only_pods_of_its_own_attempt() {
    let mut server = pod("server");
    server["metadata"]["labels"] = json!({ "app": "db" });
    let service = |app: &str| json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": app }, "spec": { "selector": { "app": app } } });
    let handle = planned(&workload(vec![server, service("db"), service("shared")]));
    assert_eq!(handle.objects[0].manifest["spec"]["selector"], json!({ "app": "db", "rfm": "abcdefgh" }));
    assert_eq!(handle.objects[1].manifest["spec"]["selector"], json!({ "app": "shared" }));
}

#[test]
fn a_volume_claim_template_is_labelled_and_keeps_the_name_it_is_mounted_by() {
    let mut main = pod("p");
    main["spec"]["volumes"] =
        json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "metadata": { "name": "kept" }, "spec": {} } } }]);
    let set = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db" }, "spec": {
        "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {} }], "template": { "spec": { "containers": [] } } } });
    let handle = planned(&workload(vec![main, set]));
    let claim = &handle.objects[0].manifest["spec"]["volumeClaimTemplates"][0]["metadata"];
    assert_eq!((&claim["name"], &claim["labels"]["rfm"]), (&json!("data"), &json!("abcdefgh")));
    let claim = &main_of(&handle)["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["metadata"];
    assert_eq!((&claim["name"], &claim["labels"]["rfm"]), (&json!("kept"), &json!("abcdefgh")));
}

#[test]
fn labels_go_where_a_kind_says_its_pods_are() {
    let spark = json!({ "apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": { "name": "pi" },
        "spec": { "driver": { "cores": 1 }, "executor": { "labels": { "a": "b" } } } });
    let handle = planned(&workload(vec![spark]));
    let labels = json!({ "a": "b", "rfm": "abcdefgh", "rfm-session": "s1" });
    assert_eq!(main_of(&handle)["spec"]["driver"]["labels"]["rfm-session"], "s1");
    assert_eq!(main_of(&handle)["spec"]["executor"]["labels"], labels);
    let flow =
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": { "generateName": "w-" }, "spec": {} });
    let handle = planned(&workload(vec![flow]));
    assert_eq!(main_of(&handle)["spec"]["podMetadata"]["labels"]["rfm"], "abcdefgh");
}

#[test]
fn a_patch_is_for_the_workload_unless_it_names_another_object() {
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } });
    let manifest = || vec![map("one"), map("two"), job("j")];
    let handle = planned(&patched(manifest(), json!({ "spec": { "completions": 4 } })));
    assert_eq!(main_of(&handle)["spec"]["completions"], 4);
    let two = json!({ "kind": "ConfigMap", "metadata": { "name": "two" }, "data": { "a": "2" } });
    let handle = planned(&patched(manifest(), two));
    assert_eq!([&handle.objects[0].manifest["data"]["a"], &handle.objects[1].manifest["data"]["a"]], ["1", "2"]);
    let rows = [json!({ "kind": "ConfigMap", "data": {} }), json!({ "kind": "Secret", "data": {} })];
    let mistakes_of: Vec<String> = rows.into_iter().map(|patch| mistakes_of(&patched(manifest(), patch))).collect();
    insta::assert_snapshot!(mistakes_of.join("\n"));
}

#[test]
fn the_users_labels_go_on_the_workload_alone_and_the_manifests_own_stay() {
    let options =
        json!({ "labels": { QUEUE_LABEL: "site", "team": "hpc", "gone": null, "n": 1 }, "annotations": { "why": "test" } });
    let handle = planned(&with(documents_of(NBODY_JOB), options));
    let metadata = &main_of(&handle)["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({ QUEUE_LABEL: "eidf095ns-user-queue", "team": "hpc", "n": "1", "rfm": "abcdefgh", "rfm-session": "s1" })
    );
    assert_eq!(metadata["annotations"], json!({ "why": "test", "rfm/case": "nbody %n=1 @eidf:gpu+default" }));
    let template = &main_of(&handle)["spec"]["template"]["metadata"]["labels"];
    assert_eq!(template, &json!({ "rfm": "abcdefgh", "rfm-session": "s1" }));
}

#[test]
fn env_vars_enter_primary_containers_that_do_not_set_them() {
    let mut main = job("j");
    main["spec"]["template"]["spec"]["containers"] =
        json!([{ "name": "main", "env": [{ "name": "A", "value": "own" }] }, { "name": "proxy" }]);
    main["spec"]["template"]["spec"]["initContainers"] = json!([{ "name": "init" }]);
    let vars = [("A", "1"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let env = |main: Value, options: Value| {
        let program = Program::Own { env_vars: vars.clone() };
        let handle = planned(&Workload { program, ..with(vec![main], options) });
        let spec = &main_of(&handle)["spec"]["template"]["spec"];
        assert!(spec["initContainers"][0].get("env").is_none());
        [spec["containers"][0]["env"].clone(), spec["containers"][1]["env"].clone()]
    };
    let filled = json!([{ "name": "A", "value": "own" }, { "name": "B", "value": "2" }]);
    let both = json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]);
    assert_eq!(env(main.clone(), json!({})), [filled.clone(), both]);
    let rule = json!({ "k8s_workloads": [{ "match": { "group": "batch", "kind": "Job" }, "primary_containers": ["main"] }] });
    assert_eq!(env(main.clone(), rule), [filled.clone(), Value::Null]);
    main["spec"]["template"]["metadata"] = json!({ "annotations": { "kubectl.kubernetes.io/default-container": "main" } });
    assert_eq!(env(main, json!({})), [filled, Value::Null]);
}

#[test]
fn on_an_ipu_partition_an_ipujob_is_the_workload_unless_the_check_says_otherwise() {
    let ipu_job = json!({ "apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "metadata": { "name": "i" },
        "spec": { "jobInstances": 1, "workers": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] } } } } });
    let kind = |scheduler: &'static str, options: Value| {
        let workload = Workload { scheduler: scheduler.into(), ..with(vec![ipu_job.clone(), pod("p")], options) };
        plan(&workload, &Contexts::unknown()).map(|plan| plan.handle.workload().unwrap().resource.kind.clone()).ok()
    };
    assert_eq!(kind("ipu", json!({})).as_deref(), Some("IPUJob"));
    assert_eq!(kind("ipu", json!({ "k8s_resource": "pod" })).as_deref(), Some("Pod"));
    assert_eq!(kind("k8s", json!({})), None, "there are two");
}

#[test]
fn a_container_becomes_a_pod_that_ends() {
    let vars = vec![("PATH".to_owned(), "$PATH:/opt".to_owned())];
    let container = |command: Option<&[&str]>| Program::Container {
        image: "rfm.test/busybox:1".to_owned(),
        command: command.map(|argv| argv.iter().map(|word| (*word).to_owned()).collect()),
        script: "#!/bin/sh\nexport PATH=\"$PATH:/opt\"\necho $$ $(hostname)\n".to_owned(),
        env_vars: vars.clone(),
    };
    let own = || Map::from_iter([(PATCH.to_owned(), json!({ "spec": { "nodeSelector": { "gpu": "a100" } } }))]);
    let options = json!({ "resources": { "limits": { "nvidia.com/gpu": 1 } } });
    let script = planned(&Workload { program: container(None), own: own(), ..with(Vec::new(), options) });
    insta::assert_snapshot!(yaml_of(&script));
    let argv = planned(&Workload { program: container(Some(&["echo", "$(X)"])), own: own(), ..workload(Vec::new()) });
    let main = &main_of(&argv)["spec"]["containers"][0];
    assert_eq!(main["command"], json!(["echo", "$$(X)"]));
    assert_eq!(main["env"], json!([{ "name": "PATH", "value": "$PATH:/opt" }]));
}

#[test]
fn section_0_row_9_the_cluster_itself_ends_what_no_harness_cleans_up() {
    let limits =
        Limits { pending: Some(Duration::from_hours(2)), run: Some(Duration::from_mins(10)), judge: Duration::from_mins(5) };
    let deadline = |manifest: Value, path: &str| {
        let handle = planned(&Workload { limits, ..workload(vec![manifest]) });
        main_of(&handle).pointer(path).and_then(Value::as_u64)
    };
    let seconds = 130 * 60 + 300;
    assert_eq!(deadline(pod("p"), "/spec/activeDeadlineSeconds"), Some(seconds));
    assert_eq!(deadline(job("j"), "/spec/activeDeadlineSeconds"), Some(seconds));
    let mut own = job("j");
    own["spec"]["activeDeadlineSeconds"] = 60.into();
    assert_eq!(deadline(own, "/spec/activeDeadlineSeconds"), Some(60));
    let mpi = json!({ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": { "name": "m" }, "spec": {} });
    assert_eq!(deadline(mpi, "/spec/runPolicy/activeDeadlineSeconds"), Some(seconds));
}

#[test]
fn every_workload_has_a_deadline_in_the_cluster_where_its_kind_can_have_one() {
    let seconds = 24 * 3600;
    let deadline = |manifest: Value, options: Value| {
        let handle = planned(&with(vec![manifest], options));
        let found: Vec<String> = paths_of(main_of(&handle), "activeDeadlineSeconds");
        (found.join(" "), handle.deadline.map(|deadline| deadline.seconds))
    };
    let template = || json!({ "metadata": {}, "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] } });
    let of = |api: &str, kind: &str, spec: Value| json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "x" }, "spec": spec });
    let jobs = json!({ "replicatedJobs": [{ "name": "a", "template": { "spec": { "template": template() } } }] });
    let lws = json!({ "leaderWorkerTemplate": { "workerTemplate": template() } });
    let wrapped = json!({ "components": [
        { "template": { "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "template": template() } } },
        { "template": { "apiVersion": "batch/v1", "kind": "Job", "spec": { "template": template() } } },
    ] });
    let own = |seconds: u64| {
        let mut own = pod("p");
        own["spec"]["activeDeadlineSeconds"] = seconds.into();
        own
    };
    let rows = [
        (pod("p"), json!({}), "spec=86400", Some(seconds)),
        (pod("p"), json!({ "max_lifetime": "1h" }), "spec=3600", Some(3600)),
        (pod("p"), json!({ "max_lifetime": 60 }), "spec=60", Some(60)),
        (pod("p"), json!({ "max_lifetime": null }), "", None),
        (own(60), json!({}), "spec=60", None),
        (own(1_000_000), json!({}), "spec=1000000", None),
        (
            of("jobset.x-k8s.io/v1alpha2", "JobSet", jobs),
            json!({}),
            "spec.replicatedJobs.0.template.spec.template.spec=86400",
            Some(seconds),
        ),
        (of("example.org/v1", "Gang", json!({ "worker": template() })), json!({}), "spec.worker.spec=86400", Some(seconds)),
        (of("example.org/v1", "Gang", json!({ "image": "i" })), json!({}), "", None),
        (of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", lws), json!({}), "", None),
        (
            of("workload.codeflare.dev/v1beta2", "AppWrapper", wrapped),
            json!({}),
            "spec.components.1.template.spec.template.spec=86400",
            Some(seconds),
        ),
    ];
    for (manifest, options, places, expected) in rows {
        let name = manifest["kind"].to_string();
        assert_eq!(deadline(manifest, options), (places.to_owned(), expected), "{name}");
    }
    let deployment = of("apps/v1", "Deployment", json!({ "template": template() }));
    let beside = planned(&workload(vec![deployment, pod("p")]));
    let helper = &beside.objects.iter().find(|object| object.resource.kind == "Deployment").expect("the helper").manifest;
    assert_eq!(paths_of(helper, "activeDeadlineSeconds"), [""; 0], "the API refuses it there");
}

/// Where a key is, with its value: `spec=60`.
fn paths_of(value: &Value, wanted: &str) -> Vec<String> {
    fn find(value: &Value, path: &[String], wanted: &str, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, child)| (key.clone(), child)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, child)| (index.to_string(), child)).collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            if key == wanted {
                found.push(format!("{}={child}", path.join(".")));
            }
            find(child, &[path, &[key]].concat(), wanted, found);
        }
    }
    let mut found = Vec::new();
    find(value, &[], wanted, &mut found);
    found
}

#[test]
fn a_ttl_never_races_the_logs() {
    let ttl = |seconds: u64, keep: Option<Duration>| {
        let mut manifest = job("j");
        manifest["spec"]["ttlSecondsAfterFinished"] = seconds.into();
        let workload = Workload { keep_failed: keep, ..workload(vec![manifest]) };
        let plan = plan(&workload, &Contexts::unknown()).expect("a plan");
        (main_of(&plan.handle)["spec"]["ttlSecondsAfterFinished"].as_u64(), plan.notes.len())
    };
    assert_eq!(ttl(0, Some(Duration::from_mins(1))), (Some(3600), 1));
    assert_eq!(ttl(100, None), (Some(24 * 3600), 1));
    assert_eq!(ttl(100_000, None), (Some(100_000), 0));
}

#[test]
fn a_pod_without_a_restart_policy_ends_and_says_so() {
    let mut manifest = pod("p");
    manifest["spec"].as_object_mut().expect("a map").remove("restartPolicy");
    let plan = plan(&workload(vec![manifest]), &Contexts::unknown()).expect("a plan");
    assert_eq!(main_of(&plan.handle)["spec"]["restartPolicy"], "Never");
    assert_eq!(plan.notes, ["spec.restartPolicy of Pod is Never, because the manifest does not set it"]);
    let mut always = pod("p");
    always["spec"]["restartPolicy"] = "Always".into();
    let rule = json!({ "k8s_workloads": [{ "match": { "kind": "Pod" }, "succeeded": "size(pods) == 1" }] });
    assert_eq!(main_of(&planned(&with(vec![always], rule)))["spec"]["restartPolicy"], "Always");
}

#[test]
fn a_queued_job_set_is_deleted_where_suspending_it_would_not_last() {
    let set = |labels: Value| {
        json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": { "name": "s", "labels": labels },
            "spec": { "suspend": labels != json!({}) } })
    };
    let free = planned(&workload(vec![set(json!({}))]));
    assert_eq!(free.rules.stop, crate::kind::Stop::Patch(json!({ "spec": { "suspend": true } })));
    let queued = planned(&workload(vec![set(json!({ QUEUE_LABEL: "q" }))]));
    assert_eq!(queued.rules.stop, crate::kind::Stop::Delete);
}

#[test]
fn every_mistake_says_what_is_wrong_where_and_what_to_do() {
    let mut always = pod("p");
    always["spec"]["restartPolicy"] = "Always".into();
    let mut suspended = job("j");
    suspended["spec"]["suspend"] = true.into();
    let mut elsewhere = pod("p");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" } });
    let nameless = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [] } });
    let cluster = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "admin" } });
    let rows = [
        workload(vec![]),
        workload(vec![json!({ "kind": "Pod" })]),
        workload(vec![cluster]),
        workload(vec![map.clone()]),
        workload(vec![pod("a"), pod("b")]),
        workload(vec![map.clone(), map, pod("p")]),
        workload(vec![nameless]),
        workload(vec![always]),
        workload(vec![suspended]),
        with(vec![elsewhere], json!({ "namespace": "bench" })),
        with(vec![pod("p")], json!({ "k8s_resource": "job" })),
        with(vec![pod("p")], json!({ "labels": { "a": [] }, "namespace": 3, "policy": { "namespace": [] } })),
        with(vec![pod("p")], json!({ "k8s_workloads": [{ "match": { "kind": "Pod" }, "failed": "pod" }] })),
        with(vec![pod("p")], json!({ "policy": { "namespaces": ["bench"], "max_pods": 0 } })),
        with(vec![pod("p")], json!({ "max_lifetime": "soon", "hopeless_after": [] })),
        with(vec![pod("p")], json!({ "container_log_max_size": "0.5" })),
        with(vec![pod("p")], json!({ "container_log_max_size": "2 MB" })),
        workload((0..51).map(|n| pod(&n.to_string())).collect()),
        workload(vec![json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "x": "y".repeat(4 << 20) })]),
        Workload { own: Map::new(), ..workload(vec![]) },
    ];
    let mistakes_of: Vec<String> = rows.iter().map(mistakes_of).collect();
    insta::assert_snapshot!(mistakes_of.join("\n"));
}

/// Any JSON with `metadata` and templates strewn over it.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-z]{0,4}".prop_map(Value::from)];
    let keys = prop_oneof![
        Just("metadata".to_owned()),
        Just("template".to_owned()),
        Just("spec".to_owned()),
        Just("containers".to_owned()),
        Just("name".to_owned()),
        Just("labels".to_owned()),
        Just("annotations".to_owned()),
        "[a-z]{1,3}",
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

/// Every metadata map outside of people's data, with the labels it has.
fn unlabelled(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(unlabelled).sum(),
        Value::Object(map) => {
            let own = map.get("metadata").filter(|metadata| metadata.is_object());
            let missing =
                own.is_some_and(|metadata| metadata["labels"]["rfm"] != "abcdefgh" || metadata["labels"]["rfm-session"] != "s1");
            let rest = map.iter().filter(|(key, _)| !["metadata", "labels", "annotations"].contains(&key.as_str()));
            usize::from(missing) + rest.map(|(_, child)| unlabelled(child)).sum::<usize>()
        }
        _ => 0,
    }
}

#[test]
fn a_node_is_where_every_pod_of_the_workload_runs() {
    let mut main = job("solve");
    main["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    for (manifest, path) in [(main, "/spec/template/spec/nodeSelector"), (pod("solve"), "/spec/nodeSelector")] {
        let handle = planned(&with(vec![manifest], json!({ "node": "gpu-17" })));
        let object = &handle.workload().expect("a workload").manifest;
        assert_eq!(object.pointer(path).expect(path)["kubernetes.io/hostname"], "gpu-17");
    }
}

proptest! {
    #[test]
    fn whatever_the_manifest_every_metadata_is_labelled_and_the_input_untouched(
        spec in any_value(),
        name in "[a-z][a-z0-9-]{0,80}",
        generated in any::<bool>(),
    ) {
        let key = if generated { "generateName" } else { "name" };
        let manifest = json!({ "apiVersion": "example.org/v1", "kind": "Thing", "metadata": { key: name }, "spec": spec });
        let workload = workload(vec![manifest]);
        let before = workload.clone();
        let handle = planned(&workload);
        prop_assert_eq!(&workload, &before);
        let object = handle.workload().expect("a workload");
        prop_assert_eq!(unlabelled(&object.manifest), 0);
        prop_assert!(object.name.len() <= 63 && object.name.starts_with("rfm-") && object.name.ends_with("abcdefgh"));
        prop_assert!(name.starts_with("rfm-") || !object.manifest.to_string().contains("rfm-rfm-"));
        prop_assert!(object.manifest["metadata"].get("generateName").is_none());
        let stored = Handle::of(&muster_core::job::scheduler::Job {
            identifier: workload.identifier.clone(),
            session: workload.session.clone(),
            case: String::new(),
            scheduler: crate::SCHEDULER.own_name().into(),
            stage: PathBuf::new(),
            handle: serde_json::to_value(&handle).unwrap().into(),
        });
        prop_assert_eq!(&*stored.expect("read back"), &handle);
    }
}
