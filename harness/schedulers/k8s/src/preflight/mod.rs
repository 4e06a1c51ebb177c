//! Finds what is wrong with jobs before the first of them is launched: kinds, namespaces, rights, quotas, queues.
//!
//! ```text
//! plans -Needs::add-> by place: what some of them need there, each need once
//!     ask: a few requests for each place, however many plans there are -> Answers
//! Needs, Answers -findings-> Finding: one sentence, and the workloads concerned
//! ```
//! Only what would certainly fail is a finding. What the server does not say, because it does not answer or may not be asked, is left
//! to the launch. Not here: whether a node has room, whether an image can be pulled, what admission says.

mod ask;

pub(crate) use ask::{answers, ask};

use crate::{
    api::{ClusterPlace, QUEUE_LABEL, Resource},
    job::Handle,
    launch::together,
    plan::role::{Right, beside, needed},
    quota::{self, Demand, Fit, QuotaStatus, Together},
};
use muster_core::job::scheduler::Finding;
use muster_text::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What plans need of each place. Plans are known by their positions.
#[derive(Debug, Default)]
pub(crate) struct Needs(pub(crate) BTreeMap<ClusterPlace, BTreeMap<Need, Vec<usize>>>);

/// What some plans need, all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    workload: Option<Resource>,
    /// The kinds of the other objects.
    beside: BTreeSet<Resource>,
    queue: Option<String>,
    /// What its pods take of the quotas.
    pods: Together,
}

impl Needs {
    /// Adds the needs of the plan at a position.
    pub(crate) fn add(&mut self, at: usize, handle: &Handle) {
        self.0.entry(handle.place.clone()).or_default().entry(Need::of(handle)).or_default().push(at);
    }
}

impl Need {
    pub(crate) fn of(handle: &Handle) -> Self {
        let workload = handle.workload();
        let labels = workload.map(|workload| &workload.manifest["metadata"]["labels"]);
        Self {
            workload: workload.map(|workload| workload.resource.clone()),
            beside: beside(handle).cloned().collect(),
            queue: labels.and_then(|labels| labels[QUEUE_LABEL].as_str()).map(str::to_owned),
            pods: workload.map(together).unwrap_or_default(),
        }
    }

    /// Without plurals: the server says them.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Resource> {
        self.workload.iter().chain(&self.beside).map(|kind| Resource { plural: None, ..kind.clone() })
    }

    pub(crate) fn rights(&self) -> BTreeSet<Right> {
        self.workload.as_ref().map(|workload| needed(workload, self.beside.iter())).unwrap_or_default()
    }
}

impl Need {
    /// The `LocalQueue` that it waits in.
    pub(crate) fn queue(&self) -> Option<&String> {
        self.queue.as_ref()
    }

    /// How its pods fit in each quota.
    fn fits(&self, answers: &Answers) -> impl Iterator<Item = Fit> {
        answers.quotas.iter().filter_map(QuotaStatus::of).map(|quota| quota::fit(&quota, &self.pods, &Demand::new()))
    }

    /// The quotas that have no room for its pods now, though they could have.
    pub(crate) fn waits_for(&self, answers: &Answers) -> Vec<String> {
        let later = |fit: Fit| if let Fit::Later(refusal) = fit { Some(refusal.to_string()) } else { None };
        self.fits(answers).filter_map(later).collect()
    }
}

impl Answers {
    pub(crate) fn no_namespace(&self) -> bool {
        self.no_namespace
    }

    pub(crate) fn is_denied(&self, right: &Right) -> bool {
        self.denied.contains(right)
    }

    pub(crate) fn quotas(&self) -> impl Iterator<Item = &Value> {
        self.quotas.iter()
    }

    /// Queues that admit nothing now, and why.
    pub(crate) fn stopped_queues(&self) -> impl Iterator<Item = (&String, &String)> {
        self.stopped_queues.iter()
    }

    /// Why the server would not say this.
    pub(crate) fn unasked(&self, topic: Topic) -> Option<&String> {
        self.unasked.get(&topic)
    }
}

/// What a server has said of a place. What is not in it is not known.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The namespace does not exist.
    no_namespace: bool,
    /// Kinds that the server does not have, and why not.
    unknown_kinds: BTreeMap<Resource, String>,
    denied: BTreeSet<Right>,
    quotas: Vec<Value>,
    missing_queues: BTreeSet<String>,
    /// Queues that admit nothing now, and why.
    stopped_queues: BTreeMap<String, String>,
    /// What the server would not say, and why.
    unasked: BTreeMap<Topic, String>,
}

