//! Decides which of the pods of a workload its end counts.
//!
//! ```text
//! every pod --replaced_pods--> of the last life --+--> Fully     its exit and its log are judged
//!                                                 |--> LogOnly   its log is: it still ran, or pods of its role do not end by themselves
//!                                                 '--> Not       neither: its log stays at the end of the stdout
//! ```
//! A workload that succeeded counts the pods that succeeded: of each completion index the last, of a workload that says how many no
//! more. A pod that was told to end, or that vanished, counts only where none has done its work in its place: what a program does on
//! SIGTERM is not known to be its work. A workload that failed counts all of its last life, so that no failure is hidden.

use crate::{
    api::clock,
    job::{Handle, SeenPod, replaced_pods, sections, told::Told},
    kind::Role,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a pod is to the end of its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    Fully,
    LogOnly,
    Not,
}

/// How a pod ended, as far as that decides whether it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodEnd {
    /// It runs or waits, or it was told to end when its workload had ended.
    Open,
    Succeeded,
    /// It succeeded, after it was told to end.
    ToldToEnd,
    /// It ran, or may have run, and vanished: how it ended was not seen.
    Vanished,
    Failed,
}

/// How the workload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded {
        /// How many of its pods have, if it says so.
        pods: Option<u32>,
    },
    /// It failed, or it has not ended.
    Other,
}

/// Whether the end counts each of the pods, oldest first as they come, which ended like this.
pub(crate) fn counted(handle: &Handle, pods: &[SeenPod], ends: &[PodEnd], end: End) -> Vec<Counts> {
    let last = replaced_pods::are_of_last_life(pods, handle);
    let End::Succeeded { pods: wanted } = end else {
        return last.into_iter().map(|is_last| if is_last { Counts::Fully } else { Counts::Not }).collect();
    };
    let mut choice = Choice { pods, counts: vec![Counts::Not; pods.len()], slots: BTreeSet::new(), replaced: BTreeMap::new() };
    // Newest first: of an index the last pod counts.
    let candidates: Vec<usize> = (0..pods.len()).rev().filter(|at| last[*at]).collect();
    let never_ends = |at: usize| sections::role_of(&pods[at].pod, &handle.rules).is_some_and(|role: &Role| !role.ends);
    for at in candidates.iter().copied() {
        if never_ends(at) {
            choice.counts[at] = Counts::LogOnly;
        } else if ends[at] == PodEnd::Succeeded && choice.takes_slot(at) {
            choice.counts[at] = Counts::Fully;
        }
    }
    for doubtful in [PodEnd::ToldToEnd, PodEnd::Vanished] {
        for at in candidates.iter().copied().filter(|at| ends[*at] == doubtful) {
            if choice.counts[at] != Counts::Not {
                continue;
            }
            let is_missing = wanted.is_none_or(|wanted| choice.count() < wanted as usize);
            if is_missing && (wanted.is_some() || !choice.is_replaced(at)) && choice.takes_slot(at) {
                choice.counts[at] = Counts::Fully;
            }
        }
    }
    if choice.counts.iter().all(|counts| *counts == Counts::Not) {
        // Its end does not come from its pods: all that they wrote is its log.
        for at in candidates {
            choice.counts[at] = Counts::LogOnly;
        }
        return choice.counts;
    }
    for at in candidates.into_iter().filter(|at| ends[*at] == PodEnd::Open) {
        // A worker that its controller ends once the leader has succeeded: its log shows what it did until then.
        let has_place = sections::completion_index(&pods[at].pod).is_some() || wanted.is_none() && !choice.is_replaced(at);
        if choice.counts[at] == Counts::Not && has_place && choice.takes_slot(at) {
            choice.counts[at] = Counts::LogOnly;
        }
    }
    choice.counts
}

struct Choice<'a> {
    pods: &'a [SeenPod],
    counts: Vec<Counts>,
    /// Owner and completion index of the pods that count.
    slots: BTreeSet<(Option<&'a str>, &'a str)>,
    /// By owner: how many pods without an index were replaced by others.
    replaced: BTreeMap<Option<&'a str>, usize>,
}

