//! The part of a session that another process has started: stored plans, and jobs that run already.

use crate::{
    case::{QueuedCase, StoredCase, Work, render},
    session_loop::source::{Batch, Next, SoFar, Source},
};
use futures_util::future::BoxFuture;
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments, site::System};
use muster_core::{
    case::CaseName,
    job::{descriptor::Schedulers, workload::Limits},
};
use muster_store::{JobRow, JobState};
use muster_text::{diagnostic::Diagnostic, time::Timestamp};
use std::{collections::BTreeSet, path::Path, sync::Arc};

/// A source of which another process has run a part. It gives the same answers again; of them, what has ended is left out, and
/// what was started is continued.
pub struct TakenOver<S> {
    pub started: Vec<QueuedCase>,
    /// Started as well: what had passed, and was made again because others need it. It belongs to the first batch.
    pub made_again: Vec<QueuedCase>,
    /// Started, and continued by now.
    pub continued: BTreeSet<(Arc<CaseName>, u32)>,
    pub rest: S,
}

impl<S: Source> Source for TakenOver<S> {
    fn news(&mut self) -> Option<BoxFuture<'_, ()>> {
        self.rest.news()
    }

    fn next(&mut self, now: Timestamp, so_far: &SoFar<'_>) -> Next {
        loop {
            match self.rest.next(now, so_far) {
                Next::More(batch) => {
                    let number = batch.number;
                    let batch = self.continued(batch, so_far);
                    // A round that was over before runs nothing. The first one may be empty.
                    if !batch.items.is_empty() || !batch.cases.is_empty() || number == 1 {
                        return Next::More(batch);
                    }
                }
                Next::Wait | Next::Until(_) | Next::Done(_) if so_far.is_idle && !self.started.is_empty() => {
                    let items = std::mem::take(&mut self.started);
                    self.note(&items);
                    return Next::More(Batch { items, ..Batch::default() });
                }
                next => return next,
            }
        }
    }
}

impl<S> TakenOver<S> {
    /// A source that gives these once more does not know that they run already.
    fn note(&mut self, started: &[QueuedCase]) {
        self.continued.extend(started.iter().map(|case| (Arc::clone(&case.name), case.attempt)));
    }

    /// What is left of a batch.
    fn continued(&mut self, batch: Batch, so_far: &SoFar<'_>) -> Batch {
        let Batch { cases, items, number, title } = batch;
        let mut started = std::mem::take(&mut self.made_again);
        {
            let given: BTreeSet<(&CaseName, u32)> = items.iter().map(|item| (&*item.name, item.attempt)).collect();
            let is_of_it = |case: &mut QueuedCase| case.attempt == number || given.contains(&(&*case.name, case.attempt));
            started.extend(self.started.extract_if(.., is_of_it));
        }
        self.note(&started);
        let items = {
            let known: BTreeSet<&CaseName> = started.iter().map(|case| &*case.name).collect();
            let is_over = |case: &QueuedCase| so_far.attempts.has(&case.name, case.attempt);
            let is_continued = |case: &QueuedCase| self.continued.contains(&(Arc::clone(&case.name), case.attempt));
            let is_new = |case: &QueuedCase| !known.contains(&*case.name) && !is_over(case) && !is_continued(case);
            items.into_iter().filter(is_new).collect::<Vec<_>>()
        };
        Batch { items: started.into_iter().chain(items).collect(), cases, number, title }
    }
}

/// The facts about a session that this process continues.
pub struct Continued<'a> {
    pub cases: &'a [TestCase],
    pub system: &'a System,
    pub adjustments: &'a Arc<Adjustments>,
    /// Plans were stored without the secrets of the command line.
    pub has_secret: bool,
    /// The schedulers, which say whether their jobs end with the process that launched them.
    pub schedulers: &'a Schedulers,
}

impl Continued<'_> {
    /// An attempt that another process has started, as work for the engine.
    pub fn queued(&self, row: JobRow) -> QueuedCase {
        let JobRow { name, about, attempt, purpose, job, state, rules, limits, begun, launched_at, swept, .. } = row;
        let limits = limits.unwrap_or(Limits { pending: None, run: None, judge: Limits::JUDGE });
        let case = self.cases.iter().find(|case| *case.name == name);
        let partition = self.system.partitions.iter().find(|partition| partition.name == name.partition);
        let is_stored = state != JobState::Intent;
        let launched = is_stored && !self.schedulers.dies_with_the_harness(&job.scheduler);
        let may_run = !is_stored && self.schedulers.finds_launched(&job.scheduler);
        QueuedCase {
            folder: folder_of(&job.stage, attempt, job.identifier.as_str()),
            scheduler: job.scheduler.clone(),
            max_jobs: partition.map_or(1, |partition| partition.max_jobs),
            attempt,
            purpose,
            needs: case.map(|case| case.needs().into()).unwrap_or_default(),
            answer: None,
            name: Arc::new(name),
            about: Arc::new(move || about.clone()),
            work: match (case.map(|case| render(case.clone(), Arc::clone(self.adjustments))), rules) {
                (render, Ok(rules)) if launched || !self.has_secret => Work::Stored {
                    stored: Box::new(StoredCase { job, rules, limits, launched, may_run, started: begun, launched_at, swept }),
                    render,
                },
                // What would launch or judge it was stored without its secrets.
                (render, _) => Work::Relaunch(Box::new(job), render.unwrap_or_else(|| Arc::new(|_| Err(missing_secret())))),
            },
        }
    }
}

/// Why a case is not planned again.
fn missing_secret() -> Vec<Diagnostic> {
    let message = "its plan was stored without the secrets of the command line, and its check is not there any more";
    vec![Diagnostic::general(message).hint("run it in a new session")]
}

/// The name of a case's folders, from one attempt's stage folder.
fn folder_of(stage: &Path, attempt: u32, identifier: &str) -> String {
    let name = stage.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(&format!(".{identifier}")).unwrap_or(&name);
    name.strip_suffix(&format!(".{attempt}")).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_folder_of_an_attempt_is_that_of_its_case() {
        for (stage, attempt) in [
            ("/stage/s/p/e/triad_0123456789abcdef", 1),
            ("/stage/s/p/e/triad_0123456789abcdef.2", 2),
            ("/stage/s/p/e/triad_0123456789abcdef.abcdefgh", 1),
            ("/stage/s/p/e/triad_0123456789abcdef.2.abcdefgh", 2),
        ] {
            assert_eq!(folder_of(Path::new(stage), attempt, "abcdefgh"), "triad_0123456789abcdef", "{stage}");
        }
    }
}
