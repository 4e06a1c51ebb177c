//! The stored part of a job: enough to find, watch, read and delete its objects from the store alone.

use crate::{
    api::{ClusterPlace, LABEL, Resource, SESSION_LABEL},
    kind::WorkloadRules,
};
use muster_core::{
    job::{scheduler::Job, workload::Staging},
    secret::MASK,
};
use muster_text::Value;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::sync::Arc;

/// `Job::handle` of a job on Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Handle {
    /// The cluster, and the user there.
    pub place: ClusterPlace,
    /// Everything the manifest asks for, in the order of creation: what the workload refers to comes before it.
    pub objects: Vec<Object>,
    /// The index of the workload among the objects.
    pub workload: usize,
    /// The number of pods of the workload as far as its manifest says: for display and preflight, never a condition.
    pub expected_pods: Option<u32>,
    /// The rules by which the workload ends, is found and is stopped.
    pub rules: WorkloadRules,
    /// The time for which stopped objects stay, in seconds.
    pub keep_seconds: u64,
    /// The deadline that the plan gave the workload in the cluster; `None`: the manifest has its own, or there is none.
    #[serde(default)]
    pub deadline: Option<Deadline>,
    /// The main containers that the manifest's pods have. One that a pod has beside them was added by the cluster.
    #[serde(default)]
    pub own_containers: Vec<String>,
    /// A cause of waiting that cannot change by itself is believed after so many seconds; `None`: never.
    #[serde(default)]
    pub hopeless_after: Option<u64>,
    /// The treatment of a log whose node may have rotated lines away.
    #[serde(default)]
    pub log_rotation: LogRotation,
    /// A node begins a new file of a log at so many bytes; `None`: at the default of a kubelet.
    #[serde(default)]
    pub log_file: Option<u64>,
    /// The files that its ConfigMap gets when it is launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Staging>,
}

/// The cluster's own time limit of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The limit in seconds, from the start that the workload's kind counts from.
    pub seconds: u64,
    /// The settings that it comes from, for the cause.
    pub from: String,
}

/// The treatment of a case whose node may have rotated away lines of its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogRotation {
    /// It cannot be judged.
    #[default]
    Invalid,
    /// It is judged by what is there, with a warning.
    Warn,
}

/// One object of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// The kind of the object.
    pub resource: Resource,
    /// Its name, already rewritten.
    pub name: String,
    /// The object as it is sent.
    pub manifest: Value,
    /// The server's answer to its creation.
    pub uid: Option<String>,
}

/// Masks what an object holds, if it is a Secret.
pub(crate) fn hide_data(object: &mut Map<String, Value>) {
    if object.get("kind").and_then(Value::as_str) != Some("Secret") {
        return;
    }
    for field in ["data", "stringData"] {
        let data = object.get_mut(field).and_then(Value::as_object_mut);
        data.into_iter().flat_map(Map::values_mut).for_each(|value| *value = MASK.into());
    }
}

/// Whether an object carries a job's labels.
pub(crate) fn is_of(job: &Job, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels[LABEL] == *job.identifier.as_str() && labels[SESSION_LABEL] == *job.session.0
}

impl Handle {
    /// Reads a job's handle back.
    ///
    /// # Errors
    /// When it is another scheduler's, or another version's.
    pub fn of(job: &Job) -> Result<Arc<Self>, serde_json::Error> {
        job.handle.read()
    }

    /// The same without the data of its Secrets. A handle is stored, and once they are created nobody needs what they hold.
    #[must_use]
    pub(crate) fn without_data_of_secrets(mut self) -> Self {
        self.objects.iter_mut().filter_map(|object| object.manifest.as_object_mut()).for_each(hide_data);
        self
    }

    /// The workload itself.
    pub fn workload(&self) -> Option<&Object> {
        self.objects.get(self.workload)
    }
}

impl Object {
    /// `jobs.batch rfm-x`
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.resource.for_kubectl(), self.name)
    }

    /// `v1/Secret/rfm-token-abcdefgh`
    pub(crate) fn named(&self) -> String {
        format!("{}/{}/{}", self.resource.api_version(), self.resource.kind, self.name)
    }
}

/// Reads what [`Object::named`] has written.
pub(crate) fn parse_named(text: &str) -> Option<(Resource, String)> {
    let mut parts = text.trim().rsplitn(3, '/');
    let (name, kind, api_version) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Resource::of(api_version, kind), name.to_owned()))
}
