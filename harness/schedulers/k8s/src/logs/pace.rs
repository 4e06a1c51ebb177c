//! The time limits of following a log. Tests use shorter ones.

use std::time::Duration;

/// How long what is waited for.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// The log of a running container that has written much, and then nothing for so long, is requested again: after a rotation old kubelets stall
    /// without a word.
    pub silence: Duration,
    /// At most so long, for each silence doubles it. From the beginning so long where nothing can have been rotated: its end, which
    /// the watch tells, has all of it read. After this time kubelets end idle streams themselves.
    pub longest_silence: Duration,
    /// After a broken stream.
    pub pause: Duration,
    /// Each failure doubles it.
    pub longest_pause: Duration,
    /// A container's end and the end of its stream reach us on two ways.
    pub lag: Duration,
    /// Where there are too many containers to follow, one is read in so long.
    pub poll: Duration,
    /// After so long without new lines, a log that is still read reports so. Shorter than any limit on silent logs.
    pub alive: Duration,
    /// How long the end of a log is requested while there is no answer.
    pub outage: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (seconds, milliseconds) = (Duration::from_secs, Duration::from_millis);
        Self {
            silence: seconds(30),
            longest_silence: seconds(4 * 3_600),
            pause: milliseconds(200),
            longest_pause: seconds(5),
            lag: seconds(5),
            poll: seconds(5),
            alive: seconds(10),
            outage: Duration::from_mins(5),
        }
    }
}
