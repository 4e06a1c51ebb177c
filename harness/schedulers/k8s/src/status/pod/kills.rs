//! Reads what only the events of a pod say: that its node stopped a container, and why.

use crate::api::clock;
use crate::job::told::{self, Told};
use crate::status::{
    View, grace,
    pod::{PodView, Restarts, ends},
    trouble,
};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event, Pod};
use muster_core::job::scheduler::Exit;
use muster_text::time::Timestamp;
use std::time::Duration;

/// What a node says of a container when its pod has to end: also of one whose probe failed and that is not started again.
const TOLD_TO_END: &str = "Stopping container";

/// Whether events have yet to say how a pod ended. Without an answer in time it has not ended well.
pub(in crate::status) fn are_awaited(view: View<'_>, recheck_in: &mut Option<Duration>) -> bool {
    if view.observed.trouble.denied.iter().any(|right| right == "list events") {
        return false;
    }
    let unclear = view.observed.pods.iter().filter(|seen| told::needs_events(seen) && !are_known(view, &seen.pod));
    let ends = unclear.map(|seen| told::last_end(&seen.pod).unwrap_or_default().max(view.observed.since));
    // Each of them, so that the next assessment is due in time.
    ends.filter(|end| view.is_within(*end, grace::EVENTS, recheck_in)).count() > 0
}

fn are_known(view: View<'_>, pod: &Pod) -> bool {
    pod.metadata.uid.as_ref().is_some_and(|uid| view.observed.trouble.ended_pods.contains(uid))
}

impl PodView<'_> {
    /// Whether it was told to end before its work had ended.
    pub(in crate::status) fn was_told_to_end(&self) -> bool {
        let ends: Option<Vec<_>> =
            self.primaries().map(|status| clock::known(self.end_of(status)?.finished_at.as_ref()?)).collect();
        let ended = ends.and_then(|ends| ends.into_iter().max());
        match (self.seen.told, ended) {
            (None | Some(Told::AfterItsEnd), _) => false,
            (Some(Told::At(at)), Some(end)) if end > at => true,
            // Times are whole seconds of two clocks, and a node reports an end up to a second late.
            (Some(Told::At(_) | Told::Perhaps), Some(_)) => {
                let is_told = |event: &Event| trouble::message(event).starts_with(TOLD_TO_END);
                let mut ends = self.primaries().filter_map(|status| Some((status, self.end_of(status)?)));
                !are_known(self.view, self.pod) || ends.any(|(status, end)| self.killing(status, end).is_some_and(is_told))
            }
            (Some(Told::At(_) | Told::Perhaps), None) => true,
        }
    }

    /// When it was told to end, if that was before its end: at its end at the latest.
    pub(super) fn told(&self) -> Option<Timestamp> {
        match self.seen.told.filter(|_| self.was_told_to_end())? {
            Told::At(at) => Some(at),
            Told::Perhaps | Told::AfterItsEnd => self.ended(),
        }
    }

    /// How a container ended. A 0 is no success if the node killed the container or a process of it.
    pub(in crate::status) fn exit(&self, status: &ContainerStatus, end: &ContainerStateTerminated) -> Exit {
        match ends::exit(end) {
            Exit::Code(0) if self.own_kill(status, end).is_some() => Exit::NoSuccess,
            exit => exit,
        }
    }

    /// Why an exit status of 0 is no success.
    pub(in crate::status) fn own_kill(&self, status: &ContainerStatus, end: &ContainerStateTerminated) -> Option<String> {
        let container = format!("container {} of {}", status.name, self.place());
        match end.reason.as_deref().filter(|reason| !reason.is_empty()) {
            None | Some("Completed") => {}
            Some("OOMKilled") => return Some(self.out_of_memory(&format!("a process of {container}"), &status.name)),
            Some(reason) => return Some(format!("{container} ended with the reason {reason}")),
        }
        if let Some(event) = self.killing(status, end) {
            let may_be_told = matches!(self.seen.told, Some(Told::At(_) | Told::Perhaps));
            let is_told = may_be_told && trouble::message(event).starts_with(TOLD_TO_END);
            return (!is_told).then(|| self.killed(&container, end.exit_code));
        }
        if self.restarts == Restarts::Never && status.restart_count > 0 && self.policy() == "OnFailure" {
            return Some(format!("its node killed {container} and started it again, though its restartPolicy is OnFailure"));
        }
        let is_unclear =
            told::needs_events(self.seen) && told::may_be_killed(self.pod, &status.name) && !are_known(self.view, self.pod);
        is_unclear.then(|| {
            format!("whether a probe or a hook ended {container} is not known: its events could not be read (right: list events)")
        })
    }

    /// The event with which the node stopped a container, if it ended by that.
    fn killing(&self, status: &ContainerStatus, end: &ContainerStateTerminated) -> Option<&Event> {
        let field = format!("spec.containers{{{}}}", status.name);
        let is_its = |event: &&Event| {
            let about = &event.involved_object;
            let at = trouble::last(event).zip(end.finished_at.as_ref()).is_none_or(|(at, end)| at <= clock::of(end.0));
            let since = trouble::last(event).zip(end.started_at.as_ref()).is_none_or(|(at, start)| at >= clock::of(start.0));
            trouble::reason(event) == "Killing"
                && about.uid.as_ref().is_none_or(|uid| self.pod.metadata.uid.as_ref() == Some(uid))
                && about.field_path.as_ref().is_none_or(|path| *path == field)
                && at
                && since
        };
        self.view.events().of_pod(self.name()).rev().find(is_its)
    }
}
