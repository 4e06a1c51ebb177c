//! Cases that passed and whose stage folder is gone or torn down. They run again if a case that is still to run needs them.

use crate::{case::QueuedCase, folders};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::CaseName,
    decisions::{attempts::Attempts, rounds},
    job::outputs::Need,
    result::{CaseResult, Completion},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Whether a case passed, and other cases cannot use its stage folder any more.
fn is_gone(result: &CaseResult) -> bool {
    let is_there = || result.outputs.as_ref().is_some_and(|outputs| folders::is_available(&outputs.stage));
    result.outcome.row().completion == Completion::Passed && !is_there()
}

/// What a case needs that is not launched yet.
pub(crate) fn needs(case: &QueuedCase) -> (&CaseName, &[Need]) {
    (&case.name, if case.is_launched() { &[] } else { &case.needs })
}

/// The cases that can run again for those that need them.
pub(crate) struct Relaunch<'a> {
    cases: HashMap<Arc<CaseName>, TestCase>,
    adjustments: &'a Arc<Adjustments>,
}

impl<'a> Relaunch<'a> {
    pub(crate) fn of(cases: &[TestCase], adjustments: &'a Arc<Adjustments>) -> Self {
        let mut relaunch = Self { cases: HashMap::new(), adjustments };
        relaunch.learn(cases);
        relaunch
    }

    /// Takes cases that the session has not seen before.
    pub(crate) fn learn(&mut self, cases: &[TestCase]) {
        self.cases.extend(cases.iter().map(|case| (Arc::clone(&case.name), case.clone())));
    }

    pub(crate) fn case(&self, name: &CaseName) -> Option<&TestCase> {
        self.cases.get(name)
    }

    /// The cases that run again because the cases `to_run` need them. These are given with their needs.
    pub(crate) fn names(&self, to_run: &BTreeMap<&CaseName, &[Need]>, attempts: &Attempts) -> BTreeSet<CaseName> {
        let wanted = to_run.values().flat_map(|needs| needs.iter());
        let needs_of = |name: &CaseName| self.cases.get(name).map(TestCase::needs).unwrap_or_default();
        let is_gone = |name: &CaseName| {
            let can_run = self.cases.contains_key(name) && !to_run.contains_key(name);
            can_run && attempts.last_of(name).is_some_and(is_gone)
        };
        rounds::needed_again(wanted, needs_of, is_gone)
    }

    /// The queued cases, and before them the next attempts of those that they need and that are gone. These are reported once: as the
    /// new attempt.
    pub(crate) fn complete(&self, queued: Vec<QueuedCase>, attempts: &mut Attempts) -> Vec<QueuedCase> {
        let again = self.names(&queued.iter().map(needs).collect(), attempts);
        let next_attempt =
            |name| Some(QueuedCase::of(self.cases.get(name)?, self.adjustments, attempts.last_of(name)?.attempt + 1));
        let changed = |case: QueuedCase| {
            if case.is_launched() {
                // A launched case has what it needs, or fails by itself.
                let is_there = |need: &&Need| !attempts.last_of(&need.case).is_some_and(is_gone);
                let needs = case.needs.iter().filter(is_there).cloned().collect();
                return QueuedCase { needs, ..case };
            }
            // Another process has rendered it with a folder that is gone.
            match self.cases.get(&*case.name).filter(|_| case.needs.iter().any(|need| again.contains(&*need.case))) {
                Some(test_case) => case.relaunch(test_case, self.adjustments),
                None => case,
            }
        };
        let items = again.iter().filter_map(next_attempt).chain(queued.into_iter().map(changed)).collect();
        for name in &again {
            attempts.remove(name);
        }
        items
    }
}
