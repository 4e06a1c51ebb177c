//! The part of a case's life in which something may exist: launch, wait, stop, collect, clean up.
//!
//! ```text
//!       NotNow, infra, Taken                   next_step: Wait
//!              +-----+                            +-----+
//!              v     |                            v     |
//!         launch ----+--> Launched --> run: wait -------+--> Judge --------------> drain --> AttemptEnd::Ended
//!            |                           |                    |
//!            | error, stop               |                    | stop, gone, error
//!            v                           |                    v
//!           End                          +---------> Stop --> drain -------------> AttemptEnd::Stopped
//! ```
//! Whichever way it ends, `cleanup` follows, unless no launch was started.

mod clocks;
mod end;
mod launch;

pub(crate) use end::cleaned;
pub(crate) use launch::{LaunchFailure, Redraws, launch_once, taken_by, vacate};

use crate::{
    case::{
        attempt::clocks::Clocks,
        context::{Context, InFlight},
        record::{End, Record},
    },
    crash_points,
    event::Limit,
    log::{
        collect::{Collector, Drained},
        spool::Spool,
    },
    retry::{Failures, SHORTEST_PAUSE},
};
use muster_core::{
    case::CaseName,
    decisions::pipeline::{Elapsed, Signs, Step, Stop, next_step},
    error::{Class, SchedulerError, chain},
    job::{
        scheduler::{Disruption, Ending, Job, JobStatus, Leftovers, Scheduler},
        workload::{Clock, Limits},
    },
    live::{CaseProgress, CaseState},
    result::{Invalid, Outcome, Phase},
    rules::LogLimit,
};
use muster_host::clock;
use muster_text::time::{Timestamp, format_duration};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// What was stopped says how it ended within this time, or not at all.
const FINAL_STATUS_LIMIT: Duration = Duration::from_secs(1);
/// After an outage, who brings no news for so long has none: the job still does what it did before.
const NO_NEWS: Duration = Duration::from_secs(30);

/// How an attempt ended.
pub(crate) enum AttemptEnd {
    /// It never began, or nothing came of it.
    NothingRan(End),
    /// It ended by itself, and this is its log: judge it.
    Ended(Box<(Ending, Spool)>),
    /// It was stopped or lost, and left a log: nothing to judge.
    Stopped(End, Box<Spool>),
    /// A rule has stopped it: its log is judged for display, and does not decide how it ends.
    Shown(End, Box<(Ending, Spool)>),
}

/// Why there is no ending to judge.
struct Unended {
    end: End,
    /// A rule has stopped it.
    is_shown: bool,
}

impl From<End> for Unended {
    fn from(end: End) -> Self {
        Self { end, is_shown: false }
    }
}

