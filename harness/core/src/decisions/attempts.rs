//! The attempts that have ended, as far as a session keeps them.
//!
//! A session whose last attempts count keeps every attempt. One that runs everything again and again (`--reruns`,
//! `--duration`) may have millions: it keeps the last attempt of each case and, of those before, the latest [`KEPT`] that failed
//! and the latest [`KEPT`] that did not. Of the others it keeps counts; the attempts themselves are in the store.

use crate::{
    case::CaseName,
    result::{CaseResult, Counting, Outcome},
    usage::Total,
};
use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap, VecDeque},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

/// The most attempts before the last one of their case that are kept: of those that failed, and of the others.
pub const KEPT: usize = 10_000;

/// The attempts of a session that have ended.
#[derive(Debug, Default)]
pub struct Attempts {
    counting: Counting,
    /// How many were added: their order.
    added: u64,
    last: HashMap<ByName, u64>,
    earlier: VecDeque<(u64, Arc<CaseResult>)>,
    earlier_failed: VecDeque<(u64, Arc<CaseResult>)>,
    dropped: Dropped,
}

/// The attempts that are only counted.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Dropped {
    /// How many attempts ended how, by the outcome as text; `true`: in quarantine.
    outcomes: BTreeMap<(String, bool), (Outcome, u32)>,
    pub attempts: usize,
    pub figures: usize,
    /// The sum of their times.
    pub time: Duration,
    pub usage: Total,
}

/// A result, found by the name of its case.
#[derive(Debug)]
struct ByName(Arc<CaseResult>);

impl Borrow<CaseName> for ByName {
    fn borrow(&self) -> &CaseName {
        &self.0.name
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Attempts {
    pub fn new(counting: Counting) -> Self {
        Self { counting, ..Self::default() }
    }

    /// The attempts of these results, which stand in the order of their endings.
    pub fn of(counting: Counting, results: impl IntoIterator<Item = CaseResult>) -> Self {
        let mut attempts = Self::new(counting);
        for result in results {
            attempts.add(Arc::new(result));
        }
        attempts
    }

    /// An attempt has ended.
    pub fn add(&mut self, result: Arc<CaseResult>) {
        let order = self.added;
        self.added += 1;
        let before = match self.last.remove_entry(&result.name) {
            // A process that takes a session over may learn of a later attempt first.
            Some((ByName(later), its)) if later.attempt > result.attempt => {
                self.last.insert(ByName(later), its);
                Some((order, result))
            }
            before => {
                self.last.insert(ByName(result), order);
                before.map(|(ByName(before), order)| (order, before))
            }
        };
        if let Some(before) = before {
            self.add_earlier(before);
        }
    }

    fn add_earlier(&mut self, (order, result): (u64, Arc<CaseResult>)) {
        let earlier = if result.outcome.is_fine() { &mut self.earlier } else { &mut self.earlier_failed };
        earlier.push_back((order, result));
        if self.counting == Counting::Every
            && earlier.len() > KEPT
            && let Some((_, result)) = earlier.pop_front()
        {
            self.dropped.add(&result);
        }
    }

    /// Removes the attempts of a case: another one is reported in their place.
    pub fn remove(&mut self, name: &CaseName) {
        self.last.remove(name);
        self.earlier.retain(|(_, result)| result.name != *name);
        self.earlier_failed.retain(|(_, result)| result.name != *name);
    }

    /// An attempt is known better now.
    pub fn replace(&mut self, result: CaseResult) {
        let is_it = |known: &CaseResult| known.name == result.name && known.attempt == result.attempt;
        if let Some((_, order)) = self.last.get_key_value(&result.name).filter(|(known, _)| is_it(&known.0)) {
            let order = *order;
            self.last.remove(&result.name);
            self.last.insert(ByName(Arc::new(result)), order);
        } else if let Some((_, known)) = self.earlier.iter_mut().chain(&mut self.earlier_failed).find(|(_, known)| is_it(known)) {
            *known = Arc::new(result);
        }
    }

    /// The last attempt of a case.
    pub fn last_of(&self, name: &CaseName) -> Option<&CaseResult> {
        self.last.get_key_value(name).map(|(result, _)| &*result.0)
    }

    /// Returns whether an attempt has ended, as far as it is kept.
    pub fn has(&self, name: &CaseName, attempt: u32) -> bool {
        let is_it = |result: &CaseResult| result.attempt == attempt && result.name == *name;
        self.last_of(name).is_some_and(|last| is_it(last) || last.attempt > attempt)
    }

    /// The last attempt of each case, in any order.
    pub fn last(&self) -> impl Iterator<Item = &CaseResult> {
        self.last.keys().map(|result| &*result.0)
    }

    /// The attempts that are kept, in the order of their endings.
    pub fn kept(&self) -> Vec<&Arc<CaseResult>> {
        let earlier = self.earlier.iter().chain(&self.earlier_failed).map(|(order, result)| (*order, result));
        let mut all: Vec<_> = self.last.iter().map(|(result, order)| (*order, &result.0)).chain(earlier).collect();
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, result)| result).collect()
    }

    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }
}

