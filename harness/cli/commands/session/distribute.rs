//! Copies of cases. `--distribute`: one for each node that was named, or that the case's scheduler names. `--repeat`: so many.

use crate::wiring::k8s_plans;
use anyhow::{Context, bail};
use muster_check::{
    cases::test_case::TestCase,
    selection::distribute::{Distribute, NodeState},
};
use muster_core::{case::CaseName, job::scheduler_kind::SchedulerKind};
use muster_k8s::{ClusterPlace, Contexts, Node, NodesError, list_nodes};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use tokio::runtime::Runtime;

/// The cases, each as often as there are nodes for it.
pub fn distributed(cases: &[TestCase], wanted: &Distribute, runtime: &Runtime) -> anyhow::Result<Vec<TestCase>> {
    let once = TestCase::once(cases);
    let mut known = Known { runtime, contexts: None, of_checks: BTreeMap::new(), of_clusters: BTreeMap::new() };
    let mut all = Vec::new();
    for case in cases {
        if once.contains(&case.name) {
            all.push(case.clone());
            continue;
        }
        let nodes = match wanted {
            Distribute::Nodes(nodes) => nodes.clone(),
            Distribute::State(state) => known.nodes(case, *state)?,
        };
        all.extend(nodes.iter().map(|node| case.on(node, &once)));
    }
    Ok(all)
}

/// The nodes that schedulers have named.
struct Known<'a> {
    runtime: &'a Runtime,
    contexts: Option<Contexts>,
    of_checks: BTreeMap<(String, String), Vec<String>>,
    of_clusters: BTreeMap<Option<String>, Vec<Node>>,
}

impl Known<'_> {
    fn nodes(&mut self, case: &TestCase, state: NodeState) -> anyhow::Result<Vec<String>> {
        let key = (case.name.partition.clone(), case.name.check.clone());
        if let Some(nodes) = self.of_checks.get(&key) {
            return Ok(nodes.clone());
        }
        let (partition, kind) = (&case.name.partition, case.place.partition.scheduler);
        let nodes = match kind {
            // This machine takes jobs as long as Muster runs on it.
            SchedulerKind::Local => vec![rustix::system::uname().nodename().to_string_lossy().into_owned()],
            SchedulerKind::K8s | SchedulerKind::Ipu if state == NodeState::Idle => bail!(
                "--distribute=idle: Kubernetes does not say of a node that nothing runs on it (partition {partition}): \
                 take the nodes that take pods, with --distribute=avail"
            ),
            SchedulerKind::K8s | SchedulerKind::Ipu => {
                let place = self.place(case)?;
                let nodes = self.of_cluster(&place).with_context(|| format!("--distribute on partition {partition}"))?;
                let wanted = nodes.iter().filter(|node| state == NodeState::Any || node.is_available);
                wanted.map(|node| node.name.clone()).collect()
            }
            SchedulerKind::Fake | SchedulerKind::Ec2 => {
                bail!(
                    "--distribute: `{kind}` cannot name the nodes of partition {partition}: name them, as in --distribute node-1,node-2"
                )
            }
        };
        if nodes.is_empty() {
            bail!("--distribute: no node of partition {partition} takes jobs now: `--distribute=all` takes all that there are");
        }
        self.of_checks.insert(key, nodes.clone());
        Ok(nodes)
    }

    /// The cluster that a case runs in.
    fn place(&mut self, case: &TestCase) -> anyhow::Result<ClusterPlace> {
        if self.contexts.is_none() {
            self.contexts = Some(Contexts::load()?);
        }
        let contexts = self.contexts.get_or_insert_default();
        let rendered = case.render(&case.rehearsal()).ok();
        let plan = rendered.and_then(|rendered| k8s_plans::planned(case, &rendered.workload, contexts).ok());
        match plan {
            Some(plan) => Ok(plan.handle.place),
            // Mistakes in the case are reported with those of the others.
            None => Ok(contexts.place(None, None)?),
        }
    }

    fn of_cluster(&mut self, place: &ClusterPlace) -> Result<&[Node], NodesError> {
        if !self.of_clusters.contains_key(&place.context) {
            let nodes = self.runtime.block_on(list_nodes(place))?;
            self.of_clusters.insert(place.context.clone(), nodes);
        }
        Ok(self.of_clusters.get(&place.context).map(Vec::as_slice).unwrap_or_default())
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
