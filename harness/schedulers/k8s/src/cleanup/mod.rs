//! Cleanup of a job: its pods are stopped and its objects are kept, or everything is deleted and verified absent.
//!
//! ```text
//! Stop:    it runs --> the kind's patch (Pod, Job: activeDeadlineSeconds 1), in the same request rfm-kept and rfm/expires
//!                  '-> a kind without one, what never ran, what a queue would start again: diag/, then deleted
//!          --> seen to have stopped --> diag/ in the stage folder --> how to look, how to delete
//! Delete:  workload (foreground, by uid), then its helpers --> verified absent: by the watch, else by a request
//!          no uid, because the launch had no answer: all objects of the planned kinds with rfm=ID and rfm-session=S
//! ```
//! Objects that are gone already are not an error. An object that is held is reported with its finalizers, which are never removed here.
//! Pods on a node that does not answer are reported at once.

mod diagnosis;
mod messages;
mod stop;

use crate::{
    api::{LABEL, Resource, SESSION_LABEL},
    client::{ApiError, Deleted, Selection, Watched, Why},
    job::{Handle, Observed, Seen, SeenPod, is_of},
    session::SharedState,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PropagationPolicy;
use muster_core::{
    error::SchedulerError,
    job::scheduler::{Disposition, Job, Leftovers},
};
use muster_text::Value;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The session gives up after a minute. What is left by then is reported before.
const LIMIT: Duration = Duration::from_secs(50);
/// The watch reports what is gone. After this time the server is asked, in case the watch is down.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Ends a job.
pub(crate) async fn cleanup(
    shared: &SharedState,
    job: &Job,
    handle: &Handle,
    how: Disposition,
) -> Result<Leftovers, SchedulerError> {
    shared.leave_queue(&job.identifier);
    let observed = shared.observe(job, handle);
    let cleanup = Cleanup { shared, job, handle, observed, absent: BTreeSet::new(), by: Instant::now() + LIMIT };
    match how {
        Disposition::Stop => cleanup.stop().await,
        Disposition::Delete => cleanup.delete().await,
    }
    .map_err(ApiError::classify)
}

struct Cleanup<'a> {
    shared: &'a SharedState,
    job: &'a Job,
    handle: &'a Handle,
    observed: watch::Receiver<Arc<Observed>>,
    /// Uids of what the server says is gone: the watch may not have heard yet.
    absent: BTreeSet<String>,
    by: Instant,
}

/// Something that has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    resource: Resource,
    name: String,
    uid: Option<String>,
    /// Its dependents go first.
    is_workload: bool,
}

