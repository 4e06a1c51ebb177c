//! The kinds that the server knows, for discovery and for `kind` in lists.

use serde_json::{Value, json};

/// A kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub group: String,
    pub version: String,
    pub name: String,
    pub plural: String,
    pub namespaced: bool,
}

#[derive(Debug)]
pub(crate) struct Kinds(Vec<Kind>);

const KNOWN: [(&str, &str, &str, &str, bool); 21] = [
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "Node", "nodes", false),
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "Service", "services", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("", "v1", "Event", "events", true),
    ("", "v1", "ResourceQuota", "resourcequotas", true),
    ("", "v1", "LimitRange", "limitranges", true),
    ("events.k8s.io", "v1", "Event", "events", true),
    ("batch", "v1", "Job", "jobs", true),
    ("batch", "v1", "CronJob", "cronjobs", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("coordination.k8s.io", "v1", "Lease", "leases", true),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", true),
    ("kueue.x-k8s.io", "v1beta1", "Workload", "workloads", true),
    ("kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues", true),
    ("graphcore.ai", "v1alpha1", "IPUJob", "ipujobs", true),
];

impl Default for Kinds {
    fn default() -> Self {
        let own = str::to_owned;
        let kind = |(group, version, kind, plural, namespaced): (&str, &str, &str, &str, bool)| Kind {
            group: own(group),
            version: own(version),
            name: own(kind),
            plural: own(plural),
            namespaced,
        };
        Self(KNOWN.map(kind).into())
    }
}

impl Kinds {
    pub(crate) fn add(&mut self, kind: Kind) {
        self.0.push(kind);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    pub(crate) fn named(&self, api_version: &str, name: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.api_version() == api_version && kind.name == name)
    }

    /// `/version`, `/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`
    pub(crate) fn discover(&self, path: &str) -> Option<Value> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["version"] => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0-fake"})),
            ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
            ["apis"] => {
                let mut groups: Vec<&str> =
                    self.0.iter().map(|kind| kind.group.as_str()).filter(|group| !group.is_empty()).collect();
                groups.sort_unstable();
                groups.dedup();
                let groups: Vec<Value> = groups.into_iter().filter_map(|group| self.group(group)).collect();
                Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
            }
            ["api", version] => self.resources("", version),
            ["apis", group] => self.group(group),
            ["apis", group, version] => self.resources(group, version),
            _ => None,
        }
    }

    fn group(&self, group: &str) -> Option<Value> {
        let kinds = self.0.iter().filter(|kind| kind.group == group);
        let mut versions: Vec<Value> =
            kinds.map(|kind| json!({"groupVersion": kind.api_version(), "version": kind.version})).collect();
        versions.dedup();
        let preferred = versions.first()?.clone();
        Some(json!({"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions, "preferredVersion": preferred}))
    }

    fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let kinds: Vec<&Kind> = self.0.iter().filter(|kind| kind.group == group && kind.version == version).collect();
        let api_version = kinds.first()?.api_version();
        let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
        let entry = |kind: &&Kind| {
            json!({"name": kind.plural, "kind": kind.name, "namespaced": kind.namespaced,
                "singularName": kind.name.to_lowercase(), "verbs": verbs})
        };
        let resources: Vec<Value> = kinds.iter().map(entry).collect();
        Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}))
    }
}

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}
