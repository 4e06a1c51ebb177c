//! Data sets: found in S3, or copied there once from elsewhere, and said to the agents file by file.

use crate::{
    agent::fetched::{Check, Fetched},
    cloud::{Cloud, CloudError, Downloaded, Object},
    config::{Bucket, DataSet, Digest, Source, is_plain_path},
    failure,
    plan::Handle,
};
use muster_core::error::{Class, SchedulerError};
use muster_text::time::Timestamp;
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};
use tokio::sync::Mutex;

/// The most files that one case fetches: each has an address in its list.
const MOST_FILES: usize = 2000;

/// The rule of a bucket removes what is 7 days old. What is younger than this lasts until the instances have it.
const STAYS: Duration = Duration::from_hours(5 * 24);

/// For how long a copy that was seen is not looked for again.
const BELIEVED: Duration = Duration::from_mins(5);

/// What was copied into a bucket, by bucket and key. One for all jobs of a region: a source is copied once, also where many ask at
/// the same time.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    known: Mutex<BTreeMap<(String, String), Copy>>,
}

/// The size of a copy, and when it was seen. Who copies holds it.
type Copy = Arc<Mutex<Option<(u64, Timestamp)>>>;

/// Where copies are, and when.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    pub cloud: &'a dyn Cloud,
    pub now: Timestamp,
    /// The folder for files on their way.
    pub folder: &'a Path,
}

/// Where a file from elsewhere is in the bucket of the site: under its digest, so that sessions share it.
fn key_of(bucket: &Bucket, digest: &Digest) -> String {
    bucket.key(&match digest {
        Digest::Sha256(digest) => format!("data/sha256-{digest}"),
        Digest::Md5(digest) => format!("data/md5-{digest}"),
    })
}

/// Whether a job waits for copies before it is launched.
pub(crate) fn copied(handle: &Handle) -> impl Iterator<Item = (&DataSet, &str, &Digest)> {
    handle.data.iter().filter_map(|set| match (&set.source, &set.digest) {
        (Source::Http(address), Some(digest)) => Some((set, address.as_str(), digest)),
        _ => None,
    })
}

impl Copies {
    /// Brings all that a job needs from elsewhere into the bucket.
    ///
    /// # Errors
    /// A source does not answer, or is another file than the check says.
    pub(crate) async fn bring(&self, here: Here<'_>, handle: &Handle) -> Result<(), SchedulerError> {
        for (_, address, digest) in copied(handle) {
            self.copy(here, &handle.bucket, (address, digest)).await?;
        }
        Ok(())
    }

    /// The size of a copy.
    async fn copy(
        &self,
        Here { cloud, now, folder }: Here<'_>,
        bucket: &Bucket,
        (address, digest): (&str, &Digest),
    ) -> Result<u64, SchedulerError> {
        let key = key_of(bucket, digest);
        let known = Arc::clone(self.known.lock().await.entry((bucket.name.clone(), key.clone())).or_default());
        let mut known = known.lock().await;
        if let Some((size, seen)) = *known
            && now.since(seen) < BELIEVED
        {
            return Ok(size);
        }
        let there = cloud.objects(&bucket.name, &key).await.map_err(|error| failure::of_launch(error, "look for data sets"))?;
        let stays = |object: &&Object| object.modified.is_none_or(|written| now.since(written) < STAYS);
        let size = match there.iter().find(|object| object.key == key).filter(stays) {
            Some(object) => object.size,
            None => fetch(cloud, (&bucket.name, &key), (address, digest), folder).await?,
        };
        *known = Some((size, now));
        Ok(size)
    }

    /// All files that the instances of a job fetch.
    ///
    /// # Errors
    /// There are none where the check says, or too many.
    pub(crate) async fn files(&self, here: Here<'_>, handle: &Handle) -> Result<Vec<Fetched>, SchedulerError> {
        let mut files = Vec::new();
        for set in &handle.data {
            match &set.source {
                Source::Http(address) => {
                    let Some(digest) = &set.digest else { continue };
                    let size = self.copy(here, &handle.bucket, (address, digest)).await?;
                    let path = destination(set, address.split(['?', '#']).next().unwrap_or_default());
                    let (bucket, key) = (handle.bucket.name.clone(), key_of(&handle.bucket, digest));
                    files.push(Fetched { path, unpack: set.unpack, check: Check::Digest(digest.clone()), bucket, key, size });
                }
                Source::S3 { bucket, key } => files.extend(in_s3(here.cloud, set, (bucket, key)).await?),
            }
        }
        if files.len() > MOST_FILES {
            let what =
                format!("the data sets have {} files, and {MOST_FILES} can be fetched: pack them into archives", files.len());
            return Err(SchedulerError::plain(Class::Config, what).with_nothing_created());
        }
        Ok(files)
    }
}

