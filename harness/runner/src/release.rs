//! The end of what a case has left for others: its `teardown_cmds` run, and its stage folder goes.
//!
//! A teardown is a job like any other, but for its limit and for what becomes of it: it takes no slot, so that it cannot wait
//! for its own session, and a failure of it is told and changes no outcome. It also runs after Ctrl-C, within a shorter limit.

use crate::{
    clock,
    context::Context,
    event::Event,
    flight::{LAUNCH_LIMIT, cleaned, whatever_is_marked},
    order::Release,
    places::{Places, PlacesError},
    retry::Failures,
    run_case::panic_message,
};
use futures_util::FutureExt;
use muster_core::{
    case::CaseName,
    error::chain,
    graph::Verdict,
    result::CaseResult,
    rules::Rules,
    scheduler::{Disposition, Exit, Job, JobStatus, Launch, Leftovers, Scheduler},
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
    time::{Instant, sleep, timeout, timeout_at},
};

/// A teardown takes no longer, whatever `time_limit` says.
const LIMIT: Duration = Duration::from_mins(5);
/// And no longer than this when somebody waits for the session to end.
const HURRIED_LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);

/// What a teardown could not do: for the report of the case that it is of.
#[derive(Debug, Default, Clone)]
pub(crate) struct Remains {
    warnings: Vec<String>,
    leftovers: Leftovers,
}

impl Remains {
    pub(crate) fn is_empty(&self) -> bool {
        self.warnings.is_empty() && self.leftovers == Leftovers::default()
    }

    /// What a cleanup has said.
    fn cleaned(&mut self, job: &Job, cleaned: Result<Leftovers, String>) {
        match cleaned {
            Ok(Leftovers { items, look, delete }) => {
                self.leftovers.items.extend(items);
                (self.leftovers.look, self.leftovers.delete) = (look, delete);
            }
            Err(why) => {
                self.warnings.push(format!("the cleanup of its teardown failed: {why}"));
                self.may_be_left(job);
            }
        }
    }

    fn may_be_left(&mut self, job: &Job) {
        let marked = whatever_is_marked(job);
        if !self.leftovers.items.contains(&marked) {
            self.leftovers.items.push(marked);
        }
    }

    fn failed(&mut self, context: &Context, name: &CaseName, why: &str) {
        context.emit(Event::Warning(format!("the teardown of {name} failed: {why}")));
        self.warnings.push(format!("its teardown failed: {why}"));
    }

    /// The result with what is left of its teardown.
    fn add_to(&self, result: &mut CaseResult) {
        let Self { warnings, leftovers: Leftovers { items, look, delete } } = self.clone();
        result.warnings.extend(warnings);
        result.leftovers.extend(items);
        result.look.extend(look);
        result.delete.extend(delete);
    }
}

/// Tears down and removes what nobody needs any more. What fails here is told, and changes no outcome.
pub(crate) async fn release(
    context: &Arc<Context>,
    schedulers: &BTreeMap<String, Arc<dyn Scheduler>>,
    release: &Release,
) -> Remains {
    let (Release { result, wanted, .. }, mut remains) = (release, Remains::default());
    let Some(provides) = &result.provides else { return remains };
    let mut is_torn_down = false;
    // What was never launched has nothing to tear down, and what is gone was torn down by somebody else.
    if let Some(workload) = &provides.teardown
        && result.times.launched.is_some()
        && provides.stage.is_dir()
        && let Some(scheduler) = schedulers.get(&result.name.partition)
    {
        match contained(context, scheduler, (result, workload), &mut remains).await {
            Ok(()) => is_torn_down = true,
            Err(why) => {
                remains.failed(context, &result.name, &why);
                return remains;
            }
        }
    }
    // What failed is kept to be looked at, and so is what somebody that failed was given.
    if Verdict::of(&result.outcome) == Verdict::Passed
        && (is_torn_down || !wanted)
        && !context.places.keeps_stages()
        && let Err(why) = removed(context, &provides.stage, Places::tear_down).await
    {
        context.emit(Event::Warning(format!("{}: {why}", result.name)));
        remains.warnings.push(why);
    }
    remains
}

/// Tears down and survives it.
async fn contained(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    (result, workload): (&Arc<CaseResult>, &Workload),
    remains: &mut Remains,
) -> Result<(), String> {
    let name = Arc::new(result.name.clone());
    let torn = AssertUnwindSafe(tear_down(context, scheduler, (&name, result, workload), remains)).catch_unwind().await;
    let panic = match torn {
        Ok(torn) => return torn,
        Err(panic) => panic,
    };
    if let Some(lost) = context.in_flight_of(&name) {
        clean_up(context, scheduler, &lost.job, remains).await;
    }
    Err(format!("panicked: {}", panic_message(&*panic)))
}

