//! The least permissions that plans need, as Roles for an administrator to apply.
//!
//! ```text
//! workload        create, get (its name is taken: is it ours?), list, watch, patch (stop, mark as kept), delete
//! what it needs   create, get, delete: found by name, so that no right over all Secrets is asked for
//! pods of others  list, watch; delete where an operator may leave them
//! owners          get, where pods are found by whom they belong to
//! leases          say that a session lives
//! events          list, where a container has a probe or a hook: whether its node killed it
//! ```
//! The optional rights explain: why a case waits (events, quotas, a queue), whether its pods would be let in (a creation with
//! `dryRun`), and to `muster sweep`, what a killed session left. Not here: rights over the whole cluster (`--distribute` lists nodes).

use crate::{
    api::{QUEUE_LABEL, Resource},
    job::{Handle, Object},
    kind::Kinds,
    manifest::pod_templates,
};
use muster_text::Value;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const NAME: &str = "muster";
const BATCH: &str = "batch";

/// What may be done, in the order in which a rule lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Create,
    Get,
    List,
    Watch,
    Patch,
    Update,
    Delete,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

use Verb::{Create, Delete, Get, List, Patch, Update, Watch};

/// Controllers of Kubernetes that may stand between a custom resource and its pods.
const OWNERS: [(&str, &str); 5] =
    [("", "pods"), ("apps", "deployments"), ("apps", "replicasets"), ("apps", "statefulsets"), (BATCH, "jobs")];

/// The extent of the rights in a Role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The rights without which a case does not run or is not judged, or objects are left.
    Required,
    /// The rights that only explain, too.
    Full,
}

/// A verb on a resource of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) group: String,
    /// `pods`, `pods/log`
    pub(crate) plural: String,
    pub(crate) verb: &'static str,
}

/// The rights without which a case does not run, or certainly leaves objects. Not those that only some runs use: over Leases, over
/// the owners of pods, over pods that an operator leaves.
pub(crate) fn needed<'a>(workload: &Resource, beside: impl Iterator<Item = &'a Resource>) -> BTreeSet<Right> {
    let mut rules = RoleRules::default();
    rules.read_pods();
    rules.create(workload, beside);
    rules.rights()
}

/// All rights of the Role of a plan.
pub(crate) fn all(handle: &Handle) -> BTreeSet<Right> {
    of_plans(&[handle], Extent::Full).rights()
}

/// One Role for each namespace of some plans, whatever the context.
pub fn roles(handles: &[Handle], extent: Extent) -> Vec<Value> {
    let mut places: BTreeMap<&str, Vec<&Handle>> = BTreeMap::new();
    for handle in handles {
        places.entry(&handle.place.namespace).or_default().push(handle);
    }
    places
        .into_iter()
        .map(|(namespace, handles)| object("Role", namespace, "rules", of_plans(&handles, extent).rules()))
        .collect()
}

/// Gives a Role of [`roles`] to a ServiceAccount of its namespace.
pub fn binding(namespace: &str, service_account: &str) -> Value {
    let subject = json!([{ "kind": "ServiceAccount", "name": service_account, "namespace": namespace }]);
    let mut binding = object("RoleBinding", namespace, "subjects", subject);
    binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME });
    binding
}

fn object(kind: &str, namespace: &str, key: &str, value: Value) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": NAME, "namespace": namespace },
    });
    object[key] = value;
    object
}

fn of_plans(handles: &[&Handle], extent: Extent) -> RoleRules {
    let mut rights = RoleRules::default();
    rights.read_pods();
    rights.allow("coordination.k8s.io", "leases", &[Create, Get, List, Update, Delete]);
    for handle in handles {
        rights.run(handle);
        if extent == Extent::Full {
            rights.explain(handle);
        }
    }
    rights
}

/// What may be done with each resource, by group and plural.
#[derive(Default)]
struct RoleRules(BTreeMap<(String, String), Vec<Verb>>);

impl RoleRules {
    fn allow(&mut self, group: &str, plural: &str, verbs: &[Verb]) {
        let known = self.0.entry((group.to_owned(), plural.to_owned())).or_default();
        known.extend(verbs);
        known.sort();
        known.dedup();
    }

    fn allow_kind(&mut self, resource: &Resource, verbs: &[Verb]) {
        self.allow(&resource.group, &Kinds::known().plural(resource), verbs);
    }

    fn read_pods(&mut self) {
        self.allow("", "pods", &[List, Watch]);
        self.allow("", "pods/log", &[Get]);
    }