async fn in_s3(cloud: &dyn Cloud, set: &DataSet, (bucket, key): (&str, &str)) -> Result<Vec<Fetched>, SchedulerError> {
    let listed = cloud.objects(bucket, key).await.map_err(|error| failure::of_launch(error, &format!("list {}", set.source)))?;
    let wrong = |what: String| SchedulerError::plain(Class::Config, what).with_nothing_created();
    let mut files = Vec::new();
    // An empty object whose name ends with a slash is how consoles show a folder.
    for object in listed.into_iter().filter(|object| !object.key.ends_with('/')) {
        let path = if set.source.is_folder() {
            let below = &object.key[key.len()..];
            if !is_plain_path(below) {
                let letters = "use letters, digits and `/_.-=+@:,` in its key";
                return Err(wrong(format!("s3://{bucket}/{} cannot be fetched: {letters}", object.key)));
            }
            format!("{}/{below}", set.dest.trim_end_matches('/'))
        } else if object.key == key {
            destination(set, key)
        } else {
            continue;
        };
        let check = set.digest.clone().map_or(Check::Size(object.size), Check::Digest);
        let (bucket, size) = (bucket.to_owned(), object.size);
        files.push(Fetched { path, unpack: set.unpack, check, bucket, key: object.key, size });
    }
    if files.is_empty() { Err(wrong(format!("there is nothing at {}", set.source))) } else { Ok(files) }
}

/// Where a single file goes: into a folder under its own name, or where the check says.
fn destination(set: &DataSet, source: &str) -> String {
    let name = source.rsplit('/').next().filter(|name| is_plain_path(name)).unwrap_or("data");
    match set.dest.strip_suffix('/') {
        Some(folder) if !set.unpack => format!("{folder}/{name}"),
        Some(folder) => folder.to_owned(),
        None => set.dest.clone(),
    }
}

