//! The cases that count, the order in which they are shown, and the numbers of their outcomes.

use crate::text::words::counted;
use muster_core::{
    case::CaseName,
    decisions::{
        attempts::{Attempts, Dropped},
        pipeline::Skips,
        rounds,
    },
    result::{CaseResult, Counting, Grade, Outcome, Session},
    usage::Total,
};
use serde::Serialize;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
};

/// A session and every attempt of every case that is known of it: what all reports are made from.
#[derive(Debug, Clone)]
pub struct Results<'a> {
    pub session: &'a Session,
    /// In the order of their endings.
    cases: Vec<&'a CaseResult>,
    sorted: Vec<&'a CaseResult>,
    counting: Vec<&'a CaseResult>,
    dropped: Dropped,
    /// The exit code, and what the skipped cases mean.
    end: (u8, Skips),
}

impl<'a> Results<'a> {
    /// A session with its attempts in any order.
    pub fn new(session: &'a Session, cases: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        Self::sort(session, cases.into_iter().collect(), Dropped::default())
    }

    /// A session with what it remembers of its attempts.
    pub fn of(session: &'a Session, attempts: &'a Attempts) -> Self {
        let cases = attempts.kept().into_iter().map(|result| &**result).collect();
        Self::sort(session, cases, attempts.dropped().clone())
    }

    /// Once: every report wants them sorted, most of them several times.
    fn sort(session: &'a Session, cases: Vec<&'a CaseResult>, dropped: Dropped) -> Self {
        let (sorted, counting) = (sorted(cases.clone()), sorted(rounds::counted(session.counting, cases.iter().copied())));
        let end = rounds::end(session, cases.iter().copied(), &dropped);
        Self { session, cases, sorted, counting, dropped, end }
    }

    /// The results as a part of a session that has ended so: what other cases did is part of its end.
    #[must_use]
    pub fn ending_as(self, end: (u8, Skips)) -> Self {
        Self { end, ..self }
    }

    /// The attempts that are only counted.
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    pub fn attempts(&self) -> &[&'a CaseResult] {
        &self.cases
    }

    /// Every attempt, by name, place and number: a table of figures looks the same every morning, in whatever order
    /// the cases finished. Numbers within names are compared as numbers.
    pub fn sorted(&self) -> &[&'a CaseResult] {
        &self.sorted
    }

    /// The attempts that count, sorted.
    pub fn counting(&self) -> &[&'a CaseResult] {
        &self.counting
    }

    /// Returns the use of all attempts.
    pub fn usage(&self) -> Total {
        let mut total = Total::of(self.cases.iter().map(|case| &case.usage));
        total.merge(&self.dropped.usage);
        total
    }

    /// The exit code that its cases give the session.
    pub fn exit_code(&self) -> u8 {
        self.end.0
    }

    /// Returns the effect of its skipped cases on the end of the session.
    pub fn skips(&self) -> Skips {
        self.end.1
    }

    /// Returns the numbers of cases by outcome.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { skips: self.skips(), ..Counts::of(&self.counting, self.session.num_cases) };
        for (outcome, is_quarantined, times) in self.dropped.outcomes() {
            let is_excused = is_quarantined && outcome.row().grade == Grade::Bad;
            (0..times).for_each(|_| counts.add(outcome, is_excused));
        }
        counts
    }
}

fn sorted(mut cases: Vec<&CaseResult>) -> Vec<&CaseResult> {
    cases.sort_by(|a, b| compare_names(&a.name, &b.name).then(a.attempt.cmp(&b.attempt)));
    cases
}

fn compare_names(a: &CaseName, b: &CaseName) -> Ordering {
    compare_naturally(&a.title(), &b.title()).then_with(|| compare_naturally(&a.place(), &b.place())).then_with(|| a.cmp(b))
}

