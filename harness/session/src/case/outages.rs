//! Servers that do not answer, by partition: said once when that takes long, and once when it is over. Otherwise a user sees cases that
//! do nothing for minutes.

use muster_core::result::Phase;
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, BTreeSet},
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
    /// What was asked. That something else was answered ends no outage: a cluster may launch, and not show its logs.
    asked: BTreeSet<Phase>,
    is_reported: bool,
}

impl Outages {
    /// A request of a partition was not answered. What there is to say.
    pub(crate) fn failed(&self, partition: &str, asked: Phase, why: &str) -> Option<String> {
        let now = Instant::now();
        let mut all = self.all();
        let new = Outage { since: now, last: now, asked: BTreeSet::new(), is_reported: false };
        let outage = all.entry(partition.to_owned()).or_insert(new);
        if now - outage.last > APART {
            (outage.since, outage.is_reported) = (now, false);
            outage.asked.clear();
        }
        outage.last = now;
        outage.asked.insert(asked);
        let length = now - outage.since;
        if outage.is_reported || length < LONG {
            return None;
        }
        outage.is_reported = true;
        Some(format!("partition {partition}: no answer for {}, its cases wait: {why}", rounded(length)))
    }

    /// One was.
    pub(crate) fn answered(&self, partition: &str, asked: Phase) -> Option<String> {
        let mut all = self.all();
        let open = all.get_mut(partition)?;
        open.asked.remove(&asked);
        if !open.asked.is_empty() {
            return None;
        }
        let outage = all.remove(partition)?;
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
        assert_eq!(outages.failed("gpu", Phase::Run, "a"), None);
        assert_eq!(outages.failed("cpu", Phase::Run, "a"), None);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!((outages.failed("gpu", Phase::Run, "a"), outages.answered("cpu", Phase::Run)), (None, None), "a short one");
        tokio::time::advance(Duration::from_secs(11)).await;
        let reported = "partition gpu: no answer for 15.0s, its cases wait: connection refused";
        assert_eq!(outages.failed("gpu", Phase::Run, "connection refused").as_deref(), Some(reported));
        assert_eq!(outages.failed("gpu", Phase::Run, "connection refused"), None, "once");
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(outages.failed("gpu", Phase::Run, "a"), None, "once");
        tokio::time::advance(Duration::from_hours(2)).await;
        assert_eq!(outages.answered("gpu", Phase::Run).as_deref(), Some("partition gpu: it answers again, after 35.0s at least"));
        assert_eq!(outages.answered("gpu", Phase::Run), None);
        assert_eq!(outages.failed("gpu", Phase::Run, "a"), None, "another one");
        tokio::time::advance(Duration::from_hours(2)).await;
        assert_eq!(outages.failed("gpu", Phase::Run, "a"), None, "and another one");
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_was_not_answered_ends_an_outage_when_it_is() {
        let outages = Outages::default();
        outages.failed("gpu", Phase::Run, "a");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(outages.failed("gpu", Phase::Run, "a").is_some());
        assert_eq!(outages.answered("gpu", Phase::Launch), None, "a launch was answered before, too");
        assert!(outages.answered("gpu", Phase::Run).is_some());
    }
}