    /// The objects of a case, from their creation to their deletion.
    fn create<'a>(&mut self, workload: &Resource, beside: impl Iterator<Item = &'a Resource>) {
        self.allow_kind(workload, &[Create, Get, List, Watch, Patch, Delete]);
        for resource in beside {
            self.allow_kind(resource, &[Create, Get, Delete]);
        }
    }

    /// What a case needs from its launch to its cleanup.
    fn run(&mut self, handle: &Handle) {
        let Some(workload) = handle.workload() else { return };
        self.create(&workload.resource, beside(handle));
        if may_be_killed(handle) {
            self.allow("", "events", &[List]);
        }
        if is_composed(&workload.resource) {
            // An operator that does not own its pods leaves them.
            self.allow("", "pods", &[Delete]);
        }
        if asks_owners(handle, workload) {
            for (group, plural) in OWNERS {
                self.allow(group, plural, &[Get]);
            }
        }
    }

    /// The rights to explain why a case waits, and to find what is left of it.
    fn explain(&mut self, handle: &Handle) {
        let Some(workload) = handle.workload() else { return };
        self.allow("", "events", &[List]);
        self.allow("", "resourcequotas", &[List]);
        if !workload.resource.is_pod() {
            self.allow("", "pods", &[Create]);
        }
        if is_composed(&workload.resource) {
            self.allow(BATCH, "jobs", &[List]);
        }
        for owner in handle.rules.pods.owners.iter().flatten() {
            let (kind, group) = owner.split_once('.').unwrap_or((owner, ""));
            self.allow_kind(&Resource::of(&format!("{group}/"), kind), &[Get]);
        }
        if is_queued(workload) {
            self.allow("kueue.x-k8s.io", "workloads", &[List]);
            self.allow("kueue.x-k8s.io", "localqueues", &[Get]);
        }
        // To list Secrets is to read them.
        for resource in beside(handle).filter(|resource| resource.kind != "Secret") {
            self.allow_kind(resource, &[List]);
        }
    }

    fn rights(self) -> BTreeSet<Right> {
        let rights = |((group, plural), verbs): ((String, String), Vec<Verb>)| {
            verbs.into_iter().map(move |verb| Right { group: group.clone(), plural: plural.clone(), verb: verb.word() })
        };
        self.0.into_iter().flat_map(rights).collect()
    }

    /// One rule for all resources of a group with the same verbs.
    fn rules(self) -> Value {
        let mut rules: BTreeMap<(String, Vec<Verb>), Vec<String>> = BTreeMap::new();
        for ((group, plural), verbs) in self.0 {
            rules.entry((group, verbs)).or_default().push(plural);
        }
        let words = |verbs: &[Verb]| verbs.iter().map(|verb| verb.word()).collect::<Vec<_>>();
        let rule = |((group, verbs), plurals): ((String, Vec<Verb>), Vec<String>)| json!({ "apiGroups": [group], "resources": plurals, "verbs": words(&verbs) });
        rules.into_iter().map(rule).collect()
    }
}

/// The kinds of the objects that a manifest has beside its workload.
pub(crate) fn beside(handle: &Handle) -> impl Iterator<Item = &Resource> {
    handle.objects.iter().enumerate().filter(|(place, _)| *place != handle.workload).map(|(_, object)| &object.resource)
}

/// An operator makes its pods, or what makes them.
fn is_composed(resource: &Resource) -> bool {
    !resource.is_pod() && !resource.is_job()
}

/// Its pods have no template for Muster's label, and no selector finds them.
fn asks_owners(handle: &Handle, workload: &Object) -> bool {
    handle.rules.pods.selector.is_none() && pod_templates(&workload.manifest).is_empty()
}

/// Has a container a probe or a hook of which only events tell that it failed? A template that is not in the manifest may have one.
fn may_be_killed(handle: &Handle) -> bool {
    const PLACES: [&str; 3] = ["/livenessProbe", "/startupProbe", "/lifecycle/postStart"];
    let templates = handle.objects.iter().flat_map(|object| pod_templates(&object.manifest));
    let containers = templates.filter_map(|(template, _)| template.pointer("/spec/containers")?.as_array());
    let has_template = handle.workload().is_some_and(|workload| !pod_templates(&workload.manifest).is_empty());
    !has_template || containers.flatten().any(|container| PLACES.iter().any(|place| container.pointer(place).is_some()))
}

