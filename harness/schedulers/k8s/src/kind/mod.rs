//! The rules of a kind of workload: how it ends, which pods are its own, how it is stopped, how long its name may be.
//!
//! ```text
//! table.yaml (embedded) < site's k8s_workloads < check's k8s_workloads   -> Kinds -find(Resource)-> WorkloadRules (in the Handle)
//! ```
//! Pods and Jobs have rules of their own in `status`. All other kinds have CEL rules over `self` (the object), `pods`
//! and `conditions` (the types of its conditions that are True).

mod kinds;

pub(crate) use kinds::Kinds;

use crate::api::Resource;
use serde::{Deserialize, Serialize};

/// The rules of one workload, rendered into its `Handle`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadRules {
    /// CEL: it has succeeded. `None`: the generic rule.
    pub succeeded: Option<String>,
    /// CEL: it has failed. `None`: the generic rule.
    pub failed: Option<String>,
    /// The rules for its own pods beside those that carry our label.
    pub pods: PodRules,
    /// Roles of its pods, in the order of the stdout.
    pub roles: Vec<Role>,
    /// Containers that decide how a pod ended; empty: the default container, else all.
    pub primary_containers: Vec<String>,
    /// The judged pods of several that have one name after the other.
    #[serde(rename = "lives")]
    pub judged_pods: JudgedPods,
    /// The way to end its compute while the object stays.
    pub stop: Stop,
    /// The longest name it may have; `None`: 63.
    pub name_max: Option<usize>,
    /// The paths of its pods' labels, beside every `metadata` and every template: `spec.workers.template.metadata`, `spec.driver`.
    pub metadata_paths: Vec<String>,
}

/// The rules by which pods belong to a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodRules {
    /// A label selector; `{name}` is the object's name and `{id}` the identifier, both filled in by the plan. `None`: our own
    /// label.
    pub selector: Option<String>,
    /// CEL over `self`: how many there will be.
    pub expect: Option<String>,
    /// A label whose value changes when all pods are started anew: those of the last value count.
    pub life: Option<String>,
    /// Kinds that may stand between it and its pods: `Job.batch`. Empty: it owns them itself. `None`: nobody knows, so a pod with
    /// our label is its own whoever owns it.
    pub owners: Option<Vec<String>>,
}

/// The judged pods of several that have one name after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedPods {
    /// The last that has started a container: what was before it is repeated by it.
    #[default]
    Last,
    /// All: each does another part of the work.
    All,
}

/// A role of pods within a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// `launcher`
    pub name: String,
    /// A label selector; `None`: all that no role before it has taken.
    #[serde(default)]
    pub selector: Option<String>,
    /// The pods of the role end by themselves. Of others the log is judged, however they end.
    #[serde(default = "yes")]
    pub ends: bool,
}

fn yes() -> bool {
    true
}

/// The way to end a workload's compute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The object is deleted: there is no other way.
    #[default]
    Delete,
    /// This merge patch ends it; the object stays.
    Patch(muster_text::Value),
}

/// What `k8s_resource` says: a resource as kubectl takes it: `ipujob`, `ipujobs`, `IPUJob`, `po`, `jobs.batch`, `jobs.v1.batch`,
/// `pod/client`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceName {
    /// `jobs`, in small letters.
    word: String,
    /// `batch` or `v1.batch`, if it says so.
    group: Option<String>,
    /// `client` of `pod/client`.
    object: Option<String>,
}

impl ResourceName {
    /// Reads a name.
    pub(crate) fn parse(text: &str) -> Self {
        let (resource, object) = match text.split_once('/') {
            Some((resource, object)) => (resource, Some(object.to_owned())),
            None => (text, None),
        };
        let (word, group) = match resource.split_once('.') {
            Some((word, group)) => (word, Some(group.to_lowercase())),
            None => (resource, None),
        };
        Self { word: word.to_lowercase(), group, object }
    }

    /// Whether it means this resource.
    pub(crate) fn means(&self, resource: &Resource, kinds: &Kinds) -> bool {
        let singular = resource.kind.to_lowercase();
        let is_short = kinds.find(resource).is_some_and(|kind| kind.short_names.contains(&self.word));
        let is_word = self.word == singular || self.word == kinds.plural(resource) || is_short;
        let is_group = self.group.as_ref().is_none_or(|group| {
            *group == resource.group
                || group
                    .strip_prefix(&resource.version)
                    .is_some_and(|rest| rest.strip_prefix('.').unwrap_or(rest) == resource.group)
        });
        is_word && is_group
    }

    /// Whether it means an object of this name.
    pub(crate) fn means_object(&self, name: &str) -> bool {
        self.object.as_deref().is_none_or(|object| object == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_named_as_kubectl_names_it() {
        let rows = [
            ("pod", "v1", "Pod", true),
            ("po", "v1", "Pod", true),
            ("Pods", "v1", "Pod", true),
            ("pods.v1", "v1", "Pod", true),
            ("jobs", "batch/v1", "Job", true),
            ("job.batch", "batch/v1", "Job", true),
            ("jobs.v1.batch", "batch/v1", "Job", true),
            ("jobs.v1beta1.batch", "batch/v1", "Job", false),
            ("jobs.batch", "batch.volcano.sh/v1alpha1", "Job", false),
            ("vcjob", "batch.volcano.sh/v1alpha1", "Job", true),
            ("ipujob", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("ipujobs.graphcore.ai", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("ipujobs.v1alpha1.graphcore.ai", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("policies", "example.org/v1", "Policy", true),
            ("boxes", "example.org/v1", "Box", true),
            ("job", "v1", "Pod", false),
        ];
        for (text, api_version, kind, expected) in rows {
            let resource = Resource::of(api_version, kind);
            assert_eq!(ResourceName::parse(text).means(&resource, Kinds::known()), expected, "{text} {kind}");
        }
        let client = ResourceName::parse("pod/client");
        assert!(client.means_object("client") && !client.means_object("server"));
        assert!(ResourceName::parse("pod").means_object("anything"));
    }
}
