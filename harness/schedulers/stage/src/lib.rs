//! Stage folders: of schedulers whose jobs see the files of the harness, and of those that send them to their jobs.
//!
//! ```text
//! copy       `sourcesdir` in a stage folder       threads    who copies, how many at once and for how long
//! fault      why a program did not start          blocking   work on files, away from everything else
//! log        the section in the file of a log        sent       what was staged, for jobs that do not see the folder
//! ```

mod blocking;
mod copy;
mod fault;
pub mod log;
mod sent;
#[cfg(test)]
mod test_job;
mod threads;

pub use blocking::blocking;
pub use copy::look;
pub use fault::fault;
pub use sent::{SentFile, sent_files};
pub use threads::Stager;

use muster_core::job::workload::Staging;

/// Returns the staging for a process that may have another working directory.
#[must_use]
pub fn absolute(staging: Staging) -> Staging {
    Staging { folder: std::path::absolute(&staging.folder).unwrap_or(staging.folder), ..staging }
}
