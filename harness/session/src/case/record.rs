//! A case's result while it comes into being.

use crate::case::QueuedCase;
use muster_core::{
    case::CaseName,
    error::{Class, SchedulerError, chain},
    job::{
        outputs::{CaseOutputs, PlannedOutputs},
        scheduler::JobStatus,
    },
    result::{About, CaseResult, Fault, Outcome, Phase, Times},
    rules::Rules,
};
use muster_text::time::Timestamp;
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// How a case ends: its outcome, the phase that decided it, and why in one sentence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) phase: Phase,
    pub(crate) cause: Option<String>,
}

impl End {
    pub(crate) fn new(outcome: Outcome, phase: Phase, cause: impl Into<String>) -> Self {
        Self { outcome, phase, cause: Some(cause.into()) }
    }

    /// The request can never work.
    pub(crate) fn config(phase: Phase, cause: impl Into<String>) -> Self {
        Self::new(Outcome::Error(Fault::Config), phase, cause)
    }

    /// The machinery failed.
    pub(crate) fn infra(phase: Phase, cause: impl Into<String>) -> Self {
        Self::new(Outcome::Error(Fault::Infra), phase, cause)
    }

    /// A scheduler's operation failed for good.
    pub(crate) fn failed(phase: Phase, error: &SchedulerError) -> Self {
        match error.class {
            Class::Config | Class::Unsupported => Self::config(phase, chain(error)),
            Class::Infra | Class::Outage | Class::Gone => Self::infra(phase, chain(error)),
        }
    }
}

/// What a planned case leaves for others, but for what is read from its stdout.
pub(crate) fn provided(rules: &Rules, stage: &Path) -> Option<Box<CaseOutputs>> {
    rules.planned_outputs.as_ref().map(|planned| {
        let PlannedOutputs { values, teardown, .. } = (**planned).clone();
        Box::new(CaseOutputs { stage: stage.to_owned(), values, outputs: BTreeMap::new(), teardown })
    })
}

/// What is known so far.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Arc<CaseName>,
    /// Its stdout is, or will be, beside its script.
    pub(crate) has_log: bool,
    /// Without its name and how it ends, until it does. Boxed: thousands of cases wait at once.
    pub(crate) result: Box<CaseResult>,
}

impl Record {
    /// A case got its slot, or never will.
    pub(crate) fn new(queued: &QueuedCase, begun: Timestamp) -> Self {
        let mut record = Self::of(Arc::clone(&queued.name), (queued.about)(), queued.attempt, begun);
        record.result.purpose = queued.purpose;
        record
    }

    /// As `new`, for a case whose `QueuedCase` is consumed.
    pub(crate) fn of(name: Arc<CaseName>, about: About, attempt: u32, begun: Timestamp) -> Self {
        let times = Times { begun, ..Times::default() };
        let result = Box::new(CaseResult { about, attempt, times, ..CaseResult::default() });
        Self { name, has_log: false, result }
    }

    /// Learns nodes and times from a status.
    pub(crate) fn saw(&mut self, status: &JobStatus) {
        match status {
            JobStatus::Running { since, nodes, .. } => {
                self.result.times.started.get_or_insert(*since);
                self.ran_on(nodes.iter().cloned());
            }
            JobStatus::Ended(ending) => {
                self.result.times.started = Some(ending.started);
                self.result.times.ended = Some(ending.ended);
                self.ran_on(ending.exits.iter().filter_map(|exit| exit.node.clone()));
                self.ran_on(ending.nodes.iter().cloned());
                self.result.exits.clone_from(&ending.exits);
                self.result.described.clone_from(&ending.described);
                self.result
                    .warnings
                    .extend(ending.notes.iter().filter(|note| !self.result.warnings.contains(note)).cloned().collect::<Vec<_>>());
            }
            JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Gone { .. } => {}
        }
    }

    /// Adds nodes that are not known yet, in the order in which they show up.
    pub(crate) fn ran_on(&mut self, nodes: impl IntoIterator<Item = String>) {
        for node in nodes {
            if !self.result.nodes.contains(&node) {
                self.result.nodes.push(node);
            }
        }
    }

    /// It is over.
    pub(crate) fn close(self, end: End, finished: Timestamp) -> CaseResult {
        let End { outcome, phase, cause } = end;
        let times = Times { finished, ..self.result.times };
        CaseResult { name: Arc::unwrap_or_clone(self.name), outcome, phase, cause, times, ..*self.result }
    }
}
