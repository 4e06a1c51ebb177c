//! What pods will take of a quota, from their template.

use super::{Refusal, Shortage, too_much};
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
    /// What there is at all.
    pub hard: Demand,
    /// What is taken.
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

/// What is short, if `pods` pods of `one` each do not fit now beside what is `used` of a quota and what is `promised` to others
/// whose pods are not counted yet.
pub(crate) fn shortage(quota: &QuotaStatus<'_>, one: &Demand, pods: u32, promised: &Demand) -> Option<Refusal> {
    let amount = |of: &Demand, resource: &str| of.get(resource).copied().unwrap_or(Quantity::ZERO);
    let short = one.iter().filter_map(|(resource, amount_of_one)| {
        let (requested, limited) = (amount_of_one.times(pods), *quota.hard.get(resource)?);
        let used = amount(&quota.used, resource).plus(amount(promised, resource));
        (used.plus(requested) > limited).then(|| Shortage { resource: resource.clone(), requested, used, limited })
    });
    let shortages: Vec<_> = short.collect();
    (!shortages.is_empty()).then(|| Refusal::Exceeded { quota: quota.name.to_owned(), shortages })
}

/// The sentence, if `pods` pods of `one` each can never stand together within the hard limits of `quota`.
pub(crate) fn never_fits(quota: &QuotaStatus<'_>, one: &Demand, pods: u32) -> Option<String> {
    one.iter().find_map(|(resource, amount)| {
        let (all, limited) = (amount.times(pods), *quota.hard.get(resource)?);
        let sentence = || match pods {
            1 => too_much(quota.name, resource, *amount, limited),
            pods => format!("{pods} pods of {amount} each: {}", too_much(quota.name, resource, all, limited)),
        };
        (all > limited).then(sentence)
    })
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

    #[test]
    fn a_gang_is_measured_as_a_whole() {
        let one = demand(&yaml("containers: [{resources: {limits: {nvidia.com/gpu: 4}}}]"));
        let quota = yaml(
            "{metadata: {name: compute}, status: {hard: {requests.nvidia.com/gpu: 8, limits.cpu: 0}, used: {requests.nvidia.com/gpu: 2}}}",
        );
        let quota = QuotaStatus::of(&quota).unwrap();
        assert_eq!(never_fits(&quota, &one, 2), None);
        assert_eq!(shortage(&quota, &one, 1, &Demand::new()), None);
        insta::assert_snapshot!(shortage(&quota, &one, 2, &Demand::new()).unwrap(), @"quota compute: requests.nvidia.com/gpu requested 8, used 2, limited 8");
        insta::assert_snapshot!(shortage(&quota, &one, 1, &one).unwrap(), @"quota compute: requests.nvidia.com/gpu requested 4, used 6, limited 8");
        insta::assert_snapshot!(never_fits(&quota, &one, 3).unwrap(), @"3 pods of 4 each: requests.nvidia.com/gpu requested 12, but quota compute has 8 at all: ask for less, or have the quota raised");
    }
}
