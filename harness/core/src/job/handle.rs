//! The part of a job that only its scheduler understands.

use muster_text::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

/// Objects and uids, a pid and its start time, instance ids: JSON that is stored, and what its scheduler has read of it.
///
/// A scheduler asks for it with every call. It is read once, however often it is asked for, and copies share it.
#[derive(Clone, Default)]
pub struct JobHandle {
    value: Arc<Value>,
    read: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl JobHandle {
    /// A handle of a scheduler's own value. A value without a JSON form is null.
    pub fn of<T: Serialize + Send + Sync + 'static>(own: T) -> Self {
        let value = Arc::new(serde_json::to_value(&own).unwrap_or_default());
        Self { value, read: OnceLock::from(Arc::new(own) as Arc<dyn Any + Send + Sync>) }
    }

    /// Returns the value of its scheduler.
    ///
    /// # Errors
    /// It is another scheduler's, or another version's.
    pub fn read<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, serde_json::Error> {
        if let Some(Ok(own)) = self.read.get().map(|own| Arc::clone(own).downcast()) {
            return Ok(own);
        }
        let own = Arc::new(T::deserialize(&*self.value)?);
        // Another thread may have been faster. Both have read the same.
        let _ = self.read.set(Arc::clone(&own) as Arc<dyn Any + Send + Sync>);
        Ok(own)
    }

    /// Returns the value as it is stored.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }
}

impl Deref for JobHandle {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl From<Value> for JobHandle {
    fn from(value: Value) -> Self {
        Self { value: Arc::new(value), read: OnceLock::new() }
    }
}

impl PartialEq for JobHandle {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl Serialize for JobHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JobHandle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_read_once_and_stored_as_it_was() {
        let handle = JobHandle::from(json!(["a", "b"]));
        let read = handle.read::<Vec<String>>().unwrap();
        assert_eq!(*read, ["a", "b"]);
        assert!(Arc::ptr_eq(&read, &handle.clone().read().unwrap()), "copies share what was read");
        assert!(handle.read::<u32>().is_err());
        assert_eq!(serde_json::to_value(&handle).unwrap(), json!(["a", "b"]));

        let own = JobHandle::of(vec![1_u32]);
        assert_eq!(*own, json!([1]));
        assert_eq!(own, serde_json::from_str("[1]").unwrap());
        assert_eq!(*own.read::<Vec<u32>>().unwrap(), [1]);
    }
}
