//! Asks for events and for Kueue's Workload, only while a job does not move.

use crate::{
    api::{LABEL, Resource},
    client::{ApiError, Cluster, Selection, Why},
    job::{Observed, SeenPod, Trouble, told::needs_events},
    status::lacks_image,
};
use k8s_openapi::api::core::v1::Event;
use muster_core::case::Identifier;
use muster_text::Value;
use serde::Deserialize;
use std::sync::Arc;

/// Events of at most so many pods are requested, pods that do not run first.
const PODS: usize = 4;
/// Events of so many objects between workload and pods.
const BETWEEN: usize = 4;
const KUEUE: &str = "kueue.x-k8s.io";
const KUEUE_LABEL: &str = "kueue.x-k8s.io/job-uid";

/// Fetches events and Kueue's Workload. Missing rights are noted in `denied`; other errors are ignored until the next time.
pub(super) async fn ask(cluster: &Cluster, identifier: &Identifier, observed: &Observed, is_composed: bool) -> Trouble {
    let mut asking = Asking { cluster, trouble: Trouble::default() };
    let workload = observed.workload.object().and_then(|object| uid(object)).map(str::to_owned);
    let mut uids: Vec<String> = workload.iter().cloned().collect();
    if is_composed {
        uids.extend(asking.between(identifier).await);
    }
    uids.extend(waiting_pods(observed));
    // What is read of a pod that has ended is kept: there may be a thousand.
    let known = &observed.trouble.ended_pods;
    let ended = observed.pods.iter().filter(|seen| needs_events(seen)).filter_map(|seen| seen.pod.metadata.uid.clone());
    let ended: Vec<_> = ended.filter(|uid| !known.contains(uid)).collect();
    let is_kept = |event: &&Arc<Event>| event.involved_object.uid.as_ref().is_some_and(|uid| known.contains(uid));
    asking.trouble.events.extend(observed.trouble.events.iter().filter(is_kept).cloned());
    asking.trouble.ended_pods.clone_from(known);
    uids.extend(ended.iter().cloned());
    uids.dedup();
    for uid in &uids {
        if !asking.events(uid).await {
            break;
        }
        asking.trouble.ended_pods.extend(ended.iter().find(|ended| *ended == uid).cloned());
    }
    asking
        .trouble
        .events
        .sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0).or(event.event_time.as_ref().map(|time| time.0)));
    if let (Some(uid), true) = (&workload, concerns_kueue(observed)) {
        asking.trouble.kueue = asking.kueue(uid).await;
    }
    asking.trouble
}

struct Asking<'a> {
    cluster: &'a Cluster,
    trouble: Trouble,
}

impl Asking<'_> {
    async fn list(&mut self, resource: &Resource, which: Selection<'_>) -> Option<Vec<Value>> {
        match self.cluster.list(resource, which).await {
            Ok(listed) => Some(listed.items),
            Err(error) => {
                self.denied(&error, resource);
                None
            }
        }
    }

    fn denied(&mut self, error: &ApiError, resource: &Resource) {
        let right = format!("list {}", resource.for_kubectl());
        if error.why() == Why::NotAllowed && !self.trouble.denied.contains(&right) {
            self.trouble.denied.push(right);
        }
    }

    /// The events of one object; `false`: there is no point in asking for others.
    async fn events(&mut self, uid: &str) -> bool {
        let resource = Resource { plural: Some("events".into()), ..Resource::of("v1", "Event") };
        let field = format!("involvedObject.uid={uid}");
        let Some(items) = self.list(&resource, Selection { labels: None, fields: Some(&field) }).await else { return false };
        let events = items.into_iter().filter_map(|item| Event::deserialize(item).ok());
        self.trouble.events.extend(events.map(|mut event| {
            event.metadata.managed_fields = None;
            Arc::new(event)
        }));
        true
    }

    /// Jobs that the workload's operator has made, with our label.
    async fn between(&mut self, identifier: &Identifier) -> Vec<String> {
        let resource = Resource { plural: Some("jobs".into()), ..Resource::of("batch/v1", "Job") };
        let label = format!("{LABEL}={identifier}");
        let items = self.list(&resource, Selection { labels: Some(&label), fields: None }).await;
        items.into_iter().flatten().filter_map(|item| uid(&item).map(str::to_owned)).take(BETWEEN).collect()
    }

    /// Kueue's Workload of the object.
    async fn kueue(&mut self, of: &str) -> Option<Arc<Value>> {
        let version = self.cluster.preferred_version(KUEUE).await.ok()??;
        let plural = Some("workloads".to_owned());
        let resource = Resource { group: KUEUE.to_owned(), version, kind: "Workload".to_owned(), plural };
        let label = format!("{KUEUE_LABEL}={of}");
        self.list(&resource, Selection { labels: Some(&label), fields: None }).await?.pop().map(Arc::new)
    }
}

/// Pods that do not run yet, or not all of them, newest first.
fn waiting_pods(observed: &Observed) -> Vec<String> {
    let runs = |pod: &SeenPod| matches!(pod.phase(), "Running" | "Succeeded") && !lacks_image(&pod.pod);
    let waiting = observed.pods.iter().rev().filter(|pod| !pod.gone && !runs(pod) && !needs_events(pod));
    waiting.filter_map(|pod| pod.pod.metadata.uid.clone()).take(PODS).collect()
}

/// It waits in a queue, or it is suspended or gated.
fn concerns_kueue(observed: &Observed) -> bool {
    let Some(object) = observed.workload.object() else { return false };
    let metadata = &object["metadata"];
    let labelled = metadata["labels"].as_object().is_some_and(|labels| labels.keys().any(|key| key.starts_with(KUEUE)));
    labelled || object["spec"]["suspend"] == true || object["spec"]["schedulingGates"].is_array()
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}
