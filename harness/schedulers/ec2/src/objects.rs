//! All that a job has in S3.

use crate::{
    agent::parcel,
    cloud::{Call, CloudError},
    plan::Handle,
    poll::Region,
};

/// Is there when a failed instance is kept: an inventory tells it from one that runs.
pub(crate) const KEPT: &str = "kept";

/// Removes them. They are known without a look: which of them are there does not matter.
///
/// # Errors
/// S3 does not answer, or refuses.
pub(crate) async fn remove(region: &Region, handle: &Handle) -> Result<(), CloudError> {
    let agents = parcel::entries(handle.instances, handle.keeps_files).into_iter().map(|entry| entry.key());
    let keys: Vec<String> =
        agents.chain(["boot", KEPT].map(str::to_owned)).map(|name| format!("{}{name}", handle.prefix)).collect();
    region.cloud.delete(&handle.bucket.name, &keys).await
}

/// Notes that an instance is kept.
pub(crate) fn note_kept<'a>(region: &'a Region, handle: &'a Handle, key: &'a str) -> Call<'a, ()> {
    region.cloud.put(&handle.bucket.name, key, Vec::new())
}
