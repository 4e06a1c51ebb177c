//! Several rounds of cases in one session: what runs again, why nothing more does, and what counts in the end.
//!
//! ```text
//! round 1: every selected case --results--> next --Again--> round 2: some of them, as their attempt 2 --> next ...
//!                                             \---Over---> what `counted` is reported and makes the exit code
//! ```
//! The rules are ReFrame's: failures are retried after the whole round and as long as there are any, `--reruns` and
//! `--duration` run everything again, whatever came of it. Only what another run can change is retried. No clock runs here,
//! and a process that takes a session over asks the same questions of the same results.

use crate::{
    case::{CaseName, cases_of},
    decisions::{
        attempts::Dropped,
        pipeline::{self, Skips},
    },
    job::outputs::Need,
    result::{CaseResult, Completion, Counting, Grade, OnDisruption, Outcome, Session},
};
use muster_text::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

/// So often is a case run again that the site took away and whose check wants that, without `--max-retries`.
const DISRUPTION_RETRIES: u32 = 2;

/// The policy by which a session runs cases again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// `--max-retries`: what failed, so many times. 0: only what `on_disruption` says.
    Retry {
        /// The most attempts beside the first.
        max: u32,
        /// More failures than this in the first round, and nothing is retried.
        threshold: Threshold,
    },
    /// `--reruns`: everything, so many times.
    Rerun {
        /// Rounds beside the first.
        times: u32,
    },
    /// `--duration`: everything, until this time has passed.
    Until(Duration),
}

impl Policy {
    /// Returns the most attempts of a case with this `on_disruption`. `None`: no number limits them.
    pub fn most_attempts(self, on_disruption: Option<OnDisruption>) -> Option<u32> {
        match self {
            Self::Retry { max, .. } if on_disruption == Some(OnDisruption::Retry) => {
                Some(max.max(DISRUPTION_RETRIES).saturating_add(1))
            }
            Self::Retry { max: times, .. } | Self::Rerun { times } => Some(times.saturating_add(1)),
            Self::Until(_) => None,
        }
    }

    /// Returns which attempts of a case count.
    pub fn counting(self) -> Counting {
        match self {
            Self::Retry { .. } => Counting::Last,
            Self::Rerun { .. } | Self::Until(_) => Counting::Every,
        }
    }
}

/// `--retries-threshold`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// A number of failures.
    Count(u32),
    /// Failures in percent of the session's cases.
    Percent(u32),
}

impl Threshold {
    /// Reads `20` or `15%`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number =
            |digits: &str| digits.parse().map_err(|_| format!("`{text}` is neither a number of failures nor a percentage"));
        text.strip_suffix('%').map_or_else(|| number(text).map(Self::Count), |digits| number(digits).map(Self::Percent))
    }

    /// The most failures, in a session of so many cases.
    fn of(self, cases: usize) -> usize {
        match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => cases.saturating_mul(percent as usize) / 100,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// A round that is over.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    pub number: u32,
    /// Every attempt of the session, of earlier rounds too.
    pub results: &'a [&'a CaseResult],
    /// The time since the session began.
    pub elapsed: Duration,
    /// A signal or `--maxfail` ended it.
    pub cut_short: bool,
}

/// The decision after a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Run these again, each as the attempt of this number.
    Again(BTreeMap<CaseName, u32>),
    /// The session is over; a sentence if that may surprise.
    Over(Option<String>),
}

/// Decides what follows a round.
pub fn next(policy: Policy, round: Round<'_>) -> Next {
    // A process that takes over a session asks about its first round when there are results of the second.
    let done = in_rounds(policy, round.results, round.number);
    if round.cut_short || done.is_empty() {
        return Next::Over(None);
    }
    match policy {
        Policy::Retry { max, threshold } => retry(max, threshold, round, &done),
        Policy::Rerun { times } if round.number > times => Next::Over(None),
        Policy::Until(limit) if round.elapsed >= limit => Next::Over(None),
        Policy::Rerun { .. } | Policy::Until(_) => {
            Next::Again(done.iter().map(|result| (result.name.clone(), round.number + 1)).collect())
        }
    }
}

