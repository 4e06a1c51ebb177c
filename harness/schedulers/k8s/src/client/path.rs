//! The paths of the API.

use crate::api::Resource;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use std::fmt::Write;

/// The kinds that every server has, by group.
const BUILT_IN: [(&str, &str); 6] = [
    ("", "Node Pod ConfigMap Secret Service ServiceAccount PersistentVolumeClaim ResourceQuota LimitRange Event"),
    ("batch", "Job CronJob"),
    ("apps", "Deployment StatefulSet ReplicaSet"),
    ("coordination.k8s.io", "Lease"),
    ("rbac.authorization.k8s.io", "Role RoleBinding"),
    ("networking.k8s.io", "NetworkPolicy"),
];

/// Whether every server has this kind: no need to ask for its plural.
pub(super) fn is_built_in(resource: &Resource) -> bool {
    BUILT_IN.iter().any(|(group, kinds)| *group == resource.group && kinds.split(' ').any(|kind| kind == resource.kind))
}

/// `/api/v1`, `/apis/batch/v1`
pub(super) fn version(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    }
}

/// `/api/v1/namespaces/NAME`
pub(super) fn namespace(name: &str) -> String {
    format!("/api/v1/namespaces/{}", encoded(name))
}

/// All objects of a kind in a namespace, one of them, or a part of one.
pub(super) fn objects(resource: &Resource, namespace: &str, name: Option<&str>, part: Option<&str>) -> String {
    let plural = resource.plural.as_deref().unwrap_or_default();
    // The only kind without a namespace that is ever asked for.
    let namespace = if plural == "nodes" { String::new() } else { format!("/namespaces/{}", encoded(namespace)) };
    let mut path = format!("{}{namespace}/{plural}", version(resource));
    for step in [name, part].into_iter().flatten() {
        let _ = write!(path, "/{}", encoded(step));
    }
    path
}

/// `a=1&b=2`, of those that have a value.
pub(super) fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (key, value) in pairs {
        if let Some(value) = value {
            let separator = if text.is_empty() { '?' } else { '&' };
            let _ = write!(text, "{separator}{key}={}", encoded(value));
        }
    }
    text
}

/// All but what RFC 3986 leaves unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_path() {
        let known = |api_version: &str, kind: &str| {
            let resource = Resource::of(api_version, kind);
            assert!(is_built_in(&resource), "{kind}");
            Resource { plural: Some(resource.probable_plural()), ..resource }
        };
        let custom = Resource { plural: Some("ipujobs".into()), ..Resource::of("graphcore.ai/v1alpha1", "IPUJob") };
        let rows = [
            (known("v1", "Pod"), None, None, "/api/v1/namespaces/n/pods"),
            (known("v1", "Pod"), Some("x"), Some("log"), "/api/v1/namespaces/n/pods/x/log"),
            (known("v1", "Node"), None, None, "/api/v1/nodes"),
            (
                known("networking.k8s.io/v1", "NetworkPolicy"),
                None,
                None,
                "/apis/networking.k8s.io/v1/namespaces/n/networkpolicies",
            ),
            (known("batch/v1", "Job"), Some("../x"), None, "/apis/batch/v1/namespaces/n/jobs/..%2Fx"),
            (custom, Some("x"), None, "/apis/graphcore.ai/v1alpha1/namespaces/n/ipujobs/x"),
        ];
        for (resource, name, part, path) in rows {
            assert_eq!(objects(&resource, "n", name, part), path);
        }
        assert!(!is_built_in(&Resource::of("batch.volcano.sh/v1alpha1", "Job")));
    }

    #[test]
    fn a_query_has_only_what_is_set() {
        assert_eq!(
            query(&[("a", None), ("labelSelector", Some("rfm=x,y in (1)")), ("b", Some("2"))]),
            "?labelSelector=rfm%3Dx%2Cy%20in%20%281%29&b=2"
        );
        assert_eq!(query(&[("a", None)]), "");
    }
}
