//! The times of following a log; tests have shorter ones.

use std::time::Duration;

/// How long what is waited for.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// A running container that has said much, and then nothing for so long, is asked again: after a rotation old kubelets stall
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
    /// A log of which nothing new comes for so long, but which goes on, says so: less than anybody waits for one that is silent.
    pub alive: Duration,
    /// For so long the end of a log is asked for while nobody answers.
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
