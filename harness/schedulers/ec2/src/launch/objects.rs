//! What an agent finds in S3, and the addresses by which it does.

use crate::{
    agent::{
        fetched::{self, Fetched},
        parcel, render_user_data,
    },
    cloud::Method,
    failure,
    plan::{Handle, Offer, orders},
    poll::Region,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::Job,
};
use muster_stage::sent_files;
use muster_text::time::{Timestamp, format_duration};
use std::time::Duration;

/// Amazon makes no address that works for longer.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// What a job has in S3.
pub(super) struct Parcel {
    /// The address of the list of all others.
    pub boot_url: String,
    /// What its data sets take of a volume.
    pub data_gib: u32,
}

/// The most that is sent beside the script, in bytes. It is in memory as a whole; larger files are data sets.
const MOST_FILES: u64 = 256 << 20;

/// Puts the script, and the list of addresses, where the agents look for them.
pub(super) async fn send(region: &Region, job: &Job, handle: &Handle, now: Timestamp) -> Result<Parcel, SchedulerError> {
    let until = now.plus(Duration::from_secs(handle.lifetime.expires_after()).min(LONGEST));
    check_credentials(region, handle, now).await?;
    let env = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    let variables: Vec<(String, String)> = handle.pass_env.iter().filter_map(env).collect();
    let files = if handle.staging.is_some() { sent_files(job.stage.clone(), MOST_FILES).await? } else { Vec::new() };
    let bundle = parcel::bundle(&handle.script, &variables, &files)
        .map_err(|error| SchedulerError::new(Class::Infra, "pack the script", error))?;
    let entries = parcel::entries(handle.instances, handle.keeps_files);
    let data = region.copies.files(&*region.cloud, handle, &job.stage).await?;
    let wanted = entries.iter().map(|entry| (entry.method, format!("{}{}", handle.prefix, entry.key())));
    let boot = format!("{}boot", handle.prefix);
    let wanted: Vec<(Method, String)> = std::iter::once((Method::Get, boot.clone())).chain(wanted).collect();
    let bucket = &handle.bucket.name;
    let signed = region.cloud.presign(bucket, &wanted, until).await;
    let mut addresses = signed.map_err(|error| failure::of_launch(error, "sign addresses"))?;
    let boot_url = addresses.remove(0);
    let mut list = parcel::list(&bundle, &entries, &addresses);
    list.push_str(&fetched::lines(&data, &addresses_of(region, &data, until).await?));
    for (key, bytes) in [(format!("{}bundle", handle.prefix), bundle), (boot, list.into_bytes())] {
        let sent = region.cloud.put(bucket, &key, bytes).await;
        sent.map_err(|error| failure::of_launch(error, &format!("write to s3://{bucket}/{key}")))?;
    }
    Ok(Parcel { boot_url, data_gib: fetched::room_gib(&data) })
}

async fn addresses_of(region: &Region, files: &[Fetched], until: Timestamp) -> Result<Vec<String>, SchedulerError> {
    let mut addresses = Vec::with_capacity(files.len());
    for Fetched { bucket, key, .. } in files {
        let signed = region.cloud.presign(bucket, &[(Method::Get, key.clone())], until).await;
        addresses.extend(signed.map_err(|error| failure::of_launch(error, "sign addresses"))?);
    }
    Ok(addresses)
}

/// An address ends with the credentials that have signed it: a log would end before its script.
async fn check_credentials(region: &Region, handle: &Handle, now: Timestamp) -> Result<(), SchedulerError> {
    let end = region.cloud.credentials_end().await.map_err(|error| failure::of_launch(error, "look for credentials"))?;
    let needed = Duration::from_secs(handle.lifetime.boot + handle.lifetime.limit);
    match end {
        Some(end) if end < now.plus(needed) => {
            let (left, needed) = (format_duration(whole(end.since(now))), format_duration(needed));
            let what = format!(
                "the AWS credentials end in {left}, and the instances need their addresses for up to {needed}: use credentials that last longer"
            );
            Err(SchedulerError::plain(Class::Config, what))
        }
        Some(_) | None => Ok(()),
    }
}

fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// The agent, as `RunInstances` takes it.
pub(super) fn user_data(handle: &Handle, offer: &Offer, id: &str, boot_url: &str) -> Result<String, SchedulerError> {
    let data = render_user_data(&orders(handle, offer, id, boot_url));
    let data = data.map_err(|error| SchedulerError::new(Class::Config, "make the user data", error))?;
    Ok(BASE64_STANDARD.encode(data))
}
