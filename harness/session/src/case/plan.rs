//! Plans a case with a slot, on disk; and plans it again if the identifier is taken.
//!
//! ```text
//! identifier -> render -> plan -> stage folder -> intent stored           `prepare`: nothing exists yet
//! Launch::Taken -> another identifier -> ... -> intent stored instead     `Plan::redraw`: nothing exists any more
//! ```
//! The identifier is in labels, names, placeholders, the folder's name and the first line of the stdout: so all of it is rendered
//! again, and one transaction puts the new plan in the place of the old. A crash before it leaves the old row, a crash after it
//! the new one, and of neither has anything been created that is still there.

use crate::{
    case::{
        Render,
        context::Context,
        record::{End, Record, provided},
    },
    crash_points::{self, Point},
    event::Event,
    folders::AttemptId,
    panics::panic_message,
};
use muster_check::cases::test_case::{LaunchFacts, Rendered};
use muster_core::{
    case::{CaseName, Identifier},
    error::chain,
    job::{
        outputs::CaseInputs,
        scheduler::{Job, Scheduler},
        workload::Limits,
    },
    result::{About, CaseResult, Outcome, Phase},
    rules::Rules,
};
use muster_store::Intent;
use muster_text::diagnostic::Diagnostic;
use std::{path::PathBuf, sync::Arc};
use tokio::task::spawn_blocking;

/// A planned case: what is needed to run and to judge it, and no more, for it may wait for hours.
pub(crate) struct Plan {
    /// The last component of its folders.
    pub(crate) folder: String,
    pub(crate) job: Arc<Job>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) limits: Limits,
    /// What makes another plan of it, until it is launched. `None`: its check is not there any more.
    pub(crate) render: Option<Render>,
}

/// What is to be planned.
struct Draft {
    name: Arc<CaseName>,
    attempt: u32,
    folder: String,
    render: Render,
    /// Why its scheduler cannot run it.
    refused: Option<String>,
    /// The stage folder of a plan that this one replaces.
    instead_of: Option<PathBuf>,
}

/// Everything that comes before something may exist. `replaces`: what another process planned of this attempt, and is gone.
pub(crate) async fn prepare(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    (folder, render, refused): (String, Render, Option<String>),
    replaces: Option<&Identifier>,
    record: &mut Record,
) -> Result<Plan, End> {
    if let Some(stop) = context.stop_now(&record.name, record.result.attempt) {
        return Err(context.stopped(stop, Phase::Plan));
    }
    let identifier = context.identifiers.draw();
    let (name, attempt) = (Arc::clone(&record.name), record.result.attempt);
    let draft = Draft { name, attempt, folder, render, refused, instead_of: None };
    let planned = planned(context, scheduler, draft, identifier).await;
    let case = Arc::clone(&record.name);
    let report_started = || context.emit(Event::Started(case));
    let (plan, about) = match planned {
        Ok(planned) => planned,
        Err(end) => {
            if end.outcome != Outcome::Skip {
                report_started();
            }
            return Err(end);
        }
    };
    plan.describe_in(record);
    crash_points::reached(Point::Planned);
    let stored = plan.store(context, record, &about, replaces).await;
    crash_points::reached(Point::IntentStored);
    report_started();
    record.result.about = about;
    stored.map(|()| plan)
}

impl Plan {
    /// Becomes a plan with another identifier, in the store too. Nothing of the old one may be left.
    pub(crate) async fn redraw(
        &mut self,
        context: &Arc<Context>,
        scheduler: &Arc<dyn Scheduler>,
        record: &mut Record,
    ) -> Result<(), End> {
        let Some(render) = self.render.clone() else {
            let cause = "its identifier is in use, and its check no longer exists, so it cannot be planned again: run it again";
            return Err(End::infra(Phase::Launch, cause));
        };
        let identifier = context.identifiers.draw();
        let (name, attempt, folder) = (Arc::clone(&record.name), record.result.attempt, self.folder.clone());
        let draft = Draft { name, attempt, folder, render, refused: None, instead_of: Some(self.job.stage.clone()) };
        let (plan, about) = planned(context, scheduler, draft, identifier).await?;
        plan.describe_in(record);
        plan.store(context, record, &about, Some(&self.job.identifier)).await?;
        record.result.about = about;
        *self = plan;
        Ok(())
    }

