//! Decides whether the nodes of a cluster have room for pods: what they have at all, not what is free now.

use crate::{
    api::Quantity,
    inventory::nodes::is_available,
    launch::Gang,
    quota::{amounts, demand},
};
use muster_core::probe::{Probed, named};
use muster_text::Value;
use std::collections::BTreeMap;

/// Pods of one template, as far as it decides on which nodes they run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodShape {
    /// What one pod requests, by resource.
    requests: Vec<(String, Quantity)>,
    /// `nodeSelector`
    labels: Vec<(String, String)>,
    /// As JSON, which can be compared.
    tolerations: String,
    /// How many there have to be at once.
    pods: u32,
}

impl PodShape {
    pub(crate) fn of(gang: &Gang<'_>) -> Self {
        let spec = &gang.template["spec"];
        let request = |(name, amount): (String, Quantity)| Some((name.strip_prefix("requests.")?.to_owned(), amount));
        let labels = spec["nodeSelector"].as_object().into_iter().flatten();
        Self {
            requests: demand(spec).into_iter().filter_map(request).collect(),
            labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            tolerations: spec["tolerations"].to_string(),
            pods: gang.pods,
        }
    }

    /// How many of these pods a node would take if nothing else ran there.
    fn fit(&self, node: &Value) -> u64 {
        let has = |(key, value): &(String, String)| node["metadata"]["labels"][key] == value.as_str();
        if !is_available(node) || !self.labels.iter().all(has) || !self.tolerates(node) {
            return 0;
        }
        let allocatable: BTreeMap<String, Quantity> = amounts(node["status"].get("allocatable"));
        let of = |name: &str| allocatable.get(name).copied().unwrap_or(Quantity::ZERO);
        let most = self.requests.iter().map(|(name, amount)| of(name).holds(*amount)).min();
        let pods = allocatable.get("pods").map_or(u64::MAX, |pods| pods.holds(Quantity::whole(1)));
        most.unwrap_or(u64::MAX).min(pods)
    }

    /// Whether it tolerates all taints of a node that keep pods away.
    fn tolerates(&self, node: &Value) -> bool {
        let own: Value = serde_json::from_str(&self.tolerations).unwrap_or_default();
        let own = own.as_array().map(Vec::as_slice).unwrap_or_default();
        let tolerates = |taint: &Value| {
            own.iter().any(|one| {
                let is_same = |key: &str| one[key].is_null() || one[key] == "" || one[key] == taint[key];
                is_same("effect") && is_same("key") && (one["operator"] == "Exists" || one["value"] == taint["value"])
            })
        };
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.filter(|taint| taint["effect"] != "PreferNoSchedule").all(tolerates)
    }

    /// `cpu 1, memory 1Gi`
    fn text(&self) -> String {
        let requests = self.requests.iter().map(|(name, amount)| format!("{name} {amount}"));
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let all: Vec<String> = requests.chain(labels).collect();
        if all.is_empty() { "no requests".to_owned() } else { all.join(", ") }
    }
}

/// Whether the nodes have room for pods of this shape. `names`: of the cases, `plans`: those that run them.
pub(crate) fn capacity(shape: &PodShape, nodes: &[Value], names: &[String], plans: &[usize]) -> Probed {
    let available = nodes.iter().filter(|node| is_available(node)).count();
    let fits: Vec<u64> = nodes.iter().map(|node| shape.fit(node)).filter(|count| *count > 0).collect();
    let room = fits.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let (cases, pods, text) = (named(names, plans), shape.pods, shape.text());
    let hint = || {
        let what = "its cases wait until nodes are added: ask for less, or look at `nodeSelector` and `tolerations`";
        Some(what.to_owned())
    };
    if fits.is_empty() {
        let what = format!("none of {available} available node(s) takes a pod of {cases}: {text}");
        return Probed::warning("capacity", what, hint());
    }
    if room < u64::from(pods) {
        let what = format!("{cases} needs {pods} pods at once, and the nodes take {room}: {text} each");
        return Probed::warning("capacity", what, hint());
    }
    Probed::fine("capacity", format!("{} of {available} available node(s) take a pod of {cases}: {text}", fits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, cpus: u32, gpus: u32, taint: Option<&str>) -> Value {
        let taints: Vec<Value> = taint.into_iter().map(|key| json!({ "key": key, "effect": "NoSchedule" })).collect();
        json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": { "taints": taints },
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }],
                "allocatable": { "cpu": cpus.to_string(), "nvidia.com/gpu": gpus.to_string(), "pods": "110" },
            },
        })
    }

    fn said(spec: &Value, pods: u32) -> String {
        let cordoned = {
            let mut node = node("d", 64, 8, None);
            node["spec"]["unschedulable"] = json!(true);
            node
        };
        let nodes = [node("a", 8, 0, None), node("b", 8, 0, None), node("c", 64, 8, Some("gpu")), cordoned];
        let template = json!({ "spec": spec });
        let probed = capacity(&PodShape::of(&Gang { template: &template, pods }), &nodes, &["x".to_owned()], &[0]);
        format!("{}: {}", probed.level, probed.what)
    }

    #[test]
    fn pods_are_compared_with_what_nodes_have_at_all() {
        let pod = |requests: Value, more: Value| {
            let mut spec = json!({ "containers": [{ "resources": { "requests": requests } }] });
            spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            spec
        };
        let gpu = || json!({ "nvidia.com/gpu": 8 });
        let rows = [
            (pod(json!({}), json!({})), 1, "ok: 2 of 3 available node(s) take a pod of x: no requests"),
            (pod(json!({ "cpu": 4 }), json!({})), 4, "ok: 2 of 3 available node(s) take a pod of x: cpu 4"),
            (pod(json!({ "cpu": 4 }), json!({})), 5, "warning: x needs 5 pods at once, and the nodes take 4: cpu 4 each"),
            (pod(gpu(), json!({})), 1, "warning: none of 3 available node(s) takes a pod of x: nvidia.com/gpu 8"),
            (
                pod(gpu(), json!({ "tolerations": [{ "key": "gpu", "operator": "Exists" }] })),
                1,
                "ok: 1 of 3 available node(s) take a pod of x: nvidia.com/gpu 8",
            ),
            (
                pod(json!({}), json!({ "nodeSelector": { "kubernetes.io/hostname": "b" } })),
                1,
                "ok: 1 of 3 available node(s) take a pod of x: kubernetes.io/hostname=b",
            ),
            (
                pod(json!({}), json!({ "nodeSelector": { "pool": "big" } })),
                1,
                "warning: none of 3 available node(s) takes a pod of x: pool=big",
            ),
        ];
        for (spec, pods, expected) in rows {
            assert_eq!(said(&spec, pods), expected, "{spec}");
        }
    }
}
