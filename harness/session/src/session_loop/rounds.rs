//! The rounds of a session: the first one, and those in which cases run again.

use crate::{
    session_loop::{
        frontend::LibtestFrontend,
        plan::SessionPlan,
        relaunch::{self, Known},
    },
    terminal::Terminal,
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::CaseName,
    decisions::rounds::{self, Next, Policy, Round},
    result::{CaseResult, Session},
};
use muster_host::clock;
use muster_session::{case::QueuedCase, engine::Engine};
use std::{collections::BTreeSet, sync::Arc};

/// Runs round after round until no case runs again. Returns all results, in the order in which they ended.
pub async fn run(
    engine: &Engine,
    session: &Session,
    plan: &mut SessionPlan,
    frontend: &LibtestFrontend,
    terminal: Terminal,
) -> Vec<Arc<CaseResult>> {
    let SessionPlan { results: earlier, started, cases, policy, adjustments, .. } = plan;
    let policy = *policy;
    let mut to_run: Vec<&TestCase> = cases.iter().collect();
    let mut number = 1;
    let mut results = earlier.clone();
    for result in &*earlier {
        engine.recall(Arc::clone(result));
    }
    // A result whose stage folder is gone, and whose case runs again, is reported once: as the new one.
    let mut replaced: BTreeSet<(CaseName, u32)> = BTreeSet::new();
    let mut why = None;
    loop {
        let queued = rest_of_round(number, &to_run, started, &results, adjustments);
        let queued = {
            let known = Known::new(cases, results.iter().map(AsRef::as_ref));
            let to_relaunch = known.to_relaunch(&queued.iter().map(relaunch::needs).collect());
            let gone = results.iter().filter(|result| to_relaunch.contains(&result.name));
            replaced.extend(gone.map(|result| (result.name.clone(), result.attempt)));
            known.with_relaunched(queued, &to_relaunch, adjustments)
        };
        if let Some(why) = why.take() {
            engine.begin_round(u32::try_from(queued.len()).unwrap_or(u32::MAX), why);
        }
        for result in engine.submit_all(queued) {
            frontend.follow(result);
        }
        results.clone_from(earlier);
        results.extend(engine.finish().await);
        results.retain(|result| !replaced.contains(&(result.name.clone(), result.attempt)));
        let all: Vec<&CaseResult> = results.iter().map(AsRef::as_ref).collect();
        let elapsed = clock::now().since(session.started);
        match rounds::next(policy, Round { number, results: &all, elapsed, cut_short: engine.is_closed() }) {
            Next::Over(why) => {
                if let Some(why) = why {
                    terminal.note(&format!("note: {why}"));
                }
                return results;
            }
            Next::Again(names) => {
                to_run = cases.iter().filter(|case| names.contains(&case.name)).collect();
                if to_run.is_empty() {
                    return results;
                }
                number += 1;
                why = Some(title(policy, number, to_run.len()));
            }
        }
    }
}

/// What is left of a round: its attempts that another process has started, and the cases of `to_run` that have neither
/// started nor ended.
fn rest_of_round(
    number: u32,
    to_run: &[&TestCase],
    started: &mut Vec<QueuedCase>,
    results: &[Arc<CaseResult>],
    adjustments: &Arc<Adjustments>,
) -> Vec<QueuedCase> {
    let started: Vec<QueuedCase> = started.extract_if(.., |case| case.attempt == number).collect();
    let ended = results.iter().filter(|result| result.attempt == number).map(|result| &result.name);
    let known: BTreeSet<&CaseName> = ended.chain(started.iter().map(|case| &*case.name)).collect();
    let new: Vec<QueuedCase> =
        to_run.iter().filter(|case| !known.contains(&*case.name)).map(|case| QueuedCase::of(case, adjustments, number)).collect();
    started.into_iter().chain(new).collect()
}

/// `Retrying 2 failed case(s) (retry 1/3)`: ReFrame's line.
fn title(policy: Policy, number: u32, cases: usize) -> String {
    match policy {
        // With `on_disruption: retry` there may be more retries than --max-retries.
        Policy::Retry { max, .. } if max >= number - 1 => format!("Retrying {cases} failed case(s) (retry {}/{max})", number - 1),
        Policy::Retry { .. } => format!("Retrying {cases} disrupted case(s) (retry {})", number - 1),
        Policy::Rerun { times } => format!("Running {cases} case(s) again (run {number}/{})", times + 1),
        Policy::Until(_) => format!("Running {cases} case(s) again (run {number})"),
    }
}
