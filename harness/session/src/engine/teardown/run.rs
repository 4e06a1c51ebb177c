//! One teardown, from its plan until nothing of it runs.
//!
//! ```text
//! prepared -> launched (again after a pause, or under another identifier) -> followed -> cleaned up
//!                '--------------------- until its deadline ------------------'
//! ```
//! A teardown is a job like any other, but for its limit and for what becomes of it: it takes no slot, so that it cannot wait
//! for its own session, and a failure of it is reported and changes no outcome. It also runs after Ctrl-C, within a shorter limit.

use super::{TeardownReport, folder_of_teardown, removed};
use crate::{
    case::{
        attempt::{LaunchFailure, Redraws, cleaned, launch_once, taken_by, vacate},
        context::Context,
    },
    folders::Folders,
    panics::panic_message,
    retry::{Failures, SHORTEST_PAUSE},
};
use futures_util::FutureExt;
use muster_core::{
    case::{CaseName, Identifier},
    decisions::pipeline::OUTAGE_LIMIT,
    error::chain,
    job::{
        scheduler::{Disposition, Ending, Exit, Job, JobStatus, Launch, Scheduler},
        stage_folder::LOG_FILE,
        workload::Workload,
    },
    result::CaseResult,
    rules::Rules,
};
use muster_host::clock;
use muster_store::Intent;
use muster_text::{diagnostic::Diagnostic, shell, time::format_duration};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

/// A teardown takes no longer, whatever `time_limit` says.
const LIMIT: Duration = Duration::from_mins(5);
/// The limit when the session is cancelled, for all teardowns that follow one another: from the start of the first, or from the
/// cancellation, whichever is later.
const HURRIED_LIMIT: Duration = Duration::from_mins(1);

/// The teardown of what one case has left.
pub(super) struct Teardown<'a> {
    context: &'a Arc<Context>,
    scheduler: &'a Arc<dyn Scheduler>,
    /// Its own, so that it is not taken for the case.
    name: Arc<CaseName>,
    result: &'a CaseResult,
    /// As it was planned with the case: its identifier is not drawn yet.
    workload: &'a Workload,
    /// When the first of those began that follow one another.
    since: Instant,
}

impl<'a> Teardown<'a> {
    pub(super) fn new(
        context: &'a Arc<Context>,
        scheduler: &'a Arc<dyn Scheduler>,
        result: &'a CaseResult,
        workload: &'a Workload,
        since: Instant,
    ) -> Self {
        Self { context, scheduler, name: Arc::new(result.name.clone()), result, workload, since }
    }

    /// Tears down and survives it.
    pub(super) async fn contained(self, report: &mut TeardownReport) -> Result<(), String> {
        let panic = match AssertUnwindSafe(self.run(report)).catch_unwind().await {
            Ok(torn) => return torn,
            Err(panic) => panic,
        };
        if let Some(lost) = self.context.in_flight_of(&self.name) {
            self.clean_up(&lost.job, report).await;
        }
        Err(format!("panicked: {}", panic_message(&*panic)))
    }

    async fn run(&self, report: &mut TeardownReport) -> Result<(), String> {
        if let Some(when) = Deadline::of(self.context, self.workload.limits.run, self.since).is_over() {
            return Err(format!("not launched {when}"));
        }
        let mut job = self.prepared(None).await?;
        super::wait_unless_exiting(self.context).await;
        let deadline = Deadline::of(self.context, self.workload.limits.run, self.since);
        let ended = match self.launched(&mut job, &deadline, report).await {
            Ok(()) => tokio::select! {
                biased;
                ended = followed(self.scheduler, &job) => ended,
                when = deadline.over() => Err(format!("still running {when}")),
            },
            not_launched => not_launched,
        };
        self.clean_up(&job, report).await;
        ended.map_err(|why| format!("{why}; see {}", shell::quote(&job.stage.join(LOG_FILE).to_string_lossy())))?;
        removed(self.context, &job.stage, Folders::remove).await
    }

