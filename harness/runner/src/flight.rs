//! The part of a case's life in which something may exist: launch, wait, stop, collect, clean up.
//!
//! ```text
//!            NotNow, infra                     next_step: Wait
//!              +-----+                            +-----+
//!              v     |                            v     |
//!         launch ----+--> Launched --> run: wait -------+--> Judge --------------> drain --> Over::Ended
//!            |                           |                    |
//!            | error, limit, cancel      |                    | limit, cancel, gone, error
//!            v                           |                    v
//!           End                          +---------> Stop --> drain -------------> Over::Stopped
//! ```
//! Whichever way it ends, `cleanup` follows, unless no launch was begun.

use crate::{
    clock,
    clocks::Clocks,
    context::{Context, InFlight},
    journal,
    logs::Collector,
    record::{End, Record},
    run_case::panic_message,
    spool::Spool,
};
use futures_util::FutureExt;
use muster_core::{
    case::CaseName,
    error::{Class, SchedulerError, chain},
    pipeline::{Step, next_step},
    result::{Clock, Outcome, Phase},
    scheduler::{Disposition, Disruption, Ending, Job, JobStatus, Launch, Leftovers, Scheduler},
    site::SchedulerKind,
    time::format_duration,
    workload::Limits,
};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{
    task::JoinError,
    time::{Instant, sleep, timeout, timeout_at},
};

/// One attempt to launch takes no longer: after that nobody waits for its answer any more.
const LAUNCH_LIMIT: Duration = Duration::from_mins(1);
/// Stopping, or removing, takes no longer.
const CLEANUP_LIMIT: Duration = Duration::from_mins(1);
/// What was stopped says how it ended within this time, or not at all.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);
/// How often an operation is tried again that failed for no fault of its own.
const RETRIES: u32 = 3;
/// A site that says `not now` without a time is asked again after this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How a flight ended.
pub(crate) enum Over {
    /// It never began, or nothing came of it.
    Nothing(End),
    /// It ended by itself, and this is its log: judge it.
    Ended(Ending, Spool),
    /// It was stopped or lost, and left a log: nothing to judge.
    Stopped(End, Spool),
}

/// One attempt in the air.
pub(crate) struct Flight<'a> {
    context: &'a Arc<Context>,
    scheduler: &'a Arc<dyn Scheduler>,
    case: Arc<CaseName>,
    job: Arc<Job>,
    limits: Limits,
    clocks: Clocks,
    /// What was said last of what it waits for: the same is not said twice.
    said: Option<String>,
    /// A launch was begun, whatever became of it.
    asked: bool,
    /// Something may exist: a launch was begun, and neither `NotNow` nor a cleanup has said since that nothing is left.
    airborne: bool,
    /// The compute has ended, and only the objects are left.
    stopped: bool,
    /// How to look at them.
    kept: Box<Leftovers>,
}

impl<'a> Flight<'a> {
    pub(crate) fn new(
        context: &'a Arc<Context>,
        scheduler: &'a Arc<dyn Scheduler>,
        case: Arc<CaseName>,
        job: Arc<Job>,
        limits: Limits,
    ) -> Self {
        let clocks = Clocks::start();
        Self {
            context,
            scheduler,
            case,
            job,
            limits,
            clocks,
            said: None,
            asked: false,
            airborne: false,
            stopped: false,
            kept: Box::default(),
        }
    }

    /// What is left of a case that panicked.
    pub(crate) fn recovered(context: &'a Arc<Context>, scheduler: &'a Arc<dyn Scheduler>, lost: InFlight) -> Self {
        let limits = Limits { pending: None, run: None, judge: Duration::ZERO };
        Self { airborne: true, ..Self::new(context, scheduler, lost.case, lost.job, limits) }
    }

    /// Another process has launched it.
    pub(crate) fn already_launched(&mut self) {
        self.clocks = Clocks::of_another_process();
        self.take_off();
    }

