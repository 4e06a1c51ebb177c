//! One outcome and one sentence out of everything that was found.

use super::{Judgement, performance::Performance, sanity::Sanity, words::sentences};
use crate::{
    fact::Fact,
    job::stdout::Stdout,
    result::{Failure, Invalid, Outcome, Phase},
    rules::Rules,
};

/// Something that is wrong: what it makes of the case, where it was found, and the sentence.
struct Finding {
    outcome: Outcome,
    phase: Phase,
    /// The words before the sentence when another finding decided.
    topic: &'static str,
    sentence: String,
}

/// The first finding decides and the others enrich its sentence: a gap in the log, the exit status, sanity, performance.
/// An expected failure is taken into account last.
pub(super) fn conclude(
    rules: &Rules,
    stdout: &Stdout,
    exit: Option<String>,
    sanity: Sanity,
    performance: Option<Performance>,
) -> Judgement {
    let mut findings = Vec::new();
    let mut find = |outcome, phase, topic, sentence: Option<String>| {
        findings.extend(sentence.map(|sentence| Finding { outcome, phase, topic, sentence }));
    };
    find(Outcome::Invalid(Invalid::Logs), Phase::Run, "", gaps(stdout));
    find(Outcome::Fail(Failure::Workload), Phase::Run, "", exit);
    let Sanity { failures, missing } = sanity;
    let failures = (!failures.is_empty()).then(|| sentences(&failures));
    find(Outcome::Fail(Failure::Sanity), Phase::Sanity, "sanity: ", failures);
    let mut performance = performance.unwrap_or_default();
    let missing = missing.map(|fact| (Phase::Sanity, fact)).or(performance.missing.take().map(|fact| (Phase::Performance, fact)));
    let (outcome, cause, tolerated) = performance.outcome(rules.strict);
    find(outcome, Phase::Performance, "", cause);
    performance.warnings.extend(tolerated.map(|misses| format!("{misses} (not strict)")));
    performance.warnings.extend(stdout.warnings().map(|(title, why)| format!("the log of {title}: {why}")));

    // A missing fact only decides if nothing else is wrong: the check cannot judge this partition.
    if let Some((phase, fact)) = missing.filter(|_| findings.is_empty()) {
        return skipped(phase, &fact, performance.warnings);
    }
    let (outcome, phase, cause) = decide(rules, findings);
    let (outcome, cause) = expect_failure(rules.xfail.as_deref(), outcome, cause);
    Judgement { outcome, phase, cause, measurements: performance.measurements, warnings: performance.warnings }
}

/// The case is skipped after all: what it printed made its rules need a fact that the site does not state.
fn skipped(phase: Phase, fact: &Fact, warnings: Vec<String>) -> Judgement {
    let cause = Some(format!("it ran, and cannot be judged: the partition does not define {fact}"));
    Judgement { outcome: Outcome::Skip, phase, cause, measurements: Vec::new(), warnings }
}

fn decide(rules: &Rules, findings: Vec<Finding>) -> (Outcome, Phase, Option<String>) {
    let mut findings = findings.into_iter();
    let Some(first) = findings.next() else {
        let phase = if rules.perf_variables.is_empty() { Phase::Sanity } else { Phase::Performance };
        return (Outcome::Pass, phase, None);
    };
    let cause = findings.fold(first.sentence, |cause, Finding { topic, sentence, .. }| format!("{cause}; {topic}{sentence}"));
    (first.outcome, first.phase, Some(cause))
}

fn gaps(stdout: &Stdout) -> Option<String> {
    let gaps: Vec<_> = stdout.gaps().map(|(title, why)| format!("the log of {title} has a gap: {why}")).collect();
    (!gaps.is_empty()).then(|| sentences(&gaps))
}

/// A failure that the check expects is fine, and its absence is not. What could not be judged stays what it is.
fn expect_failure(reason: Option<&str>, outcome: Outcome, cause: Option<String>) -> (Outcome, Option<String>) {
    let Some(reason) = reason else { return (outcome, cause) };
    let with_cause =
        |words: &str| cause.as_ref().map_or_else(|| format!("{words}: {reason}"), |cause| format!("{words}: {reason} ({cause})"));
    match outcome {
        Outcome::Fail(_) => (Outcome::Xfail, Some(with_cause("failed as expected"))),
        Outcome::Pass => (Outcome::Xpass, Some(with_cause("passed, though a failure was expected"))),
        other => (other, cause),
    }
}
