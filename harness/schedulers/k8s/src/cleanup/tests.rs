use super::*;
use crate::{
    client::testing::{self, Reply, Requests},
    job::Object,
    kind::{Stop, WorkloadRules},
    status::testing::Scene,
};
use muster_core::{
    case::{Identifier, SessionId},
    error::{Class, chain},
};
use serde_json::json;
use std::sync::Mutex;

const DEADLINE: &str = "stop: {patch: {spec: {activeDeadlineSeconds: 1}}}";
const SUSPEND: &str = "stop: {patch: {spec: {suspend: true}}}";

fn object(kind: &str, name: &str, uid: Option<&str>) -> Object {
    let plural = Some(format!("{}s", kind.to_lowercase()));
    Object {
        resource: Resource { plural, ..Resource::of("v1", kind) },
        name: name.into(),
        manifest: json!({}),
        uid: uid.map(str::to_owned),
    }
}

fn handle(uid: Option<&str>) -> Handle {
    let stop = Stop::Patch(json!({"spec": {"activeDeadlineSeconds": 1}}));
    Handle {
        place: testing::place(),
        objects: vec![object("ConfigMap", "rfm-c", uid.map(|_| "c")), object("Pod", "rfm-x", uid)],
        workload: 1,
        expected_pods: None,
        rules: WorkloadRules { stop, ..WorkloadRules::default() },
        keep_seconds: 60,
        ..Handle::default()
    }
}

fn job(stage: &std::path::Path) -> Job {
    Job {
        identifier: Identifier::parse("abcdefgh").unwrap(),
        session: SessionId("s".into()),
        case: "case".into(),
        scheduler: crate::SCHEDULER.own_name().into(),
        stage: stage.into(),
        handle: Value::Null.into(),
    }
}

fn pod(phase: &str) -> Value {
    let labels = json!({"rfm": "abcdefgh"});
    let status = json!({"phase": phase, "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [
        {"name": "main", "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
         "state": if phase == "Running" { json!({"running": {}}) } else { json!({"terminated": {"exitCode": 3}}) }}]});
    json!({"metadata": {"name": "rfm-x", "uid": "u", "labels": labels}, "spec": {"containers": [{"name": "main"}]}, "status": status})
}

/// Ends a job on a server that has this pod, and answers everything else with `answer`; with what was patched.
async fn ended(
    handle: Handle,
    how: Disposition,
    pod: Option<Value>,
    mut answer: impl FnMut(&str) -> Reply + Send + 'static,
) -> (Result<Leftovers, SchedulerError>, Requests, Vec<Value>, tempfile::TempDir) {
    let patches = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&patches);
    let (cluster, requests) = testing::cluster(move |line, body| match line {
        line if line.contains("watch=true") => Reply::events(&[], true),
        line if line.contains("labelSelector=rfm-session") => Reply::list("1", pod.as_slice()),
        line if line.contains("/events") => Reply::list("1", &[]),
        line => {
            if line.starts_with("PATCH") {
                kept.lock().unwrap().push(body.clone());
            }
            answer(line)
        }
    });
    let stage = tempfile::tempdir().unwrap();
    let (shared, job) = (
        SharedState::new(cluster, &SessionId("s".into()), muster_core::decisions::liveness::HeartbeatTiming::default()),
        job(stage.path()),
    );
    let mut observed = shared.observe(&job, &handle);
    if handle.objects[1].uid.is_some() {
        observed.changed().await.unwrap();
    }
    let leftovers = cleanup(&shared, &job, &handle, how).await;
    let patches = patches.lock().unwrap().clone();
    (leftovers, requests, patches, stage)
}

fn changes(requests: &Requests) -> Vec<String> {
    requests.paths().into_iter().filter(|path| path.starts_with("DELETE") || path.starts_with("PATCH")).collect()
}

fn gone() -> Reply {
    Reply::json(&json!({"kind": "Status", "status": "Success"}))
}

