//! The objects for an agent in S3, and the addresses by which it finds them.

use crate::{
    agent::{
        fetched::{self, Fetched},
        kept, parcel, render_user_data,
    },
    cloud::{CloudError, CredentialsEnd, Method},
    data::Here,
    failure,
    launch::Stop,
    plan::{Handle, LONGEST_ADDRESS, Lifetime, Offer, orders},
    poll::Region,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::Job,
};
use muster_stage::{blocking, sent_files};
use muster_text::time::{Timestamp, format_duration};
use std::{
    io::{self, Write},
    path::Path,
    time::Duration,
};

/// What a job has in S3.
pub(super) struct Parcel {
    /// The address of the list of all others.
    pub boot_url: String,
    /// The size of its data sets on a volume, in GiB.
    pub data_gib: u32,
    /// Seconds that fetching them may take.
    pub fetch: u64,
}

/// The most that is sent beside the script, in bytes. It is in memory as a whole; larger files are data sets.
const MOST_FILES: u64 = 256 << 20;

/// What is known before anything of a job is written.
pub(super) struct Ready {
    data: Vec<Fetched>,
    fetch: u64,
    /// When its addresses end.
    until: Timestamp,
}

/// Finds out what a job fetches, and whether its addresses last long enough. It writes nothing of the job.
pub(super) async fn prepare(region: &Region, job: &Job, handle: &Handle, now: Timestamp) -> Result<Ready, Stop> {
    let data = region.copies.files(Here { cloud: &*region.cloud, now, folder: &job.stage }, handle).await?;
    let lifetime = Lifetime { fetch: fetched::seconds(&data), ..handle.lifetime };
    if lifetime.fetch > handle.longest_fetch {
        let (needed, most) =
            (format_duration(Duration::from_secs(lifetime.fetch)), format_duration(Duration::from_secs(handle.longest_fetch)));
        let what = format!(
            "fetching the data sets may take {needed}, and `fetch_timeout` of `ec2_config` is {most}: write a longer one, or fetch less"
        );
        return Err(SchedulerError::plain(Class::Config, what).into());
    }
    let until = now.plus(Duration::from_secs(lifetime.expires_after()).min(LONGEST_ADDRESS));
    check_credentials(region, lifetime, now).await?;
    Ok(Ready { data, fetch: lifetime.fetch, until })
}

/// Puts the script, and the list of addresses, where the agents look for them.
pub(super) async fn send(region: &Region, job: &Job, handle: &Handle, ready: Ready) -> Result<Parcel, SchedulerError> {
    let Ready { data, fetch, until } = ready;
    let digest = send_bundle(region, job, handle).await?;
    let entries = parcel::entries(handle.instances, !handle.keep_files.is_empty());
    let wanted = entries.iter().map(|entry| (entry.method, format!("{}{}", handle.prefix, entry.key())));
    let boot = format!("{}{}", handle.prefix, parcel::LIST);
    let wanted: Vec<(Method, String)> = std::iter::once((Method::Get, boot.clone())).chain(wanted).collect();
    let bucket = &handle.bucket.name;
    let signed = region.cloud.presign(bucket, &wanted, until).await;
    let mut addresses = signed.map_err(|error| failure::of_launch(error, "sign addresses"))?;
    let boot_url = addresses.remove(0);
    let mut list = parcel::list(&digest, &entries, &addresses);
    list.push_str(&kept::lines(&handle.keep_files));
    list.push_str(&fetched::lines(&data, &addresses_of(region, &data, until).await?));
    let sent = region.cloud.put(bucket, &boot, list.into_bytes()).await;
    sent.map_err(|error| unwritten(error, bucket, &boot))?;
    Ok(Parcel { boot_url, data_gib: fetched::room_gib(&data), fetch })
}

/// A bundle waits here for the next attempt, while there is no capacity.
const BUNDLE_FILE: &str = "rfm_job.bundle";

/// What was packed is not needed any more.
pub(super) async fn forget_bundle(region: &Region, job: &Job) {
    region.forget_bundle(job);
    let path = job.stage.join(BUNDLE_FILE);
    // There is none where it could not be written.
    let _ = blocking(move || std::fs::remove_file(path)).await;
}

