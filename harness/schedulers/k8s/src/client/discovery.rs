//! Asks a server what it has and grants before anything is sent: the kinds that it serves, with one request for each group and
//! version that has a kind that is not built in; the namespace; the rights of the account.

use super::{
    Cluster,
    error::{ApiError, Asked, Why},
    path,
    send::Call,
};
use crate::api::{Resource, clock};
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use muster_text::{Value, diagnostic::did_you_mean};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// A server that has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contact {
    /// `v1.33.1`
    pub(crate) version: String,
    /// Seconds that its clock is ahead of ours; `None`: it sends no date.
    pub(crate) ahead: Option<i64>,
}

/// What one group and version has.
pub(super) type Served = Arc<Vec<APIResource>>;

impl Cluster {
    /// The resource with its plural: of every server's own kinds from the table, else from the server, which is asked once. A
    /// plural that is there already does not prove that the server has such a kind.
    ///
    /// # Errors
    /// `ApiError::UnknownKind` with what is near, `ApiError::ClusterScoped`, or why the server could not be asked.
    pub async fn resolve(&self, resource: &Resource) -> Result<Resource, ApiError> {
        let with = |plural: String| Resource { plural: Some(plural), ..resource.clone() };
        if path::is_built_in(resource) {
            return Ok(with(resource.probable_plural()));
        }
        let Some(served) = self.served(resource).await? else {
            return Err(self.unknown(resource, self.versions_of(resource).await));
        };
        match served.iter().find(|served| served.kind == resource.kind) {
            Some(found) if found.namespaced => Ok(with(found.name.clone())),
            Some(_) => Err(ApiError::ClusterScoped { kind: resource.kind.clone(), api_version: resource.api_version() }),
            None => Err(self.unknown(resource, near(&resource.kind, &served))),
        }
    }

    /// `None`: the server has no such group, or not in this version.
    async fn served(&self, resource: &Resource) -> Result<Option<Served>, ApiError> {
        let version = path::version(resource);
        if let Some(served) = self.served.lock().get(&version) {
            return Ok(Some(Arc::clone(served)));
        }
        let list = match self.discover(resource, version.clone()).await {
            Ok(list) => list,
            Err(error) if matches!(error.why(), Why::NotFound | Why::NotServed) => return Ok(None),
            Err(error) => return Err(error),
        };
        let served = Arc::new(read(&list));
        self.served.lock().insert(version, Arc::clone(&served));
        Ok(Some(served))
    }

