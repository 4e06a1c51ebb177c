//! Cycles and levels of a graph of imports.

use std::collections::{BTreeMap, BTreeSet};

type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn graph<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> Graph<'a> {
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from).or_default().insert(to);
        graph.entry(to).or_default();
    }
    graph
}

fn reachable<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = graph[from].iter().copied().collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(&graph[node]);
        }
    }
    seen
}

/// The sets of nodes that all reach each other, the largest first; those of one node are left out.
pub fn cycles<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let graph = graph(edges);
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|node| (*node, reachable(&graph, node))).collect();
    let mut seen = BTreeSet::new();
    let mut cycles: Vec<BTreeSet<&str>> = Vec::new();
    for (node, reached) in &reach {
        let cycle: BTreeSet<&str> = reached.iter().copied().filter(|other| reach[other].contains(node)).collect();
        if cycle.len() > 1 && seen.insert(cycle.clone()) {
            cycles.push(cycle);
        }
    }
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    cycles
}

/// The number of nodes on the longest chain of imports. A cycle is one node.
pub fn levels<'a>(edges: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> usize {
    let cycles = cycles(edges.clone());
    let merged = |node| cycles.iter().find(|cycle| cycle.contains(node)).and_then(|cycle| cycle.first().copied()).unwrap_or(node);
    let graph = graph(edges.map(|(from, to)| (merged(from), merged(to))).filter(|(from, to)| from != to));
    let mut depth = BTreeMap::new();
    graph.keys().map(|node| depth_of(&graph, node, &mut depth)).max().unwrap_or(1)
}

fn depth_of<'a>(graph: &Graph<'a>, node: &'a str, known: &mut BTreeMap<&'a str, usize>) -> usize {
    if let Some(depth) = known.get(node) {
        return *depth;
    }
    let depth = 1 + graph[node].iter().map(|next| depth_of(graph, next, known)).max().unwrap_or(0);
    known.insert(node, depth);
    depth
}

/// The imports that have to go before no cycle is left: few, if not the fewest (the greedy order of Eades, Lin and Smyth).
pub fn upward<'a>(edges: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<(&'a str, &'a str)> {
    let mut left = graph(edges.clone().filter(|(from, to)| from != to));
    let (mut first, mut last) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let importers = |node: &str| left.values().filter(|targets| targets.contains(node)).count();
        let next = if let Some(node) = left.keys().find(|node| left[*node].is_empty()).copied() {
            last.push(node);
            node
        } else if let Some(node) = left.keys().find(|node| importers(node) == 0).copied() {
            first.push(node);
            node
        } else {
            let margin = |node: &str| left[node].len().cast_signed() - importers(node).cast_signed();
            let Some(node) = left.keys().max_by_key(|node| margin(node)).copied() else { break };
            first.push(node);
            node
        };
        left.remove(next);
        for targets in left.values_mut() {
            targets.remove(next);
        }
    }
    first.extend(last.into_iter().rev());
    let place: BTreeMap<&str, usize> = first.into_iter().enumerate().map(|(place, node)| (node, place)).collect();
    let back: BTreeSet<_> = edges.filter(|(from, to)| place[from] > place[to]).collect();
    back.into_iter().collect()
}
