//! The end of what a case has left for others: its `teardown_cmds` run, and its stage folder goes.
//!
//! A teardown is a job like any other, but for its limit and for what becomes of it: it takes no slot, so that it cannot wait
//! for its own session, and a failure of it is told and changes no outcome. It also runs after Ctrl-C, within a shorter limit.

use crate::{
    clock,
    context::Context,
    event::Event,
    order::Release,
    places::{Places, PlacesError},
    run_case::panic_message,
};
use futures_util::FutureExt;
use muster_core::{
    error::chain,
    graph::Verdict,
    result::CaseResult,
    rules::Rules,
    scheduler::{Disposition, Exit, Job, JobStatus, Launch, Scheduler},
    script::LOG_FILE,
    shell,
    time::format_duration,
    workload::Workload,
};
use muster_store::Intent;
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

/// A teardown takes no longer, whatever `time_limit` says.
const LIMIT: Duration = Duration::from_mins(5);
/// And no longer than this when somebody waits for the session to end.
const HURRIED_LIMIT: Duration = Duration::from_mins(1);
/// Removing what it was takes no longer.
const CLEANUP_LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);

/// Tears down and removes what nobody needs any more. What fails here is told, and changes no outcome.
pub(crate) async fn release(context: &Arc<Context>, schedulers: &BTreeMap<String, Arc<dyn Scheduler>>, release: &Release) {
    let Release { result, wanted, .. } = release;
    let Some(provides) = &result.provides else { return };
    let mut is_torn_down = false;
    // What was never launched has nothing to tear down, and what is gone was torn down by somebody else.
    if let Some(workload) = &provides.teardown
        && result.times.launched.is_some()
        && provides.stage.is_dir()
        && let Some(scheduler) = schedulers.get(&result.name.partition)
    {
        let tear_down = AssertUnwindSafe(tear_down(context, scheduler, result, workload)).catch_unwind();
        let why = match tear_down.await {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(panic) => Some(format!("panicked: {}", panic_message(&*panic))),
        };
        is_torn_down = why.is_none();
        if let Some(why) = why {
            context.emit(Event::Warning(format!("the teardown of {} failed: {why}", result.name)));
            return;
        }
    }
    // What failed is kept to be looked at, and so is what somebody that failed was given.
    if Verdict::of(&result.outcome) == Verdict::Passed
        && (is_torn_down || !wanted)
        && !context.places.keeps_stages()
        && let Err(why) = removed(context, &provides.stage, Places::tear_down).await
    {
        context.emit(Event::Warning(format!("{}: {why}", result.name)));
    }
}

async fn tear_down(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    result: &Arc<CaseResult>,
    workload: &Workload,
) -> Result<(), String> {
    let identifier = context.identifiers.draw().map_err(|error| chain(&error))?;
    let (session, stage) = (context.session.id.clone(), folder_of_teardown(&workload.stage));
    let workload = Workload { identifier: identifier.clone(), session, stage, ..workload.clone() };
    let mistakes = |mistakes: Vec<muster_core::diagnostic::Diagnostic>| {
        mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("; ")
    };
    let job = Arc::new(scheduler.plan(&workload).map_err(mistakes)?);
    let (shared, folder) = (Arc::clone(context), job.stage.clone());
    let left = result.provides.as_ref().map(|provides| provides.stage.clone());
    let made = move || {
        left.map_or(Ok(()), |left| Places::give_up(&left))?;
        shared.places.create(&folder)
    };
    match spawn_blocking(made).await {
        Ok(created) => created.map_err(|error| chain(&error))?,
        Err(_) => return Err("making its folder panicked".to_owned()),
    }
    intended(context, result, &job, &workload).await?;
    context.took_off(&Arc::new(result.name.clone()), &job);
    let hurried = context.cancel.is_cancelled();
    let limit = if hurried { HURRIED_LIMIT } else { workload.limits.run.map_or(LIMIT, |limit| limit.min(LIMIT)) };
    let ended = timeout(limit, run(scheduler, &job)).await;
    let cleaned = timeout(CLEANUP_LIMIT, scheduler.cleanup(&job, Disposition::Delete)).await;
    context.landed(&identifier);
    if let (Ok(Ok(leftovers)), Some(store)) = (&cleaned, &context.store)
        && leftovers.items.is_empty()
    {
        store.cleaned(&job);
    }
    let ended = ended.unwrap_or_else(|_| Err(format!("still running after {}", format_duration(limit))));
    ended.map_err(|why| format!("{why}; see {}", shell::quote(&job.stage.join(LOG_FILE).to_string_lossy())))?;
    removed(context, &job.stage, Places::remove).await
}