/// One attempt at a case.
pub(crate) struct Attempt<'a> {
    context: &'a Arc<Context>,
    scheduler: &'a Arc<dyn Scheduler>,
    case: Arc<CaseName>,
    /// 1, 2, ... within the session; 0: nobody is told how far it is.
    number: u32,
    job: Arc<Job>,
    limits: Limits,
    /// How much of its log is kept.
    log_limit: Option<LogLimit>,
    clocks: Clocks,
    /// The last note of what it waits for: none is reported twice.
    last_note: Option<String>,
    /// Something may exist: a launch was started, and neither `NotNow` nor a cleanup has reported since that nothing is left.
    may_exist: bool,
    /// The compute has ended, and only the objects are left.
    stopped: bool,
    /// How to look at them.
    kept: Box<Leftovers>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        context: &'a Arc<Context>,
        scheduler: &'a Arc<dyn Scheduler>,
        case: Arc<CaseName>,
        job: Arc<Job>,
        limits: Limits,
    ) -> Self {
        let clocks = Clocks::start();
        let (number, log_limit, kept) = (0, None, Box::default());
        let (last_note, may_exist, stopped) = (None, false, false);
        Self { context, scheduler, case, number, job, limits, log_limit, clocks, last_note, may_exist, stopped, kept }
    }

    pub(crate) fn with_log_limit(self, log_limit: Option<LogLimit>) -> Self {
        Self { log_limit, ..self }
    }

    pub(crate) fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// What is left of a case that panicked.
    pub(crate) fn of_lost_case(context: &'a Arc<Context>, scheduler: &'a Arc<dyn Scheduler>, lost: InFlight) -> Self {
        let limits = Limits { pending: None, run: None, judge: Duration::ZERO };
        Self { may_exist: true, ..Self::new(context, scheduler, lost.case, lost.job, limits) }
    }

    /// Another process has launched it, or may have.
    pub(crate) fn already_launched(&mut self) {
        self.clocks = Clocks::of_another_process();
        self.mark_may_exist();
    }

    /// From its launch until nothing runs and the log is on disk.
    pub(crate) async fn run(&mut self, record: &mut Record) -> AttemptEnd {
        let logs = Collector::start(self.scheduler, &self.job, self.log_limit, self.context.listened(&self.case));
        let followed = self.follow(record).await;
        if let Err(Unended { end, .. }) = &followed {
            Box::pin(self.stop(record)).await;
            if self.stopped && matches!(end.outcome, Outcome::Timeout(_) | Outcome::Abort | Outcome::Stopped(_)) {
                Box::pin(self.final_status(record)).await;
            }
        }
        let is_judged = !matches!(&followed, Err(Unended { is_shown: false, .. }));
        let drained = Box::pin(logs.drain(&self.context.cancel, &self.context.give_up, is_judged)).await;
        crash_points::reached(crash_points::Point::LogDrained);
        match (followed, drained) {
            (Ok(ending), Drained::Whole(spool)) => AttemptEnd::Ended(Box::new((ending, spool))),
            (Ok(_), Drained::Cancelled(spool)) => {
                AttemptEnd::Stopped(End::new(Outcome::Abort, Phase::Run, self.context.why_cancelled()), Box::new(spool))
            }
            (Err(Unended { end, is_shown: true }), Drained::Whole(spool)) => {
                AttemptEnd::Shown(end, Box::new((ending_so_far(record), spool)))
            }
            (Err(Unended { end, .. }), Drained::Whole(spool) | Drained::Cancelled(spool)) => {
                AttemptEnd::Stopped(end, Box::new(spool))
            }
            (Ok(_), Drained::NoLog(cause)) => {
                AttemptEnd::NothingRan(End::new(Outcome::Invalid(Invalid::Logs), Phase::Run, cause))
            }
            (Err(Unended { end, .. }), Drained::NoLog(_)) => AttemptEnd::NothingRan(end),
        }
    }

    /// Waits until it is over: the ending to judge, or why there is none.
    async fn follow(&mut self, record: &mut Record) -> Result<Ending, Unended> {
        let mut seen: Option<JobStatus> = None;
        let mut failures = Failures::default();
        let mut overdue: Option<Instant> = None;
        loop {
            let signs = Signs { is_away: failures.is_any(), stop: self.asked_to_stop() };
            let elapsed = Elapsed { overdue: overdue.map(|since| since.elapsed()), ..self.clocks.elapsed() };
            let status = seen.as_ref().unwrap_or(&JobStatus::NotSeen);
            let recheck_in = match next_step(status, elapsed, &self.limits, signs) {
                Step::Wait { recheck_in } => {
                    // There is time left: it was another limit.
                    overdue = overdue.filter(|_| recheck_in.is_none());
                    recheck_in
                }
                Step::Overdue => {
                    overdue.get_or_insert_with(Instant::now);
                    Some(NO_NEWS)
                }
                Step::Judge(ending) => return Ok(ending),
                Step::Stop(Stop::Limit(clock)) => return Err(self.timed_out(clock, seen.as_ref(), Phase::Run).into()),
                Step::Stop(stop) => {
                    return Err(Unended { is_shown: stop.is_shown(), end: self.context.stopped(stop, Phase::Run) });
                }
                Step::Lost { outcome, cause } => return Err(End::new(outcome, Phase::Run, cause).into()),
            };
            let answer = tokio::select! {
                biased;
                answer = self.scheduler.wait(&self.job, seen.as_ref()) => answer,
                () = sleep(recheck_in.unwrap_or(Duration::MAX)) => {
                    if overdue.is_some() {
                        failures = Failures::default();
                    }
                    continue;
                }
                () = self.context.stop_of(&self.case, self.number) => continue,
            };
            match answer {
                // A scheduler that answers without news would be asked again at once, for ever.
                Ok(status) if Some(&status) == seen.as_ref() => self.pause(SHORTEST_PAUSE).await,
                Ok(status) => {
                    self.context.reached(&self.case.partition, Phase::Run);
                    failures = Failures::default();
                    self.clocks.saw(&status);
                    record.saw(&status);
                    crash_points::reached(point_of(&status));
                    self.store_status(&status);
                    if let Some(note) = note(&status) {
                        let runs = matches!(status, JobStatus::Running { .. });
                        self.report_wait(Phase::Run, if runs { Clock::Run } else { Clock::Pending }, note);
                    }
                    seen = Some(status);
                }
                Err(error) if error.class == Class::Gone => {
                    return Err(End::new(Outcome::Disrupted(Disruption::Deleted), Phase::Run, chain(&error)).into());
                }
                Err(error) => match failures.add(&error, None) {
                    Some(pause) => self.pause_before_retry(Phase::Run, &error, pause).await,
                    None => return Err(End::failed(Phase::Run, &error).into()),
                },
            }
        }
    }

    /// Why it is to stop; `None`: it is not.
    fn asked_to_stop(&self) -> Option<Stop> {
        self.context.stop_now(&self.case, self.number)
    }

    /// Lets time pass, but not after it is asked to stop.
    async fn pause(&self, length: Duration) {
        let _ = timeout(length, self.context.stop_of(&self.case, self.number)).await;
    }

    /// How it ended after it was stopped: exits and times for the result, if they are to be had at once.
    async fn final_status(&self, record: &mut Record) {
        let by = Instant::now() + FINAL_STATUS_LIMIT;
        let mut seen = None;
        while let Ok(Ok(status)) = timeout_at(by, self.scheduler.wait(&self.job, seen.as_ref())).await {
            record.saw(&status);
            if matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. }) || seen.as_ref() == Some(&status) {
                return;
            }
            seen = Some(status);
        }
    }

    /// Says in the store what a status says.
    fn store_status(&self, status: &JobStatus) {
        match status {
            JobStatus::Pending { why } => self.store_pending(Some(why.clone())),
            JobStatus::Running { since, nodes, partly_ended, .. } => {
                self.store(CaseState::Running, *since, partly_ended.clone(), nodes.clone());
            }
            JobStatus::NotSeen | JobStatus::Ended(_) | JobStatus::Gone { .. } => {}
        }
    }

    fn store_pending(&self, note: Option<String>) {
        self.store(CaseState::Pending, clock::now(), note, Vec::new());
    }

    /// Says in the store what is done with a job that has ended.
    pub(crate) fn store_phase(&self, phase: Phase, record: &Record) {
        self.store(CaseState::Running, clock::now(), Some(phase.to_string()), record.result.nodes.clone());
    }

    fn store(&self, state: CaseState, since: Timestamp, note: Option<String>, nodes: Vec<String>) {
        if self.number > 0 {
            let progress = CaseProgress { attempt: self.number, state, since, note, nodes };
            self.context.progress(&self.case, progress, None);
        }
    }

    async fn pause_before_retry(&self, phase: Phase, error: &SchedulerError, pause: Duration) {
        if error.class == Class::Outage {
            self.context.not_reached(&self.case.partition, phase, &chain(error));
        }
        let note = format!("{}; trying again in {}", chain(error), format_duration(pause));
        if phase == Phase::Launch {
            self.store_pending(Some(note.clone()));
        }
        self.context.phase(&self.case, phase, Some(note), None);
        self.pause(pause).await;
    }

    fn limit(&self, clock: Clock) -> Limit {
        (clock, self.limits.of(clock))
    }

    fn report_wait(&mut self, phase: Phase, clock: Clock, note: String) {
        if self.last_note.as_ref() != Some(&note) {
            self.context.phase(&self.case, phase, Some(note.clone()), Some(self.limit(clock)));
            self.last_note = Some(note);
        }
    }

    fn timed_out(&self, clock: Clock, seen: Option<&JobStatus>, phase: Phase) -> End {
        let (limit, key) = (format_duration(self.limits.of(clock).unwrap_or_default()), clock.key());
        let cause = match (clock, seen) {
            (Clock::Run, Some(JobStatus::Running { partly_ended: Some(what), .. })) => {
                format!("still running after {limit} ({key}): {what}")
            }
            (Clock::Run, _) => format!("still running after {limit} ({key})"),
            (Clock::Pending, Some(JobStatus::Pending { why })) => format!("still waiting after {limit} ({key}): {why}"),
            (Clock::Pending, _) => format!("not seen within {limit} ({key})"),
        };
        End::new(Outcome::Timeout(clock), phase, cause)
    }

    fn mark_may_exist(&mut self) {
        self.may_exist = true;
        self.context.may_exist(&self.case, &self.job, false);
    }

    fn mark_ended(&mut self) {
        self.may_exist = false;
        self.context.ended(&self.job.identifier);
    }
}

