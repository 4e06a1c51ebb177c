//! One case's life, from its turn to its result.
//!
//! ```text
//! identifier -> render -> plan -> stage folder -> intent stored -> Begun          `prepare`: nothing exists yet
//! (or: what a process that is gone had begun -> Begun                             `take_up`: something may exist)
//!   -> launch -> wait ... -> (stop) -> log drained                                 `flight`: something may exist
//!   -> stdout -> judge -> files kept                                               `judging`: what ended by itself
//!   -> cleanup_after(outcome) -> result
//! ```
//! What each step decides is decided by `muster_core::pipeline`. Every mistake becomes an outcome with a cause of one
//! sentence; a panic anywhere becomes `error{infra}` of this case and of no other.

use crate::{
    clock,
    context::{Context, InFlight},
    event::Event,
    flight::{Flight, Over},
    journal::{self, Step},
    judging::{Home, judged, unjudged},
    places::{Attempt, PlacesError},
    record::{End, Record, provided},
    spool::Spool,
    turn::{Begun, Render, Turn, Work},
};
use futures_util::FutureExt;
use muster_core::{
    case::{CaseName, Identifier},
    diagnostic::Diagnostic,
    error::chain,
    fixture::Given,
    pipeline::cleanup_after,
    result::{About, CaseResult, Outcome, Phase},
    rules::Rules,
    scheduler::{Disposition, Ending, Job, JobStatus, Scheduler},
    script::LOG_FILE,
    shell,
    test_case::{LaunchFacts, Rendered},
    workload::Limits,
};
use muster_store::Intent;
use std::{any::Any, panic::AssertUnwindSafe, path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// A planned case: what is needed to run and to judge it, and no more, for it may wait for hours.
struct Ready {
    folder: String,
    job: Arc<Job>,
    rules: Arc<Rules>,
    limits: Limits,
    /// How far it has come.
    stands: Stands,
}

/// Where a case stands before its flight.
enum Stands {
    /// Nothing was launched.
    OnTheGround,
    /// A process that is gone has launched it.
    InTheAir,
    /// And had put its log together, with how it ended.
    Landed(Box<(Spool, Ending)>),
}

/// A case of which nothing exists yet.
struct Fresh {
    folder: String,
    render: Render,
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

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

async fn run_case(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, turn: Turn) -> CaseResult {
    let mut record = Record::new(&turn, clock::now());
    // Boxed, here and below, is what is over before the long wait, or comes after it: thousands of cases wait at once.
    let ready = Box::pin(async {
        match turn.work {
            Work::Fresh(render) => prepare(context, scheduler, Fresh { folder: turn.folder, render }, &mut record).await,
            Work::Begun(begun) => take_up(context, scheduler, turn.folder, *begun, &mut record).await,
            Work::Anew(job, render) => {
                remove_lost(context, scheduler, Arc::new(*job), &mut record).await;
                prepare(context, scheduler, Fresh { folder: turn.folder, render }, &mut record).await
            }
        }
    });
    let end = match ready.await {
        Ok(ready) => Box::pin(attempt(context, scheduler, ready, &mut record)).await,
        Err(end) => end,
    };
    record.close(end, clock::now())
}

/// Everything that comes before something may exist.
async fn prepare(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    fresh: Fresh,
    record: &mut Record,
) -> Result<Ready, End> {
    if context.cancel.is_cancelled() {
        return Err(End::new(Outcome::Abort, Phase::Plan, context.why_cancelled()));
    }
    let identifier = context.identifiers.draw().map_err(|error| End::infra(Phase::Plan, chain(&error)))?;
    let work = {
        let (context, scheduler, identifier) = (Arc::clone(context), Arc::clone(scheduler), identifier.clone());
        let (name, attempt) = (Arc::clone(&record.name), record.attempt);
        move || plan(&context, &*scheduler, (&name, attempt), fresh, identifier)
    };
    let planned = spawn_blocking(work).await.unwrap_or_else(|lost| {
        let why = lost.try_into_panic().map(|panic| panic_message(&*panic).to_owned());
        Err(End::infra(Phase::Plan, format!("planning panicked: {}", why.unwrap_or_default())))
    });
    let begun = || context.emit(Event::Begun { case: Arc::clone(&record.name), identifier, at: clock::now() });
    let (ready, about) = match planned {
        Ok(planned) => planned,
        Err(end) => {
            if end.outcome != Outcome::Skip {
                begun();
            }
            return Err(end);
        }
    };
    record.folder = Some(ready.job.stage.clone());
    record.identifier = Some(ready.job.identifier.clone());
    record.provides = provided(&ready.rules, &ready.job.stage);
    journal::reached(Step::Planned);
    let stored = intent(context, record, &about, &ready).await;
    journal::reached(Step::IntentStored);
    begun();
    record.about = about;
    stored.map(|()| ready)
}

/// From here on a crash leaves a row, never an unknown pod.
async fn intent(context: &Context, record: &Record, about: &About, ready: &Ready) -> Result<(), End> {
    let Some(store) = &context.store else { return Ok(()) };
    let (session, name, attempt) = (&context.session.id, &*record.name, record.attempt);
    let intent = Intent { session, name, about, attempt, job: &ready.job, rules: &ready.rules, limits: &ready.limits };
    store.intent(&intent).await.map_err(|error| End::infra(Phase::Plan, format!("store the plan: {}", chain(&error))))
}

/// Renders, plans and makes the stage folder. Blocks.
fn plan(
    context: &Context,
    scheduler: &dyn Scheduler,
    (name, attempt): (&CaseName, u32),
    Fresh { folder, render }: Fresh,
    identifier: Identifier,
) -> Result<(Ready, About), End> {
    let stage = context.places.stage_of(Attempt { case: name, folder: &folder, number: attempt, identifier: &identifier });
    let facts = LaunchFacts { identifier, session: context.session.id.clone(), stage, given: Given::default() };
    let mistakes = |mistakes: Vec<Diagnostic>| End::config(Phase::Plan, sentence(&mistakes));
    let Rendered { workload, rules, about, skip, .. } = render(&facts).map_err(mistakes)?;
    if let Some(why) = skip {
        return Err(End::new(Outcome::Skip, Phase::Plan, why));
    }
    let job = scheduler.plan(&workload).map_err(mistakes)?;
    context.places.create(&facts.stage).map_err(|error| End::infra(Phase::Plan, chain(&error)))?;
    let (job, rules) = (Arc::new(job), Arc::new(rules));
    Ok((Ready { folder, job, rules, limits: workload.limits, stands: Stands::OnTheGround }, about))
}

/// Goes on with what a process that is gone had begun. What was launched is followed from where it is now; of what may
/// or may not have been launched nothing is left when it is launched anew, so that it runs once.
async fn take_up(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    folder: String,
    begun: Begun,
    record: &mut Record,
) -> Result<Ready, End> {
    let Begun { job, rules, limits, launched } = begun;
    record.folder = Some(job.stage.clone());
    record.identifier = Some(job.identifier.clone());
    record.provides = provided(&rules, &job.stage);
    context.emit(Event::Begun { case: Arc::clone(&record.name), identifier: job.identifier.clone(), at: clock::now() });
    let job = Arc::new(job);
    if !launched {
        remove_lost(context, scheduler, Arc::clone(&job), record).await;
    }
    let work = {
        let (context, job, name) = (Arc::clone(context), Arc::clone(&job), Arc::clone(&record.name));
        let (folder, number) = (folder.clone(), record.attempt);
        move || {
            if !launched {
                return context.places.create(&job.stage).map(|()| Stands::OnTheGround);
            }
            let attempt = Attempt { case: &name, folder: &folder, number, identifier: &job.identifier };
            let whole = context.places.take_up(&job.stage, attempt)?;
            Ok(whole.map_or(Stands::InTheAir, |whole| Stands::Landed(Box::new(whole))))
        }
    };
    let taken = spawn_blocking(work).await.map_err(|_| End::infra(Phase::Plan, "taking the stage folder over panicked"))?;
    let stands = taken.map_err(|error: PlacesError| End::infra(Phase::Plan, chain(&error)))?;
    Ok(Ready { folder, job, rules: Arc::new(rules), limits, stands })
}

/// Removes what a process that is gone may have launched.
async fn remove_lost(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, job: Arc<Job>, record: &mut Record) {
    let lost = InFlight { case: Arc::clone(&record.name), job };
    Box::pin(Flight::recovered(context, scheduler, lost).cleanup(Disposition::Delete, record)).await;
}

/// All mistakes in one sentence.
fn sentence(mistakes: &[Diagnostic]) -> String {
    let one = |mistake: &Diagnostic| match &mistake.hint {
        Some(hint) => format!("{} ({hint})", mistake.message),
        None => mistake.message.clone(),
    };
    mistakes.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// From the launch to the last trace.
async fn attempt(context: &Arc<Context>, scheduler: &Arc<dyn Scheduler>, ready: Ready, record: &mut Record) -> End {
    let Ready { folder, job, rules, limits, stands } = ready;
    let planned = Arc::clone(&job);
    let mut flight = Flight::new(context, scheduler, Arc::clone(&record.name), job, limits);
    let end = match flown(&mut flight, stands, record).await {
        Over::Nothing(end) => end,
        Over::Ended(ending, spool) => {
            let (name, number) = (Arc::clone(&record.name), record.attempt);
            let (identifier, stage) = (planned.identifier.clone(), planned.stage.clone());
            let home = Home { name, folder, number, identifier, stage };
            let end = Box::pin(judged(context, record, rules, (ending, spool), limits.judge, home)).await;
            journal::reached(Step::Judged);
            end
        }
        Over::Stopped(end, spool) => {
            let exits = record.exits.clone();
            Box::pin(unjudged(record, spool, exits)).await;
            end
        }
    };
    Box::pin(flight.cleanup(cleanup_after(&end.outcome), record)).await;
    journal::reached(Step::CleanedUp);
    if end.outcome == Outcome::Abort && !record.has_log {
        // It never ran: there is nothing to look at.
        let (shared, stage) = (Arc::clone(context), planned.stage.clone());
        if let Ok(Ok(())) = spawn_blocking(move || shared.places.remove(&stage)).await {
            record.folder = None;
        }
    }
    point_to(&planned.stage, record);
    end
}

/// From where it stands until nothing of it runs.
async fn flown(flight: &mut Flight<'_>, stands: Stands, record: &mut Record) -> Over {
    match stands {
        Stands::OnTheGround => {
            if let Err(end) = Box::pin(flight.launch(record)).await {
                return Over::Nothing(end);
            }
        }
        Stands::InTheAir => flight.already_launched(),
        Stands::Landed(whole) => {
            flight.already_launched();
            let (spool, ending) = *whole;
            record.saw(&JobStatus::Ended(ending.clone()));
            return Over::Ended(ending, spool);
        }
    }
    flight.run(record).await
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
