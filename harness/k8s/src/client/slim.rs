//! An object without `metadata.managedFields`: half of its text, which nobody here reads, is not even taken into memory.

use muster_core::Value;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Map;
use std::fmt;

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