impl<'a> Choice<'a> {
    fn owner(&self, at: usize) -> Option<&'a str> {
        replaced_pods::controller(&self.pods[at].pod).map(|owner| owner.uid.as_str())
    }

    /// Whether no later pod has the index of this one.
    fn takes_slot(&mut self, at: usize) -> bool {
        let owner = self.owner(at);
        sections::completion_index(&self.pods[at].pod).is_none_or(|index| self.slots.insert((owner, index)))
    }

    /// Whether a pod without an index has a successor among those that count: each of them is the successor of one. It was created
    /// once the pod had been told to end, or, where that was not seen, after its start: pods that are created one after the other
    /// are no successors of each other.
    fn is_replaced(&mut self, at: usize) -> bool {
        if sections::completion_index(&self.pods[at].pod).is_some() {
            return false;
        }
        let owner = self.owner(at);
        let created = |at: usize| self.pods[at].pod.metadata.creation_timestamp.as_ref().map(|time| clock::of(time.0));
        let statuses = |at: usize| self.pods[at].pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let comes_after = |other: usize| match self.pods[at].told {
            Some(Told::At(told)) => created(other) >= Some(told),
            _ => created(other) > created(at).max(clock::first_start(statuses(at))),
        };
        let successors = (0..self.pods.len()).filter(|other| self.counts[*other] == Counts::Fully && self.owner(*other) == owner);
        let successors = successors.filter(|other| comes_after(*other)).count();
        let replaced = self.replaced.entry(owner).or_default();
        let is_replaced = *replaced < successors;
        *replaced += usize::from(is_replaced);
        is_replaced
    }

    fn count(&self) -> usize {
        self.counts.iter().filter(|counts| **counts == Counts::Fully).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kind::WorkloadRules,
        status::testing::{handle, pod, yaml},
    };
    use std::sync::Arc;

    /// `NAME SECOND END [INDEX] [owner=UID] [job=NAME] [told=SECOND|perhaps] [start=SECOND] [key=label]`
    fn row(text: &str) -> (SeenPod, PodEnd) {
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (name, second, end) = (word(), word(), word());
        let end = match end {
            "open" => PodEnd::Open,
            "good" => PodEnd::Succeeded,
            "told" => PodEnd::ToldToEnd,
            "gone" => PodEnd::Vanished,
            "bad" => PodEnd::Failed,
            other => panic!("{other}"),
        };
        let mut labels = Vec::new();
        let (mut owner, mut told, mut start) = (("o", "x"), None, String::new());
        let time = |second: &str| format!("2026-01-01T00:00:0{second}Z");
        for word in words {
            match word.split_once('=') {
                Some(("owner", uid)) => owner = (uid, "x"),
                Some(("job", name)) => owner = (name, name),
                Some(("told", "perhaps")) => told = Some(Told::Perhaps),
                Some(("told", second)) => told = Some(Told::At(clock::of(time(second).parse().unwrap()))),
                Some(("start", second)) => start = format!("startedAt: '{}'", time(second)),
                Some((key, value)) => labels.push(format!("{key}: '{value}'")),
                None => labels.push(format!("batch.kubernetes.io/job-completion-index: '{word}'")),
            }
        }
        let owners = format!("[{{apiVersion: batch/v1, kind: Job, name: {}, uid: {}, controller: true}}]", owner.1, owner.0);
        let state =
            format!("{{name: main, image: i, imageID: i, ready: true, restartCount: 0, state: {{running: {{{start}}}}}}}");
        let pod = pod(&format!(
            "{{metadata: {{name: {name}, creationTimestamp: '2026-01-01T00:00:0{second}Z', ownerReferences: {owners}, labels: {{{}}}}}, \
             spec: {{containers: [{{name: main}}]}}, status: {{containerStatuses: [{state}]}}}}",
            labels.join(", ")
        ));
        (SeenPod { told, ..SeenPod::new(Arc::new(pod)) }, end)
    }

    /// One letter for each pod: Fully, Log only, Not.
    fn shown(rules: &str, pods: &[&str], end: End) -> String {
        let mut handle = handle("JobSet");
        handle.rules = serde_json::from_value::<WorkloadRules>(yaml(rules)).unwrap();
        let (pods, ends): (Vec<_>, Vec<_>) = pods.iter().copied().map(row).unzip();
        let letter = |counts: Counts| match counts {
            Counts::Fully => 'F',
            Counts::LogOnly => 'L',
            Counts::Not => '-',
        };
        counted(&handle, &pods, &ends, end).into_iter().map(letter).collect()
    }

    const ANY: End = End::Succeeded { pods: None };
    const ONE: End = End::Succeeded { pods: Some(1) };
    const TWO: End = End::Succeeded { pods: Some(2) };

    #[test]
    fn a_success_counts_the_pods_that_succeeded() {
        let rows: [(&[&str], End, &str); 29] = [
            (&["a 1 good", "b 1 good"], TWO, "FF"),
            (&["a 1 bad", "b 2 good"], ONE, "-F"),
            (&["a 1 good", "b 1 open"], ONE, "F-"),
            // It still runs, and nothing has taken its place.
            (&["a 1 good", "b 1 open job=other"], ANY, "FL"),
            (&["a 1 good 0", "b 1 open 1"], ONE, "FL"),
            (&["a 1 open 0", "b 2 good 0"], ANY, "-F"),
            (&["a 1 open", "b 2 good"], ANY, "-F"),
            // The last of an index.
            (&["a 1 good 0", "b 1 good 1", "c 2 good 0"], TWO, "-FF"),
            (&["a 1 told 0", "b 1 good 1", "c 2 good 0"], TWO, "-FF"),
            (&["a 1 told 0", "b 1 good 1"], TWO, "FF"),
            (&["a 1 told 0", "b 1 good 1"], ONE, "-F"),
            (&["a 1 gone 0", "b 1 good 1"], ANY, "FF"),
            (&["a 1 good 0", "b 2 told 0"], ANY, "F-"),
            (&["a 1 gone 0", "b 2 told 0"], ANY, "-F"),
            // Drained, and finished elsewhere.
            (&["a 1 told", "b 2 good"], ONE, "-F"),
            (&["a 1 told", "b 2 good"], ANY, "-F"),
            (&["a 1 told", "b 1 told", "c 2 good", "d 3 good"], ANY, "--FF"),
            // Pods that were created one after the other.
            (&["a 1 told told=5", "b 2 good"], ANY, "FF"),
            (&["a 1 told told=5", "b 2 good", "c 5 good"], ANY, "-FF"),
            (&["a 1 told told=perhaps start=3", "b 2 good"], ANY, "FF"),
            (&["a 1 told told=perhaps start=3", "b 4 good"], ANY, "-F"),
            (&["a 1 gone start=3", "b 2 good"], ANY, "FF"),
            (&["a 1 gone start=3", "b 4 good"], ANY, "-F"),
            (&["a 1 open start=3", "b 2 good"], ANY, "LF"),
            // Nothing has taken its place.
            (&["a 1 told", "b 1 good"], ANY, "FF"),
            (&["a 1 told", "b 2 good job=other"], TWO, "FF"),
            (&["a 1 gone", "b 1 told", "c 2 good"], TWO, "-FF"),
            (&["a 1 gone"], ONE, "F"),
            // Its pods do not show its end.
            (&["a 1 bad", "b 1 open"], ANY, "LL"),
        ];
        for (pods, end, expected) in rows {
            assert_eq!(shown("{}", pods, end), expected, "{pods:?} {end:?}");
        }
    }

    #[test]
    fn a_failure_counts_all_of_the_last_life() {
        assert_eq!(shown("{}", &["a 1 bad", "b 2 told", "c 3 good"], End::Other), "FFF");
        assert_eq!(shown("{pods: {life: attempt}}", &["a 1 good attempt=0", "b 2 bad attempt=1"], End::Other), "-F");
    }

    #[test]
    fn an_earlier_life_does_not_count_whatever_it_did() {
        let life = "{pods: {life: attempt}}";
        assert_eq!(shown(life, &["a 1 good attempt=9", "b 1 good attempt=9", "c 2 good attempt=10"], ANY), "--F");
        assert_eq!(shown(life, &["a 1 good attempt=first", "b 2 good attempt=then"], ANY), "-F");
        assert_eq!(shown(life, &["a 1 good", "b 2 good attempt=then"], ANY), "FF", "without the label");
        assert_eq!(shown("{}", &["a 1 good owner=first", "b 2 good owner=then"], ANY), "-F", "its owner was made again");
    }

    #[test]
    fn of_a_role_that_does_not_end_the_log_counts() {
        let roles = "{roles: [{name: launcher, selector: role=launcher}, {name: worker, ends: false}]}";
        let pods = ["a 1 bad role=launcher", "b 1 open", "c 1 told", "d 2 good role=launcher"];
        assert_eq!(shown(roles, &pods, ANY), "-LLF");
        assert_eq!(shown(roles, &pods, End::Other), "FFFF");
    }
}
