//! What schedulers know of cases before any of them is launched. A case that certainly cannot run ends without a launch; the others run.

use crate::{
    case::{QueuedCase, Work},
    engine::Engine,
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::{CaseName, SessionId},
    error::chain,
    job::scheduler::{Finding, Scheduler},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// One sentence for each case that cannot run.
pub type Refused = BTreeMap<Arc<CaseName>, String>;

/// Asks each scheduler about the cases of a batch that it is going to launch.
pub(super) async fn refused(
    engine: &Engine,
    batch: &[QueuedCase],
    known: &HashMap<&CaseName, &TestCase>,
    adjustments: &Adjustments,
) -> Refused {
    let mut asked: Vec<(&Arc<dyn Scheduler>, Vec<&TestCase>)> = Vec::new();
    for item in batch.iter().filter(|item| matches!(item.work, Work::New(_) | Work::Relaunch(..))) {
        let Some((case, scheduler)) = known.get(&*item.name).zip(engine.scheduler(&item.name.partition)) else { continue };
        match asked.iter_mut().find(|(other, _)| Arc::ptr_eq(other, scheduler)) {
            Some((_, cases)) => cases.push(case),
            None => asked.push((scheduler, vec![case])),
        }
    }
    let mut refused = Refused::new();
    for (scheduler, cases) in asked {
        tokio::select! {
            found = ask(&**scheduler, cases.into_iter(), adjustments, engine.session()) => refused.extend(found),
            // Then nothing is launched.
            () = engine.cancelled() => break,
        }
    }
    refused
}

/// Asks a scheduler about cases, but for those that need other cases: these may create what they need. They are rendered one after
/// the other, and only if the scheduler wants to know: there may be ten thousand.
pub async fn ask<'a>(
    scheduler: &dyn Scheduler,
    cases: impl Iterator<Item = &'a TestCase> + Send,
    adjustments: &Adjustments,
    session: &SessionId,
) -> Refused {
    let mut names = Vec::new();
    let mut workloads = cases.filter(|case| case.needs().is_empty()).filter_map(|case| {
        // What cannot be rendered has a sentence of its own.
        let mut rendered = adjustments.rehearsed(case).filter(|rendered| rendered.skip.is_none())?;
        rendered.workload.session = session.clone();
        names.push(Arc::clone(&case.name));
        Some(rendered.workload)
    });
    let findings = scheduler.preflight(&mut workloads).await.unwrap_or_else(|error| {
        tracing::debug!(error = chain(&error), "a scheduler leaves all cases to their launch");
        Vec::new()
    });
    drop(workloads);
    by_case(&names, findings)
}

/// All that is wrong with a case, in one sentence.
fn by_case(names: &[Arc<CaseName>], findings: Vec<Finding>) -> Refused {
    let mut refused = Refused::new();
    for Finding { workloads, what, hint } in findings {
        let sentence = hint.map_or_else(|| what.clone(), |hint| format!("{what} ({hint})"));
        for name in workloads.into_iter().filter_map(|at| names.get(at)) {
            let all = refused.entry(Arc::clone(name)).or_default();
            let separator = if all.is_empty() { "" } else { "; " };
            *all += separator;
            *all += &sentence;
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_names_everything_that_is_wrong_with_it() {
        let name = |check: &str| {
            Arc::new(CaseName {
                display: check.into(),
                check: check.into(),
                hash: "0".into(),
                system: "s".into(),
                partition: "p".into(),
                environ: "e".into(),
                hidden: String::new(),
            })
        };
        let names = ["a", "b", "c"].map(name);
        let finding = |workloads: &[usize], what: &str, hint: Option<&str>| Finding {
            workloads: workloads.to_vec(),
            what: what.into(),
            hint: hint.map(str::to_owned),
        };
        let findings = vec![finding(&[0, 2], "no queue q", Some("create it")), finding(&[2, 7], "no right", None)];
        let refused = by_case(&names, findings);
        let lines: Vec<String> = refused.iter().map(|(name, why)| format!("{}: {why}", name.check)).collect();
        assert_eq!(lines, ["a: no queue q (create it)", "c: no queue q (create it); no right"]);
    }
}
