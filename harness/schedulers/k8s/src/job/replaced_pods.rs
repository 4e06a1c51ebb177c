//! Pods that others have replaced: under the same name, or with all of the workload.
//!
//! A pod is superseded once a later one of its name has started a container: from then on only the later one is judged
//! (`JudgedPods::Last`). It is of an earlier life once a pod has started under a later value of the kind's label (`pods.life`), or
//! under a controller that was created again with the name of its own. Only this file decides so: `status` uses it for exits and
//! rules, `counted` for what the end counts, and `Ending::pods` carries it to the stdout.

use crate::{
    job::{Handle, SeenPod, counted::Counts, sections},
    kind::JudgedPods,
};
use k8s_openapi::{
    api::core::v1::{ContainerState, Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use muster_core::job::scheduler::JobPod;
use std::collections::{BTreeSet, HashMap};

/// For each pod, oldest first as they come: how many of its name have started after it.
pub(crate) fn later(pods: &[SeenPod], handle: &Handle) -> Vec<u32> {
    let mut started: HashMap<&str, u32> = HashMap::with_capacity(pods.len());
    let mut later: Vec<u32> = Vec::with_capacity(pods.len());
    for seen in pods.iter().rev() {
        let count = started.entry(seen.name()).or_default();
        later.push(*count);
        *count += u32::from(has_started(seen, handle));
    }
    later.reverse();
    later
}

/// For each pod, oldest first as they come: whether no other has replaced it.
pub(crate) fn are_of_last_life(pods: &[SeenPod], handle: &Handle) -> Vec<bool> {
    let label = handle.rules.pods.life.as_deref();
    let by_label = |pod: &'_ Pod| Some((String::new(), pod.metadata.labels.as_ref()?.get(label?)?.clone()));
    let by_owner = |pod: &'_ Pod| controller(pod).map(|owner| (format!("{} {}", owner.kind, owner.name), owner.uid.clone()));
    let (earlier, ownerless) = (earlier_lives(pods, handle, by_label), earlier_lives(pods, handle, by_owner));
    let are_all_judged = handle.rules.judged_pods == JudgedPods::All;
    let lives = earlier.into_iter().zip(ownerless).zip(later(pods, handle));
    lives.map(|((earlier, ownerless), later)| !earlier && !ownerless && (later == 0 || are_all_judged)).collect()
}

/// Whether a pod has started under a later life of what each pod belongs to. Lives that are numbers come in their order, others
/// in that of their first pods.
fn earlier_lives(pods: &[SeenPod], handle: &Handle, of: impl Fn(&Pod) -> Option<(String, String)>) -> Vec<bool> {
    let mut first: HashMap<(String, String), usize> = HashMap::new();
    let mut lives = Vec::with_capacity(pods.len());
    let mut last: HashMap<String, (Option<u64>, usize)> = HashMap::new();
    for (at, seen) in pods.iter().enumerate() {
        let life = of(&seen.pod).map(|life| {
            let order = (life.1.parse::<u64>().ok(), *first.entry(life.clone()).or_insert(at));
            (life.0, order)
        });
        if let Some((whole, order)) = life.as_ref().filter(|_| has_started(seen, handle)) {
            let newest = last.entry(whole.clone()).or_insert(*order);
            *newest = (*newest).max(*order);
        }
        lives.push(life);
    }
    let is_earlier = |(whole, order): (String, (Option<u64>, usize))| last.get(&whole).is_some_and(|newest| order < *newest);
    lives.into_iter().map(|life| life.is_some_and(is_earlier)).collect()
}

/// What manages a pod: one of its owners at most is marked as its controller.
pub(crate) fn controller(pod: &Pod) -> Option<&OwnerReference> {
    controller_of(pod.metadata.owner_references.as_deref().unwrap_or_default())
}

/// The same of the owners of any object.
pub(crate) fn controller_of(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    owners.iter().find(|owner| owner.controller == Some(true)).or_else(|| owners.first())
}

/// The pods of a job that has ended, as far as they have started: what has not has no section.
pub(crate) fn at_the_end(pods: &[SeenPod], handle: &Handle, counts: &[Counts]) -> Vec<JobPod> {
    let all = pods.iter().zip(later(pods, handle)).zip(counts);
    let started = all.filter(|((seen, _), _)| has_started(seen, handle));
    started.filter_map(|((seen, later), counts)| job_pod(seen, later, *counts != Counts::Not)).collect()
}

/// As `at_the_end`, where the workload is this pod: whatever else had its name is superseded.
pub(crate) fn of_one_pod(pods: &[SeenPod], own: &SeenPod, handle: &Handle) -> Vec<JobPod> {
    let none = vec![Counts::Not; pods.len()];
    let others = at_the_end(pods, handle, &none).into_iter().filter(|pod| own.pod.metadata.uid.as_ref() != Some(&pod.uid));
    let own = has_started(own, handle).then(|| job_pod(own, 0, true)).flatten();
    others.chain(own).collect()
}

/// Whether any container that has a section has run.
pub(crate) fn has_started(seen: &SeenPod, handle: &Handle) -> bool {
    let Some(status) = &seen.pod.status else { return false };
    let statuses = || status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let ran = |state: &Option<ContainerState>| {
        state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    let has_run = |name: &str| {
        statuses().find(|status| status.name == name).is_some_and(|status| ran(&status.state) || ran(&status.last_state))
    };
    sections::containers(&seen.pod, handle).iter().any(|container| container.logged() && has_run(&container.name))
}

fn job_pod(seen: &SeenPod, later: u32, judged: bool) -> Option<JobPod> {
    Some(JobPod { uid: seen.pod.metadata.uid.clone()?, name: seen.name().to_owned(), later, judged })
}

/// How many names there are: what was replaced is not another pod.
pub(crate) fn names(pods: &[SeenPod]) -> usize {
    pods.iter().map(SeenPod::name).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::pod;
    use std::sync::Arc;

    fn seen(name: &str, state: &str) -> SeenPod {
        let status = format!("{{name: main, image: i, imageID: i, ready: true, restartCount: 0, state: {{{state}: {{}}}}}}");
        let spec = "{containers: [{name: main}]}";
        let pod = pod(&format!("{{metadata: {{name: {name}}}, spec: {spec}, status: {{containerStatuses: [{status}]}}}}"));
        SeenPod::new(Arc::new(pod))
    }

    #[test]
    fn a_pod_is_superseded_once_another_of_its_name_has_started() {
        type Row = (&'static [(&'static str, &'static str)], &'static [u32]);
        let handle = Handle::default();
        let rows: [Row; 4] = [
            (&[("a", "running"), ("b", "running")], &[0, 0]),
            (&[("a", "running"), ("b", "running"), ("a", "waiting")], &[0, 0, 0]),
            (&[("a", "running"), ("b", "running"), ("a", "running")], &[1, 0, 0]),
            (&[("a", "running"), ("a", "running"), ("b", "waiting"), ("a", "running"), ("a", "waiting")], &[2, 1, 0, 0, 0]),
        ];
        for (pods, expected) in rows {
            let pods: Vec<_> = pods.iter().map(|(name, state)| seen(name, state)).collect();
            assert_eq!(later(&pods, &handle), expected);
        }
        assert_eq!(names(&[seen("a", "running"), seen("b", "running"), seen("a", "waiting")]), 2);
    }

    #[test]
    fn what_has_not_started_is_not_known_at_the_end() {
        let life = |uid: &str, state: &str| {
            let mut life = seen("a", state);
            Arc::make_mut(&mut life.pod).metadata.uid = Some(uid.to_owned());
            life
        };
        let shown =
            |pods: Vec<JobPod>| pods.iter().map(|pod| format!("{}#{} {}", pod.uid, pod.later, pod.judged)).collect::<Vec<_>>();
        let last = Handle::default();
        let mut all = Handle::default();
        all.rules.judged_pods = JudgedPods::All;
        let pods = [life("1", "terminated"), life("2", "running"), life("3", "waiting")];
        assert_eq!(are_of_last_life(&pods, &last), [false, true, true]);
        assert_eq!(are_of_last_life(&pods, &all), [true; 3]);
        let counts = [Counts::Not, Counts::LogOnly, Counts::Fully];
        assert_eq!(shown(at_the_end(&pods, &last, &counts)), ["1#1 false", "2#0 true"]);
        assert_eq!(shown(of_one_pod(&pods, &pods[1], &last)), ["1#1 false", "2#0 true"]);
        assert_eq!(shown(of_one_pod(&pods, &pods[2], &last)), ["1#1 false", "2#0 false"], "it ended without a log");
    }

    #[test]
    fn the_controller_is_taken_before_other_owners() {
        let owner = |kind: &str, controller: bool| OwnerReference {
            kind: kind.into(),
            controller: Some(controller),
            ..OwnerReference::default()
        };
        let owners = [owner("Other", false), owner("Job", true)];
        assert_eq!(controller_of(&owners).map(|owner| owner.kind.as_str()), Some("Job"));
        assert_eq!(controller_of(&[]), None);
    }
}
