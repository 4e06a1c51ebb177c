//! The plans of cases, made from files alone: for finding mistakes before the first launch.

use crate::wiring::Connections;
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::job::workload::Workload;
use muster_text::diagnostic::Diagnostic;
use std::{num::NonZero, panic::resume_unwind, thread};

/// The search for mistakes ends after so many.
const MANY: usize = 100;

/// The mistakes in the plans of cases, of all schedulers whose plans depend on files alone.
pub fn mistakes(cases: &[TestCase], adjustments: &Adjustments) -> anyhow::Result<Vec<Diagnostic>> {
    let scheduler = |case: &TestCase| adjustments.scheduler(&case.place.partition);
    let planners = Connections::new(cases.iter().map(scheduler), |scheduler| scheduler.planner)?;
    if planners.is_empty() {
        return Ok(Vec::new());
    }
    let plan = |case: &TestCase, workload: &Workload| match planners.get(scheduler(case)) {
        Some(planner) => planner.check(workload),
        None => Ok(()),
    };
    Ok(plans(cases, adjustments, plan).1)
}

/// Returns the results of `plan` for the cases that are not skipped, and every mistake that it reports. Uses all processors: there
/// may be ten thousand cases.
pub fn plans<T: Send>(
    cases: &[TestCase],
    adjustments: &Adjustments,
    plan: impl Fn(&TestCase, &Workload) -> Result<T, Vec<Diagnostic>> + Sync,
) -> (Vec<T>, Vec<Diagnostic>) {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let share = cases.len().div_ceil(processors).max(1);
    let shares: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = cases.chunks(share).map(|share| scope.spawn(|| plans_of(share, adjustments, &plan))).collect();
        started.into_iter().map(|share| share.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let (mut all, mut mistakes) = (Vec::new(), Vec::new());
    for (plans, found) in shares {
        all.extend(plans);
        add_new(&mut mistakes, found);
    }
    (all, mistakes)
}

fn plans_of<T>(
    cases: &[TestCase],
    adjustments: &Adjustments,
    plan: impl Fn(&TestCase, &Workload) -> Result<T, Vec<Diagnostic>>,
) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut plans, mut mistakes) = (Vec::new(), Vec::new());
    for case in cases {
        let Some(rendered) = adjustments.rehearsed(case).filter(|rendered| rendered.skip.is_none()) else { continue };
        match plan(case, &rendered.workload) {
            Ok(plan) => plans.push(plan),
            Err(found) => add_new(&mut mistakes, in_check(case, found)),
        }
        if mistakes.len() > MANY {
            break;
        }
    }
    (plans, mistakes)
}

/// Mistakes without a place of their own point to the check.
pub fn in_check(case: &TestCase, mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let place = |mistake: Diagnostic| Diagnostic { span: mistake.span.or(Some(case.check.span)), ..mistake };
    mistakes.into_iter().map(place).collect()
}

/// Adds the mistakes that are new: the cases of one check have the same ones.
pub fn add_new(known: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    for mistake in found {
        if !known.contains(&mistake) {
            known.push(mistake);
        }
    }
}
