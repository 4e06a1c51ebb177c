//! Groups the failed cases of a night: failures with one reason are one group, however many cases that are.

use crate::{
    case::{CaseName, SessionId},
    night::Night,
    result::{Outcome, Phase},
};
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

/// A case that is not fine.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub name: CaseName,
    pub session: SessionId,
    pub outcome: Outcome,
    pub phase: Phase,
    pub cause: Option<String>,
    pub nodes: Vec<String>,
    pub in_quarantine: bool,
}

/// The failures with one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// `fail{sanity}`
    pub outcome: String,
    /// The cause of all of them. Where they differ in numbers only, each of these is `#`.
    pub text: String,
    /// The failures by the names of their cases.
    pub failures: Vec<Failure>,
    /// The nodes on which every one of them ran, if there are several failures and the text does not name the node already.
    pub nodes: Vec<String>,
}

/// The time for which a group has been failing, and what changed when it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Since<N> {
    /// The first night without a good one after it.
    pub first_bad: Option<N>,
    /// The last one before it in which these cases were well.
    pub last_good: Option<N>,
    /// The night since when a figure of these cases is at a worse level, if one was found: then `changed` is about its nights.
    pub level: Option<Level<N>>,
    pub changed: Vec<FactChange>,
}

/// A change that `muster night` has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level<N> {
    /// `17@2026-11-17`
    pub change: String,
    pub since: N,
    /// The first and the last night that may be it.
    pub interval: (N, N),
}

/// A fact that was known of two nights and differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FactChange {
    /// `version`, `image`, `driver of n7`
    pub fact: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The failures of a night, or of several nights.
#[derive(Debug, Clone, PartialEq)]
pub struct NightOfCauses {
    pub first: Night,
    /// The last night.
    pub night: Night,
    pub systems: Vec<String>,
    pub sessions: usize,
    /// The number of cases with a result.
    pub cases: usize,
    pub causes: Vec<(Cause, Since<Night>)>,
}

/// Groups failures by system and cause, the largest first. What one system has been through says nothing of another.
pub fn group(failures: Vec<Failure>) -> Vec<Cause> {
    let mut systems: BTreeMap<String, Vec<Failure>> = BTreeMap::new();
    for failure in failures {
        systems.entry(failure.name.system.clone()).or_default().push(failure);
    }
    let mut causes: Vec<Cause> = systems.into_values().flat_map(group_of_system).collect();
    causes.sort_by(|a, b| b.failures.len().cmp(&a.failures.len()).then_with(|| a.text.cmp(&b.text)));
    causes
}

fn group_of_system(failures: Vec<Failure>) -> Vec<Cause> {
    type Key = (String, String);
    let mut exact: BTreeMap<Key, Vec<Failure>> = BTreeMap::new();
    for failure in failures {
        let text = failure.cause.as_deref().unwrap_or("no cause is known");
        exact.entry((failure.outcome.to_string(), without_identifiers(text))).or_default().push(failure);
    }
    // What is alone may differ from others in its numbers only. What is not alone keeps them: they may be names of nodes.
    let mut groups: BTreeMap<Key, Vec<Failure>> = BTreeMap::new();
    let mut alone: BTreeMap<Key, Vec<(Key, Failure)>> = BTreeMap::new();
    for (key, mut failures) in exact {
        match failures.pop() {
            Some(one) if failures.is_empty() => {
                alone.entry((key.0.clone(), without_numbers(&key.1))).or_default().push((key, one));
            }
            last => _ = groups.insert(key, failures.into_iter().chain(last).collect()),
        }
    }
    for (shared, mut members) in alone {
        let key = if members.len() == 1 { members.first().map_or(shared, |(key, _)| key.clone()) } else { shared };
        groups.entry(key).or_default().extend(members.drain(..).map(|(_, failure)| failure));
    }
    groups.into_iter().map(|((outcome, text), failures)| cause(outcome, text, failures)).collect()
}

fn cause(outcome: String, text: String, mut failures: Vec<Failure>) -> Cause {
    failures.sort_by(|a, b| a.name.cmp(&b.name));
    let mut sets = failures.iter().map(|failure| failure.nodes.iter().cloned().collect::<BTreeSet<String>>());
    let shared = if failures.len() > 1 { sets.next() } else { None };
    let shared = shared.map(|first| sets.fold(first, |shared, nodes| &shared & &nodes)).unwrap_or_default();
    let nodes = shared.into_iter().filter(|node| !text.contains(node.as_str())).collect();
    Cause { outcome, text, failures, nodes }
}

/// Finds the night since when these cases are not well. `nights`: for each night before, whether one of them was well then, the
/// newest first; `now` is the night in question.
pub fn since<N: Copy>(now: N, nights: impl IntoIterator<Item = (N, bool)>) -> Since<N> {
    let mut first_bad = now;
    for (night, is_good) in nights {
        if is_good {
            return Since { first_bad: Some(first_bad), last_good: Some(night), level: None, changed: Vec::new() };
        }
        first_bad = night;
    }
    Since { first_bad: Some(first_bad), last_good: None, level: None, changed: Vec::new() }
}

/// One text for each fact. Where several runs of a night differ in one, all of its values, in no other order than their own.
pub fn together(facts: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (fact, value) in facts {
        values.entry(fact).or_default().insert(value);
    }
    values.into_iter().map(|(fact, values)| (fact, Vec::from_iter(values).join(" and "))).collect()
}