    /// From its launch until nothing runs and the log is on disk.
    pub(crate) async fn run(&mut self, record: &mut Record) -> Over {
        let logs = Collector::start(self.context, self.scheduler, &self.job, &self.case);
        let followed = self.follow(record).await;
        if let Err(end) = &followed {
            Box::pin(self.stop(record)).await;
            if self.stopped && matches!(end.outcome, Outcome::Timeout(_) | Outcome::Abort) {
                Box::pin(self.last_words(record)).await;
            }
        }
        let drained = Box::pin(logs.drain()).await;
        journal::reached(journal::Step::LogDrained);
        match (followed, drained) {
            (Ok(ending), Ok(spool)) => Over::Ended(ending, spool),
            (Err(end), Ok(spool)) => Over::Stopped(end, spool),
            (Ok(_), Err(no_log)) => Over::Nothing(no_log),
            (Err(end), Err(_)) => Over::Nothing(end),
        }
    }

    /// Launches, as often as it takes and the clock for waiting allows.
    pub(crate) async fn launch(&mut self, record: &mut Record) -> Result<(), End> {
        let mut retries = 0;
        loop {
            if self.context.cancel.is_cancelled() {
                return Err(End::new(Outcome::Abort, Phase::Launch, self.context.why_cancelled()));
            }
            if !self.asked {
                self.asked = true;
                self.context.phase(&self.case, Phase::Launch, None);
            }
            self.take_off();
            journal::reached(journal::Step::LaunchBegun);
            let error = match self.launch_once().await {
                Ok(Launch::Launched(job)) => {
                    journal::reached(journal::Step::Launched);
                    record.times.launched = Some(clock::now());
                    self.job = Arc::new(job);
                    self.take_off();
                    if let Some(store) = &self.context.store {
                        store.launched(&self.job);
                    }
                    journal::reached(journal::Step::LaunchStored);
                    return Ok(());
                }
                Ok(Launch::NotNow { why, retry_after }) => {
                    self.landed();
                    self.say(Phase::Launch, why.clone());
                    self.await_room(&why, retry_after).await?;
                    retries = 0;
                    continue;
                }
                Err(Lost::Failed(error)) => error,
                Err(Lost::NoAnswer(cause)) => {
                    // What it asked for may still come, after the cleanup.
                    record.leftovers.push(self.whatever_is_marked());
                    return Err(End::infra(Phase::Launch, cause));
                }
            };
            if error.class != Class::Infra || retries == RETRIES {
                return Err(End::failed(Phase::Launch, &error));
            }
            retries += 1;
            self.pause_before_retry(Phase::Launch, &error, retries).await;
        }
    }

    /// One attempt, on a task of its own: once begun it is awaited, whatever happens to the case. Dropped half-way it
    /// could still create something, after the cleanup.
    async fn launch_once(&self) -> Result<Launch, Lost> {
        let (scheduler, job) = (Arc::clone(self.scheduler), Arc::clone(&self.job));
        let task = tokio::spawn(async move { scheduler.launch(&job).await });
        let abort = task.abort_handle();
        match timeout(LAUNCH_LIMIT, task).await {
            Ok(Ok(answer)) => answer.map_err(Lost::Failed),
            Ok(Err(lost)) => Err(Lost::NoAnswer(format!("the launch {}", what_happened(lost)))),
            Err(_) => {
                abort.abort();
                Err(Lost::NoAnswer(format!("the launch was not answered within {}", format_duration(LAUNCH_LIMIT))))
            }
        }
    }

    /// Waits for room, but no longer than `max_pending_time`.
    async fn await_room(&self, why: &str, retry_after: Duration) -> Result<(), End> {
        let seen = JobStatus::Pending { why: why.to_owned() };
        match next_step(&seen, self.clocks.elapsed(), &self.limits, false) {
            Step::Wait { recheck_in } => {
                let pause = retry_after.max(SHORTEST_PAUSE);
                self.context.pause(recheck_in.map_or(pause, |left| pause.min(left))).await;
                Ok(())
            }
            _ => Err(self.timed_out(Clock::Pending, Some(&seen), Phase::Launch)),
        }
    }

