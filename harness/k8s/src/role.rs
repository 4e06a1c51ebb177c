//! The least rights that some plans need, as the Roles that an administrator may give.
//!
//! Pods and Jobs are made and taken away, their logs read; a lease says that a session lives. Everything else is asked for only
//! by manifests that carry it. What is [`optional`] makes messages better and nothing possible.

use crate::{
    handle::{ClusterPlace, Handle, Resource},
    kind::Kinds,
    plan::QUEUE_LABEL,
};
use muster_core::Value;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the Roles.
const NAME: &str = "muster";
/// What is done with every kind that a manifest carries. Patch: the mark of what is kept.
const MANAGE: [&str; 6] = ["create", "get", "list", "watch", "patch", "delete"];

/// One Role for each namespace of some plans, whatever the context.
pub fn role(handles: &[Handle]) -> Vec<Value> {
    let mut places: BTreeMap<&str, Vec<&Handle>> = BTreeMap::new();
    for handle in handles {
        places.entry(&handle.place.namespace).or_default().push(handle);
    }
    places.into_iter().map(|(namespace, handles)| object("Role", namespace, "rules", rules(&handles).into())).collect()
}

/// Gives a Role of [`role`] to a ServiceAccount of its namespace.
pub fn binding(place: &ClusterPlace, service_account: &str) -> Value {
    let subject = json!([{ "kind": "ServiceAccount", "name": service_account, "namespace": place.namespace }]);
    let mut binding = object("RoleBinding", &place.namespace, "subjects", subject);
    binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME });
    binding
}

/// Rules that a Role may have beside, each with what is lost without it.
pub fn optional() -> Vec<(&'static str, Value)> {
    vec![
        (
            "which quota a job waits for, and who holds it",
            rule("", &["resourcequotas", "limitranges"], &["get", "list", "watch"]),
        ),
        ("events told the newer way", rule("events.k8s.io", &["events"], &["list"])),
        ("metrics scraped through the API server", rule("", &["pods/proxy"], &["get"])),
    ]
}

fn object(kind: &str, namespace: &str, key: &str, value: Value) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": NAME, "namespace": namespace },
    });
    object[key] = value;
    object
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

fn rules(handles: &[&Handle]) -> Vec<Value> {
    let mut rules = vec![
        rule("", &["pods"], &MANAGE),
        rule("", &["pods/log"], &["get"]),
        rule("", &["events", "resourcequotas"], &["list"]),
        rule("coordination.k8s.io", &["leases"], &["create", "get", "update", "delete"]),
    ];
    let mut carried: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for object in handles.iter().flat_map(|handle| &handle.objects) {
        let resource = &object.resource;
        if (resource.group.as_str(), resource.kind.as_str()) != ("", "Pod") {
            carried.entry(&resource.group).or_default().insert(plural(resource));
        }
    }
    for (group, resources) in carried {
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        rules.push(rule(group, &resources, &MANAGE));
    }
    let is_queued = |handle: &&Handle| {
        handle.workload().is_some_and(|workload| workload.manifest["metadata"]["labels"].get(QUEUE_LABEL).is_some())
    };
    if handles.iter().any(is_queued) {
        rules.push(rule("kueue.x-k8s.io", &["workloads"], &["list"]));
    }
    rules
}

/// As the API serves it; for a kind that nobody knows what it is most probably called.
fn plural(resource: &Resource) -> String {
    let known = || Kinds::known().find(resource).and_then(|kind| kind.plural.clone());
    resource.plural.clone().or_else(known).unwrap_or_else(|| crate::kind::plural(&resource.kind.to_lowercase()))
}