/// What a problem is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Kinds,
    Namespace,
    Rights,
    Quota,
    Queues,
}

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) topic: Topic,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    fn new(topic: Topic, what: String, hint: Option<String>) -> Self {
        Self { topic, what, hint }
    }

    pub(crate) fn no_namespace(place: &ClusterPlace) -> Self {
        Self::new(Topic::Namespace, format!("there is no {place}"), Some("create it, or set `namespace`".to_owned()))
    }
}

/// What is wrong, and with which plans.
pub(crate) fn findings(place: &ClusterPlace, needs: &BTreeMap<Need, Vec<usize>>, answers: &Answers) -> Vec<Finding> {
    let finding = |(Problem { what, hint, .. }, workloads): (Problem, Vec<usize>)| Finding { workloads, what, hint };
    let mut findings: Vec<Finding> = all_problems(place, needs, answers).into_iter().map(finding).collect();
    findings.sort_by(|one, other| (&one.workloads, &one.what).cmp(&(&other.workloads, &other.what)));
    findings
}

/// Each problem with the plans concerned.
pub(crate) fn all_problems(
    place: &ClusterPlace,
    needs: &BTreeMap<Need, Vec<usize>>,
    answers: &Answers,
) -> BTreeMap<Problem, Vec<usize>> {
    let mut found: BTreeMap<Problem, Vec<usize>> = BTreeMap::new();
    for (need, plans) in needs {
        for problem in problems(place, need, answers) {
            found.entry(problem).or_default().extend(plans);
        }
    }
    for plans in found.values_mut() {
        plans.sort_unstable();
    }
    found
}

/// What is wrong with one need.
fn problems(place: &ClusterPlace, need: &Need, answers: &Answers) -> Vec<Problem> {
    let unknown = need.kinds().filter_map(|kind| answers.unknown_kinds.get(&kind));
    let mut problems: Vec<Problem> = unknown.map(|why| Problem::new(Topic::Kinds, why.clone(), None)).collect();
    if answers.no_namespace {
        // Neither Roles nor quotas are in it.
        problems.push(Problem::no_namespace(place));
        return problems;
    }
    let rights = need.rights();
    let denied: Vec<&Right> = rights.intersection(&answers.denied).collect();
    if !denied.is_empty() {
        let (what, hint) = missing_rights(place, denied);
        problems.push(Problem::new(Topic::Rights, what, Some(hint)));
    }
    let never = |fit: Fit| if let Fit::Never(why) = fit { Some(Problem::new(Topic::Quota, why, None)) } else { None };
    problems.extend(need.fits(answers).filter_map(never));
    if let Some(queue) = need.queue.as_ref().filter(|queue| answers.missing_queues.contains(*queue)) {
        let what = format!("there is no LocalQueue {queue} in {place}");
        problems.push(Problem::new(Topic::Queues, what, Some(format!("create it, or change the label {QUEUE_LABEL}"))));
    }
    problems
}

/// `create, delete pods; get pods/log`, and the rules of a Role that grants them.
pub(crate) fn missing_rights<'a>(place: &ClusterPlace, denied: impl IntoIterator<Item = &'a Right>) -> (String, String) {
    let mut verbs: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for right in denied {
        verbs.entry((&right.group, &right.plural)).or_default().push(right.verb);
    }
    let word = |((group, plural), verbs): (&(&str, &str), &Vec<&str>)| {
        let dot = if group.is_empty() { "" } else { "." };
        format!("{} {plural}{dot}{group}", verbs.join(", "))
    };
    let rule = |((group, plural), verbs): (&(&str, &str), &Vec<&str>)| {
        let group = if group.is_empty() { "\"\"" } else { group };
        format!("{{apiGroups: [{group}], resources: [{plural}], verbs: [{}]}}", verbs.join(", "))
    };
    let words: Vec<String> = verbs.iter().map(word).collect();
    let rules: Vec<String> = verbs.iter().map(rule).collect();
    let what = format!("rights in {place} are missing: {}", words.join("; "));
    (what, format!("add to a Role there, or apply what `muster k8s role` prints: {}", rules.join(" ")))
}

#[cfg(test)]
mod tests;