    /// Plans it under an identifier of its own, makes its folder and writes the plan down: a crash leaves a row, never an
    /// unknown process. `replaces`: the identifier of an earlier plan, which is taken.
    async fn prepared(&self, replaces: Option<&Identifier>) -> Result<Arc<Job>, String> {
        let Self { context, scheduler, result, workload, .. } = self;
        let identifier = context.identifiers.draw();
        let (session, stage) = (context.session.id.clone(), folder_of_teardown(&workload.stage));
        let workload = Workload { identifier, session, stage, ..Workload::clone(workload) };
        let mistakes =
            |mistakes: Vec<Diagnostic>| mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("; ");
        let job = Arc::new(scheduler.plan(&workload).map_err(mistakes)?);
        let (shared, folder) = (Arc::clone(context), job.stage.clone());
        let left = result.outputs.as_ref().map(|outputs| outputs.stage.clone());
        let made = move || {
            left.map_or(Ok(()), |left| Folders::give_up(&left))?;
            shared.folders.create(&folder)
        };
        match spawn_blocking(made).await {
            Ok(created) => created.map_err(|error| chain(&error))?,
            Err(_) => return Err("making its folder panicked".to_owned()),
        }
        if let Some(store) = &context.store {
            let CaseResult { name, about, attempt, purpose, .. } = result;
            let (session, limits, rules) = (&context.session.id, &workload.limits, &Rules::default());
            let (attempt, purpose, begun) = (*attempt, *purpose, clock::now());
            let intent = Intent { session, name, about, attempt, purpose, job: &job, rules, limits, begun, replaces };
            store.intent(&intent).await.map_err(|error| format!("store the plan: {}", chain(&error)))?;
        }
        context.may_exist(&self.name, &job, true);
        Ok(job)
    }

    /// Launches, as often as it takes until the deadline. A launch that is under way then is awaited all the same.
    async fn launched(&self, job: &mut Arc<Job>, deadline: &Deadline<'_>, report: &mut TeardownReport) -> Result<(), String> {
        let (mut failures, mut redraws) = (Failures::default(), Redraws::default());
        loop {
            let (why, pause) = match launch_once(self.scheduler, job).await {
                Ok(Launch::Launched(launched)) => {
                    *job = Arc::new(launched);
                    if let Some(store) = &self.context.store {
                        store.launched(job, clock::now());
                    }
                    return Ok(());
                }
                Ok(Launch::NotNow { why, retry_after, created }) => {
                    if let Some(part) = created {
                        vacate(self.context, self.scheduler, &part, &why).await?;
                    }
                    failures = Failures::default();
                    (why, retry_after.max(SHORTEST_PAUSE))
                }
                Ok(Launch::Taken { by }) => {
                    vacate(self.context, self.scheduler, job, &taken_by(&by)).await?;
                    self.context.ended(&job.identifier);
                    redraws.add(&by)?;
                    *job = self.prepared(Some(&job.identifier)).await?;
                    failures = Failures::default();
                    (format!("its identifier was taken by {by}"), SHORTEST_PAUSE)
                }
                Err(LaunchFailure::Failed(error)) => {
                    let pause = failures.add(&error, Some(OUTAGE_LIMIT)).ok_or_else(|| chain(&error))?;
                    (chain(&error), pause)
                }
                Err(LaunchFailure::NoAnswer(why)) => {
                    // What it asked for may still come, after the cleanup.
                    report.may_be_left(self.context, job);
                    return Err(why);
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                when = deadline.over() => return Err(format!("not launched {when}: {why}")),
            }
        }
    }

    /// Removes what the teardown was, and notes what stays.
    async fn clean_up(&self, job: &Job, report: &mut TeardownReport) {
        report.cleaned(self.context, job, cleaned(self.context, self.scheduler, job, Disposition::Delete).await);
        self.context.ended(&job.identifier);
        if report.leftovers.items.is_empty()
            && let Some(store) = &self.context.store
        {
            store.cleaned(job);
        }
    }
}

/// From the launch until nothing runs.
async fn followed(scheduler: &Arc<dyn Scheduler>, job: &Job) -> Result<(), String> {
    let (mut seen, mut failures): (Option<JobStatus>, _) = (None, Failures::default());
    loop {
        let status = match scheduler.wait(job, seen.as_ref()).await {
            Ok(status) => status,
            Err(error) => {
                sleep(failures.add(&error, None).ok_or_else(|| chain(&error))?).await;
                continue;
            }
        };
        failures = Failures::default();
        match &status {
            JobStatus::Ended(ending) => return done(ending),
            JobStatus::Gone { cause, .. } => return Err(cause.clone()),
            status if Some(status) == seen.as_ref() => sleep(SHORTEST_PAUSE).await,
            JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. } => {}
        }
        seen = Some(status);
    }
}

