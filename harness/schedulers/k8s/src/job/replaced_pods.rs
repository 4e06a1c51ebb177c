//! Pods that an operator or a StatefulSet replaces by another pod of the same name.
//!
//! A pod is superseded once a later one of its name has started a container: from then on only the later one is judged
//! (`JudgedPods::Last`). Only this file decides so: `status` uses it for exits and rules, and `Ending::pods` carries it to the stdout.

use crate::{
    job::{Handle, SeenPod, sections},
    kind::{JudgedPods, WorkloadRules},
};
use k8s_openapi::api::core::v1::ContainerState;
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

/// Whether a pod after which so many of its name have started is judged.
pub(crate) fn counts(later: u32, rules: &WorkloadRules) -> bool {
    later == 0 || rules.judged_pods == JudgedPods::All
}

/// The pods of a job that has ended, as far as they have started: what has not has no section.
pub(crate) fn at_the_end(pods: &[SeenPod], handle: &Handle) -> Vec<JobPod> {
    let started = pods.iter().zip(later(pods, handle)).filter(|(seen, _)| has_started(seen, handle));
    started.filter_map(|(seen, later)| job_pod(seen, later, counts(later, &handle.rules))).collect()
}

/// As `at_the_end`, where the workload is this pod: whatever else had its name is superseded.
pub(crate) fn of_one_pod(pods: &[SeenPod], own: &SeenPod, handle: &Handle) -> Vec<JobPod> {
    let others = at_the_end(pods, handle).into_iter().filter(|pod| own.pod.metadata.uid.as_ref() != Some(&pod.uid));
    let others = others.map(|pod| JobPod { judged: false, ..pod });
    let own = has_started(own, handle).then(|| job_pod(own, 0, true)).flatten();
    others.chain(own).collect()
}

/// Whether any container that has a section has run.
fn has_started(seen: &SeenPod, handle: &Handle) -> bool {
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
        SeenPod { pod: Arc::new(pod), gone: false, deleted_by_us: false }
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
        assert_eq!(shown(at_the_end(&pods, &last)), ["1#1 false", "2#0 true"]);
        assert_eq!(shown(at_the_end(&pods, &all)), ["1#1 true", "2#0 true"]);
        assert_eq!(shown(of_one_pod(&pods, &pods[1], &last)), ["1#1 false", "2#0 true"]);
        assert_eq!(shown(of_one_pod(&pods, &pods[2], &last)), ["1#1 false", "2#0 false"], "it ended without a log");
    }

    #[test]
    fn a_kind_may_want_each_of_them_judged() {
        let all = WorkloadRules { judged_pods: JudgedPods::All, ..WorkloadRules::default() };
        assert_eq!([counts(0, &all), counts(3, &all)], [true, true]);
        assert_eq!([counts(0, &WorkloadRules::default()), counts(3, &WorkloadRules::default())], [true, false]);
    }
}
