//! One case, from its slot to its result.
//!
//! ```text
//! identifier -> render -> plan -> stage folder -> intent stored                   `plan`: nothing exists yet
//! (or: what a process that is gone had stored                                       `take_over`: something may exist)
//!   -> launch -> wait ... -> (stop) -> log drained                                 `attempt`: something may exist
//!   -> stdout -> judge -> files kept                                               `judging`: what ended by itself
//!   -> cleanup_after(outcome) -> result
//! ```
//! What each step decides is decided by `muster_core::decisions::pipeline`. Every mistake becomes an outcome with a cause of one
//! sentence; a panic anywhere becomes `error{infra}` of this case and of no other.

pub(crate) mod attempt;
pub(crate) mod context;
pub mod judging;
mod outages;
mod plan;
mod queued_case;
pub(crate) mod record;

pub use queued_case::{Answer, Describe, QueuedCase, Refused, Render, StoredCase, Work, render};

use crate::{
    case::{
        attempt::{Attempt, AttemptEnd},
        context::{Context, InFlight},
        judging::{AttemptFiles, assemble_unjudged, judge},
        plan::{Plan, prepare},
        record::{End, Record},
    },
    crash_points::{self, Point},
    event::Event,
    folders::{AttemptId, FoldersError},
    log::spool::Spool,
    panics::panic_message,
};
use futures_util::FutureExt;
use muster_core::{
    decisions::pipeline::cleanup_after,
    error::chain,
    job::{
        scheduler::{Disposition, Disruption, Ending, Job, JobStatus, Scheduler},
        stage_folder::LOG_FILE,
    },
    result::{CaseResult, Outcome, Phase},
};
use muster_host::clock;
use muster_text::shell;
use std::{panic::AssertUnwindSafe, path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// A planned case, and how far it is.
struct Ready {
    plan: Box<Plan>,
    progress: Progress,
}

/// How far a case is before its attempt.
enum Progress {
    /// Nothing was launched.
    NotLaunched,
    /// An earlier process may have launched it. It is launched again, which finds it if it is there.
    MayRun,
    /// An earlier process has launched it.
    Launched,
    /// An earlier process has launched it, and `muster sweep` has removed it.
    Swept,
    /// An earlier process has launched it and assembled its log.
    LogAssembled(Box<(Spool, Ending)>),
}

/// Runs a case and survives it.
pub(crate) async fn contained(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, queued: QueuedCase) -> CaseResult {
    let (name, about, begun) = (Arc::clone(&queued.name), Arc::clone(&queued.about), clock::now());
    let (attempt, purpose) = (queued.attempt, queued.purpose);
    let life = Box::pin(run_case(context, scheduler, queued));
    let panic = match AssertUnwindSafe(life).catch_unwind().await {
        Ok(result) => return result,
        Err(panic) => panic,
    };
    let mut record = Record::of(Arc::clone(&name), about(), attempt, begun);
    record.result.purpose = purpose;
    let end = End::infra(Phase::Run, format!("a step of this case panicked: {}", panic_message(&*panic)));
    if let Some(lost) = context.in_flight_of(&name) {
        record.result.identifier = Some(lost.job.identifier.clone());
        record.result.folder = Some(lost.job.stage.clone());
        add_look_commands(&lost.job.stage, &mut record);
        let attempt = Attempt::of_lost_case(context, scheduler, lost);
        Box::pin(attempt.cleanup(cleanup_after(&end.outcome), &mut record)).await;
    }
    record.close(end, clock::now())
}

async fn run_case(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, queued: QueuedCase) -> CaseResult {
    let (mut record, refused) = (Record::new(&queued, clock::now()), queued.why_refused());
    // Boxed, here and below, is what is over before the long wait, or comes after it: thousands of cases wait at once.
    let ready = Box::pin(async {
        match queued.work {
            Work::New(render) => {
                let plan = prepare(context, scheduler, (queued.folder, render, refused), None, &mut record).await?;
                Ok(Ready { plan: Box::new(plan), progress: Progress::NotLaunched })
            }
            Work::Stored { stored, render } => take_over(context, scheduler, queued.folder, (*stored, render), &mut record).await,
            Work::Relaunch(job, render) => {
                let job = Arc::new(*job);
                remove_unknown(context, scheduler, Arc::clone(&job), &mut record).await;
                let what = (queued.folder, render, refused);
                let plan = prepare(context, scheduler, what, Some(&job.identifier), &mut record).await?;
                Ok(Ready { plan: Box::new(plan), progress: Progress::NotLaunched })
            }
        }
    });
    let end = match ready.await {
        Ok(ready) => Box::pin(attempt(context, scheduler, ready, &mut record)).await,
        Err(end) => end,
    };
    record.close(end, clock::now())
}

/// Continues a case of an earlier process. A job that was launched is followed from its current state. A job that may have
/// been launched runs once: it is launched again and found, or, if it ends with its process, it is removed before.
async fn take_over(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    folder: String,
    (stored, render): (StoredCase, Option<Render>),
    record: &mut Record,
) -> Result<Ready, End> {
    let StoredCase { job, rules, limits, launched, may_run, started, launched_at, swept } = stored;
    // What it took counts from its start, not from where this process has come in.
    record.result.times.begun = started.unwrap_or(record.result.times.begun);
    let render = render.filter(|_| !launched);
    let plan = Plan { folder, job: Arc::new(job), rules: Arc::new(rules), limits, render };
    plan.describe_in(record);
    let job = Arc::clone(&plan.job);
    context.emit(Event::Started(Arc::clone(&record.name)));
    if launched {
        record.result.times.launched = launched_at;
    }
    context.identifiers.learn(&job.identifier);
    let is_new = !launched && !may_run;
    if is_new {
        remove_unknown(context, scheduler, Arc::clone(&job), record).await;
    }
    let work = {
        let (context, name) = (Arc::clone(context), Arc::clone(&record.name));
        let (folder, number) = (plan.folder.clone(), record.result.attempt);
        move || {
            if is_new {
                return context.folders.create(&job.stage).map(|()| Progress::NotLaunched);
            }
            let attempt = AttemptId { case: &name, folder: &folder, number, identifier: &job.identifier };
            let whole = context.folders.take_over(&job.stage, attempt)?;
            let unfinished = match (launched, swept) {
                (false, _) => Progress::MayRun,
                (true, true) => Progress::Swept,
                (true, false) => Progress::Launched,
            };
            Ok(whole.map_or(unfinished, |whole| Progress::LogAssembled(Box::new(whole))))
        }
    };
    let taken = spawn_blocking(work).await.map_err(|_| End::infra(Phase::Plan, "taking the stage folder over panicked"))?;
    let progress = taken.map_err(|error: FoldersError| End::infra(Phase::Plan, chain(&error)))?;
    Ok(Ready { plan: Box::new(plan), progress })
}

/// Removes what a process that is gone may have launched.
async fn remove_unknown(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, job: Arc<Job>, record: &mut Record) {
    context.identifiers.learn(&job.identifier);
    let lost = InFlight { case: Arc::clone(&record.name), job, tears_down: false };
    Box::pin(Attempt::of_lost_case(context, scheduler, lost).cleanup(Disposition::Delete, record)).await;
}

/// From the launch to the last trace.
async fn attempt(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, ready: Ready, record: &mut Record) -> End {
    let Ready { mut plan, progress } = ready;
    let mut attempt = Attempt::new(context, scheduler, Arc::clone(&record.name), Arc::clone(&plan.job), plan.limits)
        .with_log_limit(plan.rules.log_limit)
        .numbered(record.result.attempt);
    let over = run_from(&mut attempt, &mut plan, progress, record).await;
    let end = match over {
        AttemptEnd::NothingRan(end) => end,
        AttemptEnd::Ended(ended) => {
            let end = judged(context, &attempt, &plan, *ended, record).await;
            crash_points::reached(Point::Judged);
            end
        }
        AttemptEnd::Shown(end, ended) => {
            judged(context, &attempt, &plan, *ended, record).await;
            end
        }
        AttemptEnd::Stopped(end, spool) => {
            let exits = record.result.exits.clone();
            Box::pin(assemble_unjudged(record, *spool, exits)).await;
            end
        }
    };
    let stage = &plan.job.stage;
    Box::pin(attempt.cleanup(cleanup_after(&end.outcome), record)).await;
    crash_points::reached(Point::CleanedUp);
    if end.outcome == Outcome::Abort && !record.has_log {
        // It never ran: there is nothing to look at.
        let (shared, unused) = (Arc::clone(context), stage.clone());
        if let Ok(Ok(())) = spawn_blocking(move || shared.folders.remove(&unused)).await {
            record.result.folder = None;
        }
    }
    add_look_commands(stage, record);
    end
}

/// Judges its log, as planned.
async fn judged(context: &Arc<Context>, attempt: &Attempt<'_>, plan: &Plan, ended: (Ending, Spool), record: &mut Record) -> End {
    let (name, number) = (Arc::clone(&record.name), record.result.attempt);
    let Plan { folder, job, rules, limits, .. } = plan;
    let (folder, identifier, stage) = (folder.clone(), job.identifier.clone(), job.stage.clone());
    let files = AttemptFiles { name, folder, number, identifier, stage };
    attempt.store_phase(Phase::Sanity, record);
    Box::pin(judge(context, record, Arc::clone(rules), ended, limits.judge, files)).await
}

/// From there until nothing of it runs.
async fn run_from(attempt: &mut Attempt<'_>, plan: &mut Plan, progress: Progress, record: &mut Record) -> AttemptEnd {
    let is_swept = matches!(progress, Progress::Swept);
    match progress {
        Progress::NotLaunched | Progress::MayRun => {
            if matches!(progress, Progress::MayRun) {
                attempt.already_launched();
            }
            if let Err(end) = Box::pin(attempt.launch(plan, record)).await {
                return AttemptEnd::NothingRan(end);
            }
        }
        Progress::Launched | Progress::Swept => attempt.already_launched(),
        Progress::LogAssembled(whole) => {
            attempt.already_launched();
            let (spool, ending) = *whole;
            record.saw(&JobStatus::Ended(ending.clone()));
            return AttemptEnd::Ended(Box::new((ending, spool)));
        }
    }
    let over = attempt.run(record).await;
    if is_swept { removed_by_sweep(over) } else { over }
}

/// However it looks now: nothing of it ended by itself, and its exit status is that of a signal that `muster sweep` has sent.
fn removed_by_sweep(over: AttemptEnd) -> AttemptEnd {
    let end = End::new(Outcome::Disrupted(Disruption::Deleted), Phase::Run, "removed by muster sweep");
    match over {
        AttemptEnd::Ended(ended) | AttemptEnd::Shown(_, ended) => AttemptEnd::Stopped(end, Box::new(ended.1)),
        AttemptEnd::Stopped(_, spool) => AttemptEnd::Stopped(end, spool),
        AttemptEnd::NothingRan(_) => AttemptEnd::NothingRan(end),
    }
}

/// Says how to look at what is in the stage folder, and how to be rid of it.
fn add_look_commands(stage: &Path, record: &mut Record) {
    if record.result.folder.as_deref() != Some(stage) {
        return;
    }
    if record.has_log {
        record.result.look.push(format!("less {}", shell::quote(&stage.join(LOG_FILE).to_string_lossy())));
    }
    record.result.delete.push(format!("rm -r {}", shell::quote(&stage.to_string_lossy())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_waits_is_small() {
        fn size<F, T>(_: impl FnOnce(T) -> F) -> usize {
            size_of::<F>()
        }
        type Arguments<'a> = (&'a Arc<Context>, &'a Arc<dyn Scheduler>, QueuedCase);
        type Waiting<'a> = (&'a Arc<Context>, &'a Arc<dyn Scheduler>, Ready, &'a mut Record);
        let contained = size(|(context, scheduler, queued): Arguments<'_>| contained(context, scheduler, queued));
        let run_case = size(|(context, scheduler, queued): Arguments<'_>| run_case(context, scheduler, queued));
        let attempt = size(|(context, scheduler, ready, record): Waiting<'_>| attempt(context, scheduler, ready, record));
        let sizes = [contained, run_case, attempt];
        assert!(sizes.iter().sum::<usize>() <= 3200, "{sizes:?}");
    }
}
