//! References between the objects of a manifest: a pod to its ConfigMap, a StatefulSet to its Service. They follow renamed objects.
//!
//! Names inside texts (arguments, environment values, URLs) are the user's: `${{ identifier }}` writes the new name there.

use super::children_mut;
use muster_text::Value;

/// Keys whose text is the name of an object.
const TEXTS: [(&str, &str); 8] = [
    ("serviceAccountName", "ServiceAccount"),
    ("serviceAccount", "ServiceAccount"),
    ("secretName", "Secret"),
    ("claimName", "PersistentVolumeClaim"),
    ("serviceName", "Service"),
    ("subdomain", "Service"),
    ("resourceClaimName", "ResourceClaim"),
    ("resourceClaimTemplateName", "ResourceClaimTemplate"),
];

/// Keys of a map, or of a list of maps, whose `name` is the name of an object.
const NAMED: [(&str, &str); 12] = [
    ("configMap", "ConfigMap"),
    ("configMapRef", "ConfigMap"),
    ("configMapKeyRef", "ConfigMap"),
    ("secret", "Secret"),
    ("secretRef", "Secret"),
    ("secretKeyRef", "Secret"),
    ("nodePublishSecretRef", "Secret"),
    ("imagePullSecrets", "Secret"),
    ("secrets", "Secret"),
    // An Ingress' backend, a webhook's.
    ("service", "Service"),
    ("claimRef", "PersistentVolumeClaim"),
    ("persistentVolumeClaim", "PersistentVolumeClaim"),
];

/// What the objects of one manifest were called, and are called now.
#[derive(Debug, Default)]
pub(crate) struct Renames {
    rows: Vec<(String, String, String)>,
}

impl Renames {
    /// An object of this kind is called `new` from now on.
    pub(crate) fn add(&mut self, kind: &str, old: &str, new: &str) {
        self.rows.push((kind.to_owned(), old.to_owned(), new.to_owned()));
    }

    /// Whether something of this kind has this new name already.
    pub(crate) fn is_taken(&self, kind: &str, new: &str) -> bool {
        self.rows.iter().any(|(known, _, taken)| known == kind && taken == new)
    }

    /// Whether something of this kind was called so.
    pub(crate) fn is_known(&self, kind: &str, old: &str) -> bool {
        self.new_name(kind, old).is_some()
    }

    fn new_name(&self, kind: &str, old: &str) -> Option<&str> {
        // What had its name generated has no old one.
        let mut named = self.rows.iter().filter(|(_, name, _)| !name.is_empty());
        named.find(|(known, name, _)| known == kind && name == old).map(|(.., new)| new.as_str())
    }

    /// Renames what `value` refers to.
    pub(crate) fn apply(&self, value: &mut Value) {
        self.rename_typed(value);
        for (key, child) in children_mut(value) {
            self.rename_under(key, child);
            self.apply(child);
        }
    }

    /// `{ kind: Role, name: reader }`, whatever key it is under: `roleRef`, `subjects`, `dataSource`, `scaleTargetRef`.
    fn rename_typed(&self, value: &mut Value) {
        let kind = value.get("kind").and_then(Value::as_str).map(str::to_owned);
        if let (Some(kind), Some(name)) = (kind, value.get_mut("name")) {
            self.rename(&kind, name);
        }
    }

    fn rename_under(&self, key: &str, child: &mut Value) {
        if let Some((_, kind)) = TEXTS.iter().find(|(text, _)| *text == key) {
            self.rename(kind, child);
        }
        let Some((_, kind)) = NAMED.iter().find(|(named, _)| *named == key) else { return };
        let items = match child {
            Value::Array(items) => items.iter_mut().collect(),
            child => vec![child],
        };
        for name in items.into_iter().filter_map(|item| item.get_mut("name")) {
            self.rename(kind, name);
        }
    }

    fn rename(&self, kind: &str, name: &mut Value) {
        if let Some(new) = name.as_str().and_then(|old| self.new_name(kind, old)) {
            *name = new.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_reference_to_a_renamed_object_follows_it_and_nothing_else_does() {
        let mut renames = Renames::default();
        for kind in
            ["ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount", "Service", "Role", "ResourceClaim", "StatefulSet"]
        {
            renames.add(kind, "x", "NEW");
        }
        let rows = [
            (json!({ "volumes": [{ "name": "x", "configMap": { "name": "x" } }] }), "volumes/0/configMap/name"),
            (json!({ "volumes": [{ "name": "x", "secret": { "secretName": "x" } }] }), "volumes/0/secret/secretName"),
            (json!({ "persistentVolumeClaim": { "claimName": "x" } }), "persistentVolumeClaim/claimName"),
            (json!({ "projected": { "sources": [{ "configMap": { "name": "x" } }] } }), "projected/sources/0/configMap/name"),
            (json!({ "projected": { "sources": [{ "secret": { "name": "x" } }] } }), "projected/sources/0/secret/name"),
            (json!({ "envFrom": [{ "configMapRef": { "name": "x" } }] }), "envFrom/0/configMapRef/name"),
            (json!({ "envFrom": [{ "secretRef": { "name": "x" } }] }), "envFrom/0/secretRef/name"),
            (json!({ "valueFrom": { "configMapKeyRef": { "name": "x", "key": "x" } } }), "valueFrom/configMapKeyRef/name"),
            (json!({ "valueFrom": { "secretKeyRef": { "name": "x", "key": "x" } } }), "valueFrom/secretKeyRef/name"),
            (json!({ "imagePullSecrets": [{ "name": "x" }] }), "imagePullSecrets/0/name"),
            (json!({ "serviceAccountName": "x", "hostname": "x" }), "serviceAccountName"),
            (json!({ "serviceName": "x" }), "serviceName"),
            (json!({ "subdomain": "x" }), "subdomain"),
            (json!({ "roleRef": { "kind": "Role", "name": "x" } }), "roleRef/name"),
            (json!({ "roleRef": { "kind": "ClusterRole", "name": "x" } }), ""),
            (
                json!({ "subjects": [{ "kind": "ServiceAccount", "name": "x" }, { "kind": "User", "name": "x" }] }),
                "subjects/0/name",
            ),
            (json!({ "scaleTargetRef": { "kind": "StatefulSet", "name": "x" } }), "scaleTargetRef/name"),
            (json!({ "resourceClaims": [{ "name": "x", "resourceClaimName": "x" }] }), "resourceClaims/0/resourceClaimName"),
            (json!({ "backend": { "service": { "name": "x" } } }), "backend/service/name"),
            (json!({ "volumeMounts": [{ "name": "x" }], "args": ["x"], "env": [{ "name": "x", "value": "x" }] }), ""),
            (json!({ "kind": "ConfigMap", "data": { "serviceName": "x" } }), ""),
            (json!({ "metadata": { "annotations": { "serviceName": "x" }, "labels": { "subdomain": "x" } } }), ""),
            (json!({ "configMap": { "name": "other" } }), ""),
        ];
        for (value, path) in rows {
            let mut expected = value.clone();
            if let Some(place) = expected.pointer_mut(&format!("/{path}")).filter(|_| !path.is_empty()) {
                *place = "NEW".into();
            }
            let mut after = value.clone();
            renames.apply(&mut after);
            assert_eq!(after, expected, "{value}");
        }
    }
}