    /// The version of a group that the server prefers; `None`: it has no such group.
    pub async fn preferred_version(&self, group: &str) -> Result<Option<String>, ApiError> {
        let resource = Resource { group: group.to_owned(), version: String::new(), kind: "APIGroup".into(), plural: None };
        match self.discover(&resource, format!("/apis/{group}")).await {
            Ok(found) => Ok(found["preferredVersion"]["version"].as_str().map(str::to_owned)),
            Err(error) if matches!(error.why(), Why::NotFound | Why::NotServed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The groups that the server has, each in the version that it prefers.
    pub async fn groups(&self) -> Result<BTreeMap<String, String>, ApiError> {
        let list = self.discover(&Resource::of("", "APIGroupList"), "/apis".to_owned()).await?;
        let group =
            |group: &Value| Some((group["name"].as_str()?.to_owned(), group["preferredVersion"]["version"].as_str()?.to_owned()));
        Ok(list["groups"].as_array().into_iter().flatten().filter_map(group).collect())
    }

    /// The version of the server, and what time it is there: one attempt, so that the first reason why there is no answer is known.
    pub(crate) async fn contact(&self) -> Result<Contact, ApiError> {
        let asked = self.asked("get", &Resource::of("", "Version"), None);
        let call = Call { kind: "discovery", asked, method: Method::GET, path: "/version".to_owned(), body: None };
        let answer = self.send_once(&call).await?;
        let ahead = answer.date.map(|date| date.0.saturating_sub(clock::now().0) / 1_000_000);
        let version = answer.json(&call)?["gitVersion"].as_str().unwrap_or("of an unknown version").to_owned();
        Ok(Contact { version, ahead })
    }

    /// Whether the namespace exists.
    pub(crate) async fn has_namespace(&self) -> Result<bool, ApiError> {
        let namespace = &self.place.namespace;
        let asked = self.asked(
            "get",
            &Resource { plural: Some("namespaces".into()), ..Resource::of("v1", "Namespace") },
            Some(namespace),
        );
        let path = path::namespace(namespace);
        let call = Call { kind: "get", asked, method: Method::GET, path, body: None };
        match self.send(&call).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.why(), Why::NotFound | Why::NoNamespace) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What the account may do in the namespace, as far as the server can list it.
    pub(crate) async fn rules(&self) -> Result<Rules, ApiError> {
        let spec = json!({ "namespace": self.place.namespace });
        Ok(Rules(self.review("SelfSubjectRulesReview", &spec).await?["status"]["resourceRules"].take()))
    }

    /// Whether the account may do this in the namespace.
    pub(crate) async fn may(&self, group: &str, right: &str, verb: &str) -> Result<bool, ApiError> {
        let (resource, part) = right.split_once('/').unwrap_or((right, ""));
        let spec = json!({ "resourceAttributes": {
            "namespace": self.place.namespace, "verb": verb, "group": group, "resource": resource, "subresource": part,
        } });
        Ok(!is_denied(&self.review("SelfSubjectAccessReview", &spec).await?["status"]))
    }

    async fn review(&self, kind: &str, spec: &Value) -> Result<Value, ApiError> {
        let plural = format!("{}s", kind.to_lowercase());
        let resource = Resource { plural: Some(plural.clone()), ..Resource::of("authorization.k8s.io/v1", kind) };
        let body = json!({ "apiVersion": resource.api_version(), "kind": kind, "spec": spec });
        let path = format!("{}/{plural}", path::version(&resource));
        let asked = self.asked("create", &resource, None);
        let body = Some(("application/json", body.to_string().into_bytes()));
        let call = Call { kind: "review", asked, method: Method::POST, path, body };
        self.send(&call).await?.json(&call)
    }

    async fn versions_of(&self, resource: &Resource) -> String {
        let install = "install its operator, or leave this partition out".to_owned();
        let found = self.discover(resource, format!("/apis/{}", resource.group)).await;
        let Ok(found) = found else { return install };
        let versions = found["versions"].as_array().into_iter().flatten();
        let versions: Vec<&str> = versions.filter_map(|version| version["groupVersion"].as_str()).collect();
        if versions.is_empty() { install } else { format!("it serves {}", versions.join(", ")) }
    }

    async fn discover(&self, resource: &Resource, path: String) -> Result<Value, ApiError> {
        let asked = Asked { verb: "get", resource: resource.clone(), subresource: None, name: None, place: self.place.clone() };
        let call = Call { kind: "discovery", asked, method: Method::GET, path, body: None };
        self.send(&call).await?.json(&call)
    }

    fn unknown(&self, resource: &Resource, hint: String) -> ApiError {
        let (kind, api_version) = (resource.kind.clone(), resource.api_version());
        ApiError::UnknownKind { kind, api_version, place: self.place.clone(), hint }
    }
}

/// The `resourceRules` of a `SelfSubjectRulesReview`.
#[derive(Debug)]
pub(crate) struct Rules(Value);

impl Rules {
    /// Whether a rule grants a verb on all objects of a resource: `pods`, `pods/log`.
    pub(crate) fn grant(&self, group: &str, right: &str, verb: &str) -> bool {
        let has = |list: &Value, wanted: &dyn Fn(&str) -> bool| {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).any(wanted)
        };
        let is_named = |name: &str| {
            name == "*" || name == right || right.split_once('/').is_some_and(|(_, part)| name == format!("*/{part}"))
        };
        self.0.as_array().into_iter().flatten().any(|rule| {
            rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
                && has(&rule["verbs"], &|own| own == "*" || own == verb)
                && has(&rule["apiGroups"], &|own| own == "*" || own == group)
                && has(&rule["resources"], &is_named)
        })
    }
}

/// The kinds of an `APIResourceList`, without parts of objects (`pods/log`). An entry that cannot be read hides no other one:
/// aggregated API servers write what they like.
/// Whether a review denies something for certain: an authorizer that does not answer has denied nothing.
fn is_denied(status: &Value) -> bool {
    let has_failed = status["evaluationError"].as_str().is_some_and(|error| !error.is_empty());
    status["denied"] == true || (status["allowed"] == false && !has_failed)
}

fn read(list: &Value) -> Vec<APIResource> {
    let entries = list["resources"].as_array().into_iter().flatten();
    let served = entries.filter_map(|entry| {
        let (kind, name) = (entry["kind"].as_str()?.to_owned(), entry["name"].as_str()?.to_owned());
        Some(APIResource { kind, name, namespaced: entry["namespaced"] == true, ..APIResource::default() })
    });
    served.filter(|served| !served.name.contains('/')).collect()
}

fn near(kind: &str, served: &[APIResource]) -> String {
    let mut kinds: Vec<&str> = served.iter().filter(|served| served.namespaced).map(|served| served.kind.as_str()).collect();
    kinds.dedup();
    did_you_mean(kind, kinds.iter().copied()).unwrap_or_else(|| match kinds.as_slice() {
        [] => "it has no kinds in that group".to_owned(),
        kinds => format!("it has {}", kinds.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_grants_what_it_names_on_all_objects() {
        let rules = Rules(json!([
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["*"], "apiGroups": ["batch"], "resources": ["*"]},
            {"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/log"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]},
        ]));
        let rows = [
            ("", "pods", "get", true),
            ("", "pods", "create", false),
            ("", "pods/log", "get", true),
            ("", "pods/log", "list", false),
            ("batch", "jobs", "patch", true),
            ("apps", "jobs", "patch", false),
            ("", "secrets", "delete", false),
        ];
        for (group, right, verb, granted) in rows {
            assert_eq!(rules.grant(group, right, verb), granted, "{verb} {right} {group}");
        }
        assert!(!Rules(Value::Null).grant("", "pods", "get"));
    }

    #[test]
    fn an_authorizer_that_fails_has_denied_nothing() {
        let rows = [
            (json!({ "allowed": true }), false),
            (json!({ "allowed": false }), true),
            (json!({ "allowed": false, "evaluationError": "" }), true),
            (json!({ "allowed": false, "evaluationError": "webhook: context deadline exceeded" }), false),
            (json!({ "allowed": false, "denied": true, "evaluationError": "webhook: no answer" }), true),
            (json!({}), false),
        ];
        for (status, denied) in rows {
            assert_eq!(is_denied(&status), denied, "{status}");
        }
    }

    #[test]
    fn kinds_are_read_and_near_ones_named() {
        let served = read(&serde_json::json!({"apiVersion": "v2", "resources": [
            {"name": "ipujobs", "kind": "IPUJob", "namespaced": true, "verbs": "get"},
            {"name": "broken"},
            {"name": "ipujobs/status", "kind": "IPUJob", "namespaced": true},
            {"name": "ipupools", "kind": "IPUPool", "namespaced": false},
        ]}));
        assert_eq!(served.len(), 2);
        insta::assert_snapshot!(near("IPUJobs", &served), @"did you mean `IPUJob`?");
        insta::assert_snapshot!(near("Nothing", &served), @"it has IPUJob");
        insta::assert_snapshot!(near("Nothing", &[]), @"it has no kinds in that group");
    }
}
