//! Copies of cases. `--distribute`: one for each node that was named, or that the case's scheduler names. `--repeat`: so many.

use crate::wiring::Connections;
use anyhow::{Context, anyhow, bail};
use muster_check::{cases::test_case::TestCase, selection::distribute::Distribute};
use muster_core::{case::CaseName, job::descriptor::Schedulers};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use tokio::runtime::Runtime;

/// The cases, each as often as there are nodes for it.
pub fn distributed(
    cases: &[TestCase],
    wanted: &str,
    schedulers: &Schedulers,
    runtime: &Runtime,
) -> anyhow::Result<Vec<TestCase>> {
    let wanted = Distribute::parse(wanted, schedulers).map_err(|mistake| anyhow!("--distribute: {mistake}"))?;
    let once = TestCase::once(cases);
    let mut known = Known { runtime, connections: Connections::default(), of_checks: BTreeMap::new() };
    if matches!(wanted, Distribute::State(_)) {
        known.connections =
            Connections::new(cases.iter().map(|case| case.place.partition.scheduler), |scheduler| scheduler.look)?;
    }
    let mut all = Vec::new();
    for case in cases {
        if once.contains(&case.name) {
            all.push(case.clone());
            continue;
        }
        let nodes = match &wanted {
            Distribute::Nodes(nodes) => Some(nodes.clone()),
            Distribute::State(state) => known.nodes(case, state)?,
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
    connections: Connections,
    of_checks: BTreeMap<(String, String), Vec<String>>,
}

impl Known<'_> {
    /// `None`: the case has mistakes, which are reported with those of the others.
    fn nodes(&mut self, case: &TestCase, state: &str) -> anyhow::Result<Option<Vec<String>>> {
        let key = (case.name.partition.clone(), case.name.check.clone());
        if let Some(nodes) = self.of_checks.get(&key) {
            return Ok(Some(nodes.clone()));
        }
        let (partition, named) = (&case.name.partition, case.place.partition.scheduler);
        let Some(scheduler) = self.connections.get(named).filter(|_| !named.node_states.is_empty()) else {
            bail!(
                "--distribute: `{named}` cannot name the nodes of partition {partition}: name them, as in --distribute node-1,node-2"
            )
        };
        if !named.node_states.contains(&state) {
            let states = named.node_states.join(", ");
            bail!(
                "--distribute={state}: `{named}` does not know this state of nodes (partition {partition}): write {states}, or names"
            );
        }
        let Ok(rendered) = case.render(&case.rehearsal()) else { return Ok(None) };
        let asked = self.runtime.block_on(scheduler.nodes(&rendered.workload, state));
        let nodes = asked.with_context(|| format!("--distribute on partition {partition}"))?;
        if nodes.is_empty() {
            bail!("--distribute: no node of partition {partition} takes jobs now: `--distribute=all` takes all that there are");
        }
        self.of_checks.insert(key, nodes.clone());
        Ok(Some(nodes))
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