/// The last attempts that belong to the first `number` rounds. With `--reruns` and `--duration` the number of an attempt is that of its
/// round. Retries follow attempts that did not pass: what passed is run again within a round, if others need it and it is gone.
fn in_rounds<'a>(policy: Policy, results: &[&'a CaseResult], number: u32) -> Vec<&'a CaseResult> {
    let mut retries: BTreeMap<&CaseName, u32> = BTreeMap::new();
    let mut round_of = |result: &'a CaseResult| match policy.counting() {
        Counting::Every => result.attempt,
        Counting::Last => {
            let before = retries.entry(&result.name).or_default();
            let round = *before + 1;
            *before += u32::from(result.outcome.row().completion != Completion::Passed);
            round
        }
    };
    let sorted = counted(Counting::Every, results.iter().copied());
    counted(Counting::Last, sorted.into_iter().filter(|result| round_of(result) <= number))
}

fn retry(max: u32, threshold: Threshold, round: Round<'_>, done: &[&CaseResult]) -> Next {
    let mut again: BTreeSet<_> =
        done.iter().filter(|result| round.number <= most_retries(result, max)).map(|result| result.name.clone()).collect();
    // What waited for them in vain has another chance, too.
    let blockers: BTreeSet<String> = again.iter().map(CaseName::to_string).collect();
    let blocked = done.iter().filter(|result| result.blocked_by.as_ref().is_some_and(|root| blockers.contains(root)));
    again.extend(blocked.map(|result| result.name.clone()));
    if again.is_empty() {
        return Next::Over(None);
    }
    let first = in_rounds(Policy::Retry { max, threshold }, round.results, 1);
    let (cases, failures) = (first.len(), first.into_iter().filter(|result| is_failure(result)).count());
    if failures > threshold.of(cases) {
        let why = format!("nothing is retried: {failures} of {cases} case(s) failed, more than --retries-threshold={threshold}");
        return Next::Over(Some(why));
    }
    let next = |result: &&CaseResult| (result.name.clone(), (round.number + 1).max(result.attempt + 1));
    Next::Again(done.iter().filter(|result| again.contains(&result.name)).map(next).collect())
}

/// How often a case with this result is run again. Cases that can never work or never started are not.
fn most_retries(result: &CaseResult, max: u32) -> u32 {
    match (&result.outcome, result.about.on_disruption) {
        (outcome, _) if !outcome.row().is_retried => 0,
        (Outcome::Disrupted(_), Some(OnDisruption::Fail)) => 0,
        (Outcome::Disrupted(_), Some(OnDisruption::Retry)) => max.max(DISRUPTION_RETRIES),
        _ => max,
    }
}

/// Returns whether a case will not be run again whatever the other cases do.
pub fn is_settled(policy: Policy, result: &CaseResult) -> bool {
    match policy {
        Policy::Retry { max, .. } if result.blocked_by.is_some() => result.attempt > max.max(DISRUPTION_RETRIES),
        Policy::Retry { max, .. } => result.attempt > most_retries(result, max),
        // One failure is enough; a pass is one only if all are.
        Policy::Rerun { .. } | Policy::Until(_) => !result.outcome.is_fine(),
    }
}

/// Returns whether a result is a failure of the session: `--maxfail` and `--retries-threshold` count these.
pub fn is_failure(result: &CaseResult) -> bool {
    result.outcome.row().grade == Grade::Bad && result.quarantine.is_none()
}

/// Returns whether a result is well only now: with `Counting::Last` a case has a second attempt because its first failed.
pub fn is_flaky(counting: Counting, result: &CaseResult) -> bool {
    counting == Counting::Last && result.attempt > 1 && matches!(result.outcome, Outcome::Pass | Outcome::Xfail)
}

/// The cases of an earlier session when another continues it.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The selected cases that run.
    pub again: BTreeSet<CaseName>,
    /// Results that are taken over.
    pub results: Vec<CaseResult>,
}

