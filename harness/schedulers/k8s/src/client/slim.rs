//! Reads an object without `metadata.managedFields`: half of its text, which is not needed, is never held in memory.

use k8s_openapi::{
    api::core::v1::{Pod, PodSpec, PodStatus},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use muster_text::Value;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Map;
use std::{collections::BTreeMap, fmt};

/// A pod, read from its text at once: it changes often, and a tree of its text would be thrown away each time.
pub(super) fn pod<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pod, D::Error> {
    let PodText { metadata, spec, status } = PodText::deserialize(deserializer)?;
    Ok(Pod { metadata: metadata.into(), spec, status })
}

#[derive(Deserialize)]
struct PodText {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
}

/// What a pod's metadata have, but for what the server keeps there for itself.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    generate_name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

impl From<Metadata> for ObjectMeta {
    fn from(text: Metadata) -> Self {
        Self {
            name: text.name,
            generate_name: text.generate_name,
            namespace: text.namespace,
            uid: text.uid,
            resource_version: text.resource_version,
            generation: text.generation,
            labels: text.labels,
            annotations: text.annotations,
            owner_references: text.owner_references,
            finalizers: text.finalizers,
            creation_timestamp: text.creation_timestamp,
            deletion_timestamp: text.deletion_timestamp,
            deletion_grace_period_seconds: text.deletion_grace_period_seconds,
            ..Self::default()
        }
    }
}

/// Reads an object. For `serde(deserialize_with)`.
pub(super) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Part::Object.deserialize(deserializer)
}

/// Reads an answer.
pub(super) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = object(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

#[derive(Clone, Copy)]
enum Part {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            match (self, key.as_str()) {
                (Self::Object, "metadata") => map.insert(key, fields.next_value_seed(Self::Metadata)?),
                (Self::Metadata, "managedFields") => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => map.insert(key, fields.next_value()?),
            };
        }
        Ok(Value::Object(map))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_the_same_but_for_its_managed_fields() {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "o", "controller": true});
        let whole: Pod = serde_json::from_value(json!({"kind": "Pod", "metadata": {
            "name": "x", "generateName": "x-", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [owner], "finalizers": ["f"],
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:09Z",
            "deletionGracePeriodSeconds": 1, "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:a": {}}}]},
            "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Running"}}))
        .unwrap();
        let text = serde_json::to_string(&whole).unwrap();
        let read = pod(&mut serde_json::Deserializer::from_str(&text)).unwrap();
        let mut slim = whole;
        slim.metadata.managed_fields = None;
        assert_eq!(read, slim);
        assert!(pod(&mut serde_json::Deserializer::from_str(r#"{"spec": "text"}"#)).is_err());
    }

    #[test]
    fn only_the_objects_own_managed_fields_are_left_out() {
        let text = json!({"kind": "Pod", "metadata": {"name": "x", "managedFields": [{"f:a": {}}], "labels": {"a": "b"}},
            "spec": {"metadata": {"managedFields": 1}, "list": [1, null, 2.5]}, "status": null});
        let mut slim = text.clone();
        slim["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        assert_eq!(read(text.to_string().as_bytes()).unwrap(), slim);
        assert_eq!(read(br#"{"metadata": null}"#).unwrap(), json!({"metadata": null}));
        for wrong in ["", "[1]", "{\"a\": 1} x", "{\"metadata\": {\"managedFields\": [}}"] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
