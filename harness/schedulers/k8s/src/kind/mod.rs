//! What Muster knows of a kind of workload: how it ends, which pods are its own, how it is stopped, how long its name may be.
//!
//! ```text
//! table.yaml (embedded) < site's k8s_workloads < check's k8s_workloads   -> Kinds -find(Resource)-> WorkloadRules (in the Handle)
//! ```
//! Pods and Jobs have rules of their own in `status`. All other kinds have CEL rules over `self` (the object), `pods`
//! and `conditions` (the types of its conditions that are True).

mod kinds;
mod names;

pub(crate) use kinds::Kinds;
pub(crate) use names::ResourceName;
pub(crate) use names::plural;

use serde::{Deserialize, Serialize};

/// The rules of one workload, rendered into its `Handle`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadRules {
    /// CEL: it has succeeded. `None`: the generic rule.
    pub succeeded: Option<String>,
    /// CEL: it has failed. `None`: the generic rule.
    pub failed: Option<String>,
    /// Which pods are its own beside those that carry our label.
    pub pods: PodRules,
    /// Roles of its pods, in the order of the stdout.
    pub roles: Vec<Role>,
    /// Containers that decide how a pod ended; empty: the default container, else all.
    pub primary_containers: Vec<String>,
    /// Which of the pods that have one name after the other are judged.
    #[serde(rename = "lives")]
    pub judged_pods: JudgedPods,
    /// How its compute is ended while the object stays.
    pub stop: Stop,
    /// The longest name it may have; `None`: 63.
    pub name_max: Option<usize>,
    /// Where its pods' labels are, beside every `metadata` and every template: `spec.workers.template.metadata`, `spec.driver`.
    pub metadata_paths: Vec<String>,
}

/// Which pods belong to a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodRules {
    /// A label selector; `{name}` is the object's name and `{id}` the identifier, both filled in by the plan. `None`: our own
    /// label.
    pub selector: Option<String>,
    /// CEL over `self`: how many there will be.
    pub expect: Option<String>,
}

/// Which of the pods that have one name after the other are judged.
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
}

/// How a workload's compute is ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The object is deleted: there is no other way.
    #[default]
    Delete,
    /// This merge patch ends it; the object stays.
    Patch(muster_text::Value),
}
