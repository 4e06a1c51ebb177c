//! All that a job has in S3.

use crate::{
    agent::parcel,
    cloud::{Call, CloudError},
    plan::Handle,
    poll::Region,
};
use muster_core::job::scheduler::Job;

/// Is there when a failed instance is kept: an inventory tells it from one that runs.
pub(crate) const KEPT: &str = "kept";

/// Removes them: what is below its prefix, whoever has put it there.
///
/// # Errors
/// S3 does not answer, or refuses.
pub(crate) async fn remove(region: &Region, job: &Job, handle: &Handle) -> Result<(), CloudError> {
    remove_if(region, job, handle, |_| true).await
}

/// Removes what may hold secrets when an instance is kept: the list of addresses, and the bundle with the values of `pass_env`. How its
/// agents have ended, its files and its log may not have been read.
///
/// # Errors
/// Those of `remove`.
pub(crate) async fn remove_orders(region: &Region, job: &Job, handle: &Handle) -> Result<(), CloudError> {
    remove_if(region, job, handle, |name| matches!(name, parcel::LIST | parcel::BUNDLE)).await
}

async fn remove_if(region: &Region, job: &Job, handle: &Handle, goes: fn(&str) -> bool) -> Result<(), CloudError> {
    // A handle that was stored by hand may have any prefix.
    if !handle.prefix.ends_with(&format!("{}/{}/", job.session, job.identifier)) {
        tracing::warn!(prefix = handle.prefix, "the prefix of a job is not its own, and its objects stay");
        return Ok(());
    }
    let listed = region.cloud.objects(&handle.bucket.name, &handle.prefix).await?;
    let keys: Vec<String> =
        listed.into_iter().map(|object| object.key).filter(|key| key.strip_prefix(&*handle.prefix).is_some_and(goes)).collect();
    if keys.is_empty() { Ok(()) } else { region.cloud.delete(&handle.bucket.name, &keys).await }
}

/// Notes that an instance is kept.
pub(crate) fn note_kept<'a>(region: &'a Region, handle: &'a Handle, key: &'a str) -> Call<'a, ()> {
    region.cloud.put(&handle.bucket.name, key, Vec::new())
}
