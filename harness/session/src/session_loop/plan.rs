//! The plan of a session: what it is going to run, and what is known of it already.

use crate::{
    case::QueuedCase,
    session_loop::{
        relaunch::{self, Relaunch},
        rounds::Rounds,
        taken_over::TakenOver,
    },
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments, site::quarantine::List};
use muster_core::{
    case::CaseName,
    decisions::{attempts::Attempts, rounds::Policy},
    job::descriptor::SchedulerName,
    night::NightSpan,
    result::{Completion, Counting, Session},
};
use muster_store::Store;
use std::{collections::BTreeSet, sync::Arc};

/// A session that is about to run: from its start, or from where another process has left it.
pub struct SessionPlan {
    pub session: Session,
    /// The night in which it starts. `None`: what another process has begun has its night already.
    pub night: Option<NightSpan>,
    /// The store of a session that this process has taken over. `None`: the session starts now.
    pub taken_over: Option<Store>,
    /// The results of this session so far, or restored from another one.
    pub attempts: Attempts,
    /// Attempts that another process has started.
    pub started: Vec<QueuedCase>,
    /// The cases of the first round that have no result, and those that may run again.
    pub cases: Arc<[TestCase]>,
    /// The policy by which cases run again.
    pub policy: Policy,
    /// The cases whose outcome does not count.
    pub quarantine: List,
    /// The changes of the command line to every case.
    pub adjustments: Arc<Adjustments>,
}

impl SessionPlan {
    /// The number of checks with their parameters, without their places and copies: as reports count them.
    pub fn num_checks(&self) -> u32 {
        let names = self.attempts.last().map(|result| &result.name).chain(self.names_to_run());
        let checks: BTreeSet<_> = names.map(|name| (&*name.display, &*name.hash)).collect();
        u32::try_from(checks.len()).unwrap_or(u32::MAX)
    }

    pub fn remaining(&self) -> BTreeSet<&CaseName> {
        self.names_to_run().filter(|name| self.attempts.last_of(name).is_none()).collect()
    }

    /// The cases that passed and run again all the same: others need their stage folder, and it is gone. Another process may have
    /// started that.
    pub fn to_relaunch(&self) -> BTreeSet<CaseName> {
        let new = self.cases.iter().filter(|case| self.attempts.last_of(&case.name).is_none());
        let new = new.map(|case| (&*case.name, case.needs()));
        let to_run = self.started.iter().map(relaunch::needs).chain(new).collect();
        let mut names = Relaunch::of(&self.cases, &self.adjustments).names(&to_run, &self.attempts);
        names.extend(self.started.iter().filter(|case| self.is_made_again(case)).map(|case| (*case.name).clone()));
        names
    }

    /// Whether a case that another process has started had passed before: only what did not pass is retried.
    fn is_made_again(&self, started: &QueuedCase) -> bool {
        let last = self.attempts.last_of(&started.name);
        self.policy.counting() == Counting::Last && last.is_some_and(|last| last.outcome.row().completion == Completion::Passed)
    }

    /// Nothing of a rehearsal is stored among the results of real runs.
    pub fn is_rehearsal(&self) -> bool {
        self.adjustments.rehearsal.is_some()
    }

    /// Takes the source of the session: what another process has started, and the rounds of the cases.
    pub fn source(&mut self) -> TakenOver<Rounds> {
        let mut started = std::mem::take(&mut self.started);
        let latest = started.iter().map(|case| case.attempt).chain(self.attempts.last().map(|result| result.attempt)).max();
        let first = match self.policy.counting() {
            Counting::Last => 1,
            Counting::Every => latest.unwrap_or(1),
        };
        let made_again = started.extract_if(.., |case| self.is_made_again(case)).collect();
        let (cases, adjustments) = (Arc::clone(&self.cases), Arc::clone(&self.adjustments));
        let rest = Rounds { cases, adjustments, policy: self.policy, started: self.session.started, first, number: 0 };
        TakenOver { started, made_again, continued: BTreeSet::new(), rest }
    }

    /// The cases that have no result, each with its scheduler.
    pub fn schedulers_to_run(&self) -> Vec<(&CaseName, SchedulerName)> {
        let started = self.started.iter().map(|case| (&*case.name, case.scheduler.clone()));
        let new = self.cases.iter().map(|case| (&*case.name, case.place.partition.scheduler.as_name()));
        started.chain(new).filter(|(name, _)| self.attempts.last_of(name).is_none()).collect()
    }

    fn names_to_run(&self) -> impl Iterator<Item = &CaseName> {
        self.started.iter().map(|case| &*case.name).chain(self.cases.iter().map(|case| &*case.name))
    }
}
