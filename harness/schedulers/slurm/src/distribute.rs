//! The nodes on which copies of a case can run: those of its partition or reservation, by state and feature.

use crate::{
    answers::nodes::Node,
    plan::{self, Handle},
    poll::Clusters,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{scheduler::Nodes, workload::Workload},
};
use muster_text::node_list::expand;
use std::collections::BTreeSet;

pub(crate) async fn nodes(clusters: &Clusters, workload: &Workload, state: &str) -> Result<Nodes, SchedulerError> {
    // A mistake is that of its plan, which is told with the case.
    let Ok((job, header)) = plan::with_header(workload) else { return Ok(Nodes::default()) };
    let handle = Handle::of(&job)?;
    let cluster = clusters.at(&handle.place);
    let all = cluster.nodes(handle.partition.as_deref()).await?;
    let reservation = header.value("reservation");
    let reserved: Option<BTreeSet<String>> = match reservation {
        None => None,
        Some(name) => {
            let text = cluster.answer("scontrol", &["-o", "show", "reservation", name]).await?;
            let list = text.split_whitespace().find_map(|word| word.strip_prefix("Nodes="));
            let list = list.ok_or_else(|| SchedulerError::plain(Class::Config, format!("reservation {name} has no nodes")))?;
            Some(expand(list).into_iter().collect())
        }
    };
    let excluded: BTreeSet<String> = header.value("exclude").map(expand).unwrap_or_default().into_iter().collect();
    let only: Option<BTreeSet<String>> = header.value("nodelist").map(|list| expand(list).into_iter().collect());
    let in_reservation = |node: &Node| reserved.as_ref().is_some_and(|reserved| reserved.contains(&node.name));
    let is_meant = |node: &Node| {
        (reserved.is_none() || in_reservation(node))
            && !excluded.contains(&node.name)
            && only.as_ref().is_none_or(|only| only.contains(&node.name))
            && header.value("constraint").is_none_or(|constraint| meets(&node.features, constraint))
    };
    let mut found = Nodes::default();
    for node in all.iter().filter(|node| is_meant(node)) {
        match state {
            "avail" if !node.is_available(in_reservation(node)) => found.left_out.push(node.line()),
            "all" | "avail" => found.names.push(node.name.clone()),
            state if node.is_in(state) => found.names.push(node.name.clone()),
            _ => {}
        }
    }
    Ok(found)
}

/// Whether features meet a constraint of `&`, `|` and parentheses. Counts and matching lists are about several nodes: any meets them.
fn meets(features: &[String], constraint: &str) -> bool {
    if constraint.contains(['*', '[', '@']) {
        return true;
    }
    any(features, &mut constraint.chars().filter(|c| !c.is_whitespace()).peekable())
}

fn any<I: Iterator<Item = char>>(features: &[String], letters: &mut std::iter::Peekable<I>) -> bool {
    let mut met = all(features, letters);
    while letters.next_if(|c| *c == '|').is_some() {
        met |= all(features, letters);
    }
    met
}

fn all<I: Iterator<Item = char>>(features: &[String], letters: &mut std::iter::Peekable<I>) -> bool {
    let mut met = one(features, letters);
    while letters.next_if(|c| matches!(c, '&' | ',')).is_some() {
        met &= one(features, letters);
    }
    met
}

fn one<I: Iterator<Item = char>>(features: &[String], letters: &mut std::iter::Peekable<I>) -> bool {
    if letters.next_if_eq(&'(').is_some() {
        let met = any(features, letters);
        letters.next_if_eq(&')');
        return met;
    }
    let is_not = letters.next_if_eq(&'!').is_some();
    let mut name = String::new();
    while let Some(letter) = letters.next_if(|c| !"&|,()".contains(*c)) {
        name.push(letter);
    }
    features.contains(&name) != is_not
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_is_met_by_the_features_of_a_node() {
        let features = ["a".to_owned(), "b".to_owned()];
        let rows = [
            ("a", true),
            ("c", false),
            ("a&b", true),
            ("a&c", false),
            ("a|c", true),
            ("(a)&(b)", true),
            ("(a|c)&(c|d)", false),
            ("c&a|b", true),
            ("!c", true),
            ("a*2&c*2", true),
            ("[c|d]", true),
        ];
        for (constraint, met) in rows {
            assert_eq!(meets(&features, constraint), met, "{constraint}");
        }
    }
}
