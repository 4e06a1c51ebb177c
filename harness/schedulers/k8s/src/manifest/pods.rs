//! The pods within an object: everything with `spec.containers`, a Pod itself or a template at any depth, in any kind.

use super::{children, children_mut};
use crate::kind::WorkloadRules;
use muster_text::{
    Value,
    diagnostic::Diagnostic,
    expr::{Arithmetic, Expr, Scope},
};

/// Keys that multiply the pods below them.
const FACTORS: [&str; 6] = ["replicas", "size", "instances", "numNodes", "jobInstances", "workersPerJobInstance"];

/// Which pods to count.
#[derive(Clone, Copy)]
enum Count {
    /// All that there will have been.
    Ever,
    /// As many as there may be at once.
    AtOnce,
}

/// The pods and pod templates of an object, each as it is written, and how many pods of each there may be at once.
pub(crate) fn pod_templates(object: &Value) -> Vec<(&Value, u32)> {
    let mut found = Vec::new();
    find(object, 1, Count::AtOnce, &mut |pod, times| found.push((pod, times)));
    found
}

/// Whether a Job of batch/v1 runs all its pods at once: they may need each other.
pub(crate) fn runs_at_once(job: &Value) -> bool {
    let Some(spec) = job.get("spec") else { return false };
    let number = |key: &str| spec.get(key).and_then(Value::as_u64);
    number("completions").is_none_or(|completions| number("parallelism").unwrap_or(1) >= completions)
}

/// A Pod of a template for a creation with `dryRun=All`: it shows what quotas, limits and policies say before there is anything.
///
/// It is not queued and not gated, for it asks whether it would be let in if it were its turn.
pub(crate) fn preflight_pod(template: &Value) -> Value {
    let mut metadata = serde_json::Map::from_iter([("generateName".to_owned(), "rfm-preflight-".into())]);
    for key in ["labels", "annotations"] {
        if let Some(entries) = template.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_object) {
            let kept = entries.iter().filter(|(key, _)| !key.contains("kueue.x-k8s.io/"));
            metadata.insert(key.to_owned(), kept.map(|(key, value)| (key.clone(), value.clone())).collect());
        }
    }
    let mut spec = template.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("schedulingGates");
    }
    serde_json::json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// How many pods a workload will have: by its rule, else by its templates. `None` if neither says.
pub(crate) fn pod_count(object: &Value, rules: &WorkloadRules) -> Result<Option<u32>, Diagnostic> {
    if let Some(rule) = &rules.pods.expect {
        let mut scope = Scope::new();
        scope.set("self", object.clone());
        let value = Expr::compile(rule, Arithmetic::Exact).and_then(|rule| rule.eval(&scope));
        let wrong = |what: String| Diagnostic::general(format!("`pods.expect` ({rule}) of the workload's rules: {what}"));
        let value = value.map_err(|error| wrong(error.message))?;
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        return count.map(Some).ok_or_else(|| wrong(format!("{value} is not a number of pods")));
    }
    let (mut total, mut any) = (0_u32, false);
    find(object, 1, Count::Ever, &mut |_, times| {
        total = total.saturating_add(times);
        any = true;
    });
    Ok(any.then_some(total))
}

/// Gives every pod of an object to `change`.
pub(crate) fn each_pod(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    each_pod_of(value, &|_| true, change);
}

/// The same, without the pods below what is not `wanted`.
pub(crate) fn each_pod_of(value: &mut Value, wanted: &dyn Fn(&Value) -> bool, change: &mut dyn FnMut(&mut Value)) {
    if !wanted(value) {
        return;
    }
    if is_pod(value) {
        return change(value);
    }
    children_mut(value).for_each(|(_, child)| each_pod_of(child, wanted, change));
}

fn is_pod(value: &Value) -> bool {
    value.get("spec").and_then(|spec| spec.get("containers")).is_some_and(Value::is_array)
}

