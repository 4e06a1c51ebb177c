//! Launching: as often as it takes, as long as the clock for waiting allows, under another identifier if it must be.

use super::{Attempt, cleaned};
use crate::{
    case::{
        context::Context,
        plan::Plan,
        record::{End, Record},
    },
    crash_points,
    panics::panic_message,
    retry::{Failures, SHORTEST_PAUSE},
};
use muster_core::{
    decisions::pipeline::{OUTAGE_LIMIT, Signs, Step, next_step},
    error::SchedulerError,
    job::{
        scheduler::{Disposition, Job, JobStatus, Launch, Scheduler},
        workload::Clock,
    },
    result::Phase,
};
use muster_host::clock;
use muster_text::time::format_duration;
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinError,
    time::{Instant, timeout},
};

/// How often another identifier is drawn. One of a million live jobs has a given one with a chance of 1 in 200,000: a job that
/// needs more collides on purpose.
const REDRAWS: u32 = 3;

/// Why an attempt to launch got no answer.
pub(crate) enum LaunchFailure {
    Failed(SchedulerError),
    /// It is over, and may have created something.
    NoAnswer(String),
}

/// How many identifiers of one job were taken.
#[derive(Default)]
pub(crate) struct Redraws(u32);

impl Redraws {
    /// Counts one.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn add(&mut self, by: &str) -> Result<(), String> {
        self.0 += 1;
        if self.0 <= REDRAWS {
            return Ok(());
        }
        Err(format!("{} identifiers in a row are taken, the last by {by}: find out who creates such names", self.0))
    }
}

/// One attempt, on a task of its own: once started it is awaited, whatever happens to its case. Dropped half-way it could
/// still create something, after the cleanup. At its limit it is stopped, for the same reason.
pub(crate) async fn launch_once(scheduler: &Arc<dyn Scheduler>, job: &Arc<Job>) -> Result<Launch, LaunchFailure> {
    let limit = scheduler.limits().launch;
    let (scheduler, job) = (Arc::clone(scheduler), Arc::clone(job));
    let task = tokio::spawn(async move { scheduler.launch(&job).await });
    let abort = task.abort_handle();
    match timeout(limit, task).await {
        Ok(Ok(answer)) => answer.map_err(LaunchFailure::Failed),
        Ok(Err(lost)) => Err(LaunchFailure::NoAnswer(format!("the launch {}", what_happened(lost)))),
        Err(_) => {
            abort.abort();
            Err(LaunchFailure::NoAnswer(format!("the launch was not answered within {}", format_duration(limit))))
        }
    }
}

/// Removes what a launch has created in part, for this reason: its identifier was taken, or there was no room for the rest.
///
/// # Errors
/// Why it does not.
pub(crate) async fn vacate(context: &Context, scheduler: &Arc<dyn Scheduler>, job: &Job, reason: &str) -> Result<(), String> {
    let why = match cleaned(context, scheduler, job, Disposition::Delete).await {
        Ok(leftovers) if leftovers.items.is_empty() => return Ok(()),
        Ok(leftovers) => leftovers.items.join("; "),
        Err(why) => why,
    };
    Err(format!("{reason}, and what it created before is not removed: {why}"))
}

/// The reason to give an identifier up.
pub(crate) fn taken_by(by: &str) -> String {
    format!("its identifier is taken by {by}")
}