/// The facts that differ. One that only one of the two has differs, too.
pub fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<FactChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let pairs = names.into_iter().map(|name| (name, before.get(name), after.get(name)));
    let differ = pairs.filter(|(_, before, after)| before != after);
    differ
        .map(|(name, before, after)| FactChange { fact: name.clone(), before: before.cloned(), after: after.cloned() })
        .collect()
}

/// In one line, with the identifiers of attempts left out.
fn without_identifiers(text: &str) -> String {
    static IDENTIFIER: OnceLock<Option<Regex>> = OnceLock::new();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match IDENTIFIER.get_or_init(|| Regex::new(r"\brfm-[a-z]{8}\b").ok()) {
        Some(identifier) => identifier.replace_all(&text, "rfm-*").into_owned(),
        None => text,
    }
}

/// `node_flops on gpu-#: # GFLOP/s, expected #`
pub fn without_numbers(text: &str) -> String {
    let (mut clean, mut in_number) = (String::new(), false);
    for c in text.chars() {
        let digit = c.is_ascii_digit() || (in_number && c == '.');
        if digit && !in_number {
            clean.push('#');
        } else if !digit {
            clean.push(c);
        }
        in_number = digit;
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::scheduler::Disruption, result::Failure as Why};

    fn failure(name: &str, outcome: Outcome, cause: &str, nodes: &[&str]) -> Failure {
        Failure {
            name: CaseName { display: name.into(), check: name.into(), ..CaseName::default() },
            session: SessionId("s".into()),
            outcome,
            phase: Phase::Run,
            cause: (!cause.is_empty()).then(|| cause.to_owned()),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            in_quarantine: false,
        }
    }

    fn shown(failures: Vec<Failure>) -> String {
        let line = |cause: Cause| {
            let names: Vec<_> = cause.failures.iter().map(|failure| failure.name.display.clone()).collect();
            format!(
                "{} {}: {} on [{}]: {}\n",
                cause.failures.len(),
                cause.outcome,
                cause.text,
                cause.nodes.join(" "),
                names.join(" ")
            )
        };
        group(failures).into_iter().map(line).collect()
    }

    #[test]
    fn failures_with_one_cause_are_one_group() {
        let lost = || Outcome::Disrupted(Disruption::Node);
        let slow = || Outcome::Fail(Why::Performance);
        let failures = vec![
            failure("c", lost(), "node n7 NotReady", &["n7"]),
            failure("a", lost(), "node n7  NotReady", &["n7"]),
            failure("b", lost(), "node n8 NotReady", &["n8"]),
            failure("d", slow(), "flops: 81.2 GFLOP/s, expected 90", &["n1", "n2"]),
            failure("e", slow(), "flops: 80 GFLOP/s, expected 90.5", &["n2", "n3"]),
            failure("f", Outcome::Fail(Why::Workload), "pod rfm-abcdefgh-0: exit status 1", &["n4"]),
            failure("g", Outcome::Fail(Why::Workload), "pod rfm-ijklmnop-0: exit status 1", &["n4"]),
            failure("h", Outcome::Abort, "", &[]),
        ];
        insta::assert_snapshot!(shown(failures));
        assert_eq!(shown(vec![]), "");
    }

    #[test]
    fn two_systems_that_fail_for_one_reason_are_two_groups() {
        let on = |system: &str| {
            let mut failure = failure("a", Outcome::Fail(Why::Sanity), "no match", &[]);
            failure.name.system = system.into();
            failure
        };
        let systems: Vec<_> =
            group(vec![on("elm"), on("alder")]).iter().map(|cause| cause.failures[0].name.system.clone()).collect();
        assert_eq!(systems, ["alder", "elm"]);
    }

    #[test]
    fn a_group_fails_since_the_night_after_the_last_good_one() {
        let of = |nights: &[(i32, bool)]| {
            let Since { first_bad, last_good, .. } = since(9, nights.iter().copied());
            (first_bad, last_good)
        };
        assert_eq!(of(&[(8, false), (6, false), (5, true), (4, false)]), (Some(6), Some(5)));
        assert_eq!(of(&[(8, true)]), (Some(9), Some(8)));
        assert_eq!(of(&[(8, false)]), (Some(8), None));
        assert_eq!(of(&[]), (Some(9), None));
    }

    #[test]
    fn runs_that_differ_in_a_fact_are_said_with_all_of_its_values_in_any_order() {
        let runs = [("check_hash", "b"), ("muster", "0.2"), ("check_hash", "a"), ("muster", "0.2")];
        let of = |runs: Vec<(&str, &str)>| together(runs.into_iter().map(|(fact, value)| (fact.into(), value.into())));
        let facts = of(runs.to_vec());
        assert_eq!(facts, of(runs.into_iter().rev().collect()));
        assert_eq!(facts, of(vec![("check_hash", "a and b"), ("muster", "0.2")]));
    }

    #[test]
    fn facts_that_differ_are_changes() {
        let facts = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let changes = changed(
            &facts(&[("driver", "550"), ("kernel", "6.1"), ("gone", "x")]),
            &facts(&[("driver", "570"), ("kernel", "6.1"), ("new", "y")]),
        );
        let lines: Vec<String> = changes.iter().map(|c| format!("{}: {:?} -> {:?}", c.fact, c.before, c.after)).collect();
        assert_eq!(lines, [r#"driver: Some("550") -> Some("570")"#, r#"gone: Some("x") -> None"#, r#"new: None -> Some("y")"#]);
    }
}
