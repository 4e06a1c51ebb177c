//! Everything with Muster's label, the session that it belongs to, and the Leases of sessions.
//!
//! ```text
//! places of the scope x kinds (those of the table that the server has, those of known jobs) -list, label rfm-> objects
//!     without those that controllers have created -by labels rfm, rfm-session-> Found: a Job that `cleanup` accepts
//! Leases of the place -> when each session last renewed its Lease
//! ```
//! Objects that may not be listed are read by name where their names are known, with a note. A session without a Lease may
//! lack the right to create one.

pub(crate) mod nodes;

use crate::{
    api::{
        CASE_ANNOTATION, ClusterPlace, EXPIRES_ANNOTATION, KEPT_LABEL, LABEL, NAME, OBJECTS_ANNOTATION, Quantity, Resource,
        SESSION_LABEL, clock,
    },
    client::{ApiError, Cluster, ContextError, Contexts, Selection, Why},
    job::{Handle, Object, parse_named},
    kind::Kinds,
    manifest::pod_templates,
    quota,
    session::lease,
};
use muster_core::{
    case::{Identifier, SessionId},
    job::{
        handle::JobHandle,
        inventory::{Found, Inventory, Kept, Scope},
        scheduler::Job,
    },
};
use muster_text::{Value, time::Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// What a scope says of the clusters before they are asked.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) places: BTreeSet<ClusterPlace>,
    /// Kinds beside those of the table.
    kinds: BTreeSet<Resource>,
    /// Objects of known jobs: asked for by name where their kind may not be listed.
    objects: BTreeSet<(ClusterPlace, Resource, String)>,
    /// Partitions whose cluster is not known, and why.
    pub(crate) errors: Vec<ContextError>,
}

impl Known {
    pub(crate) fn of(scope: &Scope, contexts: &Contexts) -> Self {
        let mut known = Self::default();
        for options in &scope.partitions {
            match contexts.place(options["context"].as_str(), options["namespace"].as_str()) {
                Ok(place) => drop(known.places.insert(place)),
                Err(error) => known.errors.push(error),
            }
        }
        for handle in scope.jobs.iter().filter_map(|job| Handle::of(job).ok()) {
            known.places.insert(handle.place.clone());
            known.kinds.extend(handle.objects.iter().map(|object| object.resource.clone()));
            let named = |object: &Object| (handle.place.clone(), object.resource.clone(), object.name.clone());
            known.objects.extend(handle.objects.iter().map(named));
        }
        known
    }
}

/// A place of a context that the kubeconfig does not have.
pub(crate) fn not_looked_at(place: &ClusterPlace, jobs: &[Job]) -> String {
    let is_there = |job: &&Job| Handle::of(job).is_ok_and(|handle| handle.place == *place);
    let sessions: BTreeSet<&str> = jobs.iter().filter(is_there).map(|job| &*job.session.0).collect();
    let sessions = sessions.into_iter().collect::<Vec<_>>().join(", ");
    format!("not looked at: {place}, for this kubeconfig has no such context; jobs of {sessions} may be left there")
}

/// Looks at one place. `false`: objects whose names are known could not be read.
pub(crate) async fn add_place(inventory: &mut Inventory, cluster: &Cluster, known: &Known) -> Result<bool, ApiError> {
    let place = cluster.place();
    let (leases, now) = lease::sessions(cluster).await?;
    let (mut jobs, mut hidden): (BTreeMap<Owner, Vec<Object>>, Vec<Resource>) = Default::default();
    for resource in kinds(cluster, &known.kinds).await? {
        match cluster.list(&resource, Selection { labels: Some(LABEL), fields: None }).await {
            Ok(listed) => {
                for (owner, object) in listed.items.into_iter().filter_map(|item| ours(&resource, item)) {
                    jobs.entry(owner).or_default().push(object);
                }
            }
            Err(error) if error.why() == Why::NotAllowed => hidden.push(resource),
            // Its group is there, and it is not: another version of the operator.
            Err(ApiError::UnknownKind { .. } | ApiError::ClusterScoped { .. }) => {}
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error),
        }
    }
    let num_blind = inventory.blind.len();
    for (resource, name) in names(&hidden, known, place, &jobs) {
        match cluster.get(&resource, &name).await {
            Ok(item) => {
                if let Some((owner, object)) = ours(&resource, item) {
                    jobs.entry(owner).or_default().push(object);
                }
            }
            Err(error) if error.is_gone() => {}
            Err(error) if error.why() == Why::NotAllowed => inventory.blind.push(error.classify()),
            Err(error) => return Err(error),
        }
    }
    inventory.notes.extend(note(place, &hidden));
    let now = now.unwrap_or_else(clock::now);
    inventory.found.extend(jobs.into_iter().map(|(owner, objects)| found(place, owner, objects, now)));
    inventory.leases.extend(leases.into_iter().map(|(session, seen)| seen.into_lease(place, session)));
    Ok(inventory.blind.len() == num_blind)
}

