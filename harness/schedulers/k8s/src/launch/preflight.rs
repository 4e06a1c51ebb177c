//! Checks before anything is created whether the pods would be admitted, all of them together where they need each other.

use super::{Attempt, Refused, never, refused};
use crate::{
    api::{QUEUE_LABEL, Resource},
    client::Why,
    job::Object,
    manifest::{pod_templates, preflight_pod, runs_at_once},
    quota::{self, Demand},
    session::Age,
};
use muster_text::Value;

impl Attempt<'_> {
    /// Asks the server whether it admits the pods, without creating any: the refusal of a controller's pods is easy to miss.
    pub(super) async fn preflight(&self) -> Result<(), Refused> {
        let Some(workload) = self.handle.workload() else { return Ok(()) };
        if workload.resource.is_pod() && self.handle.objects.len() == 1 {
            return Ok(());
        }
        let gangs = gangs(workload);
        let age = if gangs.iter().any(|gang| gang.pods > 1) { Age::Now } else { Age::Any };
        let quotas = match self.shared.quotas(age).await.map_err(|error| Refused::Failed(error.classify()))? {
            Some(quotas) if quotas.is_empty() => return Ok(()),
            quotas => quotas.unwrap_or_default(),
        };
        // Kueue admits it when it is its turn: that the namespace's quota is full now means nothing.
        let is_queued = workload.manifest["metadata"]["labels"].get(QUEUE_LABEL).is_some();
        for gang in gangs {
            let one = quota::demand(&gang.template["spec"]);
            self.room(workload, &quotas, &one, gang.pods, is_queued)?;
            match self.shared.cluster.create(&Resource::of("v1", "Pod"), &preflight_pod(&gang.template), true).await {
                Ok(pod) => {
                    // With what the namespace's LimitRange gives pods that do not say what they want.
                    let admitted = quota::demand(&pod.object["spec"]);
                    if admitted != one && pod.object["spec"].is_object() {
                        self.room(workload, &quotas, &admitted, gang.pods, is_queued)?;
                    }
                }
                // The right to ask is missing, or the operator completes the template: the creation itself will show.
                Err(error) if matches!(error.why(), Why::NotAllowed | Why::Withdrawn | Why::Invalid) => {}
                Err(error) => match refused(workload, error) {
                    Refused::NoRoom(..) if is_queued => {}
                    refused => return Err(refused),
                },
            }
        }
        Ok(())
    }

    /// Pods that run together stand together within every quota, or are not created at all.
    fn room(&self, workload: &Object, quotas: &[Value], one: &Demand, pods: u32, is_queued: bool) -> Result<(), Refused> {
        let mut limits = quotas.iter().filter_map(quota::QuotaStatus::of);
        if let Some(why) = limits.find_map(|limits| quota::never_fits(&limits, one, pods)) {
            return Err(never(workload, &why));
        }
        if pods < 2 || is_queued {
            return Ok(());
        }
        self.shared.reserve(self.job, quotas, one, pods).map_err(|refusal| {
            let why = refusal.to_string();
            Refused::NoRoom(refusal, why)
        })
    }
}

/// Pods of one template that there have to be at once.
struct Gang {
    template: Value,
    pods: u32,
}

/// The pods of a workload. A Job that takes turns makes do with one at a time; whatever else may need all of them together.
fn gangs(workload: &Object) -> Vec<Gang> {
    let takes_turns = workload.resource.is_job() && !runs_at_once(&workload.manifest);
    let templates = pod_templates(&workload.manifest).into_iter();
    templates.map(|(template, pods)| Gang { template, pods: if takes_turns { 1 } else { pods } }).collect()
}