/// Divides cases into those that run and those whose results are taken over. An earlier session that was cut short is
/// gone on with: what has a result keeps it. One that had ended is run again, as far as it is `selected`, among the results
/// of the rest. With `--failed` only what was not well runs, and what it does not have.
pub fn restore(selected: &[&CaseName], past: &Session, results: &[CaseResult], failed: bool) -> Restored {
    let cut_short = past.ended.is_none() || past.interrupted;
    let counting = counted(Counting::Last, results);
    let known: BTreeMap<&CaseName, &CaseResult> = counting.iter().map(|result| (&result.name, *result)).collect();
    let runs = |name: &CaseName| match known.get(name) {
        None => true,
        Some(result) if result.outcome == Outcome::Abort => true,
        Some(result) if failed => !result.outcome.is_fine() || result.blocked_by.is_some(),
        Some(_) => !cut_short,
    };
    let again: BTreeSet<CaseName> = selected.iter().filter(|name| runs(name)).map(|name| (**name).clone()).collect();
    // What was aborted and is not wanted now has not run: there is nothing to take over.
    let kept = counting.iter().filter(|result| !again.contains(&result.name) && result.outcome != Outcome::Abort);
    let taken_over = |result: &&CaseResult| CaseResult {
        attempt: 1,
        restored_from: result.restored_from.clone().or_else(|| Some(past.id.clone())),
        ..(*result).clone()
    };
    let results = kept.map(taken_over).collect();
    Restored { again, results }
}

/// The cases that passed, whose outputs are gone and that have to run again for those that need them, together with what they
/// need themselves: `wanted` is what is needed by cases that are about to run,
/// `needs_of` says what a case needs, `is_gone` whether it passed and its outputs are gone.
pub fn needed_again<'a>(
    wanted: impl IntoIterator<Item = &'a Need>,
    needs_of: impl Fn(&CaseName) -> &'a [Need],
    is_gone: impl Fn(&CaseName) -> bool,
) -> BTreeSet<CaseName> {
    let mut again = BTreeSet::new();
    let mut wanted: Vec<&Need> = wanted.into_iter().collect();
    while let Some(need) = wanted.pop() {
        if !again.contains(&*need.case) && is_gone(&need.case) {
            again.insert((*need.case).clone());
            wanted.extend(needs_of(&need.case));
        }
    }
    again
}

/// A session that was cut short is finished within this time; after it, what it measured is old.
const RESUMED_WITHIN: Duration = Duration::from_hours(12);

/// Returns whether a session that is about to begin runs the same cases of the same system as a past one, soon after it. The
/// newest such session has their folders; it is finished if it does the same work, with the same settings.
pub fn is_same_run(past: &Session, now: &Session) -> bool {
    let is_same = past.system == now.system && cases_of(&past.selection) == cases_of(&now.selection);
    is_same && now.counting == Counting::Last && may_be_resumed(past, now.started)
}

/// Returns whether a session that was cut short may still be finished by another one of the same cases.
pub fn may_be_resumed(past: &Session, now: Timestamp) -> bool {
    let is_recent = now.since(past.started) <= RESUMED_WITHIN;
    !past.selection.is_empty() && past.counting == Counting::Last && is_recent
}

/// The attempts that count, sorted by case and attempt.
pub fn counted<'a>(counting: Counting, results: impl IntoIterator<Item = &'a CaseResult>) -> Vec<&'a CaseResult> {
    let mut sorted: BTreeMap<(&CaseName, u32), &CaseResult> = BTreeMap::new();
    for result in results {
        sorted.insert((&result.name, result.attempt), result);
    }
    let mut counting_results: Vec<&CaseResult> = Vec::with_capacity(sorted.len());
    for result in sorted.into_values() {
        match counting_results.last_mut() {
            Some(last) if counting == Counting::Last && last.name == result.name => *last = result,
            _ => counting_results.push(result),
        }
    }
    counting_results
}

/// Returns the exit code of a session, by the attempts that count, and the effect of its skipped cases. A restored result counts
/// like any other.
pub fn end<'a>(session: &Session, results: impl IntoIterator<Item = &'a CaseResult>, dropped: &Dropped) -> (u8, Skips) {
    let counting = counted(session.counting, results);
    let cases = || {
        let counting = counting.iter().map(|result| (&result.outcome, result.quarantine.is_some()));
        counting.chain(dropped.outcomes().map(|(outcome, is_quarantined, _)| (outcome, is_quarantined)))
    };
    // A fixture that has passed is no case that was asked for.
    let asked = counting.iter().filter(|result| !result.name.is_fixture() || result.outcome != Outcome::Pass);
    let asked = asked.map(|result| (&result.outcome, result.quarantine.is_some()));
    let asked = asked.chain(dropped.outcomes().map(|(outcome, is_quarantined, _)| (outcome, is_quarantined)));
    let skips = pipeline::skips(asked, session.fail_on_skip);
    (pipeline::exit_code(cases(), skips, session.interrupted), skips)
}

#[cfg(test)]
mod tests;
