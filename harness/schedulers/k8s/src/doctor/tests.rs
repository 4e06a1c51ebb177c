//! Answers of a server, and the lines that `muster doctor` makes of them.

use super::*;
use crate::{
    api::{QUEUE_LABEL, Resource},
    client::testing::{self, Reply},
    job::Object,
    kind::WorkloadRules,
    preflight,
    session::SharedState,
};
use muster_core::{case::SessionId, decisions::liveness::HeartbeatTiming};
use muster_text::Value;
use serde_json::json;

fn handle(kind: (&str, &str), queue: Option<&str>, cpus: u32) -> Handle {
    let labels = queue.map_or_else(|| json!({}), |queue| json!({ QUEUE_LABEL: queue }));
    let pod = json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": cpus } } }] });
    let spec = if kind.1 == "Pod" { pod } else { json!({ "template": { "spec": pod } }) };
    let manifest = json!({ "kind": kind.1, "metadata": { "name": "x", "labels": labels }, "spec": spec });
    let object = Object { resource: Resource::of(kind.0, kind.1), name: "x".into(), manifest, uid: None };
    Handle { place: testing::place(), objects: vec![object], rules: WorkloadRules::default(), ..Handle::default() }
}

fn lines(found: &[Probed]) -> String {
    let line = |probed: &Probed| {
        let hint = probed.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{} {}: {}{hint}", probed.level, probed.topic, probed.what)
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What is said of two pods and a queued Job on a server that grants everything, but for what `answer` says.
async fn said(mut answer: impl FnMut(&str, &Value) -> Option<Reply> + Send + 'static) -> String {
    let all = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
    let (cluster, _) = testing::cluster(move |line, sent| {
        answer(line, sent).unwrap_or_else(|| match line {
            line if line.contains("rulesreviews") => Reply::json(&json!({ "status": { "resourceRules": all } })),
            line if line.contains("resourcequotas") => Reply::list("1", &[]),
            "GET /apis/kueue.x-k8s.io" => Reply::json(&json!({ "preferredVersion": { "version": "v1beta1" } })),
            "GET /apis/kueue.x-k8s.io/v1beta1" => {
                Reply::json(&json!({ "resources": [{ "name": "localqueues", "kind": "LocalQueue", "namespaced": true }] }))
            }
            _ => Reply::json(&json!({})),
        })
    });
    let mut plans = PlacePlans::default();
    let handles = [handle(("v1", "Pod"), None, 2), handle(("v1", "Pod"), None, 8), handle(("batch/v1", "Job"), Some("q"), 1)];
    for (at, handle) in handles.iter().enumerate() {
        plans.add(at, handle);
    }
    let names = ["small", "large", "queued"].map(str::to_owned);
    let shared = SharedState::new(cluster, &SessionId("s".into()), HeartbeatTiming::default());
    let answers = preflight::answers(&shared, plans.needs(), plans.rights()).await.unwrap();
    lines(&answered(&testing::place(), &plans, &names, &answers))
}

#[tokio::test]
async fn what_is_in_order_is_said_in_a_line_each() {
    insta::assert_snapshot!(said(|_, _| None).await);
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_all_that_is_said() {
    let gone = said(|line, _| {
        line.ends_with("/api/v1/namespaces/n").then(|| Reply::refusal(404, "NotFound", "namespaces \"n\" not found"))
    });
    insta::assert_snapshot!(gone.await, @"error namespace: there is no namespace n (create it, or set `namespace`)");
}

#[tokio::test]
async fn rights_queues_and_quotas_are_errors_where_cases_cannot_run_and_warnings_where_they_wait() {
    let quota = |used: u32| json!({ "metadata": { "name": "compute" }, "status": { "hard": { "requests.cpu": "4" }, "used": { "requests.cpu": used.to_string() } } });
    let stopped = json!({ "status": { "conditions": [{ "type": "Active", "status": "False", "message": "its ClusterQueue is stopped" }] } });
    let rules = json!([
        { "verbs": ["*"], "apiGroups": ["", "batch", "coordination.k8s.io"], "resources": ["jobs", "leases", "pods/log"] },
        { "verbs": ["get", "list", "watch", "patch", "delete"], "apiGroups": [""], "resources": ["pods"] },
    ]);
    let bad = said(move |line, sent| match line {
        line if line.contains("rulesreviews") => Some(Reply::json(&json!({ "status": { "resourceRules": rules } }))),
        line if line.contains("accessreviews") => {
            let verb = sent["spec"]["resourceAttributes"]["verb"].as_str().unwrap_or_default();
            Some(Reply::json(&json!({ "status": { "allowed": verb == "get" } })))
        }
        line if line.contains("resourcequotas") => Some(Reply::list("1", &[quota(4)])),
        line if line.contains("localqueues/q") => Some(Reply::json(&stopped)),
        _ => None,
    });
    insta::assert_snapshot!(bad.await);
}

#[tokio::test]
async fn what_the_server_would_not_say_is_a_warning() {
    let refused = said(|line, _| {
        let is_asked = line.contains("rulesreviews") || line.contains("resourcequotas") || line.contains("/namespaces/n ");
        is_asked.then(|| Reply::refusal(403, "Forbidden", "x is forbidden: User \"u\" cannot list resource \"x\""))
    });
    insta::assert_snapshot!(refused.await);
}

#[test]
fn a_server_that_is_not_reached_is_named_with_its_address_and_what_to_do() {
    let route = Route { server: "https://k:6443".into(), proxy: Some("http://p:3128".into()), plugin: None };
    let place = testing::place();
    let said = [
        not_contacted(&place, &route.server, &testing::refused(Why::Unauthorized)),
        silent("cluster", &place, &route, Duration::from_secs(8)),
        proxy(&route),
        proxy_without_answer(&route),
        no_credentials(&place, &route, Duration::from_secs(8)),
        no_credentials(&place, &Route { plugin: Some("aws".into()), ..route.clone() }, Duration::from_secs(8)),
        proxy(&Route { proxy: None, ..route }),
    ];
    insta::assert_snapshot!(lines(&said));
}
