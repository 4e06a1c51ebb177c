//! The server of the fake scheduler: what exists, and what it says of itself at a given time.

use super::{
    Call,
    scenario::{ErrorSpec, Scenario, State, StatusSpec, default_section},
};
use muster_core::{
    case::Identifier,
    error::SchedulerError,
    job::{
        handle::JobHandle,
        scheduler::{Channel, Chunk, Disruption, Ending, Exit, Job, JobStatus, Launch, LogMark, SectionExit},
        stdout::SectionOrigin,
    },
};
use muster_host::clock;
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, sleep_until},
};

/// So many calls are remembered: a session may have millions.
const CALLS: usize = 10_000;

/// What a stopped job ended with.
const TERM: i32 = 15;

#[derive(Debug, Default)]
pub(super) struct Server {
    jobs: Mutex<HashMap<Identifier, Arc<FakeJob>>>,
    /// How often each was to be launched.
    launches: Mutex<HashMap<Identifier, u32>>,
    /// How many identifiers of a case were taken.
    taken: Mutex<HashMap<String, u32>>,
    /// The latest calls.
    calls: Mutex<VecDeque<(Call, Identifier)>>,
    created: AtomicUsize,
}

impl Server {
    pub(super) fn record(&self, call: Call, identifier: &Identifier) {
        let mut calls = self.calls.lock();
        if calls.len() == CALLS {
            calls.pop_front();
        }
        calls.push_back((call, identifier.clone()));
    }

    pub(super) fn calls(&self) -> Vec<(Call, Identifier)> {
        self.calls.lock().iter().cloned().collect()
    }

    pub(super) fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }

    /// Answers a launch.
    pub(super) fn create(&self, job: Job, scenario: Scenario) -> Result<Launch, SchedulerError> {
        if self.is_taken(&job, &scenario) {
            return Ok(Launch::Taken { by: format!("another user's {}", job.identifier) });
        }
        let nth = {
            let mut launches = self.launches.lock();
            let count = launches.entry(job.identifier.clone()).or_default();
            *count += 1;
            *count - 1
        };
        if let Some(not_now) = scenario.launch.not_now.get(nth as usize) {
            let (why, retry_after) = (not_now.why.clone(), Duration::from_millis(not_now.retry_after_ms));
            let created = not_now.created.then(|| Box::new(job.clone()));
            if created.is_some() {
                self.insert(Job { handle: JobHandle::default(), ..job }, scenario);
            }
            return Ok(Launch::NotNow { why, retry_after, created });
        }
        let nth = nth - u32::try_from(scenario.launch.not_now.len()).unwrap_or(0);
        let failed = scenario.launch.error.as_ref().and_then(|error| Some((error.at(nth)?, error.created)));
        if failed.as_ref().is_none_or(|(_, created)| *created) {
            // A job that is found again has its labels, and no more.
            self.insert(Job { handle: JobHandle::default(), ..job.clone() }, scenario);
        }
        failed.map_or(Ok(Launch::Launched(job)), |(error, _)| Err(error))
    }

    fn is_taken(&self, job: &Job, scenario: &Scenario) -> bool {
        let mut taken = self.taken.lock();
        let taken = taken.entry(job.case.clone()).or_default();
        *taken += 1;
        *taken <= scenario.launch.taken
    }

    fn insert(&self, job: Job, scenario: Scenario) {
        self.jobs.lock().entry(job.identifier.clone()).or_insert_with(|| {
            self.created.fetch_add(1, Ordering::Relaxed);
            Arc::new(FakeJob::new(job, scenario))
        });
    }

    pub(super) fn find(&self, job: &Job) -> Option<Arc<FakeJob>> {
        self.jobs.lock().get(&job.identifier).cloned()
    }

    pub(super) fn delete(&self, identifier: &Identifier) {
        if let Some(found) = self.jobs.lock().remove(identifier) {
            let mut launches = self.launches.lock();
            // What was created in part is launched again, and the count says what comes next.
            let parts = found.scenario.launch.not_now.len();
            if launches.get(identifier).is_none_or(|count| *count as usize > parts) {
                launches.remove(identifier);
            }
            drop(launches);
            found.stop();
        }
    }

    pub(super) fn jobs(&self) -> Vec<Job> {
        self.jobs.lock().values().map(|found| found.job.clone()).collect()
    }
}

