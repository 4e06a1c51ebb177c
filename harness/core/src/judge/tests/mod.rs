//! The judge as a whole, by tables: what is asked, what stood in the log, what came of it.

mod figures;
mod files;
mod nbody;
mod outcomes;
mod references;
mod returns;
mod sanity;

use super::{Judgement, Monitor, Position, judge_in_blocks, search};
use crate::{
    case::Identifier,
    job::{
        scheduler::{Ending, Exit, SectionExit},
        stdout::{SectionOrigin, Stdout},
    },
    rules::{
        Rules,
        perf::{Direction, PerfVariable, Pick, Reduce, Source},
        reference::{Reference, ReferenceRow},
        sanity::{Assertion, Claim},
    },
};
use muster_text::time::Timestamp;

fn item(claim: Claim) -> Assertion {
    Assertion { claim, file: None, msg: None }
}

fn found(pattern: &str) -> Assertion {
    item(Claim::Found { pattern: pattern.into(), count: None })
}

fn count(pattern: &str, count: u64) -> Assertion {
    item(Claim::Found { pattern: pattern.into(), count: Some(count) })
}

fn not_found(pattern: &str) -> Assertion {
    item(Claim::NotFound { pattern: pattern.into() })
}

fn sanity(items: impl IntoIterator<Item = Assertion>) -> Rules {
    Rules { sanity: items.into_iter().collect(), ..Rules::default() }
}

fn variable(name: &str, pattern: &str, unit: &str, pick: Pick) -> PerfVariable {
    PerfVariable {
        name: name.into(),
        unit: unit.into(),
        source: Source::Pattern { pattern: pattern.into(), tag: None, pick },
        file: None,
        per_section: false,
        optional: false,
        direction: Some(Direction::Higher),
    }
}

/// The first match, in GB/s.
fn first(name: &str, pattern: &str) -> PerfVariable {
    variable(name, pattern, "GB/s", Pick::Item(0))
}

fn perf(variables: impl IntoIterator<Item = PerfVariable>) -> Rules {
    Rules { perf_variables: variables.into_iter().collect(), ..Rules::default() }
}

fn row(label: &str, value: f64, lower: impl Into<Option<f64>>, upper: impl Into<Option<f64>>) -> ReferenceRow {
    let (variable, key) = match label.split_once('[') {
        Some((variable, key)) => (variable, key.strip_suffix(']').map(str::to_owned)),
        None => (label, None),
    };
    let reference = Reference { value, lower: lower.into(), upper: upper.into(), unit: None, warn: None, xfail: None };
    ReferenceRow { variable: variable.into(), key, reference }
}

fn origin(name: &str, node: Option<&str>) -> SectionOrigin {
    let node = node.map(str::to_owned);
    SectionOrigin { node, ..SectionOrigin::new(name) }
}

/// A job of several pods: names, nodes and logs.
fn pods(logs: &[(&str, &str, &str)]) -> Stdout {
    let identifier = Identifier::from_letters(*b"abcdefgh");
    Stdout::assemble(
        &identifier,
        logs.iter().map(|(name, node, log)| (origin(name, Some(node)), log.as_bytes().to_vec())).collect(),
    )
}

/// A job that ended with this status in its only section.
fn ended(exit: Exit) -> Ending {
    let exits = vec![SectionExit { section: "stdout".into(), exit, ..SectionExit::default() }];
    Ending { ended: Timestamp(1), exits, ..Ending::default() }
}

fn judge(rules: &Rules, stdout: &Stdout, ending: &Ending) -> Judgement {
    super::judge(rules, stdout, ending, &Monitor::default())
}

fn judge_stdout(rules: &Rules, stdout: &Stdout) -> Judgement {
    judge(rules, stdout, &ended(Exit::Code(0)))
}

fn judge_text(rules: &Rules, text: &str) -> Judgement {
    judge_stdout(rules, &Stdout::of(text))
}

/// `fail{sanity}: the cause`, followed by the warnings.
fn say(judgement: &Judgement) -> String {
    let mut text = judgement.outcome.to_string();
    if let Some(cause) = &judgement.cause {
        text.push_str(": ");
        text.push_str(cause);
    }
    for warning in &judgement.warnings {
        text.push_str("\nwarning: ");
        text.push_str(warning);
    }
    text
}
