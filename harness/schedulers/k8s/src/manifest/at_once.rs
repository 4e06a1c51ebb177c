//! Finds the templates of a workload that have their pods at the same time for certain.

use super::{at, pod_templates};
use crate::api::Resource;
use muster_text::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of kinds that make the pods of all their templates at once. Others may take turns: a workflow, a task that waits for another.
const ALL_AT_ONCE: [&str; 2] = ["kubeflow.org", "leaderworkerset.x-k8s.io"];

/// The templates with their pods, in groups. The pods of one group are there together; those of two groups may follow each other.
pub(crate) fn at_once<'v>(resource: &Resource, object: &'v Value) -> Vec<Vec<(&'v Value, u32)>> {
    match (resource.group.as_str(), at(object, "spec.replicatedJobs").and_then(Value::as_array)) {
        ("jobset.x-k8s.io", Some(jobs)) => of_job_set(jobs),
        (group, _) if ALL_AT_ONCE.contains(&group) => vec![pod_templates(object)],
        _ => pod_templates(object).into_iter().map(|template| vec![template]).collect(),
    }
}

/// Jobs start together if they wait for the end of the same others. To wait until another is ready does not part them: that one runs on.
fn of_job_set(jobs: &[Value]) -> Vec<Vec<(&Value, u32)>> {
    let mut groups: BTreeMap<BTreeSet<&str>, Vec<(&Value, u32)>> = BTreeMap::new();
    for job in jobs {
        let (mut ended, mut seen) = (BTreeSet::new(), BTreeSet::new());
        waited_for(job, jobs, &mut ended, &mut seen);
        groups.entry(ended).or_default().extend(pod_templates(job));
    }
    groups.into_values().collect()
}

/// The names of the jobs that are complete before this one starts.
fn waited_for<'v>(job: &'v Value, jobs: &'v [Value], ended: &mut BTreeSet<&'v str>, seen: &mut BTreeSet<&'v str>) {
    for dependency in job["dependsOn"].as_array().into_iter().flatten() {
        let Some(name) = dependency["name"].as_str() else { continue };
        if dependency["status"] == "Complete" {
            ended.insert(name);
        }
        if seen.insert(name)
            && let Some(job) = jobs.iter().find(|job| job["name"] == name)
        {
            waited_for(job, jobs, ended, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The numbers of pods in each group.
    fn groups(api_version: &str, kind: &str, spec: &Value) -> Vec<Vec<u32>> {
        let object = json!({ "spec": spec });
        let groups = at_once(&Resource::of(api_version, kind), &object);
        groups.into_iter().map(|group| group.into_iter().map(|(_, pods)| pods).collect()).collect()
    }

    fn template() -> Value {
        json!({ "spec": { "containers": [{ "name": "c" }] } })
    }

    #[test]
    fn jobs_of_a_job_set_that_wait_for_the_end_of_others_are_not_there_with_them() {
        let job = |name: &str, replicas: u32, depends_on: &[(&str, &str)]| {
            let depends_on: Vec<_> = depends_on.iter().map(|(name, status)| json!({ "name": name, "status": status })).collect();
            let template = json!({ "spec": { "template": template() } });
            json!({ "name": name, "replicas": replicas, "dependsOn": depends_on, "template": template })
        };
        let rows = [
            (vec![job("a", 1, &[]), job("b", 2, &[])], vec![vec![1, 2]]),
            (vec![job("a", 1, &[]), job("b", 2, &[("a", "Ready")])], vec![vec![1, 2]]),
            (vec![job("a", 1, &[]), job("b", 2, &[("a", "Complete")])], vec![vec![1], vec![2]]),
            (
                vec![job("a", 1, &[]), job("b", 2, &[("a", "Complete")]), job("c", 3, &[("b", "Ready")]), job("d", 4, &[])],
                vec![vec![1, 4], vec![2, 3]],
            ),
            (vec![job("a", 1, &[("b", "Ready")]), job("b", 2, &[("a", "Ready")])], vec![vec![1, 2]]),
        ];
        for (jobs, expected) in rows {
            let spec = json!({ "startupPolicy": { "startupPolicyOrder": "InOrder" }, "replicatedJobs": jobs });
            assert_eq!(groups("jobset.x-k8s.io/v1alpha2", "JobSet", &spec), expected, "{spec}");
        }
    }

    #[test]
    fn templates_of_a_kind_that_may_take_turns_are_groups_of_their_own() {
        let of = |replicas: u32| json!({ "replicas": replicas, "template": template() });
        let spec = json!({ "a": of(1), "b": of(2) });
        assert_eq!(groups("kubeflow.org/v2beta1", "MPIJob", &spec), [[1, 2]]);
        assert_eq!(groups("batch.volcano.sh/v1alpha1", "Job", &spec), [[1], [2]]);
        assert_eq!(groups("example.org/v1", "Pipeline", &spec), [[1], [2]]);
    }
}
