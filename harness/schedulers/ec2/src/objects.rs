//! All that a job has in S3.

use crate::{
    agent::parcel,
    cloud::{CloudError, Piece},
    plan::Handle,
    poll::Region,
};
use muster_core::job::scheduler::Job;
use muster_text::time::Timestamp;

/// Is there when a failed instance is kept: an inventory tells it from one that runs. It holds the time of `rfm-expires`, for who finds
/// only objects when the instance has ended.
pub(crate) const KEPT: &str = "kept";

/// Is written directly before each request for instances. Who sweeps for a process that was killed then knows by it until when EC2 may
/// list what it does not list yet.
pub(crate) const ASKED: &str = "asked";

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

/// Notes that an instance is kept, and until when.
///
/// # Errors
/// S3 does not answer, or refuses.
pub(crate) async fn note_kept(region: &Region, handle: &Handle, until: Timestamp) -> Result<(), CloudError> {
    note(region, handle, KEPT, until.seconds().to_string()).await
}

/// Until when an instance was to be kept, as it was noted at a prefix. `None`: that is not there, or cannot be read.
///
/// # Errors
/// Those of `note_kept`.
pub(crate) async fn kept_until(region: &Region, bucket: &str, prefix: &str) -> Result<Option<Timestamp>, CloudError> {
    let noted = region.cloud.get(bucket, &format!("{prefix}{KEPT}"), 0).await?;
    let seconds = |piece: Piece| String::from_utf8(piece.bytes).ok()?.trim().parse().ok();
    Ok(noted.and_then(seconds).map(Timestamp::of_seconds))
}

/// Notes that instances are asked for now.
///
/// # Errors
/// Those of `note_kept`.
pub(crate) async fn note_asked(region: &Region, handle: &Handle) -> Result<(), CloudError> {
    note(region, handle, ASKED, String::new()).await
}

async fn note(region: &Region, handle: &Handle, name: &str, text: String) -> Result<(), CloudError> {
    region.cloud.put(&handle.bucket.name, &format!("{}{name}", handle.prefix), text.into_bytes()).await
}