/// The objects of hidden kinds whose names are known: from the database, and from the workloads that they stand beside.
fn names(
    hidden: &[Resource],
    known: &Known,
    place: &ClusterPlace,
    jobs: &BTreeMap<Owner, Vec<Object>>,
) -> BTreeSet<(Resource, String)> {
    let stored = known.objects.iter().filter(|(there, ..)| there == place).map(|(_, kind, name)| (kind.clone(), name.clone()));
    let annotated = jobs.values().flatten().filter_map(|object| {
        let names = object.manifest["metadata"]["annotations"][OBJECTS_ANNOTATION].as_str()?;
        Some(names.split(',').filter_map(parse_named).collect::<Vec<_>>())
    });
    let as_hidden = |(kind, name): (Resource, String)| {
        let hidden = hidden.iter().find(|hidden| hidden.is_same_kind(&kind))?;
        Some((hidden.clone(), name))
    };
    stored.chain(annotated.flatten()).filter_map(as_hidden).collect()
}

/// How many kinds a note names.
const NAMED: usize = 4;

/// One sentence for all kinds that may not be listed. A night's log has it every night, so it names few of them.
fn note(place: &ClusterPlace, hidden: &[Resource]) -> Option<String> {
    let kinds: Vec<String> = hidden.iter().map(Resource::for_kubectl).collect();
    let more = kinds.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let why = "the right to list them is missing, so only those with a known name were looked at";
    let named = kinds.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!kinds.is_empty()).then(|| format!("in {place}: {why}: {named}{more}"))
}

