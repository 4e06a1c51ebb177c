//! Looking at cases that need others without running anything.

use super::Planned;
use crate::cases::test_case::{LaunchFacts, Rendered};
use muster_core::job::outputs::{CaseInputs, CaseOutputs};
use std::collections::HashMap;

/// Stand-ins for what cases leave, so that those that need it can be looked at without running anything.
#[derive(Debug, Default)]
pub struct Rehearsal {
    left: HashMap<usize, CaseOutputs>,
}

impl Rehearsal {
    /// What a case would be launched with. `None`: something it needs cannot be launched, which was reported.
    pub fn facts(&self, all: &[Planned], at: usize, is_needed: bool) -> Option<LaunchFacts> {
        let mut facts = LaunchFacts::rehearsal();
        let planned = &all[at];
        if is_needed {
            // Others read where it is.
            facts.stage = facts.stage.join(planned.case.folder());
        }
        facts.inputs = CaseInputs { is_needed, ..CaseInputs::default() };
        for edge in &planned.needs {
            facts.inputs.add(&edge.need(all[edge.at].case.name.clone()), self.left.get(&edge.at)?);
        }
        Some(facts)
    }

    /// Records what a case that others need leaves.
    pub fn leaves(&mut self, at: usize, rendered: &Rendered) {
        let Some(planned) = rendered.rules.planned_outputs.as_ref() else { return };
        let check = &rendered.workload.case.check;
        let outputs = planned.outputs.keys().map(|name| (name.clone(), format!("<{name} of {check}>")));
        let outputs = CaseOutputs {
            stage: rendered.workload.stage.clone(),
            values: planned.values.clone(),
            outputs: outputs.collect(),
            teardown: None,
        };
        self.left.insert(at, outputs);
    }
}
