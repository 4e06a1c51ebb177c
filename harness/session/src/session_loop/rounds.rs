//! Rounds of the same cases: once, again what failed (`--max-retries`), or everything again (`--reruns`, `--duration`).

use crate::{
    case::QueuedCase,
    session_loop::source::{Batch, Next, SoFar, Source},
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::CaseName,
    decisions::rounds::{self, Policy, Round},
    result::{CaseResult, SourceDefinition},
};
use muster_text::time::Timestamp;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// A session cannot be continued.
#[derive(Debug, thiserror::Error)]
#[error("its cases come from `{0}`, as a newer muster has stored it: continue it with that version")]
pub struct UnknownSource(String);

/// A round begins when the one before it is over: the rules are those of [`muster_core::decisions::rounds`].
pub struct Rounds {
    pub cases: Arc<[TestCase]>,
    /// The changes of the command line to every case.
    pub adjustments: Arc<Adjustments>,
    pub policy: Policy,
    /// The time when the session began.
    pub started: Timestamp,
    /// The round in which all cases run for the first time: 1, or the one in which another process was.
    pub first: u32,
    /// The last round that began; 0: none.
    pub number: u32,
}

impl Source for Rounds {
    fn next(&mut self, now: Timestamp, so_far: &SoFar<'_>) -> Next {
        if !so_far.is_idle {
            return Next::Wait;
        }
        let again = match self.number {
            0 => None,
            number => {
                let results = self.deciding(so_far);
                let elapsed = now.since(self.started);
                match rounds::next(self.policy, Round { number, results: &results, elapsed, cut_short: so_far.is_closed }) {
                    rounds::Next::Over(why) => return Next::Done(why),
                    rounds::Next::Again(attempts) => Some(attempts),
                }
            }
        };
        let is_first = self.number == 0;
        self.number = if again.is_some() { self.number + 1 } else { self.first };
        let items = self.round(again.as_ref());
        if items.is_empty() && again.is_some() {
            return Next::Done(None);
        }
        let title = again.map(|_| title(self.policy, self.number, items.len()));
        let cases = if is_first { Arc::clone(&self.cases) } else { Arc::default() };
        Next::More(Batch { cases, items, number: self.number, title })
    }
}

impl Rounds {
    /// The kind of this source, as sessions store it.
    const KIND: &str = "rounds";

    /// The definition that a session stores.
    pub fn definition(policy: Policy) -> SourceDefinition {
        SourceDefinition { kind: Self::KIND.to_owned(), definition: json!(policy) }
    }

    /// The policy of a session that another process has begun.
    ///
    /// # Errors
    /// The session has a source that this version does not know.
    pub fn policy_of(source: &SourceDefinition) -> Result<Policy, UnknownSource> {
        let unknown = || UnknownSource(source.kind.clone());
        if source.kind != Self::KIND {
            return Err(unknown());
        }
        serde_json::from_value(source.definition.clone()).map_err(|_| unknown())
    }

    /// The attempts by which it is decided what follows a round.
    fn deciding<'a>(&self, so_far: &SoFar<'a>) -> Vec<&'a CaseResult> {
        match self.policy {
            Policy::Retry { .. } => so_far.attempts.kept().into_iter().map(AsRef::as_ref).collect(),
            // All cases run again, whatever came of them.
            Policy::Rerun { .. } | Policy::Until(_) => so_far.attempts.last().collect(),
        }
    }

    /// `again`: the attempts of a later round; else all cases run.
    fn round(&self, again: Option<&BTreeMap<CaseName, u32>>) -> Vec<QueuedCase> {
        let attempt = |case: &TestCase| again.map_or(Some(self.number), |again| again.get(&*case.name).copied());
        let queued = |case| Some(QueuedCase::of(case, &self.adjustments, attempt(case)?));
        self.cases.iter().filter_map(queued).collect()
    }
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
