//! Patches: `k8s_patch` over a manifest, a site's `pod_patch` over a pod, rules of users over the shipped ones.

use muster_text::Value;

/// Merges `patch` into `base`: maps merge, lists of named maps merge by `name`, other lists replace, null deletes.
pub(crate) fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, patch) in patch {
                match base.get_mut(key) {
                    _ if patch.is_null() => drop(base.shift_remove(key)),
                    Some(base) => merge(base, patch),
                    None => drop(base.insert(key.clone(), without_nulls(patch))),
                }
            }
        }
        (Value::Array(base), Value::Array(patch)) if all_named(base) && all_named(patch) && !patch.is_empty() => {
            for item in patch {
                match base.iter_mut().find(|old| name(old) == name(item)) {
                    Some(old) => merge(old, item),
                    None => base.push(without_nulls(item)),
                }
            }
        }
        (base, patch) => *base = without_nulls(patch),
    }
}

/// The name of every container, in a patch of pods.
const EVERY: &str = "*";

/// Merges a patch into one pod or pod template; a container `*` in it means each that the pod has.
pub(crate) fn merge_pod(pod: &mut Value, patch: &Value) {
    let mut patch = patch.clone();
    for list in ["containers", "initContainers"] {
        let place = format!("/spec/{list}");
        let names: Vec<Value> = pod
            .pointer(&place)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|item| item.get("name").cloned())
            .collect();
        let Some(Value::Array(items)) = patch.pointer_mut(&place) else { continue };
        let called = |item: &Value, name: &Value| {
            let mut item = item.clone();
            item["name"] = name.clone();
            item
        };
        let each = |item: &Value| match name(item) {
            Some(EVERY) => names.iter().map(|name| called(item, name)).collect(),
            _ => vec![item.clone()],
        };
        let meant: Vec<Value> = items.iter().flat_map(each).collect();
        // An empty list would replace what is there.
        if let (true, Some(spec)) = (meant.is_empty(), patch.get_mut("spec").and_then(Value::as_object_mut)) {
            spec.shift_remove(list);
        } else {
            patch["spec"][list] = meant.into();
        }
    }
    merge(pod, &patch);
}

/// A null that deletes nothing leaves nothing either.
fn without_nulls(patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    patch.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), without_nulls(value))).collect()
}

fn name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

fn all_named(list: &[Value]) -> bool {
    list.iter().all(|item| name(item).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_merges_maps_and_named_lists_replaces_other_lists_and_deletes_by_null() {
        let rows = [
            (
                "maps merge",
                json!({ "a": 1, "b": { "c": 2 } }),
                json!({ "b": { "d": 3 } }),
                json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
            ),
            ("scalars replace", json!({ "a": 1 }), json!({ "a": "x" }), json!({ "a": "x" })),
            ("null deletes", json!({ "a": 1, "b": 2 }), json!({ "a": null, "c": null }), json!({ "b": 2 })),
            ("null deletes deeply", json!({}), json!({ "a": { "b": null, "c": 1 } }), json!({ "a": { "c": 1 } })),
            ("lists replace", json!({ "args": [1, 2] }), json!({ "args": [3] }), json!({ "args": [3] })),
            ("an empty list replaces", json!({ "env": [{ "name": "A" }] }), json!({ "env": [] }), json!({ "env": [] })),
            (
                "named lists merge",
                json!([{ "name": "a", "image": "i", "args": [1] }, { "name": "b" }]),
                json!([{ "name": "a", "args": [2] }, { "name": "c" }]),
                json!([{ "name": "a", "image": "i", "args": [2] }, { "name": "b" }, { "name": "c" }]),
            ),
            ("unnamed maps replace", json!([{ "name": "a" }, { "key": 1 }]), json!([{ "name": "a" }]), json!([{ "name": "a" }])),
            ("a map replaces a list", json!([1]), json!({ "a": 1 }), json!({ "a": 1 })),
        ];
        for (what, mut base, patch, expected) in rows {
            merge(&mut base, &patch);
            assert_eq!(base, expected, "{what}");
        }
    }

    #[test]
    fn a_patch_of_pods_reaches_every_container_that_is_there() {
        let every = json!({ "spec": { "hostUsers": false, "containers": [{ "name": "*", "tty": false }, { "name": "b", "stdin": true }],
            "initContainers": [{ "name": "*", "tty": false }] } });
        let rows = [
            (
                "each container, and one more than the others",
                json!({ "spec": { "containers": [{ "name": "a", "tty": true }, { "name": "b" }], "initContainers": [{ "name": "i" }] } }),
                json!({ "spec": { "containers": [{ "name": "a", "tty": false }, { "name": "b", "tty": false, "stdin": true }],
                    "initContainers": [{ "name": "i", "tty": false }], "hostUsers": false } }),
            ),
            (
                "no init container is made up",
                json!({ "spec": { "containers": [{ "name": "b" }] } }),
                json!({ "spec": { "containers": [{ "name": "b", "tty": false, "stdin": true }], "hostUsers": false } }),
            ),
        ];
        for (what, mut pod, expected) in rows {
            merge_pod(&mut pod, &every);
            assert_eq!(pod, expected, "{what}");
        }
    }

    #[test]
    fn what_stays_keeps_its_order() {
        let mut base = json!({ "a": 1, "b": 2, "c": 3 });
        merge(&mut base, &json!({ "a": null, "b": 4 }));
        assert_eq!(base.to_string(), r#"{"b":4,"c":3}"#);
    }
}
