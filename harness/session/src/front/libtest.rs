//! The frontend for libtest: one libtest-mimic trial for each case, which only waits for its result.
//!
//! It reads the events of the session, as any printer does, and has no influence on order, time or number of running cases: those are the
//! engine's. Nothing here is asynchronous, and [`run`] must not be called within an asynchronous task: it blocks until the last case is
//! over.

use crate::event::Event;
use libtest_mimic::{Arguments, Completion, Conclusion, Failed, FormatSetting, Trial};
use muster_core::{
    case::CaseName,
    decisions::{
        pipeline::{self, Skips},
        rounds::{self, Policy},
    },
    job::descriptor::SchedulerName,
    result::{CaseResult, Outcome},
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, mpsc},
};

/// No process of a container or batch node should count on more threads than this.
const MAX_THREADS: usize = 512;

/// A trial that waits for the result of its case.
#[derive(Debug)]
pub struct Submitted {
    pub case: CaseName,
    /// The kind in libtest's output.
    pub scheduler: SchedulerName,
    /// The result arrives here.
    pub result: mpsc::Receiver<Arc<CaseResult>>,
}

/// Sends each case's result to its trial as soon as no round can change it, and what is left when it is dropped.
pub struct Frontend {
    policy: Policy,
    waiting: BTreeMap<CaseName, Waiting>,
}

/// A trial, and the last result of its case.
struct Waiting {
    sender: mpsc::Sender<Arc<CaseResult>>,
    last: Option<Arc<CaseResult>>,
}

impl Frontend {
    /// One trial for every case that runs.
    pub fn of<'a>(policy: Policy, cases: impl Iterator<Item = (&'a CaseName, SchedulerName)>) -> (Self, Vec<Submitted>) {
        let (mut waiting, mut submitted) = (BTreeMap::new(), Vec::new());
        for (name, scheduler) in cases {
            if let Entry::Vacant(vacant) = waiting.entry(name.clone()) {
                let (sender, result) = mpsc::channel();
                vacant.insert(Waiting { sender, last: None });
                submitted.push(Submitted { case: name.clone(), scheduler, result });
            }
        }
        (Self { policy, waiting }, submitted)
    }

    /// Takes note of an event.
    pub fn saw(&mut self, event: &Event) {
        let Event::Finished(result) = event else { return };
        let Some(waiting) = self.waiting.get_mut(&result.name) else { return };
        waiting.last = Some(Arc::clone(result));
        if rounds::is_settled(self.policy, result) {
            self.waiting.remove(&result.name);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.last.take().map(|last| self.sender.send(last));
    }
}

/// Arguments for a person's session: libtest's harness says nothing, the caller prints from the engine's events.
pub fn silent() -> Arguments {
    Arguments { test_threads: Some(1), logfile: Some("/dev/null".to_owned()), ..Arguments::default() }
}

/// Arguments for a program that reads libtest's output from stdout: cases are reported as they end.
pub fn printing(format: FormatSetting, cases: usize) -> Arguments {
    Arguments { test_threads: Some(threads(cases)), format: Some(format), ..Arguments::default() }
}

/// One thread a case, so that the order of the output is that of the endings, up to what a process may have.
pub fn threads(cases: usize) -> usize {
    cases.clamp(1, MAX_THREADS)
}

/// Returns whether these arguments ask for a case.
pub fn is_selected(arguments: &Arguments, case: &CaseName, scheduler: &SchedulerName) -> bool {
    !arguments.is_filtered_out(&listed(case, scheduler))
}

fn listed(case: &CaseName, scheduler: &SchedulerName) -> Trial {
    Trial::test(case.to_string(), || Ok(())).with_kind(&**scheduler)
}

/// Prints these cases as a list, if one is asked for. Without cases: that there are none.
pub fn list_or_none(arguments: &Arguments, cases: impl IntoIterator<Item = (CaseName, SchedulerName)>) {
    let _ = libtest_mimic::run(arguments, cases.into_iter().map(|(case, scheduler)| listed(&case, &scheduler)).collect());
}

/// Waits for all cases, through libtest's harness. Select before: what `arguments` filter out is running already. The exit code
/// is not that of libtest: see `muster_core::decisions::rounds::end`. A skipped case is ignored, unless `skips` are refused.
pub fn run(arguments: &Arguments, cases: Vec<Submitted>, skips: Skips) -> Conclusion {
    libtest_mimic::run(arguments, cases.into_iter().map(|case| trial(case, skips)).collect())
}

fn trial(case: Submitted, skips: Skips) -> Trial {
    let Submitted { case, scheduler, result } = case;
    Trial::ignorable_test(case.to_string(), move || match result.recv() {
        Ok(result) => completion(&result, skips),
        Err(_) => Err(Failed::from("the engine ended without a result for this case")),
    })
    .with_kind(&*scheduler)
}

fn completion(result: &CaseResult, skips: Skips) -> Result<Completion, Failed> {
    let fails = pipeline::fails(result, skips);
    match (&result.outcome, &result.cause) {
        (Outcome::Skip, Some(why)) if !fails => Ok(Completion::ignored_with(why)),
        (Outcome::Skip, None) if !fails => Ok(Completion::ignored()),
        (outcome, _) if outcome.is_fine() && !fails => Ok(Completion::Completed),
        (outcome, Some(cause)) => Err(Failed::from(format!("{outcome}: {cause}"))),
        (outcome, None) => Err(Failed::from(outcome.to_string())),
    }
}