/// Runs of digits by their value, everything else by character: `size=128` comes before `size=1024`.
fn compare_naturally(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (head_a, rest_a) = split_run(a);
        let (head_b, rest_b) = split_run(b);
        let is_number = |head: &str| head.starts_with(|c: char| c.is_ascii_digit());
        let order = if is_number(head_a) && is_number(head_b) {
            let (value_a, value_b) = (head_a.trim_start_matches('0'), head_b.trim_start_matches('0'));
            value_a.len().cmp(&value_b.len()).then_with(|| value_a.cmp(value_b)).then_with(|| head_a.cmp(head_b))
        } else {
            head_a.cmp(head_b)
        };
        if order.is_ne() || head_a.is_empty() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// The leading run of digits, or of anything else.
fn split_run(text: &str) -> (&str, &str) {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    text.split_at(text.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(text.len()))
}

/// The numbers of cases by outcome. `total` is always the sum of the other eight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Cases selected.
    pub total: u32,
    /// Checks (with their parameters) that the cases with a result belong to.
    pub checks: u32,
    pub passed: u32,
    /// Everything that is neither fine nor aborted: `fail`, `invalid`, `timeout`, `disrupted`, `error`, `xpass`.
    pub failed: u32,
    /// `xfail`
    pub expected: u32,
    /// The cases that would have failed, but are in quarantine.
    pub quarantined: u32,
    pub skipped: u32,
    pub aborted: u32,
    pub stopped: u32,
    /// Selected, but without a result: the session ended before they started.
    pub not_run: u32,
    /// The effect of the skipped ones.
    #[serde(skip)]
    pub skips: Skips,
    /// The numbers by outcome: `fail{sanity}`.
    #[serde(skip)]
    pub by_outcome: BTreeMap<String, u32>,
}

impl Counts {
    /// Counts the attempts that count; `selected` is how many cases there should be.
    pub fn of(cases: &[&CaseResult], selected: u32) -> Self {
        let mut counts = Self::default();
        let (mut checks, mut names) = (HashSet::new(), HashSet::new());
        for case in cases {
            checks.insert((&case.name.display, &case.name.hash));
            names.insert(&case.name);
            counts.add(&case.outcome, is_excused(case));
        }
        let len = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        counts.checks = len(checks.len());
        counts.not_run = selected.saturating_sub(len(names.len()));
        counts.total += counts.not_run;
        counts
    }

    /// Counts one attempt more; what is excused is in quarantine.
    pub fn add(&mut self, outcome: &Outcome, is_excused: bool) {
        self.total += 1;
        *self.by_outcome.entry(outcome.to_string()).or_default() += 1;
        *match outcome {
            _ if is_excused => &mut self.quarantined,
            Outcome::Pass => &mut self.passed,
            Outcome::Skip => &mut self.skipped,
            Outcome::Xfail => &mut self.expected,
            Outcome::Abort => &mut self.aborted,
            Outcome::Stopped(_) => &mut self.stopped,
            Outcome::Xpass
            | Outcome::Fail(_)
            | Outcome::Invalid(_)
            | Outcome::Timeout(_)
            | Outcome::Disrupted(_)
            | Outcome::Error(_) => &mut self.failed,
        } += 1;
    }

    /// Cases that were run to an end, good or bad.
    pub fn ran(&self) -> u32 {
        self.passed + self.failed + self.expected + self.quarantined + self.stopped
    }

    /// Returns whether there is nothing to look into: something was run, and the rest was run or skipped as it should be.
    pub fn is_fine(&self) -> bool {
        self.total > 0 && self.failed + self.aborted + self.not_run == 0 && self.skips == Skips::Accepted
    }

    /// Returns why a session is no success, though no case failed.
    pub fn why_skips_fail(&self) -> Option<String> {
        let skipped = counted(self.skipped as usize, "case");
        match self.skips {
            Skips::Accepted => None,
            Skips::NothingRan if self.not_run > 0 => None,
            Skips::NothingRan => {
                let what = if self.ran() == 0 { "nothing ran" } else { "nothing but fixtures ran" };
                Some(format!("{what}: {skipped} skipped, which proves nothing"))
            }
            Skips::Refused => Some(format!("{skipped} skipped, which --fail-on-skip does not accept")),
        }
    }
}

/// The attempts of every case, sorted, each case's in their order.
pub(crate) fn history<'a>(results: &Results<'a>) -> Vec<Vec<&'a CaseResult>> {
    let mut cases: Vec<Vec<&CaseResult>> = Vec::new();
    for case in results.sorted().iter().copied() {
        match cases.last_mut() {
            Some(attempts) if attempts.last().is_some_and(|before| before.name == case.name) => attempts.push(case),
            _ => cases.push(vec![case]),
        }
    }
    cases
}

