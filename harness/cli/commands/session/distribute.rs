//! Copies of cases. `--distribute`: one for each node that was named, or that the case's scheduler names. `--repeat`: so many.

use crate::{terminal::Terminal, wiring::Connections};
use anyhow::{Context, anyhow, bail};
use muster_check::{
    cases::test_case::TestCase,
    selection::{adjust::Adjustments, distribute::Distribute},
};
use muster_core::{
    case::CaseName,
    job::{
        descriptor::{NODE, NamedScheduler, Schedulers},
        scheduler::Nodes,
    },
};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use tokio::runtime::Runtime;

/// So many nodes that are not available have a line each.
const MOST_LEFT_OUT: usize = 20;

/// The cases, each as often as there are nodes for it.
pub fn distributed(
    cases: &[TestCase],
    wanted: &str,
    schedulers: &Schedulers,
    adjustments: &Adjustments,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Vec<TestCase>> {
    let wanted = Distribute::parse(wanted, schedulers).map_err(|mistake| anyhow!("--distribute: {mistake}"))?;
    if let Some(doubt) = wanted.doubt(schedulers) {
        terminal.note(&format!("warning: --distribute: {doubt}"));
    }
    if adjustments.sets(NODE) {
        bail!("--distribute and -J {NODE} both say on which node a case runs: give one of them");
    }
    let of_cases = || cases.iter().map(|case| case.place.partition.scheduler);
    let connections = match &wanted {
        Distribute::Nodes(_) => Connections::default(),
        Distribute::State(_) => Connections::new(of_cases(), |scheduler| scheduler.look)?,
    };
    let once = TestCase::once(cases);
    let (mut all, mut left_out) = (Vec::new(), BTreeSet::new());
    for case in cases {
        let (partition, named) = (&case.name.partition, case.place.partition.scheduler);
        let nodes = match &wanted {
            _ if once.contains(&case.name) => None,
            _ if !named.option_names().any(|option| option == NODE) => {
                bail!("--distribute: `{named}` cannot run a case on a chosen node (partition {partition}): leave its cases out")
            }
            Distribute::Nodes(nodes) => Some(nodes.clone()),
            Distribute::State(state) => {
                let found = nodes_in(state, case, named, &connections, adjustments, runtime)?;
                found.map(|found| {
                    left_out.extend(found.left_out.into_iter().map(|node| (partition.clone(), node)));
                    found.names
                })
            }
        };
        match nodes {
            Some(nodes) => all.extend(nodes.iter().map(|node| case.on(node, &once))),
            None => all.push(case.clone()),
        }
    }
    left_out.iter().take(MOST_LEFT_OUT).for_each(|(partition, node)| {
        terminal.note(&format!("warning: --distribute leaves out a node of partition {partition}: {node}"));
    });
    if let Some(more) = left_out.len().checked_sub(MOST_LEFT_OUT).filter(|more| *more > 0) {
        terminal.note(&format!("warning: --distribute leaves out {more} more nodes"));
    }
    Ok(all)
}

/// The nodes in a state, for a case. `None`: the case has mistakes, which are reported with those of the others.
fn nodes_in(
    state: &str,
    case: &TestCase,
    named: NamedScheduler,
    connections: &Connections,
    adjustments: &Adjustments,
    runtime: &Runtime,
) -> anyhow::Result<Option<Nodes>> {
    let partition = &case.name.partition;
    let Some(scheduler) = connections.get(named).filter(|_| !named.node_states.is_empty()) else {
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
    let Some(rendered) = adjustments.rehearsed(case) else { return Ok(None) };
    let asked = runtime.block_on(scheduler.nodes(&rendered.workload, state));
    let nodes = asked.with_context(|| format!("--distribute on partition {partition}"))?;
    if nodes.names.is_empty() {
        let why = if nodes.left_out.is_empty() { String::new() } else { format!(" ({})", nodes.left_out.join("; ")) };
        match state {
            "all" | "avail" => bail!(
                "--distribute: no node of partition {partition} takes jobs now{why}: `--distribute=all` takes all that there are"
            ),
            state => bail!("--distribute={state}: no node of partition {partition} is in this state now"),
        }
    }
    Ok(Some(nodes))
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