/// Where the teardown of what is in a stage folder runs.
fn folder_of_teardown(stage: &Path) -> PathBuf {
    stage.with_added_extension("teardown")
}

/// The result of a case that passed, with the commands that remove what it has left for others and is still there. Blocks.
pub(crate) fn kept(result: &CaseResult) -> Option<CaseResult> {
    let stage = &result.provides.as_ref()?.stage;
    let there = [stage.clone(), folder_of_teardown(stage)].into_iter().filter(|folder| folder.is_dir());
    let remove: Vec<_> = there.map(|folder| format!("rm -r {}", shell::quote(&folder.to_string_lossy()))).collect();
    let is_news = Verdict::of(&result.outcome) == Verdict::Passed && !remove.is_empty() && result.delete != remove;
    is_news.then(|| CaseResult { delete: remove, ..result.clone() })
}

/// The plan is on disk before the launch: a crash leaves a row, never an unknown process.
async fn intended(context: &Context, result: &CaseResult, job: &Job, workload: &Workload) -> Result<(), String> {
    let Some(store) = &context.store else { return Ok(()) };
    let CaseResult { name, about, attempt, .. } = result;
    let (session, limits, rules) = (&context.session.id, &workload.limits, &Rules::default());
    let intent = Intent { session, name, about, attempt: *attempt, job, rules, limits, begun: clock::now(), replaces: None };
    store.intent(&intent).await.map_err(|error| format!("store the plan: {}", chain(&error)))
}

/// From the launch until nothing runs; the launch on a task of its own, for it must not be dropped half-way.
async fn run(scheduler: &Arc<dyn Scheduler>, planned: &Arc<Job>) -> Result<(), String> {
    let job = loop {
        let (theirs, job) = (Arc::clone(scheduler), Arc::clone(planned));
        match tokio::spawn(async move { theirs.launch(&job).await }).await {
            Ok(Ok(Launch::Launched(job))) => break job,
            Ok(Ok(Launch::NotNow { retry_after, .. })) => sleep(retry_after.max(PAUSE)).await,
            Ok(Ok(Launch::Taken { by })) => return Err(format!("its identifier is taken by {by}")),
            Ok(Err(error)) => return Err(chain(&error)),
            Err(_) => return Err("the launch panicked".to_owned()),
        }
    };
    let mut seen: Option<JobStatus> = None;
    loop {
        let status = scheduler.wait(&job, seen.as_ref()).await.map_err(|error| chain(&error))?;
        match &status {
            JobStatus::Ended(ending) => {
                let bad = ending.exits.iter().find(|exit| exit.exit != Exit::Code(0));
                return bad.map_or(Ok(()), |exit| match exit.exit {
                    Exit::Code(code) => Err(format!("exit status {code}")),
                    Exit::Signal(signal) => Err(format!("ended by signal {signal}")),
                    Exit::Unknown => Err("ended, nobody can say how".to_owned()),
                });
            }
            JobStatus::Gone { cause, .. } => return Err(cause.clone()),
            status if Some(status) == seen.as_ref() => sleep(PAUSE).await,
            JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. } => {}
        }
        seen = Some(status);
    }
}

async fn removed(
    context: &Arc<Context>,
    folder: &Path,
    remove: fn(&Places, &Path) -> Result<(), PlacesError>,
) -> Result<(), String> {
    let (shared, folder) = (Arc::clone(context), folder.to_owned());
    match spawn_blocking(move || remove(&shared.places, &folder)).await {
        Ok(removed) => removed.map_err(|error| chain(&error)),
        Err(_) => Err("removing its stage folder panicked".to_owned()),
    }
}
