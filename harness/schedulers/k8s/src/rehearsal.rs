//! What an API server says of a plan (`dryRun=All`): admission, quotas, every field, and nothing is created.
//!
//! Not what only shows later: whether there is a node with room, whether the image can be pulled, what a controller makes of it.

use crate::{
    Kubernetes,
    client::error::{ApiError, Why},
    handle::{Handle, Resource},
    manifest::{pod_templates, preflight_pod},
};
use muster_core::error::SchedulerError;

impl Kubernetes {
    /// Sends every object of a plan, and the pods that it will make, to be looked at. Returns what the server warns of.
    ///
    /// # Errors
    /// The first object that the server refuses, or that it did not answer.
    pub async fn rehearse(&self, handle: &Handle) -> Result<Vec<String>, SchedulerError> {
        let cluster = self.cluster(&handle.place).await?;
        let mut warnings = Vec::new();
        for object in &handle.objects {
            let created = cluster.create(&object.resource, &object.manifest, true).await;
            warnings.extend(created.map_err(ApiError::classify)?.warnings);
        }
        let workload = handle.workload().filter(|object| !object.resource.is_pod());
        for (template, _) in workload.map(|object| pod_templates(&object.manifest)).unwrap_or_default() {
            let pod = preflight_pod(&template);
            match cluster.create(&Resource::of("v1", "Pod"), &pod, true).await {
                Ok(created) => warnings.extend(created.warnings),
                // The least Role leaves the pods to the controller.
                Err(error) if error.why() == Why::NotAllowed => {
                    warnings.push("its pods were not looked at: the right to create pods is missing".to_owned());
                }
                Err(error) => return Err(error.classify()),
            }
        }
        warnings.sort();
        warnings.dedup();
        Ok(warnings)
    }
}
