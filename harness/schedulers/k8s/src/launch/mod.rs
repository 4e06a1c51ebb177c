//! Creates the objects of a job: what the workload refers to first, the workload last. Objects whose answer was lost are found again.
//!
//! ```text
//! an earlier launch had no answer: GET the workload -- ours ---------------------------------> Launched
//! queue: another case waits before this one for the same resource ------------------------> NotNow
//! preflight (only where there are quotas, and not for a single Pod):
//!     all pods together, then each template with dryRun=All -- quota is full --> NotNow     never fits, forbidden --> Config
//! create each object -- 409 --> GET: ours (labels rfm, rfm-session) -> its uid;  another's --> Taken
//!                    '- quota is full --> what was created is deleted --> NotNow
//! ```
//! One attempt; the session repeats it. If an object fails, those before it stay for `cleanup`.

mod preflight;
mod refused;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use preflight::{Gang, dry_run, gangs, together};

use crate::{
    api::Quantity,
    client::{ApiError, Why},
    job::{Handle, Object, is_of},
    manifest::pod_templates,
    quota::{self, Demand},
    session::{
        SharedState,
        gate::{self, AfterRefusal},
    },
};
use kube::api::PropagationPolicy;
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::{Job, Launch},
    },
};
use muster_text::Value;
use refused::Refused;
use std::time::Duration;
use tokio::time::timeout;

/// The session gives up after a minute, the default of `CallLimits::launch`. An answer before that can give the reason.
const LAUNCH_LIMIT: Duration = Duration::from_secs(55);

/// One attempt.
pub(crate) async fn launch(shared: &SharedState, job: &Job, handle: Handle) -> Result<Launch, SchedulerError> {
    let attempt = Attempt { shared, job, handle };
    let silent = || SchedulerError::plain(Class::Outage, format!("launch: no answer within {} s", LAUNCH_LIMIT.as_secs()));
    let answer = timeout(LAUNCH_LIMIT, attempt.run()).await.unwrap_or_else(|_| Err(silent()));
    if !matches!(answer, Ok(Launch::NotNow { .. })) {
        shared.leave_queue(&job.identifier);
    }
    match &answer {
        Ok(Launch::NotNow { .. }) => {}
        Ok(_) => shared.set_unanswered(&job.identifier, false),
        Err(error) => shared.set_unanswered(&job.identifier, !error.nothing_created || shared.is_unanswered(&job.identifier)),
    }
    if !matches!(answer, Ok(Launch::Launched(_))) {
        shared.release(&job.identifier);
    }
    answer
}

struct Attempt<'a> {
    shared: &'a SharedState,
    job: &'a Job,
    handle: Handle,
}