/// Puts the script and its files where the agents look for them, and returns the digest.
async fn send_bundle(region: &Region, job: &Job, handle: &Handle) -> Result<String, SchedulerError> {
    let (path, known) = (job.stage.join(BUNDLE_FILE), region.bundle(job));
    let waits = blocking(move || {
        let known = known?;
        let bytes = std::fs::read(path).ok()?;
        (parcel::digest(&bytes) == known).then_some((known, bytes))
    });
    let (digest, bytes) = match waits.await {
        Some(packed) => packed,
        None => pack(job, handle).await.map_err(SchedulerError::with_nothing_created)?,
    };
    let (bucket, key) = (&handle.bucket.name, format!("{}{}", handle.prefix, parcel::BUNDLE));
    region.cloud.put(bucket, &key, bytes).await.map_err(|error| {
        // What S3 does not answer, or fails to do, it may have done.
        let is_refused = error.had_no_effect();
        let error = unwritten(error, bucket, &key);
        if is_refused { error.with_nothing_created() } else { error }
    })?;
    region.packed_bundle(job, &digest);
    Ok(digest)
}

/// Packs what is sent before the launch: reading the files takes as long as their disk likes, and this may be dropped.
pub(crate) async fn pack_ahead(region: &Region, job: &Job, handle: &Handle) -> Result<(), SchedulerError> {
    let (digest, _) = pack(job, handle).await?;
    region.packed_bundle(job, &digest);
    Ok(())
}

/// Reads and compresses what is sent, once for all attempts of a job.
async fn pack(job: &Job, handle: &Handle) -> Result<(String, Vec<u8>), SchedulerError> {
    let env = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    let variables: Vec<(String, String)> = handle.pass_env.iter().filter_map(env).collect();
    let files = if handle.staging.is_some() { sent_files(job.stage.clone(), MOST_FILES).await? } else { Vec::new() };
    let (script, stage) = (handle.script.clone(), job.stage.clone());
    let packed = blocking(move || {
        let bytes = parcel::bundle(&script, &variables, &files)?;
        if let Err(error) = keep_bundle(&stage, &bytes) {
            tracing::debug!(%error, "a bundle is packed again where there is no capacity");
        }
        Ok((parcel::digest(&bytes), bytes))
    });
    packed.await.map_err(|error: io::Error| SchedulerError::new(Class::Infra, "pack the script", error))
}

/// It may hold secrets of `pass_env`: nobody else reads it, whatever mode a site gives its files.
fn keep_bundle(stage: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(BUNDLE_FILE).tempfile_in(stage)?;
    file.write_all(bytes)?;
    file.persist(stage.join(BUNDLE_FILE)).map(drop).map_err(|error| error.error)
}

fn unwritten(error: CloudError, bucket: &str, key: &str) -> SchedulerError {
    failure::of_launch(error, &format!("write to s3://{bucket}/{key}"))
}

async fn addresses_of(region: &Region, files: &[Fetched], until: Timestamp) -> Result<Vec<String>, SchedulerError> {
    let mut addresses = Vec::with_capacity(files.len());
    for Fetched { bucket, key, .. } in files {
        let signed = region.cloud.presign(bucket, &[(Method::Get, key.clone())], until).await;
        addresses.extend(signed.map_err(|error| failure::of_launch(error, "sign addresses"))?);
    }
    Ok(addresses)
}

/// An address ends with the credentials that have signed it: a log would end before its script. Who gives credentials may give others
/// shortly before these end.
async fn check_credentials(region: &Region, lifetime: Lifetime, now: Timestamp) -> Result<(), Stop> {
    let needed = lifetime.needs_addresses();
    let end = region.cloud.credentials_end(now.plus(needed)).await;
    match end.map_err(|error| failure::of_launch(error, "look for credentials"))? {
        Some(CredentialsEnd { at, is_final }) if at < now.plus(needed) => {
            let (left, needed) = (format_duration(whole(at.since(now))), format_duration(needed));
            let what = format!("the AWS credentials end in {left}, and the instances need their addresses for up to {needed}");
            Err(if is_final {
                SchedulerError::plain(Class::Config, format!("{what}: use credentials that last longer")).into()
            } else {
                Stop::NotYet(format!("{what}: waits for some that last longer"))
            })
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
