//! The end of a job: its compute is stopped and its objects are kept, or everything is deleted and seen to be gone.
//!
//! ```text
//! Stop:    it runs --> the kind's patch (Pod, Job: activeDeadlineSeconds 1), in the same request rfm-kept and rfm/expires
//!                  '-> a kind without one, or a pod without a node: deleted
//!          --> seen to have stopped --> diag/ in the stage folder --> how to look, how to delete
//! Delete:  workload (foreground, by uid), then its helpers --> seen to be gone: by the watch, else by asking
//!          no uid, for the launch was never answered: whatever of the planned kinds carries rfm=ID
//! ```
//! What is gone already is fine. What something holds is named with its finalizers, which are never removed here.

use crate::{
    client::{Deleted, Deletion, Patch, Propagation, Selection, error::ApiError, error::Why, rfc3339},
    clock, diagnosis,
    handle::{ClusterPlace, EXPIRES_ANNOTATION, Handle, KEPT_LABEL, LABEL, Object, Resource},
    kind::Stop,
    observed::{Observed, Seen, Verdict},
    status::{Patience, assess},
    tenancy::Tenancy,
};
use k8s_openapi::api::core::v1::Pod;
use muster_core::{
    Value,
    error::SchedulerError,
    scheduler::{Disposition, Job, JobStatus, Leftovers},
};
use serde_json::json;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

/// The runner gives up after a minute: what is left by then is named here.
const LIMIT: Duration = Duration::from_secs(50);
/// The watch tells what is gone; after this somebody asks, in case it cannot.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Ends a job.
pub(crate) async fn cleanup(
    tenancy: &Tenancy,
    job: &Job,
    handle: Handle,
    how: Disposition,
    patience: &Patience,
) -> Result<Leftovers, SchedulerError> {
    tenancy.leave_line(&job.identifier);
    let observed = tenancy.observe(job, &handle);
    let end = End { tenancy, job, handle, patience, observed, by: Instant::now() + LIMIT };
    match how {
        Disposition::Stop => end.stop().await,
        Disposition::Delete => end.delete().await,
    }
    .map_err(ApiError::classify)
}

struct End<'a> {
    tenancy: &'a Tenancy,
    job: &'a Job,
    handle: Handle,
    patience: &'a Patience,
    observed: watch::Receiver<Arc<Observed>>,
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

