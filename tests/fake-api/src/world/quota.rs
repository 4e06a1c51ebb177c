//! Quota admission with the server's arithmetic and the server's words.

use super::{quantity::Quantity, store::Store};
use crate::request::status::No;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write};

type Amounts = BTreeMap<String, Quantity>;

/// May this object be created?
pub(crate) fn admit(store: &Store, namespace: &str, group: &str, plural: &str, object: &Value) -> Result<(), No> {
    let wanted = usage(group, plural, object, true);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let forbidden = |why: String| No::new(403, "Forbidden", format!("{qualified} \"{name}\" is forbidden: {why}"));
    for (key, quota) in store.list("", "resourcequotas", Some(namespace)) {
        let hard = hard(quota);
        if plural == "pods" {
            let missing = missing(&hard, object);
            if !missing.is_empty() {
                return Err(forbidden(format!("failed quota: {}: must specify {}", key.name, missing)));
            }
        }
        let used = used(store, namespace, &hard);
        let exceeded: Vec<&String> = hard
            .iter()
            .filter(|(resource, limit)| {
                let wanted = wanted.get(*resource).filter(|wanted| **wanted > Quantity::ZERO);
                wanted.is_some_and(|wanted| used[*resource] + *wanted > **limit)
            })
            .map(|(resource, _)| resource)
            .collect();
        if !exceeded.is_empty() {
            let show = |amounts: &Amounts| {
                let pairs: Vec<String> = exceeded.iter().map(|resource| format!("{resource}={}", amounts[*resource])).collect();
                pairs.join(",")
            };
            let (requested, used, limited) = (show(&wanted), show(&used), show(&hard));
            let quota = &key.name;
            return Err(forbidden(format!("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")));
        }
    }
    Ok(())
}

/// The quotas of a namespace whose status is not what it should be, as they should be.
pub(crate) fn settle(store: &Store, namespace: &str) -> Vec<(String, Value)> {
    let mut changed = Vec::new();
    for (key, quota) in store.list("", "resourcequotas", Some(namespace)) {
        let hard = hard(quota);
        let used = used(store, namespace, &hard);
        let texts = |amounts: &Amounts| -> Value {
            amounts.iter().map(|(key, amount)| (key.clone(), json!(amount.to_string()))).collect()
        };
        let status = json!({"hard": texts(&hard), "used": texts(&used)});
        if quota["status"] != status {
            let mut quota = (**quota).clone();
            quota["status"] = status;
            changed.push((key.name.clone(), quota));
        }
    }
    changed
}

fn hard(quota: &Value) -> Amounts {
    let hard = quota["spec"]["hard"].as_object().into_iter().flatten();
    hard.filter_map(|(key, value)| Some((key.clone(), amount(value)?))).collect()
}

fn used(store: &Store, namespace: &str, hard: &Amounts) -> Amounts {
    let mut used: Amounts = hard.keys().map(|key| (key.clone(), Quantity::ZERO)).collect();
    let mut add = |amounts: Amounts| {
        for (key, amount) in amounts {
            if let Some(sum) = used.get_mut(&key) {
                *sum = *sum + amount;
            }
        }
    };
    for (_, pod) in store.list("", "pods", Some(namespace)) {
        add(usage("", "pods", pod, !terminal(pod)));
    }
    for key in hard.keys() {
        let Some(counted) = key.strip_prefix("count/").filter(|counted| *counted != "pods") else { continue };
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        add(BTreeMap::from([(key.clone(), Quantity::count(store.list(group, plural, Some(namespace)).count()))]));
    }
    used
}

/// What one object uses; a pod that has ended uses only its place in `count/pods`.
fn usage(group: &str, plural: &str, object: &Value, alive: bool) -> Amounts {
    let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let mut amounts = BTreeMap::from([(format!("count/{qualified}"), Quantity::count(1))]);
    if plural != "pods" || !alive {
        return amounts;
    }
    amounts.insert("pods".to_owned(), Quantity::count(1));
    for container in containers(object) {
        for part in ["requests", "limits"] {
            for (resource, value) in container["resources"][part].as_object().into_iter().flatten() {
                let Some(value) = amount(value) else { continue };
                let mut add = |key: String| {
                    let sum = amounts.entry(key).or_insert(Quantity::ZERO);
                    *sum = *sum + value;
                };
                if part == "requests" && matches!(resource.as_str(), "cpu" | "memory") {
                    add(resource.clone());
                }
                add(format!("{part}.{resource}"));
                // An extended resource's request is its limit.
                if part == "limits" && resource.contains('/') && container["resources"]["requests"].get(resource).is_none() {
                    add(format!("requests.{resource}"));
                }
            }
        }
    }
    amounts
}

/// `limits.cpu for: c1; requests.memory for: c1`
fn missing(hard: &Amounts, pod: &Value) -> String {
    let mut text = String::new();
    for key in hard.keys() {
        let (part, resource) = key.split_once('.').unwrap_or(("requests", key));
        if !matches!(resource, "cpu" | "memory") {
            continue;
        }
        let without = containers(pod).filter(|container| {
            let resources = &container["resources"];
            resources[part].get(resource).is_none() && (part == "limits" || resources["limits"].get(resource).is_none())
        });
        let without: Vec<&str> = without.filter_map(|container| container["name"].as_str()).collect();
        if !without.is_empty() {
            let between = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{between}{key} for: {}", without.join(","));
        }
    }
    text
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["containers"].as_array().into_iter().flatten()
}

fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::of(text),
        Value::Number(number) => Quantity::of(&number.to_string()),
        _ => None,
    }
}

pub(crate) fn terminal(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}