#[tokio::test(start_paused = true)]
async fn the_workload_goes_first_and_what_is_gone_already_is_fine() {
    let absent = |line: &str| if line.contains("pods") { gone() } else { Reply::refusal(404, "NotFound", "not found") };
    let (leftovers, requests, ..) = ended(handle(Some("u")), Disposition::Delete, Some(pod("Succeeded")), absent).await;
    assert_eq!(changes(&requests), ["DELETE /api/v1/pods/rfm-x", "DELETE /api/v1/configmaps/rfm-c"]);
    assert_eq!(leftovers.unwrap(), Leftovers::default());
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_to_the_launch_everything_with_the_label_goes() {
    let answer = |line: &str| match line {
        line if line.starts_with("DELETE") => gone(),
        line if line.contains("pods?labelSelector=rfm%3Dabcdefgh") => {
            Reply::list("1", &[json!({"metadata": {"name": "rfm-x", "uid": "u"}})])
        }
        _ => Reply::list("1", &[]),
    };
    let (leftovers, requests, ..) = ended(handle(None), Disposition::Delete, None, answer).await;
    assert_eq!(changes(&requests), ["DELETE /api/v1/pods/rfm-x"]);
    assert_eq!(leftovers.unwrap(), Leftovers::default());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_is_named_and_never_forced() {
    let held =
        json!({"metadata": {"name": "rfm-x", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}});
    let answer = move |line: &str| if line.contains("pods") { Reply::json(&held) } else { gone() };
    let (leftovers, requests, ..) = ended(handle(Some("u")), Disposition::Delete, Some(pod("Succeeded")), answer).await;
    insta::assert_snapshot!(leftovers.unwrap().items.join("\n"), @"pods rfm-x in namespace n is still there 50 s after its deletion, held by its finalizers x/y; `kubectl -n n delete pods rfm-x`");
    assert!(changes(&requests).iter().all(|path| path.starts_with("DELETE")), "{:?}", changes(&requests));
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_stopped_and_marked_in_one_request() {
    let answer = |_: &str| Reply::json(&json!({}));
    let (leftovers, _, patches, stage) = ended(handle(Some("u")), Disposition::Stop, Some(pod("Running")), answer).await;
    assert_eq!(patches[0]["spec"], json!({"activeDeadlineSeconds": 1}));
    assert_eq!((&patches[0]["metadata"]["uid"], &patches[0]["metadata"]["labels"]), (&json!("u"), &json!({"rfm-kept": "true"})));
    assert!(patches[0]["metadata"]["annotations"]["rfm/expires"].is_string());
    let leftovers = leftovers.unwrap();
    insta::assert_snapshot!(leftovers.items.join("\n"), @"pods rfm-x in namespace n still runs 50 s after it was stopped; `kubectl -n n delete pods rfm-x`");
    assert!(stage.path().join("diag/pods.yaml").exists() && !leftovers.look.is_empty() && !leftovers.delete.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_only_a_silent_node_could_end_is_named_at_once() {
    let mut lost = pod("Running");
    lost["spec"]["nodeName"] = json!("n1");
    lost["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    lost["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]);
    // Far from due yet: a status would still call it running.
    lost["metadata"]["deletionTimestamp"] = json!("2999-01-01T00:00:00Z");
    for how in [Disposition::Delete, Disposition::Stop] {
        let started = Instant::now();
        let there = lost.clone();
        let answer = move |line: &str| if line.contains("pods") { Reply::json(&there) } else { gone() };
        let (leftovers, ..) = ended(handle(Some("u")), how, Some(lost.clone()), answer).await;
        let items = leftovers.unwrap().items.join("\n");
        match how {
            Disposition::Delete => {
                insta::assert_snapshot!(items, @"pods rfm-x in namespace n is deleted, but goes only when its node n1 answers again or is removed from the cluster; `kubectl -n n delete pods rfm-x`");
            }
            Disposition::Stop => {
                insta::assert_snapshot!(items, @"pods rfm-x in namespace n may still run, for its node n1 does not answer; `kubectl -n n delete pods rfm-x`");
            }
        }
        assert!(started.elapsed() < FIRST_LOOK, "{how:?} took {:?}", started.elapsed());
    }
}

#[test]
fn only_its_deletion_keeps_what_never_ran_or_is_queued_from_running_later() {
    const RUNS: &str = "{status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: '@3'}}}]}}";
    const NO_NODE: &str = "{spec: {nodeName: null}, status: {phase: Pending, startTime: null}}";
    let queued = |kind: &str, suspended: bool| {
        Scene::of(kind)
            .object(&format!("{{metadata: {{labels: {{kueue.x-k8s.io/queue-name: q}}}}, spec: {{suspend: {suspended}}}}}"))
            .rules(if kind == "Job" { DEADLINE } else { SUSPEND })
    };
    let job = || Scene::job("{}").rules(DEADLINE);
    let waits = |state: &str| {
        format!(
            "{{status: {{phase: Pending, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, {state}}}]}}}}"
        )
    };
    let init = "{status: {phase: Pending, initContainerStatuses: [{name: fetch, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0}}}]}}";
    let rows = [
        ("a Job in a queue", queued("Job", true), true),
        ("a JobSet in a queue", queued("JobSet", true), true),
        ("a gated pod", Scene::own_pod(NO_NODE).rules(DEADLINE), true),
        ("a Job without a node", job().pod("x-a", NO_NODE), true),
        ("a Job without pods", job(), true),
        ("a Job whose pods are not seen", Scene::job("{status: {active: 1}}").rules(DEADLINE), false),
        ("a Job of another cluster", Scene::job("{spec: {managedBy: kueue.x-k8s.io/multikueue}}").rules(DEADLINE), false),
        ("no image", job().pod("x-a", &waits("state: {waiting: {reason: ErrImagePull}}")), true),
        (
            "not startable",
            job().pod(
                "x-a",
                &waits(
                    "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 128, reason: StartError}}",
                ),
            ),
            true,
        ),
        ("preempted, and in its queue again", queued("Job", true).pod("x-a", RUNS).gone(), true),
        ("what a queue would resume", queued("JobSet", false).pod("x-a", RUNS), true),
        ("no way to stop", job().rules("stop: delete").pod("x-a", RUNS), true),
        ("a Job of a queue that runs", queued("Job", false).pod("x-a", RUNS), false),
        ("one of two pods runs", job().pod("x-a", NO_NODE).pod("x-b", RUNS), false),
        ("its init container has run", job().pod("x-a", init), false),
        (
            "it ran and waits for another image",
            job().pod("x-a", &waits("state: {waiting: {reason: ErrImagePull}}, lastState: {terminated: {exitCode: 1}}")),
            false,
        ),
        ("a JobSet that runs", Scene::of("JobSet").object("{}").rules(SUSPEND).pod("x-a", RUNS), false),
    ];
    for (what, mut scene, goes) in rows {
        scene.observed.from_the_start = true;
        assert_eq!(stop::must_go(&scene.handle, &scene.observed), goes, "{what}");
    }
    assert!(!stop::must_go(&job().handle, &job().observed), "of another process: its pods may not be listed yet");
}

#[tokio::test(start_paused = true)]
async fn what_never_ran_is_described_and_deleted() {
    let mut waits = pod("Pending");
    waits["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "ImagePullBackOff"}});
    let absent = |line: &str| if line.contains("pods") { gone() } else { Reply::refusal(404, "NotFound", "not found") };
    let (leftovers, requests, _, stage) = ended(handle(Some("u")), Disposition::Stop, Some(waits), absent).await;
    assert_eq!(changes(&requests), ["DELETE /api/v1/pods/rfm-x", "DELETE /api/v1/configmaps/rfm-c"]);
    assert_eq!(leftovers.unwrap(), Leftovers { is_gone: true, ..Leftovers::default() });
    let kept = std::fs::read_to_string(stage.path().join("diag/pods.yaml")).unwrap();
    assert!(kept.contains("ImagePullBackOff"), "{kept}");
}

#[tokio::test(start_paused = true)]
async fn what_ended_by_itself_is_kept_and_not_stopped_again() {
    let answer = |_: &str| Reply::json(&json!({}));
    let (leftovers, _, patches, _) = ended(handle(Some("u")), Disposition::Stop, Some(pod("Failed")), answer).await;
    assert_eq!(patches.len(), 1, "the mark of the workload holds for its ConfigMap: {patches:?}");
    assert!(patches[0].get("spec").is_none(), "{patches:?}");
    assert!(leftovers.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_other_objects_of_a_workload_that_is_gone_are_deleted() {
    let answer = |line: &str| match line {
        line if line.starts_with("DELETE") => gone(),
        _ => Reply::refusal(404, "NotFound", "pods \"rfm-x\" not found"),
    };
    let (leftovers, requests, ..) = ended(handle(Some("u")), Disposition::Stop, Some(pod("Failed")), answer).await;
    let expected = ["PATCH /api/v1/pods/rfm-x", "DELETE /api/v1/pods/rfm-x", "DELETE /api/v1/configmaps/rfm-c"];
    assert_eq!(changes(&requests), expected);
    assert_eq!(leftovers.unwrap(), Leftovers::default());
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_reported_with_its_rule() {
    let answer = |_: &str| {
        Reply::refusal(
            403,
            "Forbidden",
            "pods \"rfm-x\" is forbidden: User \"u\" cannot delete resource \"pods\" in API group \"\"",
        )
    };
    let (leftovers, ..) = ended(handle(Some("u")), Disposition::Delete, Some(pod("Succeeded")), answer).await;
    let error = leftovers.unwrap_err();
    assert_eq!(error.class, Class::Config);
    assert!(chain(&error).contains(r#"{apiGroups: [""], resources: [pods], verbs: [delete]}"#), "{}", chain(&error));
}

#[test]
fn only_the_very_object_is_seen_to_be_gone() {
    let resource = Resource { plural: Some("jobs".into()), ..Resource::of("batch/v1", "Job") };
    let target = Target { resource, name: "rfm-x".into(), uid: Some("1".into()), is_workload: true };
    let gone = |uid: &str| Observed { workload: Seen::Gone(json!({"metadata": {"uid": uid}}).into()), ..Observed::default() };
    assert!(is_seen_gone(&target, &gone("1")));
    assert!(!is_seen_gone(&target, &gone("2")));
    assert!(!is_seen_gone(&target, &Observed::default()));
}

#[tokio::test(start_paused = true)]
async fn what_has_a_planned_name_but_not_our_labels_is_left_alone() {
    let whose = [("s", &["DELETE /api/v1/configmaps/rfm-c"][..]), ("another", &[])];
    for (session, deleted) in whose {
        let there = json!({"metadata": {"name": "rfm-c", "uid": "c", "labels": {"rfm": "abcdefgh", "rfm-session": session}}});
        let answer = move |line: &str| match line {
            line if line.starts_with("DELETE") => gone(),
            line if line.contains("pods") => Reply::list("1", &[]),
            line if line.contains("labelSelector") => Reply::refusal(
                403,
                "Forbidden",
                "configmaps is forbidden: User \"u\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"n\"",
            ),
            _ => Reply::json(&there),
        };
        let (leftovers, requests, ..) = ended(handle(None), Disposition::Delete, None, answer).await;
        assert_eq!(changes(&requests), deleted, "{session}");
        assert_eq!(leftovers.unwrap(), Leftovers::default());
    }
}