    /// Waits until it is over: the ending to judge, or why there is none.
    async fn follow(&mut self, record: &mut Record) -> Result<Ending, End> {
        let mut seen: Option<JobStatus> = None;
        let mut retries = 0;
        loop {
            let cancelled = self.context.cancel.is_cancelled();
            let status = seen.as_ref().unwrap_or(&JobStatus::NotSeen);
            let recheck_in = match next_step(status, self.clocks.elapsed(), &self.limits, cancelled) {
                Step::Wait { recheck_in } => recheck_in,
                Step::Judge(ending) => return Ok(ending),
                Step::TimedOut(clock) => return Err(self.timed_out(clock, seen.as_ref(), Phase::Run)),
                Step::Cancelled => return Err(End::new(Outcome::Abort, Phase::Run, self.context.why_cancelled())),
                Step::Lost { outcome, cause } => return Err(End::new(outcome, Phase::Run, cause)),
            };
            let answer = tokio::select! {
                biased;
                answer = self.scheduler.wait(&self.job, seen.as_ref()) => answer,
                () = sleep(recheck_in.unwrap_or(Duration::MAX)) => continue,
                () = self.context.cancel.cancelled() => continue,
            };
            match answer {
                // A scheduler that answers without news would be asked again at once, for ever.
                Ok(status) if Some(&status) == seen.as_ref() => self.context.pause(SHORTEST_PAUSE).await,
                Ok(status) => {
                    retries = 0;
                    self.clocks.saw(&status);
                    record.saw(&status);
                    journal::reached(step_of(&status));
                    if let Some(note) = note(&status) {
                        self.say(Phase::Run, note);
                    }
                    seen = Some(status);
                }
                Err(error) if error.class == Class::Gone => {
                    return Err(End::new(Outcome::Disrupted(Disruption::Deleted), Phase::Run, chain(&error)));
                }
                Err(error) if error.class == Class::Infra && retries < RETRIES => {
                    retries += 1;
                    self.pause_before_retry(Phase::Run, &error, retries).await;
                }
                Err(error) => return Err(End::failed(Phase::Run, &error)),
            }
        }
    }

    /// Ends the compute, so that the log can end.
    async fn stop(&mut self, record: &mut Record) {
        match self.cleaned(Disposition::Stop).await {
            Ok(leftovers) if leftovers.items.is_empty() => {
                self.stopped = true;
                *self.kept = leftovers;
            }
            // The cleanup that follows tries again, and names what is left.
            Ok(_) => {}
            Err(cause) => record.warnings.push(format!("not stopped at once: {cause}")),
        }
    }

