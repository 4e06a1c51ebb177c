//! The log of every container of a job, from its first line to its proven end.
//!
//! ```text
//! Observed -containers-> follow (one stream a container) -bytes-> reader (pure) -lines that are new-> Chunk
//!              ^                     |  cut, silence, EOF            |
//!              '---------------------'  asked again from ------------'  the second that is remembered
//! ```
//! The API cannot serve "everything after this byte": it knows whole seconds. So a stream that is resumed
//! repeats lines, and `reader` recognizes them. Rotated files cannot be read: the API never
//! serves. A container that writes more than the node keeps in one file (10 MiB by default) can lose lines at a rotation
//! that no client can see; a rotation that is seen is a gap, and a gap makes the case `invalid{logs}`.

mod container;
mod follow;
pub(crate) mod reader;
mod section;

pub(crate) use follow::collect;

use muster_core::decisions::backoff::Backoff;
use std::time::Duration;

/// The time limits of following a log. Tests use shorter ones.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// The log of a running container that has written much, and then nothing for so long, is requested again: after a rotation old kubelets stall
    /// without a word. Each silence doubles it. The longest applies at once where nothing can have been rotated: when the watch tells the
    /// end, all of the log is read. After this time kubelets end idle streams themselves.
    pub silence: Backoff,
    /// The pause after a broken stream.
    pub pause: Backoff,
    /// A container's end and the end of its stream reach us on two ways.
    pub lag: Duration,
    /// The interval between two reads of one log, where there are too many containers to follow.
    pub poll: Duration,
    /// A log that is still read, but has no new lines for this time, reports so. Shorter than any limit on silent logs.
    pub alive: Duration,
    /// The time for which the end of a log is requested while there is no answer.
    pub outage: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (seconds, milliseconds) = (Duration::from_secs, Duration::from_millis);
        Self {
            silence: Backoff { first: seconds(30), longest: seconds(4 * 3_600) },
            pause: Backoff { first: milliseconds(200), longest: seconds(5) },
            lag: seconds(5),
            poll: seconds(5),
            alive: seconds(10),
            outage: Duration::from_mins(5),
        }
    }
}

#[cfg(test)]
mod tests;
