//! Servers that do not answer, by partition: said once when that takes long, and once when it is over. Otherwise a user sees cases that
//! do nothing for minutes.

use muster_text::time::format_duration;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// From the first request that failed, which took a while itself. Shorter ones are not worth a line.
const LONG: Duration = Duration::from_secs(5);
/// After so long without a failure the next one is another outage: a job that runs brings no news for hours.
const APART: Duration = Duration::from_mins(2);

/// Of all cases of a session.
#[derive(Debug, Default)]
pub(crate) struct Outages(Mutex<BTreeMap<String, Outage>>);

#[derive(Debug)]
struct Outage {
    since: Instant,
    /// The last failure.
    last: Instant,
    is_reported: bool,
}

impl Outages {
    /// A request of a partition was not answered. What there is to say.
    pub(crate) fn failed(&self, partition: &str, why: &str) -> Option<String> {
        let now = Instant::now();
        let mut all = self.all();
        let new = Outage { since: now, last: now, is_reported: false };
        let outage = all.entry(partition.to_owned()).or_insert(new);
        if now - outage.last > APART {
            (outage.since, outage.is_reported) = (now, false);
        }
        outage.last = now;
        let length = now - outage.since;
        if outage.is_reported || length < LONG {
            return None;
        }
        outage.is_reported = true;
        Some(format!("partition {partition}: no answer for {}, its cases wait: {why}", rounded(length)))
    }

    /// One was.
    pub(crate) fn answered(&self, partition: &str) -> Option<String> {
        let outage = self.all().remove(partition)?;
        let length = rounded(outage.last - outage.since);
        outage.is_reported.then(|| format!("partition {partition}: it answers again, after {length} at least"))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Outage>> {
        // A panic elsewhere leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rounded(length: Duration) -> String {
    format_duration(Duration::from_secs(length.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_outage_is_reported_once_and_so_is_its_end() {
        let outages = Outages::default();
        assert_eq!(outages.failed("gpu", "a"), None);
        assert_eq!(outages.failed("cpu", "a"), None);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!((outages.failed("gpu", "a"), outages.answered("cpu")), (None, None), "a short one");
        tokio::time::advance(Duration::from_secs(11)).await;
        let reported = "partition gpu: no answer for 15.0s, its cases wait: connection refused";
        assert_eq!(outages.failed("gpu", "connection refused").as_deref(), Some(reported));
        assert_eq!(outages.failed("gpu", "connection refused"), None, "once");
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(outages.failed("gpu", "a"), None, "once");
        tokio::time::advance(Duration::from_hours(2)).await;
        assert_eq!(outages.answered("gpu").as_deref(), Some("partition gpu: it answers again, after 35.0s at least"));
        assert_eq!(outages.answered("gpu"), None);
        assert_eq!(outages.failed("gpu", "a"), None, "another one");
        tokio::time::advance(Duration::from_hours(2)).await;
        assert_eq!(outages.failed("gpu", "a"), None, "and another one");
    }
}
