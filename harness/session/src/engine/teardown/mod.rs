//! The teardown of the outputs of a case: its `teardown_cmds` run, and its stage folder is removed.

mod run;

use crate::{
    case::context::Context,
    engine::dependencies::Release,
    event::Event,
    folders::{Folders, FoldersError},
};
use muster_core::{
    case::CaseName,
    error::chain,
    job::scheduler::{Job, Leftovers, Scheduler},
    result::{CaseResult, Completion},
};
use muster_text::shell;
use run::Teardown;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{task::spawn_blocking, time::Instant};

/// What a teardown could not do: for the report of the case that it is of.
#[derive(Debug, Default, Clone)]
pub(crate) struct TeardownReport {
    warnings: Vec<String>,
    leftovers: Leftovers,
    /// [`with_leftovers`] has something to add.
    pub(crate) has_leftovers: bool,
}

impl TeardownReport {
    fn is_empty(&self) -> bool {
        self.warnings.is_empty() && self.leftovers == Leftovers::default()
    }

    /// Notes whether something is left of the case that it is of. Blocks.
    pub(crate) fn looked(self, result: &CaseResult, keeps_stages: bool) -> Self {
        let has_leftovers = with_leftovers(result, &self, keeps_stages).is_some();
        Self { has_leftovers, ..self }
    }

    /// Adds the answer of a cleanup.
    fn cleaned(&mut self, context: &Context, job: &Job, cleaned: Result<Leftovers, String>) {
        match cleaned {
            Ok(Leftovers { items, look, delete, .. }) => {
                self.leftovers.items.extend(items);
                (self.leftovers.look, self.leftovers.delete) = (look, delete);
            }
            Err(why) => {
                self.warnings.push(format!("the cleanup of its teardown failed: {why}"));
                self.may_be_left(context, job);
            }
        }
    }

    fn may_be_left(&mut self, context: &Context, job: &Job) {
        let marked = context.whatever_is_marked(job);
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
        let Self { warnings, leftovers: Leftovers { items, look, delete, .. }, .. } = self.clone();
        result.warnings.extend(warnings);
        result.leftovers.extend(items);
        result.look.extend(look);
        result.delete.extend(delete);
    }
}

/// Tears down and removes what no case needs any more. A failure here is reported and changes no outcome. `since`: when the first of those
/// began that are torn down one after another.
pub(crate) async fn release(
    context: &Arc<Context>,
    schedulers: &BTreeMap<String, Arc<dyn Scheduler>>,
    release: &Release,
    since: Instant,
) -> TeardownReport {
    let report = released(context, schedulers, release, since).await;
    let (result, keeps_stages) = (Arc::clone(&release.result), context.folders.keeps_stages());
    spawn_blocking(move || report.looked(&result, keeps_stages)).await.unwrap_or_default()
}

async fn released(
    context: &Arc<Context>,
    schedulers: &BTreeMap<String, Arc<dyn Scheduler>>,
    release: &Release,
    since: Instant,
) -> TeardownReport {
    let (Release { result, wanted, .. }, mut report) = (release, TeardownReport::default());
    let Some(outputs) = &result.outputs else { return report };
    let mut is_torn_down = false;
    let stage = outputs.stage.clone();
    let is_there = spawn_blocking(move || stage.is_dir()).await.unwrap_or(false);
    wait_unless_exiting(context).await;
    // What was never launched has nothing to tear down, and a folder that is gone was torn down by another process.
    if let Some(workload) = &outputs.teardown
        && result.times.launched.is_some()
        && is_there
        && let Some(scheduler) = schedulers.get(&result.name.partition)
    {
        let ended = Teardown::new(context, scheduler, result, workload, since).contained(&mut report).await;
        // The process that takes the session over decides what comes next.
        wait_unless_exiting(context).await;
        match ended {
            Ok(()) => is_torn_down = true,
            Err(why) => {
                report.failed(context, &result.name, &why);
                return report;
            }
        }
    }
    // The files of a failed case are kept, and so are the inputs of a failed case.
    if result.outcome.row().completion == Completion::Passed
        && (is_torn_down || !wanted)
        && !context.folders.keeps_stages()
        && let Err(why) = removed(context, &outputs.stage, Folders::tear_down).await
    {
        context.emit(Event::Warning(format!("{}: {why}", result.name)));
        report.warnings.push(why);
    }
    report
}

/// Never returns when the process is about to end.
async fn wait_unless_exiting(context: &Context) {
    if context.leave.is_cancelled() {
        std::future::pending::<()>().await;
    }
}

/// Where the teardown of what is in a stage folder runs.
fn folder_of_teardown(stage: &Path) -> PathBuf {
    stage.with_added_extension("teardown")
}

/// The result of a case with what its teardown could not remove and, if it passed, the commands that remove what it has left for others
/// and is still there. `None`: there is nothing to add. Blocks.
pub(crate) fn with_leftovers(result: &CaseResult, report: &TeardownReport, keeps_stages: bool) -> Option<CaseResult> {
    let stage = &result.outputs.as_ref()?.stage;
    let passed = result.outcome.row().completion == Completion::Passed && !keeps_stages;
    let folders = passed.then(|| stage.clone()).into_iter().chain([folder_of_teardown(stage)]);
    let remove =
        folders.filter(|folder| folder.is_dir()).map(|folder| format!("rm -r {}", shell::quote(&folder.to_string_lossy())));
    let remove: Vec<_> = remove.filter(|command| !result.delete.contains(command)).collect();
    if remove.is_empty() && report.is_empty() {
        return None;
    }
    let mut result = result.clone();
    result.delete.extend(remove);
    report.add_to(&mut result);
    Some(result)
}

async fn removed(
    context: &Arc<Context>,
    folder: &Path,
    remove: fn(&Folders, &Path) -> Result<(), FoldersError>,
) -> Result<(), String> {
    let (shared, folder) = (Arc::clone(context), folder.to_owned());
    match spawn_blocking(move || remove(&shared.folders, &folder)).await {
        Ok(removed) => removed.map_err(|error| chain(&error)),
        Err(_) => Err("removing its stage folder panicked".to_owned()),
    }
}
