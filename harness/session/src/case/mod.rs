//! One case's life, from its turn to its result.
//!
//! ```text
//! identifier -> render -> plan -> stage folder -> intent stored -> Begun          `plan`: nothing exists yet
//! (or: what a process that is gone had begun -> Begun                             `take_up`: something may exist)
//!   -> launch -> wait ... -> (stop) -> log drained                                 `flight`: something may exist
//!   -> stdout -> judge -> files kept                                               `judging`: what ended by itself
//!   -> cleanup_after(outcome) -> result
//! ```
//! What each step decides is decided by `muster_core::pipeline`. Every mistake becomes an outcome with a cause of one
//! sentence; a panic anywhere becomes `error{infra}` of this case and of no other.

pub(crate) mod attempt;
pub(crate) mod context;
pub mod judging;
mod plan;
pub mod queued_case;
pub(crate) mod record;

use crate::{
    case::{
        attempt::{Flight, Over},
        context::{Context, InFlight},
        judging::{Home, judged, unjudged},
        plan::{Plan, prepare},
        queued_case::{Begun, Render, Turn, Work},
        record::{End, Record},
    },
    crash_points::{self, Step},
    event::Event,
    folders::{Attempt, PlacesError},
    log::spool::Spool,
    panics::panic_message,
};
use futures_util::FutureExt;
use muster_core::{
    error::chain,
    pipeline::cleanup_after,
    result::{CaseResult, Outcome, Phase},
    scheduler::{Disposition, Disruption, Ending, Job, JobStatus, Scheduler},
    stage_folder::LOG_FILE,
};
use muster_host::clock;
use muster_text::shell;
use std::{panic::AssertUnwindSafe, path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// A planned case, and how far it has come.
struct Ready {
    plan: Box<Plan>,
    stands: Stands,
}

/// Where a case stands before its flight.
enum Stands {
    /// Nothing was launched.
    OnTheGround,
    /// A process that is gone has launched it.
    InTheAir,
    /// The same, and `muster sweep` has removed it.
    Swept,
    /// And had put its log together, with how it ended.
    Landed(Box<(Spool, Ending)>),
}

/// Runs a case and survives it.
pub(crate) async fn contained(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, turn: Turn) -> CaseResult {
    let (name, about, attempt, begun) = (Arc::clone(&turn.name), Arc::clone(&turn.about), turn.attempt, clock::now());
    let life = Box::pin(run_case(context, scheduler, turn));
    let panic = match AssertUnwindSafe(life).catch_unwind().await {
        Ok(result) => return result,
        Err(panic) => panic,
    };
    let mut record = Record::of(Arc::clone(&name), about(), attempt, begun);
    let end = End::infra(Phase::Run, format!("a step of this case panicked: {}", panic_message(&*panic)));
    if let Some(lost) = context.in_flight_of(&name) {
        record.identifier = Some(lost.job.identifier.clone());
        record.folder = Some(lost.job.stage.clone());
        point_to(&lost.job.stage, &mut record);
        let flight = Flight::recovered(context, scheduler, lost);
        Box::pin(flight.cleanup(cleanup_after(&end.outcome), &mut record)).await;
    }
    record.close(end, clock::now())
}

async fn run_case(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, turn: Turn) -> CaseResult {
    let mut record = Record::new(&turn, clock::now());
    // Boxed, here and below, is what is over before the long wait, or comes after it: thousands of cases wait at once.
    let ready = Box::pin(async {
        match turn.work {
            Work::Fresh(render) => {
                let plan = prepare(context, scheduler, (turn.folder, render), None, &mut record).await?;
                Ok(Ready { plan: Box::new(plan), stands: Stands::OnTheGround })
            }
            Work::Begun { begun, render } => take_up(context, scheduler, turn.folder, (*begun, render), &mut record).await,
            Work::Anew(job, render) => {
                let job = Arc::new(*job);
                remove_lost(context, scheduler, Arc::clone(&job), &mut record).await;
                let plan = prepare(context, scheduler, (turn.folder, render), Some(&job.identifier), &mut record).await?;
                Ok(Ready { plan: Box::new(plan), stands: Stands::OnTheGround })
            }
        }
    });
    let end = match ready.await {
        Ok(ready) => Box::pin(attempt(context, scheduler, ready, &mut record)).await,
        Err(end) => end,
    };
    record.close(end, clock::now())
}

/// Goes on with what a process that is gone had begun. What was launched is followed from where it is now; of what may
/// or may not have been launched nothing is left when it is launched anew, so that it runs once.
async fn take_up(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    folder: String,
    (begun, render): (Begun, Option<Render>),
    record: &mut Record,
) -> Result<Ready, End> {
    let Begun { job, rules, limits, launched, begun, launched_at, swept } = begun;
    // What it took counts from its start, not from where this process has come in.
    record.times.begun = begun.unwrap_or(record.times.begun);
    let render = render.filter(|_| !launched);
    let plan = Plan { folder, job: Arc::new(job), rules: Arc::new(rules), limits, render };
    plan.told(record);
    let job = Arc::clone(&plan.job);
    context.emit(Event::Begun { case: Arc::clone(&record.name), identifier: job.identifier.clone(), at: record.times.begun });
    if launched {
        record.times.launched = launched_at;
    }
    if !launched {
        remove_lost(context, scheduler, Arc::clone(&job), record).await;
    }
    let work = {
        let (context, name) = (Arc::clone(context), Arc::clone(&record.name));
        let (folder, number) = (plan.folder.clone(), record.attempt);
        move || {
            if !launched {
                return context.places.create(&job.stage).map(|()| Stands::OnTheGround);
            }
            let attempt = Attempt { case: &name, folder: &folder, number, identifier: &job.identifier };
            let whole = context.places.take_up(&job.stage, attempt)?;
            let unfinished = if swept { Stands::Swept } else { Stands::InTheAir };
            Ok(whole.map_or(unfinished, |whole| Stands::Landed(Box::new(whole))))
        }
    };
    let taken = spawn_blocking(work).await.map_err(|_| End::infra(Phase::Plan, "taking the stage folder over panicked"))?;
    let stands = taken.map_err(|error: PlacesError| End::infra(Phase::Plan, chain(&error)))?;
    Ok(Ready { plan: Box::new(plan), stands })
}

/// Removes what a process that is gone may have launched.
async fn remove_lost(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, job: Arc<Job>, record: &mut Record) {
    context.identifiers.learn(&job.identifier);
    let lost = InFlight { case: Arc::clone(&record.name), job, tears_down: false };
    Box::pin(Flight::recovered(context, scheduler, lost).cleanup(Disposition::Delete, record)).await;
}

/// From the launch to the last trace.
async fn attempt(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, ready: Ready, record: &mut Record) -> End {
    let Ready { mut plan, stands } = ready;
    let mut flight = Flight::new(context, scheduler, Arc::clone(&record.name), Arc::clone(&plan.job), plan.limits)
        .with_log_limit(plan.rules.log_limit);
    let end = match flown(&mut flight, &mut plan, stands, record).await {
        Over::Nothing(end) => end,
        Over::Ended(ended) => {
            let (name, number) = (Arc::clone(&record.name), record.attempt);
            let Plan { folder, job, rules, limits, .. } = &*plan;
            let (folder, identifier, stage) = (folder.clone(), job.identifier.clone(), job.stage.clone());
            let home = Home { name, folder, number, identifier, stage };
            let end = Box::pin(judged(context, record, Arc::clone(rules), *ended, limits.judge, home)).await;
            crash_points::reached(Step::Judged);
            end
        }
        Over::Stopped(end, spool) => {
            let exits = record.exits.clone();
            Box::pin(unjudged(record, *spool, exits)).await;
            end
        }
    };
    let stage = &plan.job.stage;
    Box::pin(flight.cleanup(cleanup_after(&end.outcome), record)).await;
    crash_points::reached(Step::CleanedUp);
    if end.outcome == Outcome::Abort && !record.has_log {
        // It never ran: there is nothing to look at.
        let (shared, unused) = (Arc::clone(context), stage.clone());
        if let Ok(Ok(())) = spawn_blocking(move || shared.places.remove(&unused)).await {
            record.folder = None;
        }
    }
    point_to(stage, record);
    end
}

/// From where it stands until nothing of it runs.
async fn flown(flight: &mut Flight<'_>, plan: &mut Plan, stands: Stands, record: &mut Record) -> Over {
    let is_swept = matches!(stands, Stands::Swept);
    match stands {
        Stands::OnTheGround => {
            if let Err(end) = Box::pin(flight.launch(plan, record)).await {
                return Over::Nothing(end);
            }
        }
        Stands::InTheAir | Stands::Swept => flight.already_launched(),
        Stands::Landed(whole) => {
            flight.already_launched();
            let (spool, ending) = *whole;
            record.saw(&JobStatus::Ended(ending.clone()));
            return Over::Ended(Box::new((ending, spool)));
        }
    }
    let over = flight.run(record).await;
    if is_swept { removed_by_sweep(over) } else { over }
}

/// However it looks now: nothing of it ended by itself, and its exit status is that of a signal that `muster sweep` has sent.
fn removed_by_sweep(over: Over) -> Over {
    let end = End::new(Outcome::Disrupted(Disruption::Deleted), Phase::Run, "removed by muster sweep");
    match over {
        Over::Ended(ended) => Over::Stopped(end, Box::new(ended.1)),
        Over::Stopped(_, spool) => Over::Stopped(end, spool),
        Over::Nothing(_) => Over::Nothing(end),
    }
}

/// Says how to look at what is in the stage folder, and how to be rid of it.
fn point_to(stage: &Path, record: &mut Record) {
    if record.folder.as_deref() != Some(stage) {
        return;
    }
    if record.has_log {
        record.look.push(format!("less {}", shell::quote(&stage.join(LOG_FILE).to_string_lossy())));
    }
    record.delete.push(format!("rm -r {}", shell::quote(&stage.to_string_lossy())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_waits_is_small() {
        fn size<F, T>(_: impl FnOnce(T) -> F) -> usize {
            size_of::<F>()
        }
        type Arguments<'a> = (&'a Arc<Context>, &'a Arc<dyn Scheduler>, Turn);
        type Waiting<'a> = (&'a Arc<Context>, &'a Arc<dyn Scheduler>, Ready, &'a mut Record);
        let contained = size(|(context, scheduler, turn): Arguments<'_>| contained(context, scheduler, turn));
        let run_case = size(|(context, scheduler, turn): Arguments<'_>| run_case(context, scheduler, turn));
        let attempt = size(|(context, scheduler, ready, record): Waiting<'_>| attempt(context, scheduler, ready, record));
        let sizes = [contained, run_case, attempt];
        assert!(sizes.iter().sum::<usize>() <= 3200, "{sizes:?}");
    }
}
