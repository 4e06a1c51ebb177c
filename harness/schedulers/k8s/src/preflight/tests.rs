//! Tests of the findings, as tables of needs and answers, and of the number of requests.

use super::*;
use crate::{
    client::testing::{self, Reply},
    job::Object,
    kind::WorkloadRules,
    session::SharedState,
};
use muster_core::{case::SessionId, decisions::liveness::HeartbeatTiming};
use serde_json::json;

fn object(api_version: &str, kind: &str, spec: &Value, queue: Option<&str>) -> Object {
    let labels = queue.map_or_else(|| json!({}), |queue| json!({ QUEUE_LABEL: queue }));
    let manifest = json!({ "kind": kind, "metadata": { "name": "x", "labels": labels }, "spec": spec });
    Object { resource: Resource::of(api_version, kind), name: "x".into(), manifest, uid: None }
}

fn containers(cpus: u32) -> Value {
    json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": cpus } } }] })
}

fn pod(cpus: u32) -> Handle {
    handle(vec![object("v1", "Pod", &containers(cpus), None)])
}

fn queued() -> Handle {
    handle(vec![object("batch/v1", "Job", &json!({ "template": { "spec": containers(1) } }), Some("q"))])
}

fn custom() -> Handle {
    handle(vec![object("v1", "ConfigMap", &json!({}), None), object("graphcore.ai/v1alpha1", "IPUJob", &json!({}), None)])
}

fn handle(objects: Vec<Object>) -> Handle {
    let (workload, rules) = (objects.len() - 1, WorkloadRules::default());
    Handle { place: testing::place(), objects, workload, expected_pods: None, rules, keep_seconds: 0, ..Handle::default() }
}

fn lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let hint = finding.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{:?} {}{hint}", finding.workloads, finding.what)
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn needs(plans: &[(usize, Handle)]) -> Needs {
    let mut needs = Needs::default();
    for (at, handle) in plans {
        needs.add(*at, handle);
    }
    needs
}

fn found(answers: &Answers) -> String {
    let Needs(needs) = needs(&[(0, pod(2)), (1, queued()), (3, pod(2)), (4, custom()), (5, pod(8))]);
    let (place, needs) = needs.first_key_value().unwrap();
    assert_eq!(needs.len(), 4, "what two jobs need is asked once");
    lines(&findings(place, needs, answers))
}

#[test]
fn each_answer_concerns_the_jobs_that_need_what_is_missing() {
    insta::assert_snapshot!(found(&Answers::default()), @"");
    insta::assert_snapshot!(found(&Answers { no_namespace: true, ..Answers::default() }), @"[0, 1, 3, 4, 5] there is no namespace n (create it, or set `namespace`)");
    let ipu = Resource::of("graphcore.ai/v1alpha1", "IPUJob");
    let unknown_kinds = BTreeMap::from([(ipu, "the server does not know IPUJob".to_owned())]);
    insta::assert_snapshot!(found(&Answers { unknown_kinds, ..Answers::default() }), @"[4] the server does not know IPUJob");
    let quota = json!({ "metadata": { "name": "compute" }, "status": { "hard": { "requests.cpu": "4" }, "used": { "requests.cpu": "4" } } });
    insta::assert_snapshot!(found(&Answers { quotas: vec![quota], ..Answers::default() }), @"[5] requests.cpu requested 8, but quota compute has 4 at all: ask for less, or have the quota raised");
    let missing_queues = BTreeSet::from(["q".to_owned()]);
    insta::assert_snapshot!(found(&Answers { missing_queues, ..Answers::default() }), @"[1] there is no LocalQueue q in namespace n (create it, or change the label kueue.x-k8s.io/queue-name)");
}

#[test]
fn pods_of_all_templates_are_measured_together() {
    let of = |replicas: u32| json!({ "replicas": replicas, "template": { "spec": containers(1) } });
    let spec = json!({ "mpiReplicaSpecs": { "Launcher": of(1), "Worker": of(2) } });
    let mpi_job = || handle(vec![object("kubeflow.org/v2beta1", "MPIJob", &spec, None)]);
    let said = |pods: u32, used: u32| {
        let quota = json!({ "metadata": { "name": "q" }, "status": { "hard": { "pods": pods }, "used": { "pods": used } } });
        let answers = Answers { quotas: vec![quota], ..Answers::default() };
        let Needs(needs) = needs(&[(0, mpi_job())]);
        let (place, needs) = needs.first_key_value().unwrap();
        let waits = needs.keys().flat_map(|need| need.waits_for(&answers)).collect::<Vec<_>>().join("\n");
        (lines(&findings(place, needs, &answers)), waits)
    };
    insta::assert_snapshot!(said(2, 0).0, @"[0] 3 pods at once: pods requested 3, but quota q has 2 at all: ask for less, or have the quota raised");
    assert_eq!(said(2, 0).1, "");
    assert_eq!(said(3, 1), (String::new(), "quota q: pods requested 3, used 1, limited 3".to_owned()));
    assert_eq!(said(3, 0), (String::new(), String::new()));
}