    /// What the result will say of it.
    pub(crate) fn describe_in(&self, record: &mut Record) {
        record.result.folder = Some(self.job.stage.clone());
        record.result.identifier = Some(self.job.identifier.clone());
        record.result.outputs = provided(&self.rules, &self.job.stage);
    }

    /// From here on a crash leaves a row, never an unknown pod.
    async fn store(&self, context: &Context, record: &Record, about: &About, replaces: Option<&Identifier>) -> Result<(), End> {
        let Some(store) = &context.store else { return Ok(()) };
        let (session, name, begun) = (&context.session.id, &*record.name, record.result.times.begun);
        let CaseResult { attempt, purpose, .. } = *record.result;
        let Self { job, rules, limits, .. } = self;
        let intent = Intent { session, name, about, attempt, purpose, job, rules, limits, begun, replaces };
        store.intent(&intent).await.map_err(|error| End::infra(Phase::Plan, format!("store the plan: {}", chain(&error))))
    }
}

/// Plans on a blocking thread.
async fn planned(
    context: &Arc<Context>,
    scheduler: &Arc<dyn Scheduler>,
    draft: Draft,
    identifier: Identifier,
) -> Result<(Plan, About), End> {
    let (context, scheduler) = (Arc::clone(context), Arc::clone(scheduler));
    let work = spawn_blocking(move || plan(&context, &*scheduler, draft, identifier));
    work.await.unwrap_or_else(|lost| {
        let why = lost.try_into_panic().map(|panic| panic_message(&*panic).to_owned());
        Err(End::infra(Phase::Plan, format!("planning panicked: {}", why.unwrap_or_default())))
    })
}

/// Renders, plans and makes the stage folder. Blocks.
fn plan(context: &Context, scheduler: &dyn Scheduler, draft: Draft, identifier: Identifier) -> Result<(Plan, About), End> {
    if let Some(stop) = context.stop_now(&draft.name, draft.attempt) {
        // Others may have kept the thread for long.
        return Err(context.stopped(stop, Phase::Plan));
    }
    let Draft { name, attempt: number, folder, render, refused, instead_of } = draft;
    let stage = context.folders.stage_of(AttemptId { case: &name, folder: &folder, number, identifier: &identifier });
    let facts = LaunchFacts { identifier, session: context.session.id.clone(), stage, inputs: CaseInputs::default() };
    let mistakes = |mistakes: Vec<Diagnostic>| End::config(Phase::Plan, sentence(&mistakes));
    let Rendered { workload, rules, about, skip, .. } = render(&facts).map_err(mistakes)?;
    if let Some(why) = skip {
        return Err(End::new(Outcome::Skip, Phase::Plan, why));
    }
    if let Some(why) = refused {
        return Err(End::config(Phase::Plan, why));
    }
    let job = scheduler.plan(&workload).map_err(mistakes)?;
    // Only beside another session's are two folders of an attempt named differently.
    let old = instead_of.filter(|old| *old != facts.stage && old.is_dir());
    let removed = old.map_or(Ok(()), |old| context.folders.remove(&old));
    removed.and_then(|()| context.folders.create(&facts.stage)).map_err(|error| End::infra(Phase::Plan, chain(&error)))?;
    let (job, rules) = (Arc::new(job), Arc::new(rules));
    Ok((Plan { folder, job, rules, limits: workload.limits, render: Some(render) }, about))
}

/// All mistakes in one sentence.
fn sentence(mistakes: &[Diagnostic]) -> String {
    let one = |mistake: &Diagnostic| match &mistake.hint {
        Some(hint) => format!("{} ({hint})", mistake.message),
        None => mistake.message.clone(),
    };
    mistakes.iter().map(one).collect::<Vec<_>>().join("; ")
}
