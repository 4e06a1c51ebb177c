//! Decisions about jobs on EC2, as functions of values: no clock, no network.
//!
//! ```text
//! seen    what was said of one instance
//! status  what instances, their agents and EC2 say -> what is known of the job, and what has to be done
//! stay    what was said of an ended case -> which of its instances stay
//! offer   what EC2 has refused -> what is asked for next
//! clock   what an instance says of times -> the same by the clock of S3
//! block   a capacity block -> whether a job fits into it
//! log     segments in S3, what the console has -> the log, and how many bytes are missing
//! ```
//! What a decision needs of earlier looks is an argument of it; `poll::tracked` remembers it. Another process that looks at the same
//! instances and objects comes to the same end, later.

pub(crate) mod block;
pub(crate) mod clock;
pub(crate) mod log;
pub(crate) mod offer;
pub(crate) mod seen;
pub(crate) mod status;
pub(crate) mod stay;

#[cfg(test)]
mod tests;

use std::time::Duration;

/// How long EC2 may take to list what it has just launched.
pub(crate) const LISTED_WITHIN: Duration = Duration::from_mins(1);

/// The pause between two questions for what is not listed yet, whatever `poll_interval` is.
pub(crate) const UNTIL_LISTED: Duration = Duration::from_secs(2);