async fn tear_down(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    (name, result, workload): (&Arc<CaseName>, &Arc<CaseResult>, &Workload),
    remains: &mut Remains,
) -> Result<(), String> {
    let (mut job, workload) = planned(context, scheduler, result, workload).await?;
    intended(context, result, &job, &workload).await?;
    context.took_off(name, &job);
    let hurried = context.cancel.is_cancelled();
    let limit = if hurried { HURRIED_LIMIT } else { workload.limits.run.map_or(LIMIT, |limit| limit.min(LIMIT)) };
    let by = Instant::now() + limit;
    let late = || format!("still running after {}", format_duration(limit));
    let ended = match launched(scheduler, &job, by).await {
        Ok(Some(launched)) => {
            job = Arc::new(launched);
            timeout_at(by, followed(scheduler, &job)).await.unwrap_or_else(|_| Err(late()))
        }
        Ok(None) => Err(format!("not launched within {}", format_duration(limit))),
        Err(Lost::Failed(why)) => Err(why),
        Err(Lost::NoAnswer(why)) => {
            // What it asked for may still come, after the cleanup.
            remains.may_be_left(&job);
            Err(why)
        }
    };
    clean_up(context, scheduler, &job, remains).await;
    ended.map_err(|why| format!("{why}; see {}", shell::quote(&job.stage.join(LOG_FILE).to_string_lossy())))?;
    removed(context, &job.stage, Places::remove).await
}

/// Its plan, under an identifier of its own, and its folder.
async fn planned(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    result: &CaseResult,
    workload: &Workload,
) -> Result<(Arc<Job>, Workload), String> {
    let identifier = context.identifiers.draw().map_err(|error| chain(&error))?;
    let (session, stage) = (context.session.id.clone(), folder_of_teardown(&workload.stage));
    let workload = Workload { identifier, session, stage, ..workload.clone() };
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
    Ok((job, workload))
}

/// Where the teardown of what is in a stage folder runs.
fn folder_of_teardown(stage: &Path) -> PathBuf {
    stage.with_added_extension("teardown")
}

/// The result of a case with what its teardown could not remove and, if it passed, the commands that remove what it has left for others
/// and is still there. `None`: there is nothing to add. Blocks.
pub(crate) fn kept(result: &CaseResult, remains: &Remains, keeps_stages: bool) -> Option<CaseResult> {
    let stage = &result.provides.as_ref()?.stage;
    let passed = Verdict::of(&result.outcome) == Verdict::Passed && !keeps_stages;
    let folders = passed.then(|| stage.clone()).into_iter().chain([folder_of_teardown(stage)]);
    let remove =
        folders.filter(|folder| folder.is_dir()).map(|folder| format!("rm -r {}", shell::quote(&folder.to_string_lossy())));
    let remove: Vec<_> = remove.filter(|command| !result.delete.contains(command)).collect();
    if remove.is_empty() && remains.is_empty() {
        return None;
    }
    let mut result = result.clone();
    result.delete.extend(remove);
    remains.add_to(&mut result);
    Some(result)
}

/// The plan is on disk before the launch: a crash leaves a row, never an unknown process.
async fn intended(context: &Context, result: &CaseResult, job: &Job, workload: &Workload) -> Result<(), String> {
    let Some(store) = &context.store else { return Ok(()) };
    let CaseResult { name, about, attempt, .. } = result;
    let (session, limits, rules) = (&context.session.id, &workload.limits, &Rules::default());
    let intent = Intent { session, name, about, attempt: *attempt, job, rules, limits, begun: clock::now(), replaces: None };
    store.intent(&intent).await.map_err(|error| format!("store the plan: {}", chain(&error)))
}

/// Why a launch brought no job.
enum Lost {
    Failed(String),
    /// It may still bring one.
    NoAnswer(String),
}

/// Launches as soon as there is room; `None`: there was none in time. A launch that is under way is awaited beyond that time, on a task of its
/// own: dropped half-way it could create something after the cleanup.
async fn launched(scheduler: &Arc<dyn Scheduler>, planned: &Arc<Job>, by: Instant) -> Result<Option<Job>, Lost> {
    loop {
        let (theirs, job) = (Arc::clone(scheduler), Arc::clone(planned));
        let task = tokio::spawn(async move { theirs.launch(&job).await });
        let retry_after = match timeout(LAUNCH_LIMIT, task).await {
            Ok(Ok(Ok(Launch::Launched(job)))) => return Ok(Some(job)),
            Ok(Ok(Ok(Launch::NotNow { retry_after, .. }))) => retry_after.max(PAUSE),
            Ok(Ok(Ok(Launch::Taken { by }))) => return Err(Lost::Failed(format!("its identifier is taken by {by}"))),
            Ok(Ok(Err(error))) => return Err(Lost::Failed(chain(&error))),
            Ok(Err(_)) => return Err(Lost::NoAnswer("the launch panicked".to_owned())),
            Err(_) => {
                return Err(Lost::NoAnswer(format!("the launch was not answered within {}", format_duration(LAUNCH_LIMIT))));
            }
        };
        if timeout_at(by, sleep(retry_after)).await.is_err() {
            return Ok(None);
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

/// Removes what the teardown was, and notes what stays.
async fn clean_up(context: &Context, scheduler: &Arc<dyn Scheduler>, job: &Job, remains: &mut Remains) {
    remains.cleaned(job, cleaned(scheduler, job, Disposition::Delete).await);
    context.landed(&job.identifier);
    if remains.leftovers.items.is_empty()
        && let Some(store) = &context.store
    {
        store.cleaned(job);
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