    /// How it ended after it was stopped: exits and times for the result, if they are to be had at once.
    async fn last_words(&self, record: &mut Record) {
        let by = Instant::now() + LAST_WORDS_LIMIT;
        let mut seen = None;
        while let Ok(Ok(status)) = timeout_at(by, self.scheduler.wait(&self.job, seen.as_ref())).await {
            record.saw(&status);
            if matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. }) || seen.as_ref() == Some(&status) {
                return;
            }
            seen = Some(status);
        }
    }

    /// Removes, or stops and keeps. What fails here is named in the result and changes no outcome.
    pub(crate) async fn cleanup(mut self, how: Disposition, record: &mut Record) {
        if self.airborne && !(self.stopped && how == Disposition::Stop) {
            self.context.phase(&self.case, Phase::Cleanup, None);
            match self.cleaned(how).await {
                Ok(leftovers) => *self.kept = leftovers,
                Err(cause) => {
                    *self.kept = Leftovers::default();
                    record.warnings.push(format!("cleanup failed: {cause}"));
                    record.leftovers.push(self.whatever_is_marked());
                }
            }
        }
        let Leftovers { items, look, delete } = std::mem::take(&mut *self.kept);
        record.leftovers.extend(items);
        record.look.extend(look);
        record.delete.extend(delete);
        // A process that was stopped is gone; anything else that was stopped is kept to be looked at.
        let nothing_left = !self.airborne || how == Disposition::Delete || self.job.scheduler == SchedulerKind::Local;
        if nothing_left
            && record.leftovers.is_empty()
            && let Some(store) = &self.context.store
        {
            store.cleaned(&self.job);
        }
        self.landed();
    }

    /// One of the two, with its retries and within its limit; whatever happens in it, the case goes on.
    async fn cleaned(&self, how: Disposition) -> Result<Leftovers, String> {
        let mut retries = 0;
        let work = async {
            loop {
                match self.scheduler.cleanup(&self.job, how).await {
                    Err(error) if error.class == Class::Gone => return Ok(Leftovers::default()),
                    Err(error) if error.class == Class::Infra && retries < RETRIES => {
                        retries += 1;
                        sleep(backoff(&error, retries)).await;
                    }
                    answer => return answer,
                }
            }
        };
        match timeout(CLEANUP_LIMIT, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(answer)) => answer.map_err(|error| chain(&error)),
            Ok(Err(panic)) => Err(format!("panicked: {}", panic_message(&*panic))),
            Err(_) => Err(format!("no answer within {}", format_duration(CLEANUP_LIMIT))),
        }
    }

    async fn pause_before_retry(&self, phase: Phase, error: &SchedulerError, retries: u32) {
        let pause = backoff(error, retries);
        let note = format!("{}; trying again in {}", chain(error), format_duration(pause));
        self.context.phase(&self.case, phase, Some(note));
        self.context.pause(pause).await;
    }

    fn say(&mut self, phase: Phase, note: String) {
        if self.said.as_ref() != Some(&note) {
            self.context.phase(&self.case, phase, Some(note.clone()));
            self.said = Some(note);
        }
    }

    fn whatever_is_marked(&self) -> String {
        let Job { identifier, session, scheduler, .. } = &*self.job;
        format!("whatever is marked rfm={identifier} on {scheduler} (session {session}): `muster sweep` removes it")
    }

    fn timed_out(&self, clock: Clock, seen: Option<&JobStatus>, phase: Phase) -> End {
        let (limit, key) = match clock {
            Clock::Pending => (self.limits.pending, "max_pending_time"),
            Clock::Run => (self.limits.run, "time_limit"),
        };
        let limit = format_duration(limit.unwrap_or_default());
        let cause = match (clock, seen) {
            (Clock::Run, _) => format!("still running after {limit} ({key})"),
            (Clock::Pending, Some(JobStatus::Pending { why })) => format!("still waiting after {limit} ({key}): {why}"),
            (Clock::Pending, _) => format!("not seen within {limit} ({key})"),
        };
        End::new(Outcome::Timeout(clock), phase, cause)
    }

    fn take_off(&mut self) {
        self.airborne = true;
        self.context.took_off(&self.case, &self.job);
    }

    fn landed(&mut self) {
        self.airborne = false;
        self.context.landed(&self.job.identifier);
    }
}

fn step_of(status: &JobStatus) -> journal::Step {
    match status {
        JobStatus::NotSeen | JobStatus::Pending { .. } => journal::Step::Seen,
        JobStatus::Running { .. } => journal::Step::Running,
        JobStatus::Ended(_) | JobStatus::Gone { .. } => journal::Step::Ended,
    }
}

/// Why a launch brought no job.
enum Lost {
    Failed(SchedulerError),
    NoAnswer(String),
}

/// What a progress line says of a status.
fn note(status: &JobStatus) -> Option<String> {
    match status {
        JobStatus::Pending { why } => Some(why.clone()),
        JobStatus::Running { nodes, .. } => match nodes.as_slice() {
            [] => Some("running".to_owned()),
            [node] => Some(format!("running on {node}")),
            [node, rest @ ..] => Some(format!("running on {node} and {} more", rest.len())),
        },
        JobStatus::NotSeen | JobStatus::Ended(_) | JobStatus::Gone { .. } => None,
    }
}

/// 1 s, 2 s, 4 s, or what the other side asked for.
fn backoff(error: &SchedulerError, retry: u32) -> Duration {
    let own = Duration::from_secs(1 << (retry - 1).min(5));
    error.retry_after.unwrap_or(own).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn what_happened(lost: JoinError) -> String {
    match lost.try_into_panic() {
        Ok(panic) => format!("panicked: {}", panic_message(&*panic)),
        Err(_) => "was cut off".to_owned(),
    }
}
