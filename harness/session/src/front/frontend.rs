//! The results as libtest's harness prints them: one trial for each case, which only waits for its result.

use crate::{
    args::{Cli, TestFormat},
    session_loop::plan::SessionPlan,
};
use libtest_mimic::FormatSetting;
use muster_core::{
    case::CaseName,
    decisions::rounds::{self, Policy},
    result::CaseResult,
};
use muster_session::front::libtest::{self, Submitted};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::oneshot;

/// Sends each case's result to its libtest trial as soon as no round can change it.
pub struct LibtestFrontend {
    policy: Policy,
    waiting: Arc<Mutex<BTreeMap<CaseName, oneshot::Sender<Arc<CaseResult>>>>>,
}

impl LibtestFrontend {
    /// One libtest trial for every case that runs.
    pub fn of(plan: &SessionPlan) -> (Self, Vec<Submitted>) {
        let started = plan.started.iter().map(|case| (&case.name, case.scheduler));
        let new = plan.cases.iter().map(|case| (&case.name, case.place.partition.scheduler));
        let known: BTreeSet<&CaseName> = plan.results.iter().map(|result| &result.name).collect();
        let (mut waiting, mut submitted) = (BTreeMap::new(), Vec::new());
        for (name, scheduler) in started.chain(new) {
            if !known.contains(&**name) && !waiting.contains_key(&**name) {
                let (sender, result) = oneshot::channel();
                waiting.insert((**name).clone(), sender);
                submitted.push(Submitted { case: (**name).clone(), scheduler, result });
            }
        }
        (Self { policy: plan.policy, waiting: Arc::new(Mutex::new(waiting)) }, submitted)
    }

    /// Sends the result of an attempt if it is the last of its case.
    pub fn follow(&self, result: oneshot::Receiver<Arc<CaseResult>>) {
        let (policy, waiting) = (self.policy, Arc::clone(&self.waiting));
        tokio::spawn(async move {
            if let Ok(result) = result.await
                && rounds::is_settled(policy, &result)
            {
                send(&waiting, result);
            }
        });
    }

    /// Sends the results that are left: nothing runs any more.
    pub fn close(self, results: &[Arc<CaseResult>]) {
        results.iter().rev().for_each(|result| send(&self.waiting, Arc::clone(result)));
    }
}

fn send(waiting: &Mutex<BTreeMap<CaseName, oneshot::Sender<Arc<CaseResult>>>>, result: Arc<CaseResult>) {
    let waiter = waiting.lock().remove(&result.name);
    waiter.map(|waiter| waiter.send(result));
}

/// Without `--format` a person reads the lines of Muster, and libtest prints nothing.
pub fn arguments(cli: &Cli, cases: usize) -> libtest_mimic::Arguments {
    if let Some(arguments) = &cli.output.libtest {
        let test_threads = arguments.test_threads.or_else(|| Some(libtest::threads(cases)));
        return libtest_mimic::Arguments { test_threads, ..arguments.clone() };
    }
    let format = match cli.output.format {
        None => return libtest::silent(),
        Some(TestFormat::Pretty) => FormatSetting::Pretty,
        Some(TestFormat::Terse) => FormatSetting::Terse,
        Some(TestFormat::Json) => FormatSetting::Json,
    };
    libtest::printing(format, cases)
}
