//! The starts and ends of the containers of a pod, with their causes in words.

use crate::api::clock;
use crate::status::{
    cause,
    pod::{PodView, Restarts, waiting},
    trouble,
};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Event, Pod};
use muster_core::job::scheduler::Exit;
use muster_text::time::Timestamp;

/// Reasons of containers that were never started.
pub(super) const NOT_STARTED: [&str; 2] = ["StartError", "ContainerCannotRun"];

impl PodView<'_> {
    /// Why a container ended, where its status does not show it.
    pub(in crate::status) fn end_cause(&self, status: &ContainerStatus, end: &ContainerStateTerminated) -> Option<String> {
        let container = format!("container {} of {}", status.name, self.place());
        match end.reason.as_deref() {
            _ if end.exit_code == 0 && end.reason.as_deref() != Some("ContainerStatusUnknown") => self.own_kill(status, end),
            Some("OOMKilled") if end.exit_code > 128 => Some(self.out_of_memory(&container, &status.name)),
            Some("OOMKilled") => Some(self.out_of_memory(&format!("a process of {container}"), &status.name)),
            Some("ContainerStatusUnknown") => {
                Some(format!("{container} was lost with its node's state: its exit status is unknown"))
            }
            _ if matches!(end.exit_code, 137 | 143) => Some(self.killed(&container, end.exit_code)),
            _ => match end.message.as_deref().map(cause::quote).filter(|detail| !detail.is_empty()) {
                Some(detail) => Some(format!("{container} reports: {detail}")),
                None if status.restart_count > 0 => Some(match self.restarts {
                    Restarts::Owners => format!("{container} crashed after {}", cause::count(restarted(status), "restart")),
                    Restarts::Never => {
                        format!("{container} crashed and is started again (restartPolicy {}); its end counts", self.policy())
                    }
                }),
                None => None,
            },
        }
    }

    pub(super) fn out_of_memory(&self, container: &str, name: &str) -> String {
        let spec = self.pod.spec.as_ref();
        let all = spec.into_iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        let limits =
            all.filter(|container| container.name == name).find_map(|container| container.resources.as_ref()?.limits.as_ref());
        match limits.and_then(|limits| limits.get("memory")) {
            Some(limit) => {
                format!("{container} was killed for its memory (OOMKilled): it used more than its limit of {}", limit.0)
            }
            None => format!("{container} was killed for its memory (OOMKilled): it has no limit, so the node had no more"),
        }
    }

    pub(super) fn killed(&self, container: &str, code: i32) -> String {
        let events = self.view.events();
        // A failed readiness probe does not kill a container.
        let is_fatal = |event: &&Event| ["Liveness", "Startup"].iter().any(|probe| trouble::message(event).starts_with(probe));
        let mut unhealthy = events.of_pod(self.name()).rev().filter(|event| trouble::reason(event) == "Unhealthy");
        match unhealthy.find(is_fatal).or_else(|| events.newest_of_pod(self.name(), &["Killing"])) {
            Some(event) => format!("{container} was killed (status {code}){}", cause::detail(event.message.as_deref())),
            None => format!("{container} was killed (status {code}), and not for its memory as far as the kubelet saw"),
        }
    }

    pub(in crate::status) fn started(&self) -> Option<Timestamp> {
        clock::first_start(self.primaries())
    }

    pub(in crate::status) fn ended(&self) -> Option<Timestamp> {
        let ends =
            self.statuses().chain(self.status.init_container_statuses.iter().flatten()).filter_map(|status| self.end_of(status));
        let ends = ends.filter_map(|end| clock::known(end.finished_at.as_ref()?));
        let last = if self.is_terminal() { ends.max() } else { self.last_deciding_end() };
        let deleted = || self.pod.metadata.deletion_timestamp.as_ref().map(|time| clock::of(time.0));
        let changed = || {
            let conditions = self.status.conditions.iter().flatten();
            conditions.filter_map(|condition| condition.last_transition_time.as_ref()).map(|time| clock::of(time.0)).max()
        };
        last.or_else(|| deleted().filter(|_| self.is_terminal() || self.seen.gone))
            .or_else(|| changed().filter(|_| self.is_terminal()))
    }

    /// Which image is missing although others run, or which main containers have exited while others run.
    pub(in crate::status) fn partly_ended(&self) -> Option<String> {
        if let Some(missing) = waiting::cannot_pull(self) {
            return Some(missing);
        }
        let exited: Vec<_> = self.statuses().filter_map(|status| Some((&status.name, terminated(status)?.exit_code))).collect();
        let running: Vec<_> = self.statuses().filter(|status| is_running(status)).map(|status| status.name.as_str()).collect();
        if exited.is_empty() || running.is_empty() {
            return None;
        }
        let exited: Vec<_> = exited.iter().map(|(name, code)| format!("{name} has exited with {code}")).collect();
        let (exited, running) = (cause::names(exited.iter().map(String::as_str)), cause::names(running.into_iter()));
        Some(format!("in {}, container {exited}, and {running} still runs", self.place()))
    }

    fn last_deciding_end(&self) -> Option<Timestamp> {
        let deciding = self.primaries().filter_map(|status| self.end_of(status));
        let ends =
            deciding.chain(self.failed_inits().map(|(_, end)| end)).filter_map(|end| clock::known(end.finished_at.as_ref()?));
        ends.max()
    }
}

fn restarted(status: &ContainerStatus) -> usize {
    usize::try_from(status.restart_count).unwrap_or(0)
}

/// Whether any container of a pod has ever run, as far as its status tells; what the runtime could not start has not.
pub(crate) fn has_run(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let all = [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
    let is_or_was = |state: &ContainerState| {
        let ended = state.terminated.as_ref().map(|end| end.reason.as_deref().unwrap_or_default());
        state.running.is_some() || ended.is_some_and(|reason| !NOT_STARTED.contains(&reason))
    };
    let mut lives = all.into_iter().flatten().flatten().flat_map(|container| [&container.state, &container.last_state]).flatten();
    lives.any(is_or_was)
}

pub(in crate::status) fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// Which start of its container this end is of, from 0.
pub(in crate::status) fn start_of(status: &ContainerStatus, end: &ContainerStateTerminated) -> u32 {
    let start = match terminated(status) {
        Some(last) if last == end => status.restart_count,
        None if !is_running(status) => last_start(status),
        _ => status.restart_count - 1,
    };
    u32::try_from(start).unwrap_or_default()
}

/// The last start of a container that waits to be started again. Of one that the runtime has lost the kubelet counts the next start already.
pub(crate) fn last_start(status: &ContainerStatus) -> i32 {
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let is_lost = last.is_some_and(|last| {
        last.reason.as_deref() == Some("ContainerStatusUnknown") && last.container_id.as_ref().is_none_or(String::is_empty)
    });
    (status.restart_count - i32::from(is_lost)).max(0)
}

pub(in crate::status) fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// A status above 128 is a signal only if the kubelet reports one: a program may exit with 137 by itself.
pub(in crate::status) fn exit(end: &ContainerStateTerminated) -> Exit {
    match (end.reason.as_deref(), end.signal) {
        (Some("ContainerStatusUnknown"), _) => Exit::Unknown,
        (_, Some(signal)) if signal > 0 => Exit::Signal(signal),
        (Some("OOMKilled"), _) if end.exit_code > 128 => Exit::Signal(end.exit_code - 128),
        _ => Exit::Code(end.exit_code),
    }
}