/// Copies a file of the web into a bucket, if it is what the check says, and returns its size.
async fn fetch(
    cloud: &dyn Cloud,
    (bucket, key): (&str, &str),
    (address, digest): (&str, &Digest),
    folder: &Path,
) -> Result<u64, SchedulerError> {
    let file = tempfile::Builder::new().prefix("rfm_data").tempfile_in(folder);
    let file = file.map_err(|error| SchedulerError::new(Class::Infra, format!("write to {}", folder.display()), error))?;
    let failed = |error: CloudError| match &error {
        // It is the check's: a file that is not there, or for which one has to log in.
        CloudError::Refused { service: "HTTP", status: 400..500, .. } => {
            SchedulerError::plain(Class::Config, format!("fetch a data set: {error}")).with_nothing_created()
        }
        _ => SchedulerError::new(Class::Infra, "fetch a data set", error).with_nothing_created(),
    };
    // What is behind `?` may be a key to it.
    let shown = address.split('?').next().unwrap_or(address);
    let Downloaded { size, sha256, md5 } = cloud.download(address, shown, file.path()).await.map_err(failed)?;
    let (wanted, found) = match digest {
        Digest::Sha256(wanted) => (wanted, sha256),
        Digest::Md5(wanted) => (wanted, md5),
    };
    if *wanted != found {
        let what = format!("{shown} is another file than the check says: its digest is {found}, and the check has {wanted}");
        return Err(SchedulerError::plain(Class::Config, what).with_nothing_created());
    }
    let sent = cloud.upload(bucket, key, file.path()).await;
    sent.map_err(|error| failure::of_launch(error, &format!("write to s3://{bucket}/{key}")))?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cloud::fake::Fake,
        plan::{
            self,
            testing::{site, workload},
        },
    };
    use serde_json::json;

    const NOW: i64 = 1_796_000_000;

    fn handle(data: &serde_json::Value) -> Handle {
        plan::handle(&workload(json!({ "ami": "ami-0abc1234", "instance_type": "c7i.8xlarge", "data": data }), site())).unwrap()
    }

    async fn files(fake: &Fake, data: serde_json::Value) -> Result<Vec<(String, String, u64)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let here = Here { cloud: fake, now: Timestamp::of_seconds(NOW), folder: folder.path() };
        let found = Copies::default().files(here, &handle(&data)).await;
        let row = |file: Fetched| (file.path, file.key, file.size);
        found.map(|files| files.into_iter().map(row).collect()).map_err(|error| error.to_string())
    }

    fn row(path: &str, key: &str, size: u64) -> (String, String, u64) {
        (path.to_owned(), key.to_owned(), size)
    }

    #[tokio::test]
    async fn objects_of_s3_are_found_where_the_check_says_and_go_where_it_says() {
        let fake = Fake::default();
        for key in ["sets/a/1", "sets/a/deep/2", "sets/a/", "sets/ab", "odd/x y"] {
            fake.put_now("sets", key, b"12345");
        }
        let set = |src: &str, dest: &str| json!([{ "src": src, "dest": dest }]);
        assert_eq!(
            files(&fake, set("s3://sets/sets/a/", "data/a")).await.unwrap(),
            [row("data/a/1", "sets/a/1", 5), row("data/a/deep/2", "sets/a/deep/2", 5)]
        );
        assert_eq!(files(&fake, set("s3://sets/sets/ab", "x")).await.unwrap(), [row("x", "sets/ab", 5)]);
        assert_eq!(files(&fake, set("s3://sets/sets/ab", "/x/")).await.unwrap(), [row("/x/ab", "sets/ab", 5)]);
        for (src, error) in [
            ("s3://sets/sets/b", "there is nothing at s3://sets/sets/b"),
            ("s3://sets/sets/a", "there is nothing at s3://sets/sets/a"),
            ("s3://sets/odd/", "s3://sets/odd/x y cannot be fetched: use letters, digits and `/_.-=+@:,` in its key"),
        ] {
            assert_eq!(files(&fake, set(src, "x")).await.unwrap_err(), error);
        }
    }

    #[tokio::test]
    async fn what_is_in_the_bucket_under_its_digest_is_not_copied_again() {
        let fake = Fake::default();
        let digest = "0f".repeat(32);
        let bucket = handle(&json!([])).bucket;
        let key = bucket.key(&format!("data/sha256-{digest}"));
        fake.put_now(&bucket.name, &key, b"123");
        // A download panics: the web is empty.
        let data = json!([{ "src": "https://example.org/a/set.tar?key=1", "dest": "sets/", "sha256": digest }]);
        assert_eq!(files(&fake, data).await.unwrap(), [row("sets/set.tar", &key, 3)]);
    }

    #[tokio::test]
    async fn a_copy_that_the_rule_of_the_bucket_removes_soon_or_has_removed_is_made_again() {
        use sha2::{Digest as _, Sha256};
        let (fake, address) = (Fake::default(), "https://example.org/a/set.tar");
        let digest = format!("{:x}", Sha256::digest(b"123"));
        let handle = handle(&json!([{ "src": address, "dest": "sets/", "sha256": digest }]));
        let at = (handle.bucket.name.clone(), handle.bucket.key(&format!("data/sha256-{digest}")));
        fake.state().web.insert(address.to_owned(), b"123".to_vec());
        fake.put_now(&at.0, &at.1, b"old");
        let days = |days: i64| Timestamp::of_seconds(NOW - days * 86_400);
        let (folder, copies) = (tempfile::tempdir().unwrap(), Copies::default());
        let look = async |minutes: i64| {
            let here = Here { cloud: &fake, now: Timestamp::of_seconds(NOW + minutes * 60), folder: folder.path() };
            copies.bring(here, &handle).await.unwrap();
            fake.object(&at.0, &at.1)
        };
        fake.state().modified.insert(at.clone(), days(4));
        assert_eq!(look(0).await.as_deref(), Some(&b"old"[..]));
        fake.state().modified.insert(at.clone(), days(6));
        assert_eq!(look(10).await.as_deref(), Some(&b"123"[..]), "it would be gone before an instance has it");
        fake.state().objects.remove(&at);
        assert_eq!(look(12).await, None, "what was just seen is believed");
        assert_eq!(look(20).await.as_deref(), Some(&b"123"[..]));
    }
}