impl Cleanup<'_> {
    async fn delete(mut self) -> Result<Leftovers, ApiError> {
        self.shared.watch.deleted_by_us(&self.job.identifier);
        let mut going = Vec::new();
        for target in self.targets().await? {
            match self.ask_to_go(&target).await? {
                Deleted::Pending => going.push(target),
                Deleted::Done => self.absent.extend(target.uid),
            }
        }
        let items = self.gone(going).await;
        if items.is_empty() {
            self.shared.watch.forget(&self.job.identifier);
        }
        Ok(Leftovers { items, ..Leftovers::default() })
    }

    /// Everything that was created, the workload first.
    async fn targets(&self) -> Result<Vec<Target>, ApiError> {
        let mut targets: Vec<Target> = Vec::new();
        let mut to_list: BTreeSet<Resource> = BTreeSet::new();
        for (place, object) in self.handle.objects.iter().enumerate() {
            let is_workload = place == self.handle.workload;
            match &object.uid {
                Some(uid) => targets.push(Target {
                    resource: object.resource.clone(),
                    name: object.name.clone(),
                    uid: Some(uid.clone()),
                    is_workload,
                }),
                None => {
                    to_list.insert(object.resource.clone());
                }
            }
        }
        for resource in to_list {
            let is_workload = self.handle.workload().is_some_and(|workload| workload.resource == resource);
            targets.extend(self.marked(&resource, is_workload).await?);
        }
        targets.sort_by_key(|target| !target.is_workload);
        targets.dedup_by(|one, other| one.uid.is_some() && one.uid == other.uid);
        Ok(targets)
    }

    /// Whatever of a kind carries the job's labels.
    async fn marked(&self, resource: &Resource, is_workload: bool) -> Result<Vec<Target>, ApiError> {
        let label = format!("{LABEL}={},{SESSION_LABEL}={}", self.job.identifier, self.job.session);
        let listed = match self.shared.cluster.list(resource, Selection { labels: Some(&label), fields: None }).await {
            Ok(listed) => listed.items,
            // A kind that is not served has no objects.
            Err(ApiError::UnknownKind { .. }) => return Ok(Vec::new()),
            Err(error) if error.is_gone() => return Ok(Vec::new()),
            Err(error) if error.why() == Why::NotAllowed => self.planned(resource).await?,
            Err(error) => return Err(error),
        };
        let text = |item: &Value, key: &str| item["metadata"][key].as_str().map(str::to_owned);
        let target = |item: &Value| {
            Some(Target { resource: resource.clone(), name: text(item, "name")?, uid: text(item, "uid"), is_workload })
        };
        Ok(listed.iter().filter_map(target).collect())
    }

    /// Objects of a kind that may not be listed, by their planned names. They need Muster's labels, too: a name alone proves nothing.
    async fn planned(&self, resource: &Resource) -> Result<Vec<Value>, ApiError> {
        let mut found = Vec::new();
        for object in self.handle.objects.iter().filter(|object| object.resource == *resource) {
            match self.shared.cluster.get(resource, &object.name).await {
                Ok(there) if is_of(self.job, &there) => found.push(there),
                Ok(_) => {}
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn ask_to_go(&self, target: &Target) -> Result<Deleted, ApiError> {
        // Only what has dependents waits for them; in the background, a pod or a ConfigMap takes one step less.
        let has_dependents = target.is_workload && !target.resource.is_pod();
        let propagation = if has_dependents { PropagationPolicy::Foreground } else { PropagationPolicy::Background };
        match self.shared.cluster.delete(&target.resource, &target.name, target.uid.as_deref(), propagation).await {
            Err(error) if error.why() == Why::Conflict => Ok(Deleted::Done),
            Err(ApiError::UnknownKind { .. }) => Ok(Deleted::Done),
            answer => answer,
        }
    }

    /// Waits until all of it is gone; one line for each thing that is not.
    async fn gone(&mut self, mut going: Vec<Target>) -> Vec<String> {
        let (mut pause, mut look) = (FIRST_LOOK, Instant::now() + FIRST_LOOK);
        loop {
            let observed = Arc::clone(&self.observed.borrow_and_update());
            going.retain(|target| !is_seen_gone(target, &observed));
            let pods: Vec<Target> = left_pods(&observed, &self.absent);
            if going.is_empty() && pods.is_empty() {
                return Vec::new();
            }
            let silent = messages::silent_nodes(observed.pods.iter().filter(|seen| is_left(seen, &self.absent)));
            // All that is left goes with these pods, if not before.
            let in_vain = || going.iter().all(|target| target.is_workload || pods.iter().any(|pod| pod.uid == target.uid));
            if Instant::now() >= self.by || silent.is_some() && in_vain() {
                going.extend(
                    pods.into_iter().filter(|pod| !going.iter().any(|target| target.name == pod.name)).collect::<Vec<_>>(),
                );
                return self.named(&going, silent.as_deref()).await;
            }
            tokio::select! {
                changed = self.observed.changed() => if changed.is_err() { sleep_until(look.min(self.by)).await },
                () = sleep_until(look.min(self.by)) => {}
            }
            if Instant::now() >= look {
                pause *= 2;
                look = Instant::now() + pause;
                self.look_after(&mut going).await;
                if going.is_empty() {
                    // Their owner is gone, and the garbage collector does not delete them.
                    for pod in pods {
                        if matches!(self.ask_to_go(&pod).await, Ok(Deleted::Done)) {
                            self.absent.extend(pod.uid);
                        }
                    }
                }
            }
        }
    }

    /// Asks, because the watch may be down.
    async fn look_after(&mut self, going: &mut Vec<Target>) {
        let mut there = Vec::new();
        for target in going.drain(..) {
            if self.there(&target).await == Some(None) {
                self.absent.extend(target.uid);
            } else {
                there.push(target);
            }
        }
        *going = there;
    }

    /// `Some(None)`: it is gone; `None`: unknown.
    async fn there(&self, target: &Target) -> Option<Option<Value>> {
        match self.shared.cluster.get(&target.resource, &target.name).await {
            Ok(object) => Some(
                Some(object).filter(|object| target.uid.is_none() || object["metadata"]["uid"].as_str() == target.uid.as_deref()),
            ),
            Err(error) if error.is_gone() => Some(None),
            Err(_) => None,
        }
    }

    async fn named(&self, going: &[Target], silent: Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        for target in going {
            let object = match self.there(target).await {
                Some(None) => continue,
                Some(Some(object)) => object,
                None => Value::Null,
            };
            lines.push(messages::left(&self.handle.place, target, &object, silent));
        }
        lines
    }
}

/// The watch has seen that it is gone.
fn is_seen_gone(target: &Target, observed: &Observed) -> bool {
    let same = |uid: Option<&str>| target.uid.as_deref() == uid;
    if observed.pods.iter().any(|pod| pod.gone && target.resource.is_pod() && same(pod.pod.uid())) {
        return true;
    }
    matches!(&observed.workload, Seen::Gone(object) if target.is_workload && same(object.uid()))
}

fn left_pods(observed: &Observed, absent: &BTreeSet<String>) -> Vec<Target> {
    let left = observed.pods.iter().filter(|pod| is_left(pod, absent));
    let target = |pod: &Pod| Target {
        resource: Resource { plural: Some("pods".into()), ..Resource::of("v1", "Pod") },
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone(),
        is_workload: false,
    };
    left.map(|seen| target(&seen.pod)).collect()
}

fn is_left(seen: &SeenPod, absent: &BTreeSet<String>) -> bool {
    !seen.gone && !seen.pod.metadata.uid.as_ref().is_some_and(|uid| absent.contains(uid))
}

#[cfg(test)]
mod tests;
