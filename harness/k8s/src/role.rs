//! The least rights that some plans need, as the Roles that an administrator may give.
//!
//! Pods and Jobs are made and taken away, their logs read; a lease says that a session lives. Everything else is asked for only
//! by manifests that carry it. Without the rules that only look on (events, quotas, a queue's state) every case still runs, but
//! nobody is told why one waits.

use crate::{
    handle::{Handle, Resource},
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
    roles(handles, true)
}

/// The same without the rules that only look on.
pub fn required(handles: &[Handle]) -> Vec<Value> {
    roles(handles, false)
}

fn roles(handles: &[Handle], looks_on: bool) -> Vec<Value> {
    let mut places: BTreeMap<&str, Vec<&Handle>> = BTreeMap::new();
    for handle in handles {
        places.entry(&handle.place.namespace).or_default().push(handle);
    }
    places.into_iter().map(|(namespace, handles)| object("Role", namespace, "rules", rules(&handles, looks_on).into())).collect()
}

/// Gives a Role of [`role`] to a ServiceAccount of its namespace.
pub fn binding(namespace: &str, service_account: &str) -> Value {
    let subject = json!([{ "kind": "ServiceAccount", "name": service_account, "namespace": namespace }]);
    let mut binding = object("RoleBinding", namespace, "subjects", subject);
    binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME });
    binding
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

fn rules(handles: &[&Handle], looks_on: bool) -> Vec<Value> {
    let mut rules = vec![
        rule("", &["pods"], &MANAGE),
        rule("", &["pods/log"], &["get"]),
        rule("coordination.k8s.io", &["leases"], &["create", "get", "list", "update", "delete"]),
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
    if looks_on {
        rules.push(rule("", &["events", "resourcequotas"], &["list"]));
    }
    if looks_on && handles.iter().any(|handle| is_queued(handle)) {
        rules.push(rule("kueue.x-k8s.io", &["workloads"], &["list"]));
    }
    rules
}

fn is_queued(handle: &Handle) -> bool {
    handle.workload().is_some_and(|workload| {
        workload.manifest.pointer("/metadata/labels").is_some_and(|labels| labels.get(QUEUE_LABEL).is_some())
    })
}

/// As the API serves it; for a kind that nobody knows what it is most probably called.
fn plural(resource: &Resource) -> String {
    let known = || Kinds::known().find(resource).and_then(|kind| kind.plural.clone());
    resource.plural.clone().or_else(known).unwrap_or_else(|| crate::kind::plural(&resource.kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        handle::{ClusterPlace, Object},
        kind::WorkloadRules,
    };

    fn handle(namespace: &str, objects: &[(&str, &str)], labels: &Value) -> Handle {
        let object = |(api_version, kind): &(&str, &str)| Object {
            resource: Resource::of(api_version, kind),
            name: "n".to_owned(),
            manifest: json!({ "metadata": { "labels": labels } }),
            uid: None,
        };
        Handle {
            place: ClusterPlace { context: None, namespace: namespace.to_owned() },
            objects: objects.iter().map(object).collect(),
            workload: objects.len() - 1,
            expected_pods: None,
            rules: WorkloadRules::default(),
            keep_seconds: 0,
        }
    }

    /// `GROUP/RESOURCES: VERBS`, one a line.
    fn lines(role: &Value) -> Vec<String> {
        let words =
            |list: &Value| list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(",");
        let line =
            |rule: &Value| format!("{}/{}: {}", words(&rule["apiGroups"]), words(&rule["resources"]), words(&rule["verbs"]));
        role["rules"].as_array().unwrap().iter().map(line).collect()
    }

    #[test]
    fn a_role_has_what_its_manifests_need_and_no_more() {
        let pods = handle("a", &[("v1", "Pod")], &json!({}));
        let jobs = handle("b", &[("v1", "ConfigMap"), ("v1", "Service"), ("batch/v1", "Job")], &json!({ QUEUE_LABEL: "q" }));
        let custom = handle("b", &[("example.org/v1", "Policy")], &json!({}));
        let roles = role(&[jobs.clone(), pods, custom]);
        let names: Vec<&Value> = roles.iter().map(|role| &role["metadata"]["namespace"]).collect();
        assert_eq!(names, ["a", "b"]);
        let all = "create,get,list,watch,patch,delete";
        let base = [
            format!("/pods: {all}"),
            "/pods/log: get".to_owned(),
            "coordination.k8s.io/leases: create,get,list,update,delete".to_owned(),
        ];
        let [pods, jobs] = [&roles[0], &roles[1]].map(lines);
        assert_eq!(pods, [&base[..], &["/events,resourcequotas: list".to_owned()]].concat());
        let carried =
            [format!("/configmaps,services: {all}"), format!("batch/jobs: {all}"), format!("example.org/policies: {all}")];
        let looks_on = ["/events,resourcequotas: list".to_owned(), "kueue.x-k8s.io/workloads: list".to_owned()];
        assert_eq!(jobs, [&base[..], &carried, &looks_on].concat());
        let required = required(&[handle("a", &[("batch/v1", "Job")], &json!({ QUEUE_LABEL: "q" }))]);
        assert_eq!(lines(&required[0]), [&base[..], &[format!("batch/jobs: {all}")]].concat());
    }
}
