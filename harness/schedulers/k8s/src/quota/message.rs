//! The API's sentences about quotas, read.

use super::{Refusal, Shortage};
use crate::api::Quantity;
use std::collections::BTreeMap;

/// The refusal of a quota in `message`, alone or within another sentence.
pub(crate) fn read(message: &str) -> Option<Refusal> {
    let after = |words: &str| message.split_once(words).map(|(_, rest)| rest.trim());
    let name = |rest: &str, end: char| rest.split_once(end).map_or(rest, |(name, _)| name).trim().to_owned();
    if let Some(rest) = after("exceeded quota: ") {
        return exceeded(rest);
    }
    if let Some(rest) = after("failed quota: ") {
        let what = rest.split_once("must specify ").map_or(rest, |(_, what)| what);
        return Some(Refusal::MustSpecify { quota: name(rest, ':'), what: what.to_owned() });
    }
    if let Some(rest) = after("status unknown for quota: ") {
        return Some(Refusal::NotReady { quota: name(rest, ',') });
    }
    if let Some(rest) = after("insufficient quota to ") {
        return Some(Refusal::NotCovered { what: rest.to_owned() });
    }
    message.contains("resource quota evaluation timed out").then_some(Refusal::TimedOut)
}

/// `NAME, requested: k=v,k=v, used: k=v,k=v, limited: k=v,k=v`
fn exceeded(rest: &str) -> Option<Refusal> {
    let (quota, rest) = rest.split_once(", requested: ")?;
    let (requested, rest) = rest.split_once(", used: ")?;
    let (used, limited) = rest.split_once(", limited: ")?;
    let (used, limited) = (amounts(used), amounts(limited));
    let shortages: Vec<_> = amounts(requested)
        .into_iter()
        .filter_map(|(resource, requested)| {
            let (used, limited) = (used.get(resource).copied().unwrap_or(Quantity::ZERO), *limited.get(resource)?);
            Some(Shortage { resource: resource.to_owned(), requested, used, limited })
        })
        .collect();
    (!shortages.is_empty()).then(|| Refusal::Exceeded { quota: quota.trim().to_owned(), shortages })
}

/// Whatever follows the list ends at the first word that is not an amount.
fn amounts(list: &str) -> BTreeMap<&str, Quantity> {
    let pair = |item: &'_ str| -> Option<(usize, Quantity)> {
        let (key, value) = item.split_once('=')?;
        let value = value.split_whitespace().next()?.trim_end_matches(['.', '"', ')', ']']);
        Some((key.len(), value.parse().ok()?))
    };
    list.split(',').map(str::trim).map_while(|item| pair(item).map(|(length, amount)| (&item[..length], amount))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shortages(message: &str) -> Vec<(String, String)> {
        match read(message) {
            Some(Refusal::Exceeded { quota, shortages }) => shortages
                .iter()
                .map(|short| {
                    let Shortage { resource, requested, used, limited } = short;
                    (quota.clone(), format!("{resource} {requested} {used} {limited}"))
                })
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn units_and_every_kind_of_resource_are_read() {
        let rows = [
            ("requested: requests.cpu=500m, used: requests.cpu=3800m, limited: requests.cpu=4", "requests.cpu 500m 3800m 4"),
            ("requested: pods=1, used: pods=10, limited: pods=10", "pods 1 10 10"),
            ("requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5", "count/jobs.batch 1 5 5"),
            ("requested: limits.memory=4Gi, used: limits.memory=0, limited: limits.memory=2Gi", "limits.memory 4Gi 0 2Gi"),
            (
                "requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8",
                "requests.nvidia.com/gpu 4 6 8",
            ),
            (
                "requested: gold.storageclass.storage.k8s.io/requests.storage=1Ti, used: gold.storageclass.storage.k8s.io/requests.storage=0, limited: gold.storageclass.storage.k8s.io/requests.storage=500Gi",
                "gold.storageclass.storage.k8s.io/requests.storage 1Ti 0 500Gi",
            ),
        ];
        for (sentence, expected) in rows {
            let message = format!("pods \"rfm-x\" is forbidden: exceeded quota: compute, {sentence}");
            assert_eq!(shortages(&message), [("compute".to_owned(), expected.to_owned())]);
        }
    }

    #[test]
    fn several_resources_are_distinguished() {
        let message = "Error creating: pods \"x-abcde\" is forbidden: exceeded quota: q, requested: limits.cpu=2,pods=1, \
                       used: limits.cpu=3,pods=4, limited: limits.cpu=4,pods=4";
        let found = shortages(message);
        assert_eq!(found, [("q".into(), "limits.cpu 2 3 4".into()), ("q".into(), "pods 1 4 4".into())]);
    }

    #[test]
    fn a_refusal_is_found_inside_another_sentence() {
        let message = "failed to create pod: \"pods \\\"x\\\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4\"";
        assert_eq!(shortages(message), [("q".into(), "pods 1 4 4".into())]);
    }

    #[test]
    fn other_refusals_are_not_taken_for_quotas() {
        for message in [
            "",
            "exceeded quota: x",
            "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"",
            "pods \"x\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
            "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\"",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_message_panics(head in "(exceeded|failed|status unknown for|insufficient) quota:? ", tail in "[a-z=,: ü0-9]{0,60}") {
            let _ = read(&format!("{head}{tail}, requested: {tail}, used: {tail}, limited: {tail}"));
        }
    }
}
