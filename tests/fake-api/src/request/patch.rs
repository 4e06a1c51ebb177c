//! Changing objects: merge patches (RFC 7386) and JSON patches (RFC 6902).

use crate::request::status::No;
use serde_json::Value;

/// Maps merge, null deletes, everything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.shift_remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// `add`, `remove`, `replace` and `test`; all of them or none.
pub(crate) fn json(target: &mut Value, operations: &Value) -> Result<(), No> {
    let mut changed = target.clone();
    for operation in operations.as_array().into_iter().flatten() {
        let wrong =
            || No::new(422, "Invalid", format!("the server rejected our request due to an error in our request: {operation}"));
        let path = operation["path"].as_str().ok_or_else(wrong)?;
        let (parent, last) = path.rsplit_once('/').ok_or_else(wrong)?;
        let last = last.replace("~1", "/").replace("~0", "~");
        let value = operation.get("value").cloned().unwrap_or(Value::Null);
        let word = operation["op"].as_str().unwrap_or_default();
        if word == "test" {
            if changed.pointer(path) != Some(&value) {
                return Err(wrong());
            }
            continue;
        }
        let container = changed.pointer_mut(parent).ok_or_else(wrong)?;
        let done = apply(container, word, last, value);
        if !done {
            return Err(wrong());
        }
    }
    *target = changed;
    Ok(())
}

/// One operation on a map or an array; `false`: it cannot be done.
fn apply(container: &mut Value, word: &str, key: String, value: Value) -> bool {
    match container {
        Value::Object(map) => match word {
            "remove" => map.shift_remove(&key).is_some(),
            "replace" if !map.contains_key(&key) => false,
            "add" | "replace" => {
                map.insert(key, value);
                true
            }
            _ => false,
        },
        Value::Array(array) => {
            let at = if key == "-" { Some(array.len()) } else { key.parse().ok() };
            let Some(at) = at.filter(|at| *at < array.len() || word == "add" && *at == array.len()) else { return false };
            match word {
                "add" => array.insert(at, value),
                "replace" => array[at] = value,
                "remove" => drop(array.remove(at)),
                _ => return false,
            }
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    #[test]
    fn a_merge_patch_merges_and_deletes() {
        let mut target = value!({"a": {"b": 1, "c": 2}, "l": [1]});
        merge(&mut target, &value!({"a": {"b": null, "d": {"e": 1}}, "l": [2]}));
        assert_eq!(target, value!({"a": {"c": 2, "d": {"e": 1}}, "l": [2]}));
    }

    #[test]
    fn a_json_patch_is_all_or_nothing() {
        let mut target = value!({"metadata": {"labels": {"a/b": "1"}}, "l": [1, 2]});
        let good = value!([
            {"op": "test", "path": "/l/0", "value": 1},
            {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
            {"op": "remove", "path": "/l/0"},
            {"op": "add", "path": "/l/-", "value": 3},
        ]);
        json(&mut target, &good).unwrap();
        assert_eq!(target, value!({"metadata": {"labels": {"a/b": "2"}}, "l": [2, 3]}));
        let bad = value!([{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/l/0", "value": 9}]);
        assert_eq!(json(&mut target, &bad).unwrap_err().code, 422);
        assert_eq!(target.get("x"), None);
    }
}
