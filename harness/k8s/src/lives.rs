//! Pods that have one name after the other: an operator, or a StatefulSet, replaces a pod under its name.
//!
//! A pod is superseded once a later one of its name has started a container: from then on only the later one is judged
//! (`Lives::Last`). Exits and rules (`status`) and the numbers in the stdout (`core::stdout::number_lives`) agree, because a section
//! exists for whatever has started a container.

use crate::{
    handle::Handle,
    kind::{Lives, WorkloadRules},
    logs::has_started,
    observed::SeenPod,
};
use std::collections::{BTreeSet, HashMap};

/// For each pod, oldest first as they come: how many of its name have started after it.
pub(crate) fn later(pods: &[SeenPod], handle: &Handle) -> Vec<u32> {
    let mut started: HashMap<&str, u32> = HashMap::with_capacity(pods.len());
    let mut later: Vec<u32> = Vec::with_capacity(pods.len());
    for seen in pods.iter().rev() {
        let count = started.entry(name(seen)).or_default();
        later.push(*count);
        *count += u32::from(has_started(seen, handle));
    }
    later.reverse();
    later
}

/// Whether a pod after which so many of its name have started is judged.
pub(crate) fn counts(later: u32, rules: &WorkloadRules) -> bool {
    later == 0 || rules.lives == Lives::All
}

/// How many names there are: what was replaced is not another pod.
pub(crate) fn names(pods: &[SeenPod]) -> usize {
    pods.iter().map(name).collect::<BTreeSet<_>>().len()
}

fn name(seen: &SeenPod) -> &str {
    seen.pod.metadata.name.as_deref().unwrap_or_default()
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
    fn a_kind_may_want_each_of_them_judged() {
        let all = WorkloadRules { lives: Lives::All, ..WorkloadRules::default() };
        assert_eq!([counts(0, &all), counts(3, &all)], [true, true]);
        assert_eq!([counts(0, &WorkloadRules::default()), counts(3, &WorkloadRules::default())], [true, false]);
    }
}
