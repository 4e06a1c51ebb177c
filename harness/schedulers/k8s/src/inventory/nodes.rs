//! The nodes of a cluster, for a copy of a case on each. Listing them needs a cluster-wide right, which few users have.

use crate::{
    api::{HOSTNAME_LABEL, Resource},
    client::{Cluster, Selection},
};
use muster_core::error::SchedulerError;
use muster_text::Value;

/// A node as the cluster has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// What pods that are to run there select it by.
    pub(crate) name: String,
    /// Why it is not available: it is not ready, or cordoned. Taints are a matter of what a pod tolerates.
    pub(crate) away: Option<&'static str>,
}

/// All nodes, by name.
pub(crate) async fn listed(cluster: &Cluster) -> Result<Vec<Node>, SchedulerError> {
    let all = cluster.list(&Resource::of("v1", "Node"), Selection::default()).await.map_err(|error| {
        let error = error.classify();
        // Most of the time the right to is missing.
        SchedulerError::new(
            error.class,
            "list the nodes of the cluster; without the right to, name them: --distribute node-1,node-2",
            error,
        )
    })?;
    let mut nodes: Vec<Node> = all.items.iter().filter_map(node).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

/// Whether it takes pods.
pub(crate) fn is_available(object: &Value) -> bool {
    node(object).is_some_and(|node| node.away.is_none())
}

fn node(object: &Value) -> Option<Node> {
    let label = object["metadata"]["labels"].get(HOSTNAME_LABEL).unwrap_or(&object["metadata"]["name"]);
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_ready = conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let away = match (is_ready, object["spec"]["unschedulable"] == true) {
        (false, _) => Some("not ready"),
        (true, true) => Some("cordoned"),
        (true, false) => None,
    };
    Some(Node { name: label.as_str()?.to_owned(), away })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{Reply, cluster};
    use muster_core::error::chain;
    use serde_json::json;

    fn object(name: &str, ready: &str, cordoned: bool) -> Value {
        json!({
            "metadata": { "name": name, "labels": { HOSTNAME_LABEL: format!("host-{name}") } },
            "spec": { "unschedulable": cordoned },
            "status": { "conditions": [{ "type": "MemoryPressure", "status": "False" }, { "type": "Ready", "status": ready }] },
        })
    }

    #[tokio::test]
    async fn a_node_is_available_if_it_is_ready_and_not_cordoned() {
        let bare = json!({ "metadata": { "name": "bare" } });
        let items = [object("b", "True", false), object("c", "True", true), object("a", "Unknown", false), bare];
        let (cluster, requests) = cluster(move |_, _| Reply::list("1", &items));
        let nodes = listed(&cluster).await.unwrap();
        let shown: Vec<(&str, Option<&str>)> = nodes.iter().map(|node| (node.name.as_str(), node.away)).collect();
        let expected =
            [("bare", Some("not ready")), ("host-a", Some("not ready")), ("host-b", None), ("host-c", Some("cordoned"))];
        assert_eq!(shown, expected);
        assert_eq!(requests.paths(), ["GET /api/v1/nodes"]);
    }

    #[tokio::test]
    async fn without_the_right_to_list_nodes_the_hint_is_to_name_them() {
        let (cluster, _) = cluster(|_, _| Reply::refusal(403, "Forbidden", "nodes is forbidden"));
        let error = chain(&listed(&cluster).await.unwrap_err());
        assert!(
            error.starts_with("list the nodes of the cluster; without the right to, name them: --distribute node-1"),
            "{error}"
        );
    }
}