impl Attempt<'_> {
    async fn run(mut self) -> Result<Launch, SchedulerError> {
        for object in &self.handle.objects {
            // Before anything exists, and before a watch is opened for a kind that the server does not know.
            self.shared.cluster.resolve(&object.resource).await.map_err(|error| {
                let error = error.classify();
                if self.shared.is_unanswered(&self.job.identifier) { error } else { error.with_nothing_created() }
            })?;
        }
        if self.shared.is_unanswered(&self.job.identifier) && self.find_again().await? {
            self.shared.observe(self.job, &self.handle);
            self.shared.lease.hold();
            return Ok(self.launched());
        }
        if let Some(why) = self.shared.gate_closed(self.job, &self.handle) {
            return Ok(Launch::NotNow { why, retry_after: gate::LOOK, created: None });
        }
        if let Some((before, resource)) = self.shared.blocked_by(self.job, || self.demand()) {
            return Ok(self.not_now(format!("{before} is before it in the queue for {resource}")));
        }
        if let Err(refused) = self.preflight().await {
            return self.answer(refused).map_err(SchedulerError::with_nothing_created);
        }
        // Not before: a case that waits for quota would read its files again at each try.
        sources::fill(&mut self.handle, &self.job.stage).await?;
        self.shared.watch.register(&self.job.identifier, &self.handle);
        self.shared.lease.hold();
        for place in 0..self.handle.objects.len() {
            match self.create(&self.handle.objects[place]).await {
                Ok(uid) => self.handle.objects[place].uid = Some(uid),
                Err(refused) => {
                    let mut answer = self.answer(refused);
                    if let Ok(Launch::NotNow { created, .. }) = &mut answer
                        && let Err(error) = self.undo(&self.handle.objects[..place]).await
                    {
                        tracing::debug!(error = %error, "what was created before a quota refused is left to the cleanup");
                        *created = Some(Box::new(self.job.with(JobHandle::of(self.handle.clone()))));
                    }
                    return answer
                        .map_err(|error| SchedulerError { nothing_created: error.nothing_created && place == 0, ..error });
                }
            }
        }
        self.shared.launched(self.job, &self.handle);
        Ok(self.launched())
    }

    /// What is kept of it from now on.
    fn launched(mut self) -> Launch {
        sources::empty(&mut self.handle);
        Launch::Launched(self.job.with(JobHandle::of(self.handle.without_data_of_secrets())))
    }

    /// Looks for a workload that was created without an answer. To create it once more would be refused: it may fill a quota by
    /// itself. The workload is the last object, so those before it were created, too.
    async fn find_again(&mut self) -> Result<bool, SchedulerError> {
        let Some(workload) = self.handle.workload() else { return Ok(false) };
        let Some(found) = self.own(workload).await? else { return Ok(false) };
        for place in 0..self.handle.objects.len() {
            self.handle.objects[place].uid =
                if place == self.handle.workload { Some(found.clone()) } else { self.own(&self.handle.objects[place]).await? };
        }
        Ok(true)
    }

    /// The uid of an object, if it is there and ours.
    async fn own(&self, object: &Object) -> Result<Option<String>, SchedulerError> {
        match self.shared.cluster.get(&object.resource, &object.name).await {
            Ok(there) => {
                Ok((is_of(self.job, &there) && there["metadata"].get("deletionTimestamp").is_none()).then(|| uid(&there)))
            }
            Err(error) if error.is_gone() || error.why() == Why::NotAllowed => Ok(None),
            Err(error) => Err(error.classify()),
        }
    }

    /// What it wants of the namespace's quotas.
    fn demand(&self) -> Demand {
        let Some(workload) = self.handle.workload() else { return Demand::new() };
        let mut demand = Demand::new();
        for (template, _) in pod_templates(&workload.manifest) {
            demand.extend(quota::demand(&template["spec"]));
        }
        demand.insert(format!("count/{}", workload.resource.for_kubectl()), Quantity::whole(1));
        demand
    }

    async fn create(&self, object: &Object) -> Result<String, Refused> {
        match self.shared.cluster.create(&object.resource, &object.manifest, false).await {
            Ok(created) => Ok(uid(&created.object)),
            Err(error) if error.why() == Why::Exists => self.found(object).await,
            Err(error) => Err(Refused::of(object, error)),
        }
    }

    /// Something has its name: what we created, and never heard of, or something else.
    async fn found(&self, object: &Object) -> Result<String, Refused> {
        let there = match self.shared.cluster.get(&object.resource, &object.name).await {
            Ok(there) => there,
            Err(error) => return Err(Refused::Failed(error.classify())),
        };
        if !is_of(self.job, &there) {
            return Err(Refused::Taken(format!("{} in {}", object.title(), self.handle.place)));
        }
        if there["metadata"].get("deletionTimestamp").is_some() {
            let what = format!("create {}: its predecessor is still being deleted", object.title());
            return Err(Refused::Failed(SchedulerError::plain(Class::Infra, what)));
        }
        Ok(uid(&there))
    }

    /// Deletes the objects that were created before a quota refused: a waiting case holds nothing.
    async fn undo(&self, created: &[Object]) -> Result<(), ApiError> {
        for object in created.iter().rev() {
            let deleted =
                self.shared.cluster.delete(&object.resource, &object.name, object.uid.as_deref(), PropagationPolicy::Background);
            deleted.await?;
        }
        Ok(())
    }

    fn answer(&self, refused: Refused) -> Result<Launch, SchedulerError> {
        match refused {
            Refused::NoRoom(refusal, why) => {
                self.shared.watch.forget(&self.job.identifier);
                self.shared.refused(self.job, &refusal);
                Ok(self.not_now(why))
            }
            Refused::Withdrawn(kind, error) => {
                self.shared.watch.forget(&self.job.identifier);
                let why = format!("launches wait: {error}");
                match self.shared.withdrawn(self.job, &kind, &why) {
                    AfterRefusal::Retry => Ok(Launch::NotNow { why, retry_after: gate::LOOK, created: None }),
                    AfterRefusal::Fail => Err(error.for_good().classify().with_nothing_created()),
                }
            }
            Refused::Taken(by) => Ok(Launch::Taken { by }),
            Refused::Failed(error) => Err(error),
        }
    }

    fn not_now(&self, why: String) -> Launch {
        Launch::NotNow { why, retry_after: self.shared.retry_after(&self.job.identifier), created: None }
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