/// The kinds to look for: those of the table whose group the server has, and those that known jobs are made of.
async fn kinds(cluster: &Cluster, more: &BTreeSet<Resource>) -> Result<BTreeSet<Resource>, ApiError> {
    let groups = cluster.groups().await?;
    let mut kinds = BTreeSet::new();
    let known = Kinds::known().namespaced().filter_map(|(group, kind)| {
        let version = if group.is_empty() { "v1" } else { groups.get(group)? };
        Some(Resource { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), plural: None })
    });
    for resource in known.chain(more.iter().cloned()) {
        match cluster.resolve(&resource).await {
            Ok(resource) => {
                kinds.insert(resource);
            }
            Err(ApiError::UnknownKind { .. } | ApiError::ClusterScoped { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kinds)
}

/// Whose an object is. Two sessions may have drawn the same identifier.
type Owner = (SessionId, Identifier);

/// An object that we have created: not one that a controller has made of it, which goes with it.
fn ours(resource: &Resource, item: Value) -> Option<(Owner, Object)> {
    let metadata = &item["metadata"];
    let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    if owners.any(|owner| owner["controller"] == true) {
        return None;
    }
    let identifier = Identifier::parse(metadata["labels"][LABEL].as_str()?)?;
    let session = SessionId(metadata["labels"][SESSION_LABEL].as_str().unwrap_or_default().to_owned());
    let (name, uid) = (metadata["name"].as_str()?.to_owned(), metadata["uid"].as_str().map(str::to_owned));
    Some(((session, identifier), Object { resource: resource.clone(), name, manifest: item, uid }))
}

/// A job as `cleanup` understands it.
fn found(place: &ClusterPlace, owner: Owner, mut objects: Vec<Object>, now: Timestamp) -> Found {
    let (session, identifier) = owner;
    let is_helper = |object: &Object| Kinds::known().find(&object.resource).is_some_and(|kind| kind.helper);
    objects.sort_by_key(|object| !is_helper(object));
    let workload = objects.len().saturating_sub(1);
    let of_any = |kind: &str, key: &str| {
        let mut texts = objects.iter().rev().filter_map(|object| object.manifest["metadata"][kind][key].as_str());
        texts.next().map(str::to_owned)
    };
    let expires = of_any("annotations", EXPIRES_ANNOTATION).and_then(|text| clock::parse(&text));
    let kept = of_any("labels", KEPT_LABEL).map(|_| match expires {
        None => Kept::Unknown,
        Some(expires) if expires <= now => Kept::Over,
        Some(_) => Kept::Still,
    });
    let titles: Vec<String> = objects.iter().map(Object::title).collect();
    let until = match (kept, expires) {
        (None, _) => String::new(),
        (Some(_), None) => ", kept".to_owned(),
        (Some(_), Some(time)) => format!(", kept until {}", clock::rfc3339(time).unwrap_or_default()),
    };
    let what = format!("{} in {place}{until}", titles.join(", "));
    let cost = if kept.is_some() { None } else { objects.last().and_then(cost) };
    let name = objects.last().map(|object| object.name.clone()).unwrap_or_default();
    let case = of_any("annotations", CASE_ANNOTATION).unwrap_or(name);
    let rules = objects.last().map(|object| Kinds::known().rules(&object.resource).clone()).unwrap_or_default();
    let handle =
        Handle { place: place.clone(), objects, workload, expected_pods: None, rules, keep_seconds: 0, ..Handle::default() };
    let (scheduler, stage) = (NAME.into(), PathBuf::new());
    let job = Job { identifier, session, case, scheduler, stage, handle: JobHandle::of(handle) };
    Found { job, what, cost, kept, place: lease::place_of(place), has_ended: false }
}

/// The devices that the pods of a workload ask for: `8 nvidia.com/gpu`.
fn cost(workload: &Object) -> Option<String> {
    let mut devices: BTreeMap<String, Quantity> = BTreeMap::new();
    for (template, pods) in pod_templates(&workload.manifest) {
        for (resource, amount) in quota::demand(&template["spec"]) {
            if let Some(device) = resource.strip_prefix("requests.").filter(|name| name.contains('/')) {
                let sum = devices.entry(device.to_owned()).or_insert(Quantity::ZERO);
                *sum = sum.plus(amount.times(pods));
            }
        }
    }
    let texts: Vec<String> = devices.into_iter().map(|(device, amount)| format!("{amount} {device}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{self, Reply};
    use serde_json::json;

    fn resource(api_version: &str, kind: &str, plural: &str) -> Resource {
        Resource { plural: Some(plural.into()), ..Resource::of(api_version, kind) }
    }

    #[tokio::test]
    async fn what_may_not_be_listed_is_found_by_the_names_that_are_known() {
        let labels = |id: &str| json!({"rfm": id, "rfm-session": "s"});
        let pod = json!({"metadata": {"name": "rfm-p", "uid": "p", "labels": labels("abcdefgh"),
            "annotations": {"rfm/objects": "v1/Secret/rfm-a,v1/ConfigMap/rfm-c"}}});
        let (cluster, requests) = testing::cluster(move |line, _| match line {
            "GET /apis" => Reply::json(&json!({"groups": []})),
            line if line.contains("secrets?") => {
                let cannot = "secrets is forbidden: User \"u\" cannot list resource \"secrets\" in API group \"\"";
                Reply::refusal(403, "Forbidden", cannot)
            }
            line if line.contains("/secrets/") => {
                let (name, id) = if line.ends_with("rfm-a") { ("rfm-a", "abcdefgh") } else { ("rfm-b", "zzzzzzzz") };
                Reply::json(&json!({"metadata": {"name": name, "uid": name, "labels": labels(id)}}))
            }
            line if line.contains("/pods?") => Reply::list("1", std::slice::from_ref(&pod)),
            _ => Reply::list("1", &[]),
        });
        let stored = (testing::place(), Resource::of("v1", "Secret"), "rfm-b".to_owned());
        let known = Known { objects: BTreeSet::from([stored]), ..Known::default() };
        let mut inventory = Inventory::default();
        assert!(add_place(&mut inventory, &cluster, &known).await.unwrap());
        let lines: Vec<String> = inventory.found.iter().map(Found::line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        rfm-p (abcdefgh, session s): secrets rfm-a, pods rfm-p in namespace n
        rfm-b (zzzzzzzz, session s): secrets rfm-b in namespace n
        ");
        insta::assert_snapshot!(inventory.notes.join("\n"), @"in namespace n: the right to list them is missing, so only those with a known name were looked at: secrets");
        let asked = requests.paths().into_iter().filter(|path| path.contains("/secrets/")).count();
        assert_eq!((asked, inventory.blind.len()), (2, 0), "a ConfigMap is listed: it is not requested by name");
    }

    #[test]
    fn what_is_found_is_a_job_with_its_session_and_its_time() {
        let place = ClusterPlace { context: Some("eidf".into()), namespace: "n".into() };
        let labels = json!({"rfm": "abcdefgh", "rfm-session": "s1", "rfm-kept": "true"});
        let job = json!({"metadata": {"name": "rfm-x-abcdefgh", "uid": "1", "labels": labels,
            "annotations": {"rfm/case": "nbody @eidf:gpu+default", "rfm/expires": "2026-01-02T00:00:00Z"}}});
        let config = json!({"metadata": {"name": "rfm-c-abcdefgh", "uid": "2", "labels": labels}});
        let child = json!({"metadata": {"name": "p", "labels": labels, "ownerReferences": [{"controller": true}]}});
        let (jobs, configs) = (resource("batch/v1", "Job", "jobs"), resource("v1", "ConfigMap", "configmaps"));
        assert_eq!(ours(&resource("v1", "Pod", "pods"), child), None);
        let (owner, job) = ours(&jobs, job).unwrap();
        let (same, config) = ours(&configs, config).unwrap();
        assert_eq!((&owner, owner.1.as_str()), (&same, "abcdefgh"));
        let mut anothers = json!({"metadata": {"name": "rfm-y-abcdefgh", "uid": "3", "labels": labels}});
        anothers["metadata"]["labels"]["rfm-session"] = json!("s2");
        assert_ne!(ours(&configs, anothers).unwrap().0, owner, "another session drew the same letters");
        let (soon, late) = (clock::parse("2026-01-01T23:59:59Z").unwrap(), clock::parse("2026-01-02T00:00:00Z").unwrap());
        let objects = vec![job, config];
        assert_eq!(super::found(&place, owner.clone(), objects.clone(), late).kept, Some(Kept::Over));
        let found = super::found(&place, owner, objects, soon);
        let handle = Handle::of(&found.job).unwrap();
        assert_eq!(handle.workload().map(|object| object.name.as_str()), Some("rfm-x-abcdefgh"));
        insta::assert_snapshot!(found.line(), @"nbody @eidf:gpu+default (abcdefgh, session s1): configmaps rfm-c-abcdefgh, jobs.batch rfm-x-abcdefgh in namespace n (context eidf), kept until 2026-01-02T00:00:00Z");
        assert_eq!((found.kept, found.cost), (Some(Kept::Still), None));
    }

    #[test]
    fn what_runs_costs_the_devices_that_its_pods_ask_for() {
        let container = |gpus: u32| json!({"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": 4}}});
        let template = |gpus: u32| json!({"metadata": {"labels": {}}, "spec": {"containers": [container(gpus), container(1)]}});
        let rows = [
            ("v1", "Pod", "pods", json!({"containers": [container(2)]}), Some("2 nvidia.com/gpu")),
            (
                "batch/v1",
                "Job",
                "jobs",
                json!({"parallelism": 4, "completions": 4, "template": template(3)}),
                Some("16 nvidia.com/gpu"),
            ),
            ("v1", "Pod", "pods", json!({"containers": [{"name": "main"}]}), None),
        ];
        for (version, kind, plural, spec, expected) in rows {
            let labels = json!({"rfm": "abcdefgh", "rfm-session": "s"});
            let item =
                json!({"apiVersion": version, "kind": kind, "metadata": {"name": "rfm-x", "labels": labels}, "spec": spec});
            let (owner, object) = ours(&resource(version, kind, plural), item).unwrap();
            let place = ClusterPlace { context: None, namespace: "n".into() };
            assert_eq!(super::found(&place, owner, vec![object], clock::now()).cost.as_deref(), expected, "{kind}");
        }
    }
}
