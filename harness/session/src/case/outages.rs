//! Servers that do not answer, by partition: said when that takes long, every five minutes, and once when it is over. Otherwise a user sees cases that
//! do nothing for minutes.

use muster_core::{decisions::pipeline::OUTAGE_LIMIT, result::Phase};
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// From the first request that failed, which took a while itself. Shorter ones are not worth a line.
const LONG: Duration = Duration::from_secs(5);
/// It is said again after this.
const AGAIN: Duration = Duration::from_mins(5);
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
    /// When it was said last.
    reported: Option<Instant>,
}

impl Outages {
    /// A request of a partition was not answered. What there is to say.
    pub(crate) fn failed(&self, partition: &str, asked: Phase, why: &str) -> Option<String> {
        let now = Instant::now();
        let mut all = self.all();
        let new = Outage { since: now, last: now, asked: BTreeSet::new(), reported: None };
        let outage = all.entry(partition.to_owned()).or_insert(new);
        if now - outage.last > APART {
            (outage.since, outage.reported) = (now, None);
            outage.asked.clear();
        }
        outage.last = now;
        outage.asked.insert(asked);
        let length = now - outage.since;
        if length < LONG || outage.reported.is_some_and(|at| now - at < AGAIN) {
            return None;
        }
        let limit = format_duration(OUTAGE_LIMIT);
        let until = if outage.reported.is_none() {
            format!(" (a launch for {limit}, a running case until {limit} after its time limit)")
        } else {
            String::new()
        };
        outage.reported = Some(now);
        Some(format!("partition {partition}: no answer for {}, its cases wait{until}: {why}", rounded(length)))
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
        outage.reported.is_some().then(|| format!("partition {partition}: it answers again, after {length} at least"))
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
        let reported = "partition gpu: no answer for 15.0s, its cases wait (a launch for 5m, a running case until 5m after its time limit): connection refused";
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
    async fn one_that_goes_on_is_said_every_five_minutes() {
        let outages = Outages::default();
        let mut said = Vec::new();
        for seconds in 0..=660 {
            said.extend(outages.failed("gpu", Phase::Run, "a").map(|text| (seconds, text)));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(said.iter().map(|(seconds, _)| *seconds).collect::<Vec<i32>>(), [5, 305, 605]);
        assert_eq!(said[2].1, "partition gpu: no answer for 10m5s, its cases wait: a");
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
