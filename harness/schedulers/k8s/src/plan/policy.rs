//! A site's limits on what its checks create. They prevent mistakes; binding limits are the cluster's (Pod Security, quotas, RBAC).
//!
//! They are in `sched_options: { policy: .. }` of a system or partition; a check's own is refused when the check is read.

use crate::{api::ClusterPlace, job::Object, manifest::children};
use muster_text::{Value, diagnostic::Diagnostic};
use serde::Deserialize;

/// A site's policy. An absent list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    /// Namespaces to run in.
    pub namespaces: Option<Vec<String>>,
    /// Contexts to run in; `in-cluster` is the pod's own ServiceAccount.
    pub contexts: Option<Vec<String>>,
    /// Kinds to create, helpers among them.
    pub kinds: Option<Vec<String>>,
    /// The service accounts that pods may have; a pod that names none has `default`.
    pub service_accounts: Option<Vec<String>>,
    /// The settings that no pod may ask for.
    pub deny: Vec<Denied>,
    /// The most pods of one case.
    pub max_pods: Option<u32>,
}

/// What a pod may be denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Denied {
    /// Folders of the node.
    HostPath,
    /// All rights on the node.
    Privileged,
    /// The node's network.
    HostNetwork,
    /// The node's processes.
    #[serde(rename = "hostPID")]
    HostPid,
    /// The node's shared memory.
    #[serde(rename = "hostIPC")]
    HostIpc,
}

impl Denied {
    fn key(self) -> &'static str {
        match self {
            Self::HostPath => "hostPath",
            Self::Privileged => "privileged",
            Self::HostNetwork => "hostNetwork",
            Self::HostPid => "hostPID",
            Self::HostIpc => "hostIPC",
        }
    }
}

/// What of a plan a policy looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The cluster and namespace where it would run.
    pub place: &'a ClusterPlace,
    /// The objects that would be created.
    pub objects: &'a [Object],
    /// The number of pods that would be created, as far as is known.
    pub pods: u32,
}

impl Policy {
    /// Everything about a plan that this policy forbids.
    pub(crate) fn violations(&self, subject: Subject<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let Subject { place, objects, pods } = subject;
        let context = place.context.as_deref().unwrap_or("in-cluster");
        for (what, name, allowed) in
            [("namespace", place.namespace.as_str(), &self.namespaces), ("context", context, &self.contexts)]
        {
            if let Some(allowed) = allowed.as_ref().filter(|allowed| !contains(allowed, name)) {
                found.push(refused(&format!("the {what} `{name}`")).hint(one_of(allowed)));
            }
        }
        if let Some(max) = self.max_pods.filter(|max| pods > *max) {
            found.push(refused(&format!("{pods} pod(s) in one case")).hint(format!("ask for {max} at most")));
        }
        for object in objects {
            self.object(object, objects, &mut found);
        }
        found
    }

    fn object(&self, object: &Object, all: &[Object], found: &mut Vec<Diagnostic>) {
        let kind = &object.resource.kind;
        if let Some(allowed) = self.kinds.as_ref().filter(|allowed| !allowed.iter().any(|name| name.eq_ignore_ascii_case(kind))) {
            found.push(refused(&format!("the kind {kind} ({})", object.name)).hint(one_of(allowed)));
        }
        visit(&object.manifest, &mut Vec::new(), &mut |path, value| {
            let key = path.last().map_or("", String::as_str);
            let place = || format!("{kind} {}, `{}`", object.name, path.join("."));
            if let Some(denied) = self.deny.iter().find(|denied| denied.key() == key)
                && (value.is_object() || value.as_bool() == Some(true))
            {
                found.push(refused(&format!("{} ({})", denied.key(), place())).hint("leave it out of the manifest"));
            }
            let Some(allowed) = &self.service_accounts else { return };
            // An account that the manifest brings along has no rights but those that its author could give it.
            let is_ours = |name: &str| all.iter().any(|other| other.resource.kind == "ServiceAccount" && other.name == name);
            if matches!(key, "serviceAccountName" | "serviceAccount")
                && let Some(name) = value.as_str().filter(|name| !contains(allowed, name) && !is_ours(name))
            {
                found.push(refused(&format!("the service account `{name}` ({})", place())).hint(one_of(allowed)));
            }
            let names_one = ["serviceAccountName", "serviceAccount"].iter().any(|key| value.get(key).is_some());
            let is_pod_spec = value.get("containers").is_some_and(Value::is_array);
            if is_pod_spec && !names_one && !contains(allowed, "default") {
                let message = format!("the service account `default`, which pods without one have ({})", place());
                found.push(refused(&message).hint(format!("write `serviceAccountName`, {}", one_of(allowed))));
            }
        });
    }
}

