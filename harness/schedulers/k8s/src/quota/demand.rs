//! The amounts that pods will take of a quota, from their template.

use crate::api::Quantity;
use muster_text::Value;
use std::collections::BTreeMap;

/// Amounts by the names that quotas use: `requests.cpu`, `limits.memory`, `pods`.
pub(crate) type Demand = BTreeMap<String, Quantity>;

/// What a `ResourceQuota` allows and has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuotaStatus<'a> {
    /// Its name.
    pub name: &'a str,
    /// The amounts that it allows in total.
    pub hard: Demand,
    /// The amounts that are taken.
    pub used: Demand,
}

impl<'a> QuotaStatus<'a> {
    /// Of a `ResourceQuota`; `None` if it may not count these pods at all, for it has scopes.
    pub(crate) fn of(quota: &'a Value) -> Option<Self> {
        if quota["spec"].get("scopes").is_some() || quota["spec"].get("scopeSelector").is_some() {
            return None;
        }
        let status = |field: &str| amounts(quota["status"].get(field));
        let hard = if quota["status"]["hard"].is_object() { status("hard") } else { amounts(quota["spec"].get("hard")) };
        Some(Self { name: quota["metadata"]["name"].as_str().unwrap_or_default(), hard, used: status("used") })
    }
}

/// What one pod of this spec takes, as the quota evaluator counts it: the sum of the containers and native sidecars, or
/// the largest init container if that is more; a limit without a request is the request too. `overhead` comes on top.
pub(crate) fn demand(pod_spec: &Value) -> Demand {
    let containers = |field: &str| pod_spec.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_sidecar = |container: &&Value| container.get("restartPolicy").and_then(Value::as_str) == Some("Always");
    let init = || containers("initContainers").iter();
    let mut total = Demand::new();
    for container in containers("containers").iter().chain(init().filter(is_sidecar)) {
        for (resource, amount) in of_container(container) {
            let sum = total.entry(resource).or_insert(Quantity::ZERO);
            *sum = sum.plus(amount);
        }
    }
    for container in init().filter(|container| !is_sidecar(container)) {
        for (resource, amount) in of_container(container) {
            let most = total.entry(resource).or_insert(Quantity::ZERO);
            *most = amount.max(*most);
        }
    }
    for (resource, amount) in amounts(pod_spec.get("overhead")) {
        for side in ["requests", "limits"] {
            if let Some(sum) = total.get_mut(&format!("{side}.{resource}")) {
                *sum = sum.plus(amount);
            }
        }
    }
    for short in ["cpu", "memory"] {
        if let Some(amount) = total.get(&format!("requests.{short}")).copied() {
            total.insert(short.to_owned(), amount);
        }
    }
    for count in ["pods", "count/pods"] {
        total.insert(count.to_owned(), Quantity::whole(1));
    }
    total
}

fn of_container(container: &Value) -> impl Iterator<Item = (String, Quantity)> {
    let side = |side: &str| amounts(container.pointer(&format!("/resources/{side}")));
    let limits = side("limits");
    let mut requests = limits.clone();
    requests.extend(side("requests"));
    let named =
        |side: &'static str, all: Demand| all.into_iter().map(move |(resource, amount)| (format!("{side}.{resource}"), amount));
    named("requests", requests).chain(named("limits", limits))
}

/// A map of resources; the API server refuses what is not a quantity.
pub(crate) fn amounts(map: Option<&Value>) -> Demand {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let all = map.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(resource, amount)| Some((resource.clone(), text(amount).parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::yaml;

    fn of(text: &str) -> String {
        demand(&yaml(text)).iter().map(|(resource, amount)| format!("{resource}={amount}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_pod_takes_what_its_containers_take_together() {
        let two = "containers: [{resources: {requests: {cpu: 500m}, limits: {cpu: 1}}}, {resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}}}]";
        insta::assert_snapshot!(of(two), @"count/pods=1 cpu=500m limits.cpu=1 limits.memory=1Gi limits.nvidia.com/gpu=1 memory=1Gi pods=1 requests.cpu=500m requests.memory=1Gi requests.nvidia.com/gpu=1");
        insta::assert_snapshot!(of("containers: [{name: a}]"), @"count/pods=1 pods=1");
    }

    #[test]
    fn an_init_container_counts_only_where_it_is_larger_and_a_sidecar_always() {
        let spec = |init: &str| format!("{{containers: [{{resources: {{requests: {{cpu: 2}}}}}}], initContainers: [{init}]}}");
        let cpu = |init: &str| demand(&yaml(&spec(init)))["requests.cpu"].to_string();
        assert_eq!(cpu("{resources: {requests: {cpu: 1}}}"), "2");
        assert_eq!(cpu("{resources: {requests: {cpu: 3}}}"), "3");
        assert_eq!(cpu("{restartPolicy: Always, resources: {requests: {cpu: 1}}}"), "3");
    }

    #[test]
    fn overhead_comes_on_top() {
        let spec = "{overhead: {cpu: 250m, memory: 1Mi}, containers: [{resources: {requests: {cpu: 1}}}]}";
        insta::assert_snapshot!(of(spec), @"count/pods=1 cpu=1250m pods=1 requests.cpu=1250m");
    }
}
