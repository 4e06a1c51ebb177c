//! Ends the compute of a job and keeps its objects.

use crate::cleanup::{Cleanup, FIRST_LOOK, messages};
use crate::{
    api::{EXPIRES_ANNOTATION, KEPT_LABEL, clock},
    cleanup::diagnosis,
    client::{ApiError, Why},
    job::{Handle, JobState, Object, Observed, Seen, SeenPod},
    kind::Stop,
    status::{CONTROLLER, assess, has_run, queue},
};
use muster_core::job::scheduler::{JobStatus, Leftovers};
use muster_host::files;
use muster_text::Value;
use serde_json::json;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

impl Cleanup<'_> {
    pub(super) async fn stop(mut self) -> Result<Leftovers, ApiError> {
        let Some(workload) = self.handle.workload().filter(|workload| workload.uid.is_some()).cloned() else {
            return self.delete().await;
        };
        // Events are gone in an hour, and with them the reason.
        self.shared.watch.trouble(&self.job.identifier).await;
        self.seen().await;
        let is_over = self.is_over();
        if !is_over && must_go(self.handle, &self.observed.borrow().clone()) {
            // What starts in this moment is deleted with it.
            self.keep_files(self.diagnosis()).await;
            let left = self.delete().await?;
            return Ok(Leftovers { is_gone: left.items.is_empty(), ..left });
        }
        let stop = match &self.handle.rules.stop {
            Stop::Patch(patch) if !is_over => patch.clone(),
            _ => json!({}),
        };
        let was_there = self.mark(&workload, stop).await?;
        let mut leftovers = Leftovers::default();
        if was_there && !is_over && !self.stopped().await {
            let silent = silent_nodes(&self.observed.borrow());
            if silent.is_some() {
                self.shared.watch.unreachable(&self.job.identifier);
            }
            leftovers.items.push(messages::still_runs(&self.handle.place, &workload, silent.as_deref()));
        }
        self.keep_files(self.diagnosis()).await;
        if !was_there {
            // The other objects of a workload that is gone are no help for a diagnosis.
            return self.delete().await;
        }
        leftovers.look = diagnosis::look(self.handle, &self.observed.borrow().clone());
        leftovers.delete = diagnosis::delete(self.handle);
        Ok(leftovers)
    }

    /// It ended by itself, or is gone. The work of a pod may have ended while another container keeps it running; what other
    /// kinds leave running their controllers end.
    fn is_over(&mut self) -> bool {
        let observed = Arc::clone(&self.observed.borrow_and_update());
        let state = assess(self.handle, &observed, self.shared.cluster.clock().now()).state;
        let is_plain = self.handle.workload().is_some_and(|own| own.resource.is_pod() || own.resource.is_job());
        match state {
            JobState::Status(JobStatus::Ended(_)) => !is_plain || nothing_runs(&observed),
            JobState::Status(JobStatus::Gone { .. }) => true,
            _ => false,
        }
    }

    /// Waits until the watch has shown the workload, for a while: where another process has launched it, nothing was seen yet.
    async fn seen(&mut self) {
        let by = self.by.min(Instant::now() + FIRST_LOOK);
        while matches!(self.observed.borrow_and_update().workload, Seen::NotYet) {
            let Ok(Ok(())) = timeout_at(by, self.observed.changed()).await else { return };
        }
    }

    /// Marks the workload as kept, and changes what else is asked; `false`: it is gone. The mark holds for all of the job's objects.
    async fn mark(&self, object: &Object, mut patch: Value) -> Result<bool, ApiError> {
        let expires = self.shared.cluster.clock().now().plus(Duration::from_secs(self.handle.keep_seconds));
        let mut metadata = json!({
            "labels": {KEPT_LABEL: "true"},
            "annotations": {EXPIRES_ANNOTATION: clock::rfc3339(expires).unwrap_or_default()},
        });
        if let Some(uid) = &object.uid {
            // Another object of this name is refused with a conflict.
            metadata["uid"] = json!(uid);
        }
        patch["metadata"] = metadata;
        match self.shared.cluster.patch(&object.resource, &object.name, &patch).await {
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
            if silent_nodes(&self.observed.borrow()).is_some() {
                return false;
            }
            match timeout_at(self.by, self.observed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    fn diagnosis(&self) -> Vec<(String, String)> {
        diagnosis::files(self.handle, &self.observed.borrow().clone())
    }

    /// What cannot be written is not worth an error: the objects are still there.
    async fn keep_files(&self, files: Vec<(String, String)>) {
        let folder = self.job.stage.join("diag");
        let written = spawn_blocking(move || write(&folder, &files).map_err(|error| (folder, error)));
        if let Ok(Err((folder, error))) = written.await {
            tracing::warn!(%error, folder = %folder.display(), "the diagnosis cannot be written");
        }
    }
}

/// Nothing but its deletion keeps it from running later: its kind knows no other way to stop it; none of its containers has ever run,
/// so that it waits for a node, a queue or an image; or a queue would start it again, for a deadline does not end what is suspended, and
/// a suspension is what the queue takes back.
pub(super) fn must_go(handle: &Handle, observed: &Observed) -> bool {
    let is_known = observed.from_the_start || !observed.pods.is_empty();
    let is_queued = observed.trouble.kueue.is_some() || observed.workload.object().is_some_and(|object| queue(object).is_some());
    let starts_again = match &handle.rules.stop {
        Stop::Delete => return true,
        Stop::Patch(patch) => suspends(patch) || observed.workload.object().is_some_and(suspends),
    };
    is_known && !is_active(observed) && !observed.pods.iter().any(|seen| has_run(&seen.pod)) || is_queued && starts_again
}

/// Whether the workload itself says that it has or had pods, though none is seen: they may be in another cluster (`managedBy`), or the
/// selector of the kind matches none.
fn is_active(observed: &Observed) -> bool {
    let Some(object) = observed.workload.object().filter(|_| observed.pods.is_empty()) else { return false };
    let counts = ["/status/active", "/status/ready", "/status/readyReplicas", "/status/succeeded", "/status/failed"];
    counts.iter().any(|count| object.pointer(count).and_then(Value::as_f64).is_some_and(|count| count > 0.0))
        || object.pointer("/spec/managedBy").and_then(Value::as_str).is_some_and(|manager| manager != CONTROLLER)
}

fn suspends(object: &Value) -> bool {
    ["/spec/suspend", "/spec/runPolicy/suspend"].iter().any(|place| object.pointer(place) == Some(&Value::Bool(true)))
}

/// No pod takes anything any more.
fn nothing_runs(observed: &Observed) -> bool {
    running(observed).next().is_none()
}

/// The nodes of what runs, if none of them answers.
fn silent_nodes(observed: &Observed) -> Option<String> {
    messages::silent_nodes(running(observed))
}

fn running(observed: &Observed) -> impl Iterator<Item = &SeenPod> {
    observed.pods.iter().filter(|seen| !seen.is_over())
}

fn write(folder: &Path, diagnosis: &[(String, String)]) -> std::io::Result<()> {
    if diagnosis.is_empty() {
        return Ok(());
    }
    files::create_dir_all(folder)?;
    for (name, text) in diagnosis {
        files::write(&folder.join(name), text)?;
    }
    Ok(())
}
