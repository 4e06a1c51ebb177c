//! The agent: a script for `sh` that an instance gets as user data. It runs the job, keeps its log in S3 and ends the instance.
//!
//! User data is one script and nothing else: cloud-init runs nothing, and says nothing, if it cannot read what it gets.

pub(crate) mod fetched;
pub(crate) mod kept;
pub(crate) mod parcel;
#[cfg(test)]
mod tests;

use flate2::{Compression, GzBuilder};
use muster_text::shell::quote;
use std::io::{self, Write};

/// What EC2 takes.
pub(crate) const USER_DATA_LIMIT: usize = 16_384;

/// The agent without what differs between jobs.
const AGENT: &str = include_str!("agent.sh");

/// What an agent is told. Everything else it reads from the bucket, so that user data holds no secret but one address.
#[derive(Debug, Clone)]
pub(crate) struct Orders<'a> {
    pub id: &'a str,
    pub instances: u32,
    /// Minutes until the instance ends itself.
    pub timer_minutes: u64,
    /// Seconds that the script may run.
    pub limit: u64,
    /// Minutes that the instance stays after a failure.
    pub keep_minutes: u64,
    /// Seconds that data sets may take.
    pub fetch: u64,
    /// It may be taken away, with a notice two minutes before.
    pub is_spot: bool,
    /// The files that the script leaves are sent, too.
    pub keeps_files: bool,
    /// The path where the disks of the instance are mounted. Empty: they are left alone.
    pub store: &'a str,
    /// A presigned address of the list of all others.
    pub boot_url: &'a str,
    pub pace: Pace,
}

/// How often and in which pieces a log is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Seconds between two looks at what is new.
    pub flush: u64,
    /// Bytes that are copied at once.
    pub block: u64,
    /// The number of blocks in a segment.
    pub blocks: u64,
    /// The number of tries of each step without which an instance cannot begin.
    pub tries: u32,
    /// Seconds between two tries.
    pub pause: u64,
    /// Seconds from TERM to KILL.
    pub grace: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { flush: 5, block: 1 << 20, blocks: 16, tries: 30, pause: 2, grace: 10 }
    }
}

/// User data is too large.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserDataError {
    #[error("the user data has {0} bytes after gzip, and EC2 takes {USER_DATA_LIMIT}: report this, it is not the check's fault")]
    TooLarge(usize),
    #[error("compress the user data")]
    Compress(#[source] io::Error),
}

/// The script that an instance runs when it boots. Its first command starts the timer that ends the instance.
pub(crate) fn script(orders: &Orders<'_>) -> String {
    let Orders { id, instances, timer_minutes, limit, keep_minutes, fetch, is_spot, keeps_files, store, boot_url, pace } = orders;
    let Pace { flush, block, blocks, tries, pause, grace } = pace;
    format!(
        "#!/bin/sh\n\
         # shellcheck disable=SC2317  # `retry` calls functions by their names\n\
         shutdown -P +{timer_minutes} || {{ (sleep {}; poweroff -f) & }}\n\
         id={id} nodes={instances} minutes={timer_minutes} limit={limit} keep={keep_minutes} fetch={fetch} spot={} keeps_files={} store={} flush={flush} block={block} blocks={blocks} tries={tries} pause={pause} grace={grace}\n\
         url_of_boot={}\n\
         {AGENT}",
        timer_minutes * 60,
        u8::from(*is_spot),
        u8::from(*keeps_files),
        quote(store),
        quote(boot_url),
    )
}

/// The script as `RunInstances` takes it, before base64: compressed, and the same for the same script.
pub(crate) fn render_user_data(orders: &Orders<'_>) -> Result<Vec<u8>, UserDataError> {
    let mut compressed = GzBuilder::new().write(Vec::new(), Compression::best());
    let bytes = compressed.write_all(script(orders).as_bytes()).and_then(|()| compressed.finish());
    let bytes = bytes.map_err(UserDataError::Compress)?;
    if bytes.len() > USER_DATA_LIMIT { Err(UserDataError::TooLarge(bytes.len())) } else { Ok(bytes) }
}
