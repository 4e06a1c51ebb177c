//! The Kubernetes plans of cases, for printing and for finding mistakes before the first launch.

use muster_check::cases::test_case::TestCase;
use muster_core::job::workload::Workload;
use muster_k8s::{ContextError, Contexts, Plan, SCHEDULER};
use muster_text::diagnostic::Diagnostic;
use std::{num::NonZero, panic::resume_unwind, ptr, thread};

/// The search for mistakes ends after so many.
const MANY: usize = 100;

/// Whether a case runs on Kubernetes.
pub fn is_ours(case: &TestCase) -> bool {
    ptr::eq(case.place.partition.scheduler.descriptor(), &raw const SCHEDULER)
}

/// The mistakes in the plans of the cases on Kubernetes.
pub fn mistakes(cases: &[TestCase]) -> Result<Vec<Diagnostic>, ContextError> {
    if !cases.iter().any(is_ours) {
        return Ok(Vec::new());
    }
    Ok(plans(cases, &Contexts::to_plan_with()?, |_| ()).1)
}

/// What `wanted` takes of the plans of the cases on Kubernetes, and every mistake that prevents a plan. Uses all processors: there
/// may be ten thousand cases.
pub fn plans<T: Send>(cases: &[TestCase], contexts: &Contexts, wanted: impl Fn(Plan) -> T + Sync) -> (Vec<T>, Vec<Diagnostic>) {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let share = cases.len().div_ceil(processors).max(1);
    let shares: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = cases.chunks(share).map(|share| scope.spawn(|| plans_of(share, contexts, &wanted))).collect();
        started.into_iter().map(|share| share.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let (mut all, mut mistakes) = (Vec::new(), Vec::new());
    for (plans, found) in shares {
        all.extend(plans);
        add_new(&mut mistakes, found);
    }
    (all, mistakes)
}

fn plans_of<T>(cases: &[TestCase], contexts: &Contexts, wanted: impl Fn(Plan) -> T) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut plans, mut mistakes) = (Vec::new(), Vec::new());
    for case in cases.iter().filter(|case| is_ours(case)) {
        // Every case was rendered once already, when it was selected.
        let Some(rendered) = case.render(&case.rehearsal()).ok().filter(|rendered| rendered.skip.is_none()) else { continue };
        match planned(case, &rendered.workload, contexts) {
            Ok(plan) => plans.push(wanted(plan)),
            Err(found) => add_new(&mut mistakes, found),
        }
        if mistakes.len() > MANY {
            break;
        }
    }
    (plans, mistakes)
}

/// A case's plan. Mistakes without a place of their own point to the check.
pub fn planned(case: &TestCase, workload: &Workload, contexts: &Contexts) -> Result<Plan, Vec<Diagnostic>> {
    let place = |mistake: Diagnostic| Diagnostic { span: mistake.span.or(Some(case.check.span)), ..mistake };
    muster_k8s::plan(workload, contexts).map_err(|mistakes| mistakes.into_iter().map(place).collect())
}

/// Adds the mistakes that are new: the cases of one check have the same ones.
pub fn add_new(known: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    for mistake in found {
        if !known.contains(&mistake) {
            known.push(mistake);
        }
    }
}