fn contains(allowed: &[String], name: &str) -> bool {
    allowed.iter().any(|allowed| allowed == name)
}

fn refused(what: &str) -> Diagnostic {
    Diagnostic::general(format!("the site's policy does not allow {what}"))
}

fn one_of(allowed: &[String]) -> String {
    match allowed {
        [] => "this site allows none".to_owned(),
        [only] => format!("use {only}"),
        several => format!("use one of {}", several.join(", ")),
    }
}

/// Every value below `value` with its path, but no data.
fn visit(value: &Value, path: &mut Vec<String>, see: &mut dyn FnMut(&[String], &Value)) {
    see(path, value);
    for (index, (key, child)) in children(value).enumerate() {
        path.push(if value.is_array() { index.to_string() } else { key.to_owned() });
        visit(child, path, see);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Resource;
    use serde_json::json;

    fn object(manifest: Value) -> Object {
        let text = |key: &str| manifest[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Object { resource: Resource::of(&api_version, &kind), name, manifest, uid: None }
    }

    fn violations_of(policy: Value, objects: &[Object], pods: u32) -> String {
        let policy: Policy = serde_json::from_value(policy).expect("a policy");
        let place = ClusterPlace { context: None, namespace: "bench".to_owned() };
        let found = policy.violations(Subject { place: &place, objects, pods });
        let lines = found.iter().map(|found| format!("{}: {}", found.message, found.hint.as_deref().unwrap_or("")));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_violation_says_what_where_and_what_to_do() {
        let job = object(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "rfm-x-abcdefgh" },
            "spec": { "template": { "spec": {
                "hostNetwork": true, "hostPID": false, "serviceAccountName": "admin",
                "volumes": [{ "name": "root", "hostPath": { "path": "/" } }],
                "containers": [{ "name": "c", "securityContext": { "privileged": true } }],
            } } },
        }));
        let settings = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "rfm-s-abcdefgh" }, "data": { "hostNetwork": true },
        }));
        let pod = object(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "rfm-p-abcdefgh" }, "spec": { "containers": [] },
        }));
        let policy = json!({
            "namespaces": ["a", "b"], "contexts": ["eidf"], "kinds": ["job", "Pod"], "service_accounts": ["bench"],
            "deny": ["hostPath", "privileged", "hostNetwork", "hostPID", "hostIPC"], "max_pods": 4,
        });
        insta::assert_snapshot!(violations_of(policy, &[settings, job, pod], 5));
    }

    #[test]
    fn what_no_policy_names_is_allowed() {
        let account = object(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "rfm-sa-abcdefgh" } }));
        let pod = object(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
            "spec": { "hostIPC": true, "serviceAccountName": "rfm-sa-abcdefgh", "containers": [{ "securityContext": { "privileged": true } }] },
        }));
        let objects = [account, pod];
        assert_eq!(violations_of(json!({}), &objects, 1000), "");
        let policy = json!({ "namespaces": ["bench"], "contexts": ["in-cluster"], "service_accounts": [], "deny": ["hostPath"], "max_pods": 1 });
        assert_eq!(violations_of(policy, &objects, 1), "", "an account that the manifest brings along is its own");
    }
}
