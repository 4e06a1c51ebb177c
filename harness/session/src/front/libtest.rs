//! The frontend for libtest: one libtest-mimic trial for each case, which only waits for its result.
//!
//! It has no influence on order, time or number of running cases: those are the engine's. Nothing here is
//! asynchronous, and [`run`] must not be called within an asynchronous task: it blocks until the last case is over.

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
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::oneshot;

/// No process of a container or batch node should count on more threads than this.
const MAX_THREADS: usize = 512;

/// A case that was handed to the engine.
#[derive(Debug)]
pub struct Submitted {
    pub case: CaseName,
    /// The kind in libtest's output.
    pub scheduler: SchedulerName,
    /// Where its result will arrive.
    pub result: oneshot::Receiver<Settled>,
}

/// Sends each case's result to its trial as soon as no round can change it. A skipped case waits until another one has run: if none
/// does, it has not succeeded.
pub struct Frontend {
    policy: Policy,
    fail_on_skip: bool,
    waiting: Mutex<BTreeMap<CaseName, oneshot::Sender<Settled>>>,
    /// What was skipped; `None`: another case has run, and a skip is accepted.
    held: Mutex<Option<Vec<Arc<CaseResult>>>>,
}

/// The result of a case, and what its session makes of skipped cases.
type Settled = (Arc<CaseResult>, Skips);

impl Frontend {
    /// One trial for every case that runs.
    pub fn of<'a>(
        policy: Policy,
        fail_on_skip: bool,
        cases: impl Iterator<Item = (&'a CaseName, SchedulerName)>,
    ) -> (Self, Vec<Submitted>) {
        let (mut waiting, mut submitted) = (BTreeMap::new(), Vec::new());
        for (name, scheduler) in cases {
            if let Entry::Vacant(vacant) = waiting.entry(name.clone()) {
                let (sender, result) = oneshot::channel();
                vacant.insert(sender);
                submitted.push(Submitted { case: name.clone(), scheduler, result });
            }
        }
        (Self { policy, fail_on_skip, waiting: Mutex::new(waiting), held: Mutex::new(Some(Vec::new())) }, submitted)
    }

    /// An attempt has ended.
    pub fn ended(&self, result: &Arc<CaseResult>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_skip = result.outcome == Outcome::Skip;
        if !is_skip && !self.fail_on_skip {
            held.take().iter().flatten().for_each(|skipped| self.send(skipped, Skips::Accepted));
        }
        if rounds::is_settled(self.policy, result) {
            match &mut *held {
                Some(held) if is_skip => held.push(Arc::clone(result)),
                Some(_) | None => self.send(result, Skips::Accepted),
            }
        }
    }

    /// Nothing runs any more: sends the results that are left, the last of each case. `results`: restored ones, too.
    pub fn close<'a>(self, results: impl DoubleEndedIterator<Item = &'a Arc<CaseResult>> + Clone) {
        let cases = results.clone().map(|result| (&result.outcome, result.quarantine.is_some()));
        let skips = pipeline::skips(cases, self.fail_on_skip);
        results.rev().for_each(|result| self.send(result, skips));
    }

    fn send(&self, result: &Arc<CaseResult>, skips: Skips) {
        let waiter = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&result.name);
        waiter.map(|waiter| waiter.send((Arc::clone(result), skips)));
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

/// Whether these arguments ask for a case.
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
/// is not that of libtest: see `muster_core::decisions::rounds::end`.
pub fn run(arguments: &Arguments, cases: Vec<Submitted>) -> Conclusion {
    libtest_mimic::run(arguments, cases.into_iter().map(trial).collect())
}

fn trial(case: Submitted) -> Trial {
    let Submitted { case, scheduler, result } = case;
    Trial::ignorable_test(case.to_string(), move || match result.blocking_recv() {
        Ok((result, skips)) => completion(&result, skips),
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::decisions::rounds::Threshold;

    fn result(case: &str, outcome: Outcome) -> Arc<CaseResult> {
        let name = CaseName { display: case.to_owned(), ..CaseName::default() };
        Arc::new(CaseResult { name, attempt: 1, outcome, ..CaseResult::default() })
    }

    #[test]
    fn a_skip_waits_until_another_case_has_run_and_fails_where_none_does() {
        type Row<'a> = (bool, Vec<&'a Arc<CaseResult>>, Option<Skips>, Skips);
        let (skip, pass) = (result("a", Outcome::Skip), result("b", Outcome::Pass));
        let policy = Policy::Retry { max: 0, threshold: Threshold::Count(1) };
        // Whether `--fail-on-skip` is given, what ends, what the skip is before the close, and after it.
        let rows: [Row<'_>; 4] = [
            (false, vec![&skip, &pass], Some(Skips::Accepted), Skips::Accepted),
            (false, vec![&pass, &skip], Some(Skips::Accepted), Skips::Accepted),
            (false, vec![&skip], None, Skips::NothingRan),
            (true, vec![&pass, &skip], None, Skips::Refused),
        ];
        for (fail_on_skip, ended, early, late) in rows {
            let (frontend, mut waiting) = Frontend::of(policy, fail_on_skip, [(&skip.name, "fake".into())].into_iter());
            for result in &ended {
                frontend.ended(result);
            }
            let before = waiting[0].result.try_recv().ok().map(|(_, skips)| skips);
            assert_eq!(before, early, "{ended:?}");
            frontend.close(ended.iter().copied());
            let settled = before.or_else(|| waiting[0].result.try_recv().ok().map(|(_, skips)| skips));
            assert_eq!(settled, Some(late), "{ended:?}");
            assert_eq!(completion(&skip, late).is_err(), late != Skips::Accepted, "{ended:?}");
        }
    }
}