fn is_queued(workload: &Object) -> bool {
    workload.manifest.pointer("/metadata/labels").is_some_and(|labels| labels.get(QUEUE_LABEL).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::ClusterPlace,
        kind::{PodRules, WorkloadRules},
    };

    /// The last object is the workload.
    fn handle(namespace: &str, objects: &[(&str, &str)], manifest: &Value) -> Handle {
        let object = |(api_version, kind): &(&str, &str)| Object {
            resource: Resource::of(api_version, kind),
            name: "n".to_owned(),
            manifest: manifest.clone(),
            uid: None,
        };
        Handle {
            place: ClusterPlace { context: None, namespace: namespace.to_owned() },
            objects: objects.iter().map(object).collect(),
            workload: objects.len() - 1,
            expected_pods: None,
            rules: WorkloadRules::default(),
            keep_seconds: 0,
            ..Handle::default()
        }
    }

    fn template() -> Value {
        json!({ "spec": { "template": { "spec": { "containers": [] } } } })
    }

    fn queued() -> Value {
        let mut queued = template();
        queued["metadata"]["labels"] = json!({ QUEUE_LABEL: "q" });
        queued
    }

    /// `GROUP/RESOURCES: VERBS`, one a line.
    fn lines(role: &Value) -> Vec<String> {
        let words =
            |list: &Value| list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(",");
        let line =
            |rule: &Value| format!("{}/{}: {}", words(&rule["apiGroups"]), words(&rule["resources"]), words(&rule["verbs"]));
        role["rules"].as_array().unwrap().iter().map(line).collect()
    }

    const LEASES: &str = "coordination.k8s.io/leases: create,get,list,update,delete";

    /// The rules of one plan, but for the Lease's.
    fn of(handle: Handle, extent: Extent) -> String {
        let lines = lines(&roles(&[handle], extent)[0]);
        assert!(lines.iter().any(|line| line == LEASES), "{lines:?}");
        lines.into_iter().filter(|line| line != LEASES).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_kind_gets_the_verbs_that_are_used() {
        let helpers = [("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service"), ("v1", "Pod")];
        let pod = handle("n", &helpers, &json!({ "spec": { "containers": [] } }));
        let probed = json!({ "spec": { "containers": [{ "name": "main", "livenessProbe": {} }] } });
        let probed = handle("n", &[("v1", "Pod")], &probed);
        let job = handle("n", &[("batch/v1", "Job")], &queued());
        let jobset = handle("n", &[("jobset.x-k8s.io/v1alpha2", "JobSet")], &template());
        let custom = handle("n", &[("v1", "Secret"), ("example.org/v1", "Policy")], &json!({ "spec": {} }));
        let rows = [
            (
                pod.clone(),
                Extent::Required,
                "/pods: create,get,list,watch,patch,delete\n/configmaps,secrets,services: create,get,delete\n/pods/log: get",
            ),
            (
                pod,
                Extent::Full,
                "/pods: create,get,list,watch,patch,delete\n/configmaps,services: create,get,list,delete\n/secrets: create,get,delete\n/pods/log: get\n/events,resourcequotas: list",
            ),
            (probed, Extent::Required, "/pods: create,get,list,watch,patch,delete\n/pods/log: get\n/events: list"),
            (job.clone(), Extent::Required, "/pods/log: get\n/pods: list,watch\nbatch/jobs: create,get,list,watch,patch,delete"),
            (
                job,
                Extent::Full,
                "/pods: create,list,watch\n/pods/log: get\n/events,resourcequotas: list\nbatch/jobs: create,get,list,watch,patch,delete\nkueue.x-k8s.io/localqueues: get\nkueue.x-k8s.io/workloads: list",
            ),
            (
                jobset,
                Extent::Required,
                "/pods/log: get\n/pods: list,watch,delete\njobset.x-k8s.io/jobsets: create,get,list,watch,patch,delete",
            ),
            (
                custom,
                Extent::Required,
                "/secrets: create,get,delete\n/pods/log: get\n/pods: get,list,watch,delete\n/events: list\napps/deployments,replicasets,statefulsets: get\nbatch/jobs: get\nexample.org/policies: create,get,list,watch,patch,delete",
            ),
        ];
        for (handle, extent, expected) in rows {
            assert_eq!(of(handle, extent), expected);
        }
    }

    #[test]
    fn owners_are_read_only_where_neither_label_nor_selector_finds_the_pods() {
        let custom = |manifest: &Value| handle("n", &[("example.org/v1", "Policy")], manifest);
        let mut selected = custom(&json!({}));
        selected.rules.pods = PodRules { selector: Some("of=n".into()), ..PodRules::default() };
        for (handle, asks) in [(custom(&json!({})), true), (custom(&template()), false), (selected, false)] {
            assert_eq!(of(handle, Extent::Required).contains("batch/jobs: get"), asks);
        }
    }

    #[test]
    fn each_namespace_has_a_role_for_all_that_runs_in_it() {
        let pod = handle("b", &[("v1", "Pod")], &json!({ "spec": { "containers": [] } }));
        let job = handle("b", &[("batch/v1", "Job")], &template());
        let elsewhere = handle("a", &[("batch/v1", "Job")], &template());
        let roles = roles(&[pod, job, elsewhere], Extent::Required);
        let names: Vec<&Value> = roles.iter().map(|role| &role["metadata"]["namespace"]).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(!lines(&roles[0]).iter().any(|line| line.starts_with("/pods: create")));
        assert!(lines(&roles[1]).contains(&"/pods: create,get,list,watch,patch,delete".to_owned()));
    }
}
