//! The nodes of a cluster, for a copy of a case on each, and what they are, for the history of figures. Listing them needs a
//! cluster-wide right, which few users have.

use crate::{
    api::{HOSTNAME_LABEL, Resource},
    client::{ApiError, Cluster},
};
use muster_core::{error::SchedulerError, job::scheduler::NodeSeen};
use muster_text::Value;
use std::collections::BTreeMap;

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
    let mut nodes = cluster.list_of(&Resource::of("v1", "Node"), |object| node(&object)).await.map_err(|error| {
        let error = error.classify();
        // Most of the time the right to is missing.
        SchedulerError::new(
            error.class,
            "list the nodes of the cluster; without the right to, name them: --distribute node-1,node-2",
            error,
        )
    })?;
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

/// What distinguishes the nodes of a cluster, and what may explain a change of their figures.
pub(crate) async fn described(cluster: &Cluster) -> Result<Vec<NodeSeen>, ApiError> {
    cluster.list_of(&Resource::of("v1", "Node"), |object| description(&object)).await
}

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const GPU_PRODUCT: &str = "nvidia.com/gpu.product";
/// Labels of a machine that stay as they are unless something is changed. NVIDIA's GPU feature discovery sets some of them.
const LABELS: [&str; 9] = [
    INSTANCE_TYPE,
    GPU_PRODUCT,
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/mig.config",
    "nvidia.com/mig.strategy",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "kubernetes.io/arch",
];
/// The same facts as its versions have named them: whole, or in parts.
const VERSIONS: [(&str, &str, [&str; 3]); 2] = [
    (
        "driver",
        "nvidia.com/cuda.driver-version.full",
        ["nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"],
    ),
    ("cuda", "nvidia.com/cuda.runtime-version.full", ["nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor", ""]),
];

fn description(object: &Value) -> Option<NodeSeen> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let label = |name: &str| metadata["labels"][name].as_str().filter(|value| !value.is_empty());
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.to_owned());
        }
    };
    for (name, key) in
        [("kernel", "kernelVersion"), ("kubelet", "kubeletVersion"), ("os", "osImage"), ("runtime", "containerRuntimeVersion")]
    {
        add(name, status["nodeInfo"][key].as_str());
    }
    for (name, whole, parts) in VERSIONS {
        let parts: Vec<&str> = parts.into_iter().filter_map(label).collect();
        let joined = parts.join(".");
        add(name, label(whole).or(Some(&joined)));
    }
    for name in LABELS {
        add(&format!("label.{name}"), label(name));
    }
    for (resource, count) in status["capacity"].as_object().into_iter().flatten().filter(|(name, _)| name.ends_with("/gpu")) {
        add(&format!("capacity.{resource}"), count.as_str());
    }
    let class: Vec<&str> = [INSTANCE_TYPE, GPU_PRODUCT].into_iter().filter_map(label).collect();
    Some(NodeSeen {
        name: metadata["name"].as_str()?.to_owned(),
        uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
        class: class.join(" "),
        facts,
    })
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

    #[tokio::test]
    async fn a_node_is_described_by_its_versions_its_labels_and_its_gpus() {
        let labels = json!({
            "node.kubernetes.io/instance-type": "p5", "nvidia.com/gpu.product": "H100", "kubernetes.io/hostname": "host-a",
            "nvidia.com/cuda.driver.major": "550", "nvidia.com/cuda.driver.minor": "54", "nvidia.com/cuda.driver.rev": "15",
            "nvidia.com/cuda.runtime-version.full": "12.4", "nvidia.com/gfd.timestamp": "1",
        });
        let info = json!({
            "kernelVersion": "6.8.0", "kubeletVersion": "v1.31.2", "osImage": "Debian 13", "containerRuntimeVersion": "containerd://2.0",
            "machineID": "m",
        });
        let capacity = json!({ "cpu": "8", "nvidia.com/gpu": "7" });
        let full = json!({
            "metadata": { "name": "a", "uid": "u", "labels": labels }, "status": { "nodeInfo": info, "capacity": capacity },
        });
        let items = [full, json!({ "metadata": { "name": "bare" } }), json!({ "metadata": {} })];
        let (cluster, requests) = cluster(move |_, _| Reply::list("1", &items));
        let [node, bare] = described(&cluster).await.unwrap().try_into().unwrap();
        assert_eq!(requests.paths(), ["GET /api/v1/nodes"]);
        assert_eq!((node.name.as_str(), node.uid.as_str(), node.class.as_str()), ("a", "u", "p5 H100"));
        let facts: Vec<String> = node.facts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = [
            "capacity.nvidia.com/gpu=7",
            "cuda=12.4",
            "driver=550.54.15",
            "kernel=6.8.0",
            "kubelet=v1.31.2",
            "label.node.kubernetes.io/instance-type=p5",
            "label.nvidia.com/gpu.product=H100",
            "os=Debian 13",
            "runtime=containerd://2.0",
        ];
        assert_eq!(facts, expected);
        assert_eq!((bare.name.as_str(), bare.facts.len()), ("bare", 0));
    }
}