#[test]
fn all_rights_that_a_job_misses_are_one_finding() {
    let right = |group: &str, plural: &str, verb: &'static str| Right { group: group.into(), plural: plural.into(), verb };
    let denied = [
        right("", "pods", "create"),
        right("", "pods", "delete"),
        right("batch", "jobs", "create"),
        right("", "pods/log", "get"),
    ];
    let found = found(&Answers { denied: denied.into(), ..Answers::default() });
    insta::assert_snapshot!(found, @r#"
    [0, 3, 5] rights in namespace n are missing: create, delete pods; get pods/log (add to a Role there, or apply what `muster k8s role` prints: {apiGroups: [""], resources: [pods], verbs: [create, delete]} {apiGroups: [""], resources: [pods/log], verbs: [get]})
    [1] rights in namespace n are missing: get pods/log; create jobs.batch (add to a Role there, or apply what `muster k8s role` prints: {apiGroups: [""], resources: [pods/log], verbs: [get]} {apiGroups: [batch], resources: [jobs], verbs: [create]})
    [4] rights in namespace n are missing: get pods/log (add to a Role there, or apply what `muster k8s role` prints: {apiGroups: [""], resources: [pods/log], verbs: [get]})
    "#);
}

/// What a server that answers so says of some jobs, and what it was asked.
async fn asked(
    handles: Vec<Handle>,
    mut answer: impl FnMut(&str, &Value) -> Option<Reply> + Send + 'static,
) -> (String, Vec<String>) {
    let all = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
    let (cluster, requests) = testing::cluster(move |line, sent| {
        answer(line, sent).unwrap_or_else(|| match line {
            line if line.contains("rulesreviews") => Reply::json(&json!({ "status": { "resourceRules": all } })),
            line if line.contains("resourcequotas") => Reply::list("1", &[]),
            _ => Reply::json(&json!({})),
        })
    });
    let shared = SharedState::new(cluster, &SessionId("s".into()), HeartbeatTiming::default());
    let Needs(needs) = needs(&handles.into_iter().enumerate().collect::<Vec<_>>());
    let found = match ask(&shared, needs.values().next().unwrap()).await {
        Ok(findings) => lines(&findings),
        Err(error) => format!("error: {error}"),
    };
    (found, requests.full())
}

#[tokio::test]
async fn many_pods_take_three_requests() {
    let (found, requests) = asked((0..200).map(|n| pod(n % 3)).collect(), |_, _| None).await;
    assert_eq!(found, "");
    let expected = [
        "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        "GET /api/v1/namespaces/n",
        "GET /api/v1/namespaces/n/resourcequotas?limit=500",
    ];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn a_right_that_no_rule_grants_is_missing_only_if_the_server_says_so() {
    for (allowed, expected) in [(true, ""), (false, "[0] rights in namespace n are missing: create pods")] {
        let (found, requests) = asked(vec![pod(1)], move |line, sent| {
            if line.contains("rulesreviews") {
                let verbs = ["get", "list", "watch", "patch", "delete"];
                let rules = json!([{ "verbs": verbs, "apiGroups": [""], "resources": ["pods", "pods/log"] }]);
                return Some(Reply::json(&json!({ "status": { "resourceRules": rules, "incomplete": true } })));
            }
            line.contains("accessreviews").then(|| {
                assert_eq!(sent["spec"]["resourceAttributes"]["verb"], "create");
                Reply::json(&json!({ "status": { "allowed": allowed } }))
            })
        })
        .await;
        assert!(found.starts_with(expected) && found.is_empty() == allowed, "{found}");
        assert_eq!(requests.len(), 4, "{requests:?}");
    }
}

#[tokio::test]
async fn what_may_not_be_asked_finds_nothing_and_a_server_that_is_away_is_an_error() {
    let (found, _) =
        asked(vec![queued()], |_, _| Some(Reply::refusal(403, "Forbidden", "x is forbidden: User \"u\" cannot get"))).await;
    assert_eq!(found, "");
    let (found, _) = asked(vec![pod(1)], |_, _| Some(Reply::refusal(401, "Unauthorized", "Unauthorized"))).await;
    assert!(found.starts_with("error: "), "{found}");
}

#[tokio::test]
async fn a_namespace_and_a_queue_that_are_not_there_are_found() {
    let gone = |line: &str| line.ends_with("/api/v1/namespaces/n");
    let (found, requests) =
        asked(vec![pod(1)], move |line, _| gone(line).then(|| Reply::refusal(404, "NotFound", "namespaces \"n\" not found")))
            .await;
    insta::assert_snapshot!(found, @"[0] there is no namespace n (create it, or set `namespace`)");
    assert_eq!(requests.len(), 2, "nothing is asked of a namespace that is not there");
    let (found, _) = asked(vec![queued()], |line, _| match line {
        "GET /apis/kueue.x-k8s.io" => Some(Reply::json(&json!({ "preferredVersion": { "version": "v1beta1" } }))),
        "GET /apis/kueue.x-k8s.io/v1beta1" => {
            Some(Reply::json(&json!({ "resources": [{ "name": "localqueues", "kind": "LocalQueue", "namespaced": true }] })))
        }
        line if line.contains("localqueues/q") => {
            Some(Reply::refusal(404, "NotFound", "localqueues.kueue.x-k8s.io \"q\" not found"))
        }
        _ => None,
    })
    .await;
    insta::assert_snapshot!(found, @"[0] there is no LocalQueue q in namespace n (create it, or change the label kueue.x-k8s.io/queue-name)");
}
