//! Cases that passed and whose stage folder is gone or torn down. They run again if a case that is still to run needs them.

use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::CaseName,
    decisions::rounds,
    job::outputs::Need,
    result::{CaseResult, Completion, Counting},
};
use muster_session::{case::QueuedCase, folders};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Whether a case passed, and other cases cannot use its stage folder any more.
pub fn is_gone(result: &CaseResult) -> bool {
    let is_there = || result.outputs.as_ref().is_some_and(|outputs| folders::is_available(&outputs.stage));
    result.outcome.row().completion == Completion::Passed && !is_there()
}

/// What a case needs that is not launched yet.
pub fn needs(case: &QueuedCase) -> (&CaseName, &[Need]) {
    (&case.name, if case.is_launched() { &[] } else { &case.needs })
}

/// All cases, and their last results.
pub struct Known<'a> {
    cases: HashMap<&'a CaseName, &'a TestCase>,
    last: BTreeMap<&'a CaseName, &'a CaseResult>,
}

impl<'a> Known<'a> {
    pub fn new(cases: &'a [TestCase], results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let last = rounds::counted(Counting::Last, results);
        Self {
            cases: cases.iter().map(|case| (&*case.name, case)).collect(),
            last: last.into_iter().map(|result| (&result.name, result)).collect(),
        }
    }

    /// The cases that run again because the cases `to_run` need them. These are given with their needs.
    pub fn to_relaunch(&self, to_run: &BTreeMap<&CaseName, &[Need]>) -> BTreeSet<CaseName> {
        if self.last.is_empty() {
            return BTreeSet::new();
        }
        let wanted = to_run.values().flat_map(|needs| needs.iter());
        let needs_of = |name: &CaseName| self.cases.get(name).map(|case| case.needs()).unwrap_or_default();
        let is_gone = |name: &CaseName| {
            let can_run = self.cases.contains_key(name) && !to_run.contains_key(name);
            can_run && self.last.get(name).is_some_and(|result| is_gone(result))
        };
        rounds::needed_again(wanted, needs_of, is_gone)
    }

    /// The queued cases, and the next attempts of the cases to relaunch.
    pub fn with_relaunched(
        &self,
        queued: Vec<QueuedCase>,
        to_relaunch: &BTreeSet<CaseName>,
        adjustments: &Arc<Adjustments>,
    ) -> Vec<QueuedCase> {
        let again = |name| Some(QueuedCase::of(self.cases.get(name)?, adjustments, self.last.get(name)?.attempt + 1));
        let changed = |case: QueuedCase| {
            if case.is_launched() {
                // A launched case has what it needs, or fails by itself.
                let is_there = |need: &&Need| !self.last.get(&*need.case).is_some_and(|result| is_gone(result));
                let needs = case.needs.iter().filter(is_there).cloned().collect();
                return QueuedCase { needs, ..case };
            }
            // Another process has rendered it with a folder that is gone.
            match self.cases.get(&*case.name).filter(|_| case.needs.iter().any(|need| to_relaunch.contains(&*need.case))) {
                Some(test_case) => case.relaunch(test_case, adjustments),
                None => case,
            }
        };
        to_relaunch.iter().filter_map(again).chain(queued.into_iter().map(changed)).collect()
    }
}
