//! Asks schedulers about cases before any is launched. A case that certainly cannot run ends without a launch; the others run.

use crate::{
    case::{QueuedCase, Work},
    engine::Engine,
    patience,
    session_loop::relaunch::Relaunch,
};
use futures_util::future::BoxFuture;
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments, site::Partition};
use muster_core::{
    case::{CaseName, SessionId},
    decisions::pipeline::OUTAGE_LIMIT,
    error::chain,
    job::scheduler::{Finding, Scheduler},
};
use muster_text::time::format_duration;
use std::sync::Arc;
use tokio::sync::watch;

pub use crate::case::Refused;

/// A question to the scheduler of a partition. Another partition may be on another cluster of the same scheduler.
struct Question<'a> {
    partition: Arc<Partition>,
    scheduler: &'a Arc<dyn Scheduler>,
    cases: Vec<TestCase>,
    sender: watch::Sender<Option<Arc<Refused>>>,
}

/// The questions to schedulers about the cases of a batch that they are going to launch. Each case waits for the answer to its own
/// partition. What another process has planned waits for none: it was asked about before its plan was stored.
pub(super) fn questions<'a>(
    engine: &'a Engine,
    batch: &mut [QueuedCase],
    known: &Relaunch<'_>,
    adjustments: &'a Adjustments,
) -> impl Iterator<Item = BoxFuture<'a, ()>> {
    let mut questions: Vec<Question<'a>> = Vec::new();
    for item in batch.iter_mut().filter(|item| matches!(item.work, Work::New(_) | Work::Relaunch(..))) {
        let Some((case, scheduler)) = known.case(&item.name).zip(engine.scheduler(&item.name.partition)) else { continue };
        let partition = Arc::clone(&case.place.partition);
        let at = questions.iter().position(|question| question.partition.name == partition.name).unwrap_or_else(|| {
            questions.push(Question { partition, scheduler, cases: Vec::new(), sender: watch::Sender::default() });
            questions.len() - 1
        });
        questions[at].cases.push(case.clone());
        item.answer = Some(questions[at].sender.subscribe());
    }
    questions.into_iter().map(move |question| Box::pin(answered(engine, question, adjustments)) as BoxFuture<'a, ()>)
}

/// Asks, and says so if the answer takes long.
async fn answered(engine: &Engine, Question { partition, scheduler, cases, sender }: Question<'_>, adjustments: &Adjustments) {
    let asked = ask(&**scheduler, cases.iter(), adjustments, engine.session());
    let tell = || engine.warn(still_asking(&adjustments.scheduler(&partition).to_string(), &partition.name));
    let refused = patience::told(tell, asked).await;
    sender.send_replace(Some(Arc::new(refused)));
}

fn still_asking(scheduler: &str, partition: &str) -> String {
    let limit = format_duration(OUTAGE_LIMIT);
    format!(
        "no answer yet from {scheduler} (partition {partition}): its cases wait for it; then a launch that reaches no server is tried \
         for {limit}"
    )
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