/// Whether it did what it was to do.
fn done(ending: &Ending) -> Result<(), String> {
    let bad = ending.exits.iter().find(|exit| exit.exit != Exit::Code(0));
    bad.map_or(Ok(()), |exit| Err(exit.exit.to_string()))
}

/// The end of one teardown, which comes nearer when the session is cancelled.
struct Deadline<'a> {
    context: &'a Context,
    begun: Instant,
    since: Instant,
    limit: Duration,
}

impl<'a> Deadline<'a> {
    /// Of a teardown that begins now, with the limit of its check.
    fn of(context: &'a Context, own: Option<Duration>, since: Instant) -> Self {
        Self { context, begun: Instant::now(), since, limit: own.map_or(LIMIT, |limit| limit.min(LIMIT)) }
    }

    fn end(&self, cancelled: Option<Instant>) -> (Instant, String) {
        end(self.begun, self.since, self.limit, cancelled)
    }

    /// When it was, if it is over already.
    fn is_over(&self) -> Option<String> {
        let (by, when) = self.end(self.context.cancelled_at());
        (by <= Instant::now()).then_some(when)
    }

    /// Waits for it, and says when that was: `after 5m`.
    async fn over(&self) -> String {
        if self.context.cancelled_at().is_none() {
            let (by, when) = self.end(None);
            tokio::select! {
                () = sleep_until(by) => return when,
                () = self.context.cancel.cancelled() => {}
            }
        }
        let (by, when) = self.end(self.context.cancelled_at());
        tokio::select! {
            () = sleep_until(by) => when,
            () = self.context.leave.cancelled() => "when the session was left at once".to_owned(),
        }
    }
}

/// When a teardown ends that began then, and in words. `since`: when the first of those began that follow one another.
fn end(begun: Instant, since: Instant, limit: Duration, cancelled: Option<Instant>) -> (Instant, String) {
    let own = begun + limit;
    match cancelled.map(|at| at.max(since) + HURRIED_LIMIT).filter(|by| *by < own) {
        None => (own, format!("after {}", format_duration(limit))),
        Some(by) if by == begun + HURRIED_LIMIT => (by, format!("after {}", format_duration(HURRIED_LIMIT))),
        Some(by) if by == since + HURRIED_LIMIT => {
            (by, format!("{} after the first teardown began", format_duration(HURRIED_LIMIT)))
        }
        Some(by) => (by, format!("{} after the session was cancelled", format_duration(HURRIED_LIMIT))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_session_brings_the_end_nearer_and_never_puts_it_off() {
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        // Begun, the first before it, its limit, cancelled, its end; all in seconds.
        let rows = [
            (100, 100, 300, None, 400, "after 5m"),
            (100, 100, 300, Some(50), 160, "after 1m"),
            (100, 100, 300, Some(100), 160, "after 1m"),
            (100, 100, 300, Some(110), 170, "1m after the session was cancelled"),
            (100, 100, 300, Some(340), 400, "after 5m"),
            (100, 100, 300, Some(399), 400, "after 5m"),
            (100, 100, 30, Some(50), 130, "after 30.0s"),
            (100, 70, 300, None, 400, "after 5m"),
            (100, 70, 300, Some(50), 130, "1m after the first teardown began"),
            (100, 30, 300, Some(50), 110, "1m after the session was cancelled"),
            (100, 20, 300, Some(10), 80, "1m after the first teardown began"),
        ];
        for (begun, since, limit, cancelled, by, when) in rows {
            let end = end(at(begun), at(since), Duration::from_secs(limit), cancelled.map(at));
            assert_eq!(end, (at(by), when.to_owned()), "{begun} {since} {limit} {cancelled:?}");
        }
    }
}
