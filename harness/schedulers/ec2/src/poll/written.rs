//! The objects that a preflight has written and not removed yet.

use crate::cloud::{Cloud, CloudError};
use parking_lot::Mutex;
use std::{collections::BTreeSet, slice};

/// Its objects, by bucket and key, from before they are written until they are deleted.
#[derive(Debug, Default)]
pub(crate) struct Written(Mutex<BTreeSet<(String, String)>>);

impl Written {
    pub(crate) fn note(&self, bucket: &str, key: &str) {
        self.0.lock().insert((bucket.to_owned(), key.to_owned()));
    }

    pub(crate) fn is_gone(&self, bucket: &str, key: &str) {
        self.0.lock().remove(&(bucket.to_owned(), key.to_owned()));
    }

    /// Removes what is left of a preflight that was interrupted, or that could not. Returns what stays, and why.
    pub(crate) async fn remove(&self, cloud: &dyn Cloud) -> Vec<(String, CloudError)> {
        let mut stays = Vec::new();
        let all = self.0.lock().clone();
        for (bucket, key) in all {
            match cloud.delete(&bucket, slice::from_ref(&key)).await {
                Ok(()) => self.is_gone(&bucket, &key),
                Err(error) => stays.push((format!("s3://{bucket}/{key}"), error)),
            }
        }
        stays
    }
}
