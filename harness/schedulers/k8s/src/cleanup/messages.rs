//! Messages about objects that are not deleted or stopped, and the nodes that keep them because they do not answer.

use crate::{
    api::{ClusterPlace, Resource},
    cleanup::{LIMIT, Target, diagnosis},
    job::{Object, SeenPod},
    status::node_is_silent,
};
use muster_text::Value;
use std::collections::BTreeSet;

/// The workload was stopped and still runs. `silent`: the nodes that do not answer, if they are the reason.
pub(super) fn still_runs(place: &ClusterPlace, workload: &Object, silent: Option<&str>) -> String {
    let (what, command) = (title(&workload.resource, &workload.name), delete_command(place, &workload.resource, &workload.name));
    match silent {
        Some(nodes) => format!("{what} in {place} may still run, for its node {nodes} does not answer; {command}"),
        None => format!("{what} in {place} still runs {} s after it was stopped; {command}", LIMIT.as_secs()),
    }
}

/// What holds it, and what removes it. `silent` as above.
pub(super) fn left(place: &ClusterPlace, target: &Target, object: &Value, silent: Option<&str>) -> String {
    let (what, command) = (title(&target.resource, &target.name), delete_command(place, &target.resource, &target.name));
    if let Some(nodes) = silent {
        return format!(
            "{what} in {place} is deleted, but goes only when its node {nodes} answers again or is removed from the cluster; {command}"
        );
    }
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
    let node = object["spec"]["nodeName"].as_str();
    let held = match (finalizers.as_slice(), node) {
        ([], Some(node)) => format!(", its node {node} has not released it"),
        ([], None) => String::new(),
        (names, _) => format!(", held by its finalizers {}", names.join(", ")),
    };
    format!("{what} in {place} is still there {} s after its deletion{held}; {command}", LIMIT.as_secs())
}

fn title(resource: &Resource, name: &str) -> String {
    format!("{} {name}", resource.for_kubectl())
}

fn delete_command(place: &ClusterPlace, resource: &Resource, name: &str) -> String {
    format!("`{}`", diagnosis::kubectl(place, &["delete", &resource.for_kubectl(), name]))
}

/// `n1, n2`: the nodes of these pods, if none of them answers.
pub(super) fn silent_nodes<'a>(pods: impl Iterator<Item = &'a SeenPod>) -> Option<String> {
    let node = |seen: &'a SeenPod| seen.node().filter(|_| node_is_silent(&seen.pod));
    let nodes: BTreeSet<&str> = pods.map(node).collect::<Option<_>>()?;
    (!nodes.is_empty()).then(|| nodes.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::pod;
    use serde_json::json;
    use std::sync::Arc;

    fn target() -> Target {
        let resource = Resource { plural: Some("jobs".into()), ..Resource::of("batch/v1", "Job") };
        Target { resource, name: "rfm-x".into(), uid: Some("1".into()), is_workload: true }
    }

    #[test]
    fn what_is_left_is_named_with_what_holds_it() {
        let place = ClusterPlace { context: Some("eidf".into()), namespace: "n".into() };
        let held = json!({"metadata": {"finalizers": ["foregroundDeletion", "x/y"]}});
        insta::assert_snapshot!(left(&place, &target(), &held, None), @"jobs.batch rfm-x in namespace n (context eidf) is still there 50 s after its deletion, held by its finalizers foregroundDeletion, x/y; `kubectl --context eidf -n n delete jobs.batch rfm-x`");
        let on_node = json!({"metadata": {}, "spec": {"nodeName": "n1"}});
        insta::assert_snapshot!(left(&ClusterPlace { context: None, ..place }, &target(), &on_node, None), @"jobs.batch rfm-x in namespace n is still there 50 s after its deletion, its node n1 has not released it; `kubectl -n n delete jobs.batch rfm-x`");
    }

    fn on(node: &str, ready: &str) -> SeenPod {
        let pod = pod(&format!(
            "{{metadata: {{name: x}}, spec: {{nodeName: {node}}}, status: {{phase: Running, conditions: \
             [{{type: ContainersReady, status: 'True'}}, {{type: Ready, status: '{ready}'}}]}}}}"
        ));
        SeenPod { deleted_by_us: true, ..SeenPod::new(Arc::new(pod)) }
    }

    #[test]
    fn pods_are_unreachable_only_if_none_of_their_nodes_answers() {
        let nodes = |pods: &[SeenPod]| silent_nodes(pods.iter());
        assert_eq!(nodes(&[]), None);
        assert_eq!(nodes(&[on("n1", "True")]), None);
        assert_eq!(nodes(&[on("n1", "False"), on("n2", "True")]), None);
        assert_eq!(nodes(&[on("n2", "False"), on("n1", "False"), on("n1", "False")]).as_deref(), Some("n1, n2"));
    }
}