/// One launched job.
#[derive(Debug)]
pub(super) struct FakeJob {
    job: Job,
    scenario: Scenario,
    launched: Instant,
    /// On the wall clock.
    launched_at: Timestamp,
    stopped: Mutex<Option<Instant>>,
    changed: Notify,
    /// How often an error has been due.
    occurred: Mutex<BTreeMap<Occurrence, u32>>,
}

/// Where a scenario has an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Occurrence {
    Status(usize),
    Log(usize),
    Cleanup,
}

impl FakeJob {
    fn new(job: Job, scenario: Scenario) -> Self {
        Self {
            job,
            scenario,
            launched: Instant::now(),
            launched_at: clock::now(),
            stopped: Mutex::default(),
            changed: Notify::new(),
            occurred: Mutex::default(),
        }
    }

    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(super) fn stop(&self) {
        self.stopped.lock().get_or_insert_with(Instant::now);
        self.changed.notify_waiters();
    }

    /// What it says of itself at a time.
    pub(super) fn status(&self, now: Instant) -> Result<JobStatus, SchedulerError> {
        let stopped = *self.stopped.lock();
        let now = stopped.unwrap_or(now);
        let Some(first) = self.scenario.statuses.first() else { return Ok(self.ended(None, Exit::Code(0))) };
        if self.time_of(first) > now && stopped.is_none() {
            return Ok(JobStatus::NotSeen);
        }
        let past = || self.scenario.statuses.iter().filter(|status| self.time_of(status) <= now);
        let last = past().count().saturating_sub(1);
        if stopped.is_none()
            && let Some(error) = self.error(Occurrence::Status(last), self.scenario.statuses[last].error.as_ref())
        {
            return Err(error);
        }
        let latest = past().rfind(|status| status.state.is_some());
        let state = latest.and_then(|status| Some((status.state?, status)));
        Ok(match state {
            Some((State::Ended, status)) => self.ended(Some(status), status.exit()),
            Some((State::Gone, status)) => JobStatus::Gone {
                why: status.disruption.unwrap_or(Disruption::Deleted),
                cause: status.cause.clone().unwrap_or_else(|| status.why.clone()),
            },
            _ if stopped.is_some() => self.ended(None, Exit::Signal(TERM)),
            Some((State::Pending, status)) => JobStatus::Pending { why: status.why.clone() },
            Some((State::Running, status)) => JobStatus::Running {
                since: self.at(self.time_of(status)),
                nodes: status.nodes.clone(),
                partly_ended: None,
                has_ended: false,
            },
            Some((State::NotSeen, _)) | None => JobStatus::NotSeen,
        })
    }