fn find<'v>(value: &'v Value, times: u32, count: Count, found: &mut dyn FnMut(&'v Value, u32)) {
    if is_pod(value) {
        return found(value, times);
    }
    let number = |key: &str| value.get(key).and_then(Value::as_u64).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    // A leader with a template of its own is one of the group's `size`.
    let has_leader = value.get("leaderTemplate").is_some() && value.get("workerTemplate").is_some();
    let factors = FACTORS.iter().filter(|key| !(has_leader && **key == "size")).filter_map(|key| number(key));
    let tasks = match (count, number("completions"), number("parallelism")) {
        (Count::Ever, Some(completions), _) => completions,
        // A Job runs one at a time unless it says more.
        (Count::AtOnce, Some(completions), parallelism) => completions.min(parallelism.unwrap_or(1)),
        (_, None, parallelism) => parallelism.unwrap_or(1),
    };
    let times = factors.fold(times.saturating_mul(tasks), u32::saturating_mul);
    for (key, child) in children(value) {
        let times = match key {
            "workerTemplate" if has_leader => times.saturating_mul(number("size").unwrap_or(1).saturating_sub(1)),
            _ => times,
        };
        find(child, times, count, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::Resource, kind::Kinds};
    use serde_json::json;

    fn template() -> Value {
        json!({ "spec": { "containers": [{ "name": "c" }] } })
    }

    #[test]
    fn pods_are_counted_in_any_kind() {
        let t = template();
        let rows = [
            (json!({ "apiVersion": "v1", "kind": "Pod", "spec": t["spec"] }), Some(1), vec![1]),
            (json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "template": t } }), Some(1), vec![1]),
            (
                json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "completions": 3, "parallelism": 2, "template": t } }),
                Some(3),
                vec![2],
            ),
            (json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "parallelism": 4, "template": t } }), Some(4), vec![4]),
            (json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "completions": 0, "template": t } }), Some(0), vec![0]),
            (
                json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": { "replicatedJobs": [
                    { "name": "leader", "template": { "spec": { "template": t } } },
                    { "name": "workers", "replicas": 2, "template": { "spec": { "completions": 4, "parallelism": 4, "template": t } } },
                ] } }),
                Some(9),
                vec![1, 8],
            ),
            (
                json!({ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": { "mpiReplicaSpecs": {
                    "Launcher": { "replicas": 1, "template": t }, "Worker": { "replicas": 3, "template": t } } } }),
                Some(4),
                vec![1, 3],
            ),
            (
                json!({ "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": { "replicas": 2,
                    "leaderWorkerTemplate": { "size": 4, "leaderTemplate": t, "workerTemplate": t } } }),
                Some(8),
                vec![2, 6],
            ),
            (
                json!({ "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": { "replicas": 2,
                    "leaderWorkerTemplate": { "size": 4, "workerTemplate": t } } }),
                Some(8),
                vec![8],
            ),
            (
                json!({ "apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "spec": { "jobInstances": 3, "workersPerJobInstance": 2,
                    "workers": { "template": t } } }),
                Some(6),
                vec![6],
            ),
            (
                json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "spec": { "rayClusterSpec": { "headGroupSpec": { "template": t },
                    "workerGroupSpecs": [{ "replicas": 2, "template": t }] } } }),
                Some(3),
                vec![1, 2],
            ),
            (json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": { "templates": [] } }), None, vec![]),
            (
                json!({ "apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": { "executor": { "instances": 4 } } }),
                Some(5),
                vec![],
            ),
        ];
        for (object, ever, at_once) in rows {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            let rules = Kinds::known().rules(&Resource::of(&text("apiVersion"), &text("kind")));
            assert_eq!(pod_count(&object, rules), Ok(ever), "{object}");
            assert_eq!(pod_templates(&object).iter().map(|(_, times)| *times).collect::<Vec<_>>(), at_once, "{object}");
        }
    }

    #[test]
    fn a_job_that_runs_all_its_pods_at_once_differs_from_one_that_takes_turns() {
        let rows = [
            (json!({}), true),
            (json!({ "completions": 4 }), false),
            (json!({ "completions": 4, "parallelism": 3 }), false),
            (json!({ "completions": 4, "parallelism": 4, "completionMode": "Indexed" }), true),
            (json!({ "parallelism": 4 }), true),
        ];
        for (spec, expected) in rows {
            assert_eq!(runs_at_once(&json!({ "spec": spec })), expected, "{spec}");
        }
    }

    #[test]
    fn a_rule_that_counts_no_pods_is_reported() {
        let mut rules = WorkloadRules::default();
        for (rule, expected) in [
            ("self.spec.n", "`pods.expect` (self.spec.n) of the workload's rules: -1 is not a number of pods"),
            ("self.spec.m", "`pods.expect` (self.spec.m) of the workload's rules: there is no key `m` here"),
        ] {
            rules.pods.expect = Some(rule.to_owned());
            let mistake = pod_count(&json!({ "spec": { "n": -1 } }), &rules).expect_err("a mistake");
            assert_eq!(mistake.message, expected);
        }
    }

    #[test]
    fn a_preflight_pod_is_neither_queued_nor_gated() {
        let template = json!({
            "metadata": { "name": "n", "labels": { "rfm": "abcdefgh", "kueue.x-k8s.io/queue-name": "q" }, "annotations": { "a": "b" } },
            "spec": { "schedulingGates": [{ "name": "g" }], "containers": [{ "name": "c" }] },
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "generateName": "rfm-preflight-", "labels": { "rfm": "abcdefgh" }, "annotations": { "a": "b" } },
            "spec": { "containers": [{ "name": "c" }] },
        });
        assert_eq!(preflight_pod(&template), expected);
    }
}