impl End<'_> {
    async fn stop(mut self) -> Result<Leftovers, ApiError> {
        let Some(workload) = self.handle.workload().filter(|workload| workload.uid.is_some()).cloned() else {
            return self.delete().await;
        };
        // Events are gone in an hour, and with them the reason.
        self.tenancy.watch.trouble(&self.job.identifier).await;
        let is_over = self.is_over();
        if !is_over && self.must_go() {
            let files = self.diagnosis();
            self.keep_files(files).await;
            return self.delete().await;
        }
        let stop = match &self.handle.rules.stop {
            Stop::Patch(patch) if !is_over => patch.clone(),
            _ => json!({}),
        };
        let was_there = self.mark(&workload, stop).await?;
        let mut leftovers = Leftovers::default();
        if was_there && !is_over && !self.stopped().await {
            leftovers.items.push(format!(
                "{} in {} still runs {} s after it was told to stop; {}",
                title(&workload.resource, &workload.name),
                self.handle.place,
                LIMIT.as_secs(),
                delete_command(&self.handle.place, &workload.resource, &workload.name),
            ));
        }
        for object in self.handle.objects.iter().filter(|object| object.uid.is_some() && object.name != workload.name) {
            if let Err(error) = self.mark(object, json!({})).await {
                tracing::debug!(%error, "a helper is not marked as kept");
            }
        }
        self.keep_files(self.diagnosis()).await;
        if was_there {
            leftovers.look = diagnosis::look(&self.handle, &self.observed.borrow().clone());
            leftovers.delete = diagnosis::delete(&self.handle);
        }
        Ok(leftovers)
    }

    /// It ended by itself, or is gone.
    fn is_over(&mut self) -> bool {
        let observed = Arc::clone(&self.observed.borrow_and_update());
        let verdict = assess(&self.handle, &observed, clock::now(), self.patience).verdict;
        matches!(verdict, Verdict::Status(JobStatus::Ended(_) | JobStatus::Gone { .. }))
    }

    /// Nothing but its deletion ends it: its kind knows no other way, or it is a pod that no kubelet has taken, whose deadline
    /// nobody would enforce while it holds its quota.
    fn must_go(&self) -> bool {
        if self.handle.rules.stop == Stop::Delete {
            return true;
        }
        let is_pod = self.handle.workload().is_some_and(|workload| workload.resource.is_pod());
        let has_begun = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.start_time.is_some());
        is_pod && !self.observed.borrow().pods.iter().any(|seen| has_begun(&seen.pod))
    }

    /// Marks an object as kept, and changes what else is asked; `false`: it is gone.
    async fn mark(&self, object: &Object, mut patch: Value) -> Result<bool, ApiError> {
        let expires = clock::now().plus(Duration::from_secs(self.handle.keep_seconds));
        let mut metadata = json!({
            "labels": {KEPT_LABEL: "true"},
            "annotations": {EXPIRES_ANNOTATION: rfc3339(expires).unwrap_or_default()},
        });
        if let Some(uid) = &object.uid {
            // Another object of this name is refused with a conflict.
            metadata["uid"] = json!(uid);
        }
        patch["metadata"] = metadata;
        match self.tenancy.cluster.patch(&object.resource, &object.name, &Patch::Merge(patch)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_gone() || error.why() == Why::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until no pod of it runs.
    async fn stopped(&mut self) -> bool {
        loop {
            if self.is_over() || (!self.observed.borrow().pods.is_empty() && nothing_runs(&self.observed.borrow())) {
                return true;
            }
            match timeout_at(self.by, self.observed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    fn diagnosis(&self) -> Vec<(String, String)> {
        diagnosis::files(&self.handle, &self.observed.borrow().clone())
    }

    /// What cannot be written is not worth an error: the objects are still there.
    async fn keep_files(&self, files: Vec<(String, String)>) {
        let folder = self.job.stage.join("diag");
        if let Err(error) = write(&folder, &files).await {
            tracing::warn!(%error, folder = %folder.display(), "the diagnosis cannot be written");
        }
    }

    async fn delete(mut self) -> Result<Leftovers, ApiError> {
        self.tenancy.watch.deleted_by_us(&self.job.identifier);
        let mut going = Vec::new();
        for target in self.targets().await? {
            if self.ask_to_go(&target).await? == Deleted::Begun {
                going.push(target);
            }
        }
        let items = self.gone(going).await;
        if items.is_empty() {
            self.tenancy.watch.forget(&self.job.identifier);
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

    /// Whatever of a kind carries the job's label.
    async fn marked(&self, resource: &Resource, is_workload: bool) -> Result<Vec<Target>, ApiError> {
        let label = format!("{LABEL}={}", self.job.identifier);
        let listed = match self.tenancy.cluster.list(resource, Selection { labels: Some(&label), fields: None }).await {
            Ok(listed) => listed.items,
            // A kind that is not served has no objects.
            Err(ApiError::UnknownKind { .. }) => return Ok(Vec::new()),
            Err(error) if error.is_gone() => return Ok(Vec::new()),
            // The planned names hold the identifier: nobody else's object has them.
            Err(error) if error.why() == Why::NotAllowed => {
                let planned = self.handle.objects.iter().filter(|object| object.resource == *resource);
                let target =
                    |object: &Object| Target { resource: resource.clone(), name: object.name.clone(), uid: None, is_workload };
                return Ok(planned.map(target).collect());
            }
            Err(error) => return Err(error),
        };
        let text = |item: &Value, key: &str| item["metadata"][key].as_str().map(str::to_owned);
        let target = |item: &Value| {
            Some(Target { resource: resource.clone(), name: text(item, "name")?, uid: text(item, "uid"), is_workload })
        };
        Ok(listed.iter().filter_map(target).collect())
    }

    async fn ask_to_go(&self, target: &Target) -> Result<Deleted, ApiError> {
        // Only what has dependents waits for them; in the background, a pod or a ConfigMap takes one step less.
        let has_dependents = target.is_workload && !target.resource.is_pod();
        let propagation = if has_dependents { Propagation::Foreground } else { Propagation::Background };
        let how = Deletion { propagation, uid: target.uid.clone(), grace_seconds: None };
        match self.tenancy.cluster.delete(&target.resource, &target.name, &how).await {
            Err(error) if error.why() == Why::Conflict => Ok(Deleted::Absent),
            Err(ApiError::UnknownKind { .. }) => Ok(Deleted::Absent),
            answer => answer,
        }
    }

    /// Waits until all of it is gone; one line for each thing that is not.
    async fn gone(&mut self, mut going: Vec<Target>) -> Vec<String> {
        let (mut pause, mut look) = (FIRST_LOOK, Instant::now() + FIRST_LOOK);
        loop {
            let observed = Arc::clone(&self.observed.borrow_and_update());
            going.retain(|target| !is_seen_gone(target, &observed));
            let pods: Vec<Target> = left_pods(&observed);
            if going.is_empty() && pods.is_empty() {
                return Vec::new();
            }
            if Instant::now() >= self.by {
                going.extend(
                    pods.into_iter().filter(|pod| !going.iter().any(|target| target.name == pod.name)).collect::<Vec<_>>(),
                );
                return self.named(&going).await;
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
                    // Its owner is gone, and nobody collects it.
                    for pod in &pods {
                        let _ = self.ask_to_go(pod).await;
                    }
                }
            }
        }
    }

    /// Asks, for the watch may be blind.
    async fn look_after(&self, going: &mut Vec<Target>) {
        let mut there = Vec::new();
        for target in going.drain(..) {
            if self.there(&target).await != Some(None) {
                there.push(target);
            }
        }
        *going = there;
    }

    /// `Some(None)`: it is gone; `None`: nobody knows.
    async fn there(&self, target: &Target) -> Option<Option<Value>> {
        match self.tenancy.cluster.get(&target.resource, &target.name).await {
            Ok(object) => Some(
                Some(object).filter(|object| target.uid.is_none() || object["metadata"]["uid"].as_str() == target.uid.as_deref()),
            ),
            Err(error) if error.is_gone() => Some(None),
            Err(_) => None,
        }
    }

    async fn named(&self, going: &[Target]) -> Vec<String> {
        let mut lines = Vec::new();
        for target in going {
            let object = match self.there(target).await {
                Some(None) => continue,
                Some(Some(object)) => object,
                None => Value::Null,
            };
            lines.push(left(&self.handle.place, target, &object));
        }
        lines
    }
}

/// The watch has seen that it is gone.
fn is_seen_gone(target: &Target, observed: &Observed) -> bool {
    let same = |uid: Option<&str>| target.uid.as_deref() == uid;
    if let Seen::Gone(object) = &observed.workload
        && target.is_workload
        && same(object["metadata"]["uid"].as_str())
    {
        return true;
    }
    observed.pods.iter().any(|pod| pod.gone && target.resource.is_pod() && same(pod.pod.metadata.uid.as_deref()))
}

fn left_pods(observed: &Observed) -> Vec<Target> {
    let left = observed.pods.iter().filter(|pod| !pod.gone);
    let target = |pod: &Pod| Target {
        resource: Resource { plural: Some("pods".into()), ..Resource::of("v1", "Pod") },
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone(),
        is_workload: false,
    };
    left.map(|seen| target(&seen.pod)).collect()
}

/// No pod takes anything any more.
fn nothing_runs(observed: &Observed) -> bool {
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    observed.pods.iter().all(|seen| seen.gone || matches!(phase(&seen.pod).as_str(), "Succeeded" | "Failed"))
}

/// What holds it, and what removes it.
fn left(place: &ClusterPlace, target: &Target, object: &Value) -> String {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
    let node = object["spec"]["nodeName"].as_str();
    let held = match (finalizers.as_slice(), node) {
        ([], Some(node)) => format!(", its node {node} has not let go of it"),
        ([], None) => String::new(),
        (names, _) => format!(", held by its finalizers {}", names.join(", ")),
    };
    let (what, command) = (title(&target.resource, &target.name), delete_command(place, &target.resource, &target.name));
    format!("{what} in {place} is still there {} s after its deletion{held}; {command}", LIMIT.as_secs())
}

fn title(resource: &Resource, name: &str) -> String {
    format!("{} {name}", resource.for_kubectl())
}

fn delete_command(place: &ClusterPlace, resource: &Resource, name: &str) -> String {
    let context = place.context.as_ref().map(|context| format!("--context {context} ")).unwrap_or_default();
    format!("`kubectl {context}-n {} delete {} {name}`", place.namespace, resource.for_kubectl())
}

async fn write(folder: &Path, files: &[(String, String)]) -> std::io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    tokio::fs::create_dir_all(folder).await?;
    for (name, text) in files {
        tokio::fs::write(folder.join(name), text).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        let resource = Resource { plural: Some("jobs".into()), ..Resource::of("batch/v1", "Job") };
        Target { resource, name: "rfm-x".into(), uid: Some("1".into()), is_workload: true }
    }

    #[test]
    fn what_is_left_is_named_with_what_holds_it() {
        let place = ClusterPlace { context: Some("eidf".into()), namespace: "n".into() };
        let held = json!({"metadata": {"finalizers": ["foregroundDeletion", "x/y"]}});
        insta::assert_snapshot!(left(&place, &target(), &held), @"jobs.batch rfm-x in namespace n (context eidf) is still there 50 s after its deletion, held by its finalizers foregroundDeletion, x/y; `kubectl --context eidf -n n delete jobs.batch rfm-x`");
        let on_node = json!({"metadata": {}, "spec": {"nodeName": "n1"}});
        insta::assert_snapshot!(left(&ClusterPlace { context: None, ..place }, &target(), &on_node), @"jobs.batch rfm-x in namespace n is still there 50 s after its deletion, its node n1 has not let go of it; `kubectl -n n delete jobs.batch rfm-x`");
    }

    #[test]
    fn only_the_very_object_is_seen_to_be_gone() {
        let gone =
            |uid: &str| Observed { workload: Seen::Gone(Arc::new(json!({"metadata": {"uid": uid}}))), ..Observed::default() };
        assert!(is_seen_gone(&target(), &gone("1")));
        assert!(!is_seen_gone(&target(), &gone("2")));
        assert!(!is_seen_gone(&target(), &Observed::default()));
    }
}
