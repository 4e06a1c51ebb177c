//! Turns the manifest of a check into the objects as they are sent. Pure; works on copies.
//!
//! ```text
//! documents -read-> Vec<Document> -patch-> -names-> renamed, labelled, references with them      pods: what runs within one
//! ```
//! `plan` decides which document is the workload, and what is forbidden.

mod at_once;
mod names;
mod pods;
mod references;
mod texts;

pub(crate) use at_once::at_once;
pub(crate) use names::{AttemptLabels, shortened};
pub(crate) use pods::{each_pod, each_pod_of, pod_count, pod_templates, preflight_pod, runs_at_once};
pub(crate) use references::Renames;
pub(crate) use texts::is_text;

use crate::{
    api::{Resource, merge},
    job::Object,
    kind::Kinds,
};
use muster_text::{Value, diagnostic::Diagnostic};
use std::{fmt, iter};

/// Maps that are data to Kubernetes, whatever their keys are called.
const OPAQUE: [&str; 6] = ["annotations", "labels", "matchLabels", "matchExpressions", "openAPIV3Schema", "managedFields"];
/// The same in a ConfigMap and a Secret, at the top.
const DATA: [&str; 3] = ["data", "stringData", "binaryData"];

/// What is directly within a map, each value with its key, or within a list, each item with an empty key. Not data of users,
/// which is never read or changed here.
pub(crate) fn children(value: &Value) -> Box<dyn Iterator<Item = (&str, &Value)> + '_> {
    let is_store = is_store(value);
    match value {
        Value::Array(items) => Box::new(items.iter().map(|item| ("", item))),
        Value::Object(map) => {
            let children = map.iter().map(|(key, child)| (key.as_str(), child));
            Box::new(children.filter(move |(key, _)| !is_opaque(is_store, key)))
        }
        _ => Box::new(iter::empty()),
    }
}

/// The same, to be changed.
fn children_mut(value: &mut Value) -> Box<dyn Iterator<Item = (&str, &mut Value)> + '_> {
    let is_store = is_store(value);
    match value {
        Value::Array(items) => Box::new(items.iter_mut().map(|item| ("", item))),
        Value::Object(map) => {
            let children = map.iter_mut().map(|(key, child)| (key.as_str(), child));
            Box::new(children.filter(move |(key, _)| !is_opaque(is_store, key)))
        }
        _ => Box::new(iter::empty()),
    }
}

fn is_store(value: &Value) -> bool {
    matches!(value.get("kind").and_then(Value::as_str), Some("ConfigMap" | "Secret"))
}

fn is_opaque(is_store: bool, key: &str) -> bool {
    OPAQUE.contains(&key) || (is_store && DATA.contains(&key))
}

/// The value at `spec.a.b`.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// Writes at `spec.a.b`, making the maps on the way. What is not a map on the way stays.
pub(crate) fn set(value: &mut Value, path: &str, new: Value) {
    if let Some(place) = place(value, path) {
        *place = new;
    }
}

/// The place `spec.a.b`, with the maps on the way made.
pub(crate) fn place<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    path.split('.').try_fold(value, |value, key| {
        if value.is_null() {
            *value = Value::Object(serde_json::Map::new());
        }
        Some(value.as_object_mut()?.entry(key).or_insert(Value::Null))
    })
}

/// More objects are an installation, not a case.
const MAX_DOCUMENTS: usize = 50;
/// What the API server takes in one request.
const MAX_BYTES: usize = 3 << 20;

/// One object of a manifest.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// What it is.
    pub(crate) resource: Resource,
    /// The whole object.
    pub(crate) value: Value,
    /// Its place in the manifest, from 1.
    number: usize,
}

/// The documents of a manifest, a `List` taken apart.
pub(crate) fn read(manifest: &[Value], kinds: &Kinds) -> Result<Vec<Document>, Vec<Diagnostic>> {
    let mut values = Vec::new();
    for document in manifest {
        expand(document, &mut values);
    }
    let too = |what: String, hint: &str| Err(vec![Diagnostic::general(what).hint(hint)]);
    if values.is_empty() {
        return too(
            "the manifest has no object in it".to_owned(),
            "write the workload into `k8s_config`, for example a Pod or a Job",
        );
    }
    if values.len() > MAX_DOCUMENTS {
        return too(format!("the manifest has {} objects, of at most {MAX_DOCUMENTS}", values.len()), "split the check");
    }
    let bytes: usize = values.iter().map(|value| value.to_string().len()).sum();
    if bytes > MAX_BYTES {
        return too(
            format!("the manifest is {} MiB long, of at most 3", bytes >> 20),
            "keep data in a volume, not in the manifest",
        );
    }
    let mut mistakes = Vec::new();
    let documents = values
        .into_iter()
        .enumerate()
        .filter_map(|(index, value)| document(value, index + 1, kinds).map_err(|mistake| mistakes.push(mistake)).ok());
    let documents: Vec<Document> = documents.collect();
    if mistakes.is_empty() { Ok(documents) } else { Err(mistakes) }
}

fn expand<'v>(value: &'v Value, into: &mut Vec<&'v Value>) {
    match (value.get("kind").and_then(Value::as_str), value.get("items").and_then(Value::as_array)) {
        (Some("List"), Some(items)) => items.iter().for_each(|item| expand(item, into)),
        _ if value.is_null() => {}
        _ => into.push(value),
    }
}

fn document(value: &Value, number: usize, kinds: &Kinds) -> Result<Document, Diagnostic> {
    let text = |key| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        let message = format!("document {number} of the manifest has no `apiVersion` or no `kind`");
        return Err(Diagnostic::general(message).hint("write both, for example `apiVersion: v1` and `kind: Pod`"));
    };
    let mut resource = Resource::of(api_version, kind);
    let known = kinds.find(&resource);
    resource.plural = known.and_then(|known| known.plural.clone());
    let document = Document { resource, value: value.clone(), number };
    if known.is_some_and(|known| known.cluster_scoped) {
        let message = format!("{document} belongs to the whole cluster, and a check may only create what is in its namespace");
        return Err(Diagnostic::general(message).hint("have it installed by the cluster's administrators, and leave it out"));
    }
    if !value.get("metadata").is_none_or(|metadata| metadata.is_object() || metadata.is_null()) {
        return Err(Diagnostic::general(format!("`metadata` of {document} is not a mapping")));
    }
    Ok(document)
}

impl Document {
    /// A text of its metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// One of its labels.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// Applies a patch; its kind stays.
    pub(crate) fn patch(&mut self, patch: &Value) {
        merge(&mut self.value, patch);
    }

    /// Gives it the name it has from now on.
    pub(crate) fn call(&mut self, name: &str, namespace: &str) {
        if let Some(metadata) = place(&mut self.value, "metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("generateName");
            metadata.insert("name".to_owned(), name.into());
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }

    /// As it is planned.
    pub(crate) fn into_object(self) -> Object {
        let name = self.metadata("name").unwrap_or_default().to_owned();
        Object { resource: self.resource, name, manifest: self.value, uid: None }
    }

    /// `name` or `generateName`, as written.
    pub(crate) fn written_name(&self) -> Option<&str> {
        self.metadata("name").or_else(|| self.metadata("generateName"))
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource.kind)?;
        match self.written_name() {
            Some(name) => write!(f, " {name}"),
            None => write!(f, " in document {} of the manifest", self.number),
        }
    }
}