/// Whether an attempt is not fine, and does not count: it is in quarantine.
pub(crate) fn is_excused(case: &CaseResult) -> bool {
    case.quarantine.is_some() && case.outcome.row().grade == Grade::Bad
}

/// Whether an attempt ran, in this session.
pub(crate) fn ran_here(case: &CaseResult) -> bool {
    case.outcome != Outcome::Skip && case.identifier.is_some() && case.restored_from.is_none()
}

/// The attempts of the cases that were run again because they failed; not of those that were run again in any case.
pub(crate) fn retried<'a>(results: &Results<'a>) -> Vec<Vec<&'a CaseResult>> {
    match results.session.counting {
        Counting::Last => history(results).into_iter().filter(|attempts| attempts.len() > 1).collect(),
        Counting::Every => Vec::new(),
    }
}

/// Whether a case is well only in its last attempt.
pub(crate) fn is_flaky(results: &Results<'_>, last: &CaseResult) -> bool {
    last.flaky || rounds::is_flaky(results.session.counting, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::{
        job::{scheduler::Disruption, workload::Clock},
        result::{Failure, Fault, Invalid},
    };

    #[test]
    fn the_sum_always_adds_up() {
        let every = [
            Outcome::Pass,
            Outcome::Skip,
            Outcome::Xfail,
            Outcome::Xpass,
            Outcome::Fail(Failure::Sanity),
            Outcome::Invalid(Invalid::Logs),
            Outcome::Timeout(Clock::Pending),
            Outcome::Disrupted(Disruption::Node),
            Outcome::Error(Fault::Infra),
            Outcome::Abort,
            Outcome::Stopped("enough".into()),
        ];
        let mut counts = Counts::default();
        for (number, outcome) in every.iter().enumerate() {
            counts.add(outcome, false);
            let parts = counts.ran() + counts.skipped + counts.aborted + counts.not_run;
            assert_eq!((counts.total, parts), (u32::try_from(number).unwrap() + 1, counts.total), "{outcome}");
            assert_eq!(counts.by_outcome.values().sum::<u32>(), counts.total);
        }
        assert_eq!((counts.passed, counts.failed, counts.expected, counts.stopped), (1, 6, 1, 1));
    }

    #[test]
    fn only_a_whole_session_without_a_failure_is_fine() {
        let of = |outcomes: &[Outcome], not_run| {
            let result = |(number, outcome): (usize, &Outcome)| {
                let name = CaseName { display: number.to_string(), ..CaseName::default() };
                CaseResult { name, outcome: outcome.clone(), ..CaseResult::default() }
            };
            let results: Vec<CaseResult> = outcomes.iter().enumerate().map(result).collect();
            let num_cases = u32::try_from(results.len()).unwrap() + not_run;
            Results::new(&Session { num_cases, ..Session::default() }, &results).counts().is_fine()
        };
        let rows: [(&[Outcome], u32, bool); 8] = [
            (&[Outcome::Pass, Outcome::Skip, Outcome::Xfail, Outcome::Stopped("x".into())], 0, true),
            (&[Outcome::Pass], 1, false),
            (&[Outcome::Pass, Outcome::Abort], 0, false),
            (&[Outcome::Pass, Outcome::Xpass], 0, false),
            (&[Outcome::Timeout(Clock::Pending)], 0, false),
            (&[Outcome::Skip, Outcome::Skip], 0, false),
            (&[], 0, false),
            (&[], 1, false),
        ];
        for (outcomes, not_run, fine) in rows {
            assert_eq!(of(outcomes, not_run), fine, "{outcomes:?} {not_run}");
        }
    }

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let mut names = ["b", "a %n=1024", "a %n=128", "a %n=0128", "a", "a %n=128 %m=2", ""];
        names.sort_by(|a, b| compare_naturally(a, b));
        assert_eq!(names, ["", "a", "a %n=0128", "a %n=128", "a %n=128 %m=2", "a %n=1024", "b"]);
    }
}
