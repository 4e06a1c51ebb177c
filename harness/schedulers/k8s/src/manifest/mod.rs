//! From the manifest of a check to the objects as they are sent. Pure; works on copies.
//!
//! ```text
//! documents -read-> Vec<Document> -patch-> -names-> renamed, labelled, references with them      pods: what runs within one
//! ```
//! `plan` decides which document is the workload, and what is forbidden.

mod document;
mod names;
mod pods;
mod references;

pub(crate) use document::{Document, read};
pub(crate) use names::{AttemptLabels, shortened};
pub(crate) use pods::{each_pod, each_pod_of, pod_count, pod_templates, preflight_pod, runs_at_once};
pub(crate) use references::Renames;

use muster_text::Value;
use std::iter;

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