/// The ending of what a rule has stopped, as far as it is known: how it exits then says nothing of it.
fn ending_so_far(record: &Record) -> Ending {
    let started = record.result.times.started.unwrap_or_else(clock::now);
    let ended = record.result.times.ended.unwrap_or_else(clock::now);
    Ending { started, ended, nodes: record.result.nodes.clone(), ..Ending::default() }
}

fn point_of(status: &JobStatus) -> crash_points::Point {
    match status {
        JobStatus::NotSeen | JobStatus::Pending { .. } => crash_points::Point::Seen,
        JobStatus::Running { .. } => crash_points::Point::Running,
        JobStatus::Ended(_) | JobStatus::Gone { .. } => crash_points::Point::Ended,
    }
}

/// What a progress line says of a status.
fn note(status: &JobStatus) -> Option<String> {
    match status {
        JobStatus::Pending { why } => Some(why.clone()),
        JobStatus::Running { nodes, partly_ended, .. } => {
            let place = match nodes.as_slice() {
                [] => "running".to_owned(),
                [node] => format!("running on {node}"),
                [node, rest @ ..] => format!("running on {node} and {} more", rest.len()),
            };
            Some(partly_ended.as_ref().map_or_else(|| place.clone(), |what| format!("{place}; {what}")))
        }
        JobStatus::NotSeen | JobStatus::Ended(_) | JobStatus::Gone { .. } => None,
    }
}