impl Dropped {
    /// Each outcome, whether that was in quarantine, and how often.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Outcome, bool, u32)> {
        self.outcomes.iter().map(|((_, quarantined), (outcome, count))| (outcome, *quarantined, *count))
    }

    fn add(&mut self, result: &CaseResult) {
        let key = (result.outcome.to_string(), result.quarantine.is_some());
        self.outcomes.entry(key).or_insert_with(|| (result.outcome.clone(), 0)).1 += 1;
        self.attempts += 1;
        self.figures += result.measurements.len();
        self.time += result.times.total();
        self.usage.add(&result.usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Failure;

    fn result(case: &str, attempt: u32, outcome: Outcome) -> Arc<CaseResult> {
        let name = CaseName { display: case.to_owned(), ..CaseName::default() };
        Arc::new(CaseResult { name, attempt, outcome, ..CaseResult::default() })
    }

    fn kept(attempts: &Attempts) -> Vec<String> {
        attempts.kept().iter().map(|result| format!("{} {}", result.name.display, result.attempt)).collect()
    }

    #[test]
    fn attempts_stand_in_the_order_of_their_endings_and_the_last_of_each_case_is_found() {
        let mut attempts = Attempts::new(Counting::Last);
        for (case, attempt) in [("b", 1), ("a", 1), ("b", 2), ("c", 2), ("c", 1)] {
            attempts.add(result(case, attempt, Outcome::Pass));
        }
        assert_eq!(kept(&attempts), ["b 1", "a 1", "b 2", "c 2", "c 1"]);
        let last = |case: &str| attempts.last_of(&result(case, 0, Outcome::Pass).name).map(|result| result.attempt);
        assert_eq!(["a", "b", "c", "d"].map(last), [Some(1), Some(2), Some(2), None]);
        let better = |case: &str, attempt| CaseResult { flaky: true, ..(*result(case, attempt, Outcome::Pass)).clone() };
        attempts.replace(better("b", 1));
        attempts.replace(better("a", 1));
        attempts.replace(better("a", 7));
        assert_eq!(attempts.kept().iter().map(|result| result.flaky).collect::<Vec<_>>(), [true, true, false, false, false]);
        attempts.remove(&better("b", 1).name);
        assert_eq!(kept(&attempts), ["a 1", "c 2", "c 1"]);
    }

    #[test]
    fn of_many_attempts_the_last_the_latest_and_the_counts_are_kept() {
        let many = u32::try_from(KEPT).expect("a small number") + 3;
        for (counting, gone) in [(Counting::Every, 2), (Counting::Last, 0)] {
            let mut attempts = Attempts::new(counting);
            attempts.add(result("bad", 1, Outcome::Fail(Failure::Sanity)));
            attempts.add(result("bad", 2, Outcome::Pass));
            for attempt in 1..=many {
                attempts.add(result("a", attempt, Outcome::Pass));
            }
            assert_eq!(attempts.kept().len(), KEPT + 5 - gone, "{counting:?}");
            assert_eq!(attempts.dropped().attempts, gone, "{counting:?}");
            assert_eq!(kept(&attempts)[..3], if gone > 0 { ["bad 1", "bad 2", "a 3"] } else { ["bad 1", "bad 2", "a 1"] });
            let counted = attempts.dropped().outcomes().map(|(_, _, count)| count).sum::<u32>();
            assert_eq!(counted as usize, gone);
        }
    }
}
