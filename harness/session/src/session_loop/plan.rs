//! What a session is going to run, and what is known of it already.

use crate::{
    session_loop::relaunch::{self, Known},
    wiring::Wired,
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments, site::quarantine::List};
use muster_core::{
    case::CaseName,
    decisions::rounds::Policy,
    result::{CaseResult, Session},
};
use muster_session::case::QueuedCase;
use muster_store::Store;
use std::{collections::BTreeSet, sync::Arc};

/// A session that is about to run: from its start, or from where another process has left it.
pub struct SessionPlan {
    pub session: Session,
    /// The store of a session that this process has taken over. `None`: the session starts now.
    pub taken_over: Option<Store>,
    /// Another process is about to use the folders of the same cases.
    pub is_beside_another: bool,
    /// Results of this session so far, or restored from another one.
    pub results: Vec<Arc<CaseResult>>,
    /// Attempts that another process has started.
    pub started: Vec<QueuedCase>,
    /// The cases of the first round that have no result, and those that may run again.
    pub cases: Vec<TestCase>,
    /// What makes cases run again.
    pub policy: Policy,
    /// The cases whose outcome does not count.
    pub quarantine: List,
    /// What the command line changes of every case.
    pub adjustments: Arc<Adjustments>,
    pub wired: Wired,
}

impl SessionPlan {
    /// The number of checks with their parameters, without their places.
    pub fn num_checks(&self) -> u32 {
        let names = self.results.iter().map(|result| &result.name).chain(self.names_to_run());
        let titles: BTreeSet<_> = names.map(CaseName::title).collect();
        u32::try_from(titles.len()).unwrap_or(u32::MAX)
    }

    pub fn remaining(&self) -> BTreeSet<&CaseName> {
        let ended = self.ended();
        self.names_to_run().filter(|name| !ended.contains(name)).collect()
    }

    /// The cases that passed and run again all the same: others need their stage folder, and it is gone.
    pub fn to_relaunch(&self) -> BTreeSet<CaseName> {
        let ended = self.ended();
        let new = self.cases.iter().map(|case| (&*case.name, case.needs())).filter(|(name, _)| !ended.contains(name));
        let to_run = self.started.iter().map(relaunch::needs).chain(new).collect();
        Known::new(&self.cases, self.results.iter().map(AsRef::as_ref)).to_relaunch(&to_run)
    }

    /// Nothing of a rehearsal is stored among the results of real runs.
    pub fn is_rehearsal(&self) -> bool {
        self.adjustments.scenario.is_some()
    }

    fn ended(&self) -> BTreeSet<&CaseName> {
        self.results.iter().map(|result| &result.name).collect()
    }

    fn names_to_run(&self) -> impl Iterator<Item = &CaseName> {
        self.started.iter().map(|case| &*case.name).chain(self.cases.iter().map(|case| &*case.name))
    }
}
