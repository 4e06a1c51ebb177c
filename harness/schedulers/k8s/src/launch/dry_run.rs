//! What an API server says of a plan (`dryRun=All`): admission, quotas and every field are checked, and nothing is created.
//!
//! What only shows later is not checked: whether a node has room, whether the image can be pulled, what a controller makes of it.

use crate::{
    api::Resource,
    client::{ApiError, Cluster, Why},
    job::Handle,
    manifest::{pod_templates, preflight_pod},
};

/// Sends every object of a plan, and the pods that it will make, for validation. Returns the warnings of the server.
///
/// # Errors
/// The first object that the server refuses, or to which it does not answer.
pub(crate) async fn dry_run(cluster: &Cluster, handle: &Handle) -> Result<Vec<String>, ApiError> {
    let mut warnings = Vec::new();
    for object in &handle.objects {
        warnings.extend(cluster.create(&object.resource, &object.manifest, true).await?.warnings);
    }
    let workload = handle.workload().filter(|object| !object.resource.is_pod());
    for (template, _) in workload.map(|object| pod_templates(&object.manifest)).unwrap_or_default() {
        match cluster.create(&Resource::of("v1", "Pod"), &preflight_pod(&template), true).await {
            Ok(created) => warnings.extend(created.warnings),
            // The least Role leaves the pods to the controller.
            Err(error) if error.why() == Why::NotAllowed => {
                warnings.push("its pods were not looked at: the right to create pods is missing".to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(warnings)
}