impl Attempt<'_> {
    /// Launches, as often as it takes and the clock for waiting allows.
    pub(crate) async fn launch(&mut self, plan: &mut Plan, record: &mut Record) -> Result<(), End> {
        self.stage().await?;
        self.store_pending(None);
        self.context.phase(&self.case, Phase::Launch, None, Some(self.limit(Clock::Pending)));
        let (mut failures, mut redraws) = (Failures::default(), Redraws::default());
        loop {
            if let Some(stop) = self.asked_to_stop() {
                return Err(self.context.stopped(stop, Phase::Launch));
            }
            self.mark_may_exist();
            crash_points::reached(crash_points::Point::LaunchStarted);
            let error = match launch_once(self.scheduler, &self.job).await {
                Ok(Launch::Launched(job)) => {
                    self.context.reached(&self.case.partition, Phase::Launch);
                    crash_points::reached(crash_points::Point::Launched);
                    let now = clock::now();
                    record.result.times.launched = Some(now);
                    self.job = Arc::new(job);
                    // Thousands of cases wait for hours: what was planned is not needed twice.
                    (plan.job, plan.render) = (Arc::clone(&self.job), None);
                    self.mark_may_exist();
                    if let Some(store) = &self.context.store {
                        store.launched(&self.job, now);
                    }
                    crash_points::reached(crash_points::Point::LaunchStored);
                    return Ok(());
                }
                Ok(Launch::NotNow { why, retry_after, created }) => {
                    // After an answer that was lost there may be something all the same.
                    let part = created.or_else(|| failures.is_any().then(|| Box::new((*self.job).clone())));
                    if let Some(part) = part {
                        vacate(self.context, self.scheduler, &part, &why)
                            .await
                            .map_err(|cause| End::infra(Phase::Launch, cause))?;
                    }
                    self.mark_ended();
                    self.store_pending(Some(why.clone()));
                    self.report_wait(Phase::Launch, Clock::Pending, why.clone());
                    self.await_room(&why, retry_after).await?;
                    failures = Failures::default();
                    continue;
                }
                Ok(Launch::Taken { by }) => {
                    let failed = |cause| End::infra(Phase::Launch, cause);
                    vacate(self.context, self.scheduler, &self.job, &taken_by(&by)).await.map_err(failed)?;
                    self.mark_ended();
                    crash_points::reached(crash_points::Point::Taken);
                    redraws.add(&by).map_err(failed)?;
                    self.redraw(plan, record, &by).await?;
                    failures = Failures::default();
                    continue;
                }
                Err(LaunchFailure::Failed(error)) => error,
                Err(LaunchFailure::NoAnswer(cause)) => {
                    // What it asked for may still come, after the cleanup.
                    record.result.leftovers.push(self.context.whatever_is_marked(&self.job));
                    return Err(End::infra(Phase::Launch, cause));
                }
            };
            let Some(pause) = failures.add(&error, Some(OUTAGE_LIMIT)) else {
                // After an answer that was lost there may be something all the same.
                if error.nothing_created && failures.is_first() {
                    self.mark_ended();
                }
                return Err(End::failed(Phase::Launch, &error));
            };
            self.pause_before_retry(Phase::Launch, &error, pause).await;
        }
    }

    /// Brings what the job needs to where it will run. Its own limit ends it, and no clock counts it.
    async fn stage(&mut self) -> Result<(), End> {
        let (context, scheduler, job) = (Arc::clone(self.context), Arc::clone(self.scheduler), Arc::clone(&self.job));
        let case = Arc::clone(&self.case);
        let stop = Box::pin(context.stop_of(&case, self.number));
        let Some(staged) = scheduler.stage(&job, stop) else { return Ok(()) };
        self.store_pending(Some(staged.what.clone()));
        context.phase(&self.case, Phase::Stage, Some(staged.what), None);
        let started = Instant::now();
        let ended = staged.done.await;
        self.clocks.leave_out(started.elapsed());
        // The launch sees why it is to stop.
        ended.or_else(|error| if self.asked_to_stop().is_some() { Ok(()) } else { Err(End::failed(Phase::Stage, &error)) })
    }

    /// Goes on as another.
    async fn redraw(&mut self, plan: &mut Plan, record: &mut Record, by: &str) -> Result<(), End> {
        let old = plan.job.identifier.clone();
        plan.redraw(self.context, self.scheduler, record).await?;
        (self.job, self.limits) = (Arc::clone(&plan.job), plan.limits);
        crash_points::reached(crash_points::Point::Redrawn);
        let new = &self.job.identifier;
        self.report_wait(Phase::Launch, Clock::Pending, format!("identifier {old} is taken by {by}: {new} instead"));
        self.stage().await
    }

    /// Waits for room, but no longer than `max_pending_time`.
    async fn await_room(&self, why: &str, retry_after: Duration) -> Result<(), End> {
        let seen = JobStatus::Pending { why: why.to_owned() };
        match next_step(&seen, self.clocks.elapsed(), &self.limits, Signs::default()) {
            Step::Wait { recheck_in } => {
                let pause = retry_after.max(SHORTEST_PAUSE);
                self.pause(recheck_in.map_or(pause, |left| pause.min(left))).await;
                Ok(())
            }
            _ => Err(self.timed_out(Clock::Pending, Some(&seen), Phase::Launch)),
        }
    }
}

fn what_happened(lost: JoinError) -> String {
    match lost.try_into_panic() {
        Ok(panic) => format!("panicked: {}", panic_message(&*panic)),
        Err(_) => "was cut off".to_owned(),
    }
}
