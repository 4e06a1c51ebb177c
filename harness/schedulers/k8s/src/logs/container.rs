//! The state of one container: whether it has a log, and whether the log can still grow.

use crate::{
    api::clock,
    job::{Observed, SeenPod},
    status::{last_start, node_is_silent},
};
use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use muster_text::time::Timestamp;

/// The instances of a container are numbered by its restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instance {
    /// It has not run yet.
    NotYet,
    /// This instance goes on.
    Running(i32),
    /// This instance is over; there may be another.
    Ended(i32),
}

/// A container, as last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContainerView {
    pub instance: Instance,
    /// The times of this instance.
    pub life: Life,
    /// The times of the instance before it.
    pub last: Life,
    /// It waits to be started again. The node then has the log of the last instance only, also as that of the one before.
    pub waits: bool,
    /// The time when the pod got its node, by the clock of the control plane: nothing of it started before.
    pub scheduled: Option<Timestamp>,
    /// The container was seen to end; not only its pod to vanish or fail.
    pub terminated: bool,
    /// No container of the pod runs again.
    pub pod_over: bool,
    pub node: Node,
}

/// When an instance ran, by the clock of its node, in whole seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Life {
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
}

/// Whether the node can serve the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Answers,
    /// It does not answer, and the container was not seen to end: the log cannot be read.
    Silent,
    /// The pod is not there any more, and its logs with it.
    Gone,
}

const NEVER: Life = Life { started: None, ended: None };
const UNSEEN: ContainerView = ContainerView {
    instance: Instance::NotYet,
    life: NEVER,
    last: NEVER,
    waits: false,
    scheduled: None,
    terminated: false,
    pod_over: true,
    node: Node::Gone,
};

impl Instance {
    pub(super) fn number(self) -> Option<i32> {
        match self {
            Self::NotYet => None,
            Self::Running(number) | Self::Ended(number) => Some(number),
        }
    }
}

/// Which container of which pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub uid: String,
    pub container: String,
}

/// The container as it is now. `place`: the index of its pod; pods keep theirs, and there may be thousands.
pub(super) fn view(observed: &Observed, place: usize, identity: &Identity) -> ContainerView {
    let is_it = |seen: &&SeenPod| seen.pod.metadata.uid.as_ref() == Some(&identity.uid);
    let seen = observed.pods.get(place).filter(is_it).or_else(|| observed.pods.iter().find(is_it));
    seen.map_or(UNSEEN, |seen| of(seen, &identity.container))
}

pub(super) fn of(seen: &SeenPod, container: &str) -> ContainerView {
    let pod_over = seen.is_over();
    let status = status(&seen.pod, container);
    let waits = status.and_then(|status| status.state.as_ref()).is_some_and(|state| state.waiting.is_some());
    let (instance, life, last) = status.map_or((Instance::NotYet, NEVER, NEVER), instance);
    let terminated = matches!(instance, Instance::Ended(_));
    // The container statuses of a pod that was evicted, or whose node is lost, are no longer updated.
    let instance = match instance {
        Instance::Running(number) if pod_over => Instance::Ended(number),
        instance => instance,
    };
    let node = match seen.gone {
        true => Node::Gone,
        false if !terminated && node_is_silent(&seen.pod) => Node::Silent,
        false => Node::Answers,
    };
    ContainerView { instance, life, last, waits, scheduled: scheduled(&seen.pod), terminated, pod_over, node }
}

fn scheduled(pod: &Pod) -> Option<Timestamp> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled" && condition.status == "True")?;
    clock::known(scheduled.last_transition_time.as_ref()?)
}

fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    all.into_iter().find(|status| status.name == container)
}

fn instance(status: &ContainerStatus) -> (Instance, Life, Life) {
    let number = status.restart_count;
    let terminated = |state: &Option<ContainerState>| state.as_ref().and_then(|state| state.terminated.as_ref().map(life));
    let running = status.state.as_ref().and_then(|state| state.running.as_ref());
    let last = terminated(&status.last_state);
    if let Some(running) = running {
        let started = running.started_at.as_ref().and_then(clock::known);
        return (Instance::Running(number), Life { started, ended: None }, last.unwrap_or_default());
    }
    if let Some(life) = terminated(&status.state) {
        return (Instance::Ended(number), life, last.unwrap_or_default());
    }
    // It waits to be started again: until then its last instance's log is the current one.
    match last {
        Some(last) => (Instance::Ended(last_start(status)), last, NEVER),
        None => (Instance::NotYet, NEVER, NEVER),
    }
}

fn life(terminated: &ContainerStateTerminated) -> Life {
    let known = |time: &Option<Time>| time.as_ref().and_then(clock::known);
    Life { started: known(&terminated.started_at), ended: known(&terminated.finished_at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::pod;
    use std::sync::Arc;

    fn seen(status: &str, gone: bool) -> SeenPod {
        let pod = pod(&format!("{{metadata: {{name: p, uid: u}}, spec: {{containers: [{{name: main}}]}}, status: {status}}}"));
        SeenPod { gone, ..SeenPod::new(Arc::new(pod)) }
    }

    #[test]
    fn a_containers_instance_is_read_from_its_status() {
        let main = |rest: &str| {
            format!("{{phase: Running, containerStatuses: [{{name: main, image: i, imageID: i, ready: true, {rest}}}]}}")
        };
        let rows = [
            ("{phase: Pending}".to_owned(), Instance::NotYet),
            (main("restartCount: 0, state: {waiting: {reason: ContainerCreating}}"), Instance::NotYet),
            (main("restartCount: 0, state: {running: {}}"), Instance::Running(0)),
            (main("restartCount: 2, state: {running: {}}, lastState: {terminated: {exitCode: 1}}"), Instance::Running(2)),
            (main("restartCount: 0, state: {terminated: {exitCode: 0}}"), Instance::Ended(0)),
            (main("restartCount: 1, state: {waiting: {}}, lastState: {terminated: {exitCode: 1}}"), Instance::Ended(1)),
            // The runtime lost it, and the kubelet counts its next start before there is one.
            (
                main(
                    "restartCount: 1, state: {waiting: {}}, lastState: {terminated: {exitCode: 137, reason: ContainerStatusUnknown}}",
                ),
                Instance::Ended(0),
            ),
        ];
        for (status, instance) in rows {
            let view = of(&seen(&status, false), "main");
            assert_eq!((view.instance, view.pod_over), (instance, false), "{status}");
            assert_eq!(of(&seen(&status, false), "other").instance, Instance::NotYet);
        }
    }

    #[test]
    fn a_container_of_a_pod_that_is_over_has_ended_whatever_its_status_says() {
        let running =
            "containerStatuses: [{name: main, image: i, imageID: i, ready: true, restartCount: 0, state: {running: {}}}]";
        for (status, gone) in [(format!("{{phase: Failed, {running}}}"), false), (format!("{{phase: Running, {running}}}"), true)]
        {
            let view = of(&seen(&status, gone), "main");
            assert_eq!((view.instance, view.terminated, view.pod_over), (Instance::Ended(0), false, true), "{status}");
        }
    }
}
