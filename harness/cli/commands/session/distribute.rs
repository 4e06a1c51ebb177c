//! Copies of cases. `--distribute`: one for each node that was named, or that the case's scheduler names. `--repeat`: so many.

use crate::wiring;
use anyhow::{anyhow, bail};
use muster_check::{
    cases::test_case::TestCase,
    selection::distribute::{Distribute, NodeState},
};
use muster_core::{
    case::CaseName,
    error::{Class, SchedulerError, chain},
    job::{descriptor::NamedScheduler, scheduler::Scheduler},
};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use tokio::runtime::Runtime;

/// The cases, each as often as there are nodes for it.
pub fn distributed(cases: &[TestCase], wanted: &Distribute, runtime: &Runtime) -> anyhow::Result<Vec<TestCase>> {
    let once = TestCase::once(cases);
    let mut known = Known { runtime, schedulers: BTreeMap::new(), of_checks: BTreeMap::new() };
    let mut all = Vec::new();
    for case in cases {
        if once.contains(&case.name) {
            all.push(case.clone());
            continue;
        }
        let nodes = match wanted {
            Distribute::Nodes(nodes) => Some(nodes.clone()),
            Distribute::State(state) => known.nodes(case, *state)?,
        };
        match nodes {
            Some(nodes) => all.extend(nodes.iter().map(|node| case.on(node, &once))),
            None => all.push(case.clone()),
        }
    }
    Ok(all)
}

/// The nodes that schedulers have named.
struct Known<'a> {
    runtime: &'a Runtime,
    schedulers: BTreeMap<&'static str, Arc<dyn Scheduler>>,
    of_checks: BTreeMap<(String, String), Vec<String>>,
}

impl Known<'_> {
    /// `None`: the case has mistakes, which are reported with those of the others.
    fn nodes(&mut self, case: &TestCase, state: NodeState) -> anyhow::Result<Option<Vec<String>>> {
        let key = (case.name.partition.clone(), case.name.check.clone());
        if let Some(nodes) = self.of_checks.get(&key) {
            return Ok(Some(nodes.clone()));
        }
        let (partition, kind) = (&case.name.partition, case.place.partition.scheduler);
        let Ok(rendered) = case.render(&case.rehearsal()) else { return Ok(None) };
        let named = match self.scheduler(kind)? {
            Some(scheduler) => self.runtime.block_on(scheduler.nodes(&rendered.workload, &state.to_string())),
            None => Ok(None),
        };
        let Some(nodes) = named.map_err(|error| refusal(error, partition))? else {
            bail!(
                "--distribute: `{kind}` cannot name the nodes of partition {partition}: name them, as in --distribute node-1,node-2"
            )
        };
        if nodes.is_empty() {
            bail!("--distribute: no node of partition {partition} takes jobs now: `--distribute=all` takes all that there are");
        }
        self.of_checks.insert(key, nodes.clone());
        Ok(Some(nodes))
    }

    fn scheduler(&mut self, named: NamedScheduler) -> anyhow::Result<Option<Arc<dyn Scheduler>>> {
        if let Some(scheduler) = self.schedulers.get(named.own_name()) {
            return Ok(Some(Arc::clone(scheduler)));
        }
        let Some(scheduler) = wiring::connect_to_look(named)? else { return Ok(None) };
        self.schedulers.insert(named.own_name(), Arc::clone(&scheduler));
        Ok(Some(scheduler))
    }
}

fn refusal(error: SchedulerError, partition: &str) -> anyhow::Error {
    match error.class {
        Class::Unsupported => anyhow!("{}", chain(&error)),
        _ => anyhow::Error::new(error).context(format!("--distribute on partition {partition}")),
    }
}

/// Copies of every case, side by side, but for what is there once.
pub fn repeated(cases: &[TestCase], copies: u32) -> Vec<TestCase> {
    let once: HashSet<Arc<CaseName>> = TestCase::once(cases);
    let of = |case: &TestCase| -> Vec<TestCase> {
        if once.contains(&case.name) {
            return vec![case.clone()];
        }
        (0..copies).map(|n| case.copy(&format!("%.repeat_no={n}"), &once)).collect()
    };
    cases.iter().flat_map(of).collect()
}
