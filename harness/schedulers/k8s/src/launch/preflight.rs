//! Asks the API server before anything is created (`dryRun=All`) whether the pods of a launch would be admitted, all of them
//! together where they need each other; and for `--dry-run=server`, what it says of a whole plan.
//!
//! What only shows later is not checked: whether a node has room, whether the image can be pulled, what a controller makes of it.

use super::{Attempt, Refused};
use crate::{
    api::{QUEUE_LABEL, Resource},
    client::{ApiError, Cluster, Why},
    job::{Handle, Object},
    manifest::{at_once, pod_templates, preflight_pod, runs_at_once},
    quota::{self, Demand, Fit, QuotaStatus, Together},
    session::Age,
};
use muster_text::Value;

const ACCOUNT_COMES: &str = "its pods were not looked at: their ServiceAccount is created with them";

impl Attempt<'_> {
    /// Asks the server whether it admits the pods, without creating any: the refusal of a controller's pods is easy to miss.
    pub(super) async fn preflight(&self) -> Result<(), Refused> {
        let Some(workload) = self.handle.workload() else { return Ok(()) };
        if workload.resource.is_pod() && self.handle.objects.len() == 1 {
            return Ok(());
        }
        let written = together(workload);
        let age = if written.pods() > 1 { Age::Now } else { Age::Any };
        let quotas = match self.shared.quotas(age).await.map_err(|error| Refused::Failed(error.classify()))? {
            Some(quotas) if quotas.is_empty() => return Ok(()),
            quotas => quotas.unwrap_or_default(),
        };
        // Kueue admits it when it is its turn: that the namespace's quota is full now means nothing.
        let is_queued = workload.manifest["metadata"]["labels"].get(QUEUE_LABEL).is_some();
        self.room(workload, &quotas, &written, is_queued)?;
        let mut admitted = Vec::new();
        for group in groups(workload) {
            let mut of_group = Vec::new();
            for gang in group {
                of_group.push((self.admitted(workload, gang.template, is_queued).await?, gang.pods));
            }
            admitted.push(of_group);
        }
        let admitted = Together::of(admitted);
        if admitted == written { Ok(()) } else { self.room(workload, &quotas, &admitted, is_queued) }
    }

    /// What a pod of this template takes once it is admitted: with what the namespace's `LimitRange` gives pods that do not say what
    /// they want.
    async fn admitted(&self, workload: &Object, template: &Value, is_queued: bool) -> Result<Demand, Refused> {
        match self.shared.cluster.create(&Resource::of("v1", "Pod"), &preflight_pod(template), true).await {
            Ok(pod) if pod.object["spec"].is_object() => return Ok(quota::demand(&pod.object["spec"])),
            Ok(_) => {}
            // The right to ask is missing, or the operator completes the template: the creation itself will show.
            Err(error) if matches!(error.why(), Why::NotAllowed | Why::Withdrawn | Why::Invalid) => {}
            Err(error) if lacks_own_account(&self.handle, &error) => {}
            Err(error) => match Refused::by_quota(workload, error) {
                Refused::NoRoom(..) if is_queued => {}
                refused => return Err(refused),
            },
        }
        Ok(quota::demand(&template["spec"]))
    }

    /// Pods that run together stand together within every quota, or are not created at all.
    fn room(&self, workload: &Object, quotas: &[Value], pods: &Together, is_queued: bool) -> Result<(), Refused> {
        if let Some(why) = never_fits(quotas, pods) {
            return Err(Refused::never(workload, &why));
        }
        if pods.pods() < 2 || is_queued {
            return Ok(());
        }
        self.shared.reserve(self.job, quotas, pods).map_err(|refusal| {
            let why = refusal.to_string();
            Refused::NoRoom(refusal, why)
        })
    }
}

/// Pods of one template that there have to be at once.
pub(crate) struct Gang<'a> {
    pub(crate) template: &'a Value,
    pub(crate) pods: u32,
}

/// The pods of a workload. A Job that takes turns makes do with one at a time; whatever else may need all of a template together.
pub(crate) fn gangs(workload: &Object) -> Vec<Gang<'_>> {
    groups(workload).into_iter().flatten().collect()
}

/// The same, in groups that are there at once.
fn groups(workload: &Object) -> Vec<Vec<Gang<'_>>> {
    let takes_turns = workload.resource.is_job() && !runs_at_once(&workload.manifest);
    let gang = |(template, pods)| Gang { template, pods: if takes_turns { 1 } else { pods } };
    let groups = at_once(&workload.resource, &workload.manifest).into_iter();
    groups.map(|group| group.into_iter().map(gang).collect()).collect()
}

/// What they take of quotas.
pub(crate) fn together(workload: &Object) -> Together {
    let of_gang = |gang: Gang<'_>| (quota::demand(&gang.template["spec"]), gang.pods);
    Together::of(groups(workload).into_iter().map(|group| group.into_iter().map(of_gang).collect()))
}

/// The sentence, if pods can never stand together within the hard limits of all quotas.
fn never_fits(quotas: &[Value], pods: &Together) -> Option<String> {
    let mut fits = quotas.iter().filter_map(QuotaStatus::of).map(|limits| quota::fit(&limits, pods, &Demand::new()));
    fits.find_map(|fit| if let Fit::Never(why) = fit { Some(why) } else { None })
}

/// A pod is refused because its ServiceAccount is not there, and the manifest creates it before the pod.
fn lacks_own_account(handle: &Handle, error: &ApiError) -> bool {
    let message = error.message();
    let accounts = handle.objects.iter().filter(|object| object.resource.kind == "ServiceAccount");
    accounts.map(|account| format!("serviceaccount \"{}\" not found", account.name)).any(|missing| message.contains(&missing))
}

/// Sends every object of a plan, and the pods that it will make, for validation. Returns the warnings of the server.
///
/// # Errors
/// The first object that the server refuses, or to which it does not answer.
pub(crate) async fn dry_run(cluster: &Cluster, handle: &Handle) -> Result<Vec<String>, ApiError> {
    let mut warnings = Vec::new();
    for object in &handle.objects {
        match cluster.create(&object.resource, &object.manifest, true).await {
            Ok(created) => warnings.extend(created.warnings),
            Err(error) if lacks_own_account(handle, &error) => warnings.push(ACCOUNT_COMES.to_owned()),
            Err(error) => return Err(error),
        }
    }
    let workload = handle.workload().filter(|object| !object.resource.is_pod());
    for (template, _) in workload.map(|object| pod_templates(&object.manifest)).unwrap_or_default() {
        match cluster.create(&Resource::of("v1", "Pod"), &preflight_pod(template), true).await {
            Ok(created) => warnings.extend(created.warnings),
            // The least Role leaves the pods to the controller.
            Err(error) if error.why() == Why::NotAllowed => {
                warnings.push("its pods were not looked at: the right to create pods is missing".to_owned());
            }
            Err(error) if lacks_own_account(handle, &error) => warnings.push(ACCOUNT_COMES.to_owned()),
            Err(error) => return Err(error),
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(warnings)
}