    /// When it will say something else by itself than it did at a time.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        self.scenario.statuses.iter().map(|status| self.time_of(status)).find(|time| *time > now)
    }

    fn ended(&self, status: Option<&StatusSpec>, exit: Exit) -> JobStatus {
        let running = self.scenario.statuses.iter().find(|status| status.state == Some(State::Running));
        let stopped = *self.stopped.lock();
        let ended = status.map(|status| self.time_of(status)).or(stopped).unwrap_or(self.launched);
        let node = running.and_then(|status| status.nodes.first().cloned());
        let exits = self.sections().into_values().map(|origin| SectionExit {
            section: origin.title(),
            node: origin.node.or_else(|| node.clone()),
            exit,
            ..SectionExit::default()
        });
        JobStatus::Ended(Ending {
            started: self.at(running.map_or(ended, |status| self.time_of(status))),
            ended: self.at(ended),
            exits: exits.collect(),
            disruption: status.and_then(|status| status.disruption),
            limit: None,
            cause: status.and_then(|status| status.cause.clone()),
            ..Ending::default()
        })
    }

    /// The sections by their place in the stdout.
    fn sections(&self) -> BTreeMap<u32, SectionOrigin> {
        let mut sections: BTreeMap<u32, SectionOrigin> = BTreeMap::new();
        let origin = |index, name: &str, node: &Option<String>| SectionOrigin {
            index,
            created: self.launched_at,
            node: node.clone(),
            ..SectionOrigin::new(name)
        };
        for log in &self.scenario.logs {
            let index = u32::try_from(sections.len()).unwrap_or(u32::MAX);
            match sections.values_mut().find(|section| section.name == log.section) {
                Some(known) => known.node = known.node.take().or_else(|| log.node.clone()),
                None => {
                    sections.insert(index, origin(index, &log.section, &log.node));
                }
            }
        }
        if sections.is_empty() {
            sections.insert(0, origin(0, &default_section(), &None));
        }
        sections
    }

    /// What its log sends, and when, from these marks on.
    pub(super) fn log(&self, from: &[LogMark]) -> Vec<(Instant, Result<Chunk, SchedulerError>)> {
        let mut sent: Vec<_> =
            self.sections().into_values().map(|origin| (self.launched, Ok(Chunk::Open(Channel::Log, origin)))).collect();
        let mut offsets: HashMap<&str, u64> = HashMap::new();
        for (nth, log) in self.scenario.logs.iter().enumerate() {
            let time = self.launched + Duration::from_millis(log.after_ms);
            let section = log.section.clone();
            let at = offsets.entry(&log.section).or_default();
            let safe = from.iter().find(|mark| mark.section == section).map_or(0, |mark| mark.offset);
            if !log.text.is_empty() && *at >= safe {
                let data = log.text.clone().into_bytes();
                let chunk = Chunk::Bytes { section: section.clone(), at: *at, data, time: Some(self.at(time)) };
                sent.push((time, Ok(chunk)));
            }
            *at += log.text.len() as u64;
            if log.is_empty() {
                sent.push((time, Ok(Chunk::Alive)));
            }
            if let Some(why) = &log.gap {
                sent.push((time, Ok(Chunk::Gap { section, why: why.clone() })));
            }
            if let Some(error) = self.error(Occurrence::Log(nth), log.error.as_ref()) {
                sent.push((time, Err(error)));
                break;
            }
        }
        sent
    }

    /// Waits until then: `false` if it was stopped before.
    pub(super) async fn reaches(&self, time: Instant) -> bool {
        let changed = self.changed();
        if Instant::now() >= time {
            return true;
        }
        if self.stopped.lock().is_some() {
            return false;
        }
        tokio::select! {
            biased;
            () = sleep_until(time) => true,
            () = changed => false,
        }
    }

    /// Waits until it is over: the ends of all sections.
    pub(super) async fn log_ends(&self) -> Vec<Chunk> {
        if self.scenario.logs.iter().any(|log| log.endless) {
            std::future::pending::<()>().await;
        }
        let over = self.scenario.statuses.iter().find(|status| status.state.is_some_and(State::is_over));
        match over {
            Some(over) => {
                self.reaches(self.time_of(over)).await;
            }
            None if self.scenario.statuses.is_empty() => {}
            None => {
                let changed = self.changed();
                if self.stopped.lock().is_none() {
                    changed.await;
                }
            }
        }
        self.sections().into_values().map(|origin| Chunk::End { section: origin.id() }).collect()
    }

    pub(super) fn cleanup_delay(&self) -> Duration {
        Duration::from_millis(self.scenario.cleanup.delay_ms)
    }

    /// What cannot be removed.
    pub(super) fn clean(&self) -> Result<Vec<String>, SchedulerError> {
        match self.error(Occurrence::Cleanup, self.scenario.cleanup.error.as_ref()) {
            Some(error) => Err(error),
            None => Ok(self.scenario.cleanup.leftovers.clone()),
        }
    }

    /// The error of this occurrence, as long as it happens.
    fn error(&self, occurrence: Occurrence, error: Option<&ErrorSpec>) -> Option<SchedulerError> {
        let error = error?;
        let mut occurred = self.occurred.lock();
        let nth = occurred.entry(occurrence).or_default();
        *nth += 1;
        error.at(*nth - 1)
    }

    fn time_of(&self, status: &StatusSpec) -> Instant {
        self.launched + Duration::from_millis(status.after_ms)
    }

    fn at(&self, time: Instant) -> Timestamp {
        self.launched_at.plus(time.saturating_duration_since(self.launched))
    }
}
