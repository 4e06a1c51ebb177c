//! One pod: waiting, running, ended, disrupted, or unable to start.
//!
//! ```text
//! phase Succeeded | Failed ----------------> Ended            exits of the deciding containers, cause, disruption
//! vanished, or its deletion is over --------> Lost             unless the deciding containers had ended: Ended
//! a container that can never start ---------> Hopeless, Broken (waiting)
//! deciding containers ended, another runs --> Ended            after the sidecar grace: `held_by`
//! a deciding container has started ---------> Running
//! else -------------------------------------> Waiting          (waiting)
//! ```
//! Where an owner restarts containers (`Restarts::Owners`) only a container's present state counts; a Pod of its own is
//! over with the first end of a deciding container.

pub(crate) mod disruption;
pub(crate) mod ends;
pub(in crate::status) mod kills;
pub(crate) mod placement;
pub(crate) mod waiting;

use super::{View, cause, cause::Place, grace};
use crate::{
    api::clock,
    job::{ContainerLog, SeenPod, sections},
};
use disruption::Disrupted;
use ends::{is_running, terminated};
use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use muster_core::job::{
    scheduler::{Disruption, Exit, SectionExit},
    stdout::SectionOrigin,
};
use muster_text::time::Timestamp;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::status) struct PodAssessment {
    pub(in crate::status) name: String,
    /// Its place among the observed pods.
    pub(in crate::status) place: usize,
    pub(in crate::status) uid: Option<String>,
    pub(in crate::status) node: Option<String>,
    pub(in crate::status) state: PodState,
    /// How its deciding containers ended, and the init containers that failed.
    pub(in crate::status) exits: Vec<SectionExit>,
    /// The start of its first deciding container.
    pub(in crate::status) started: Option<Timestamp>,
    /// When it was told to end, if it was before its end.
    pub(in crate::status) told: Option<Timestamp>,
    /// The last end that is known.
    pub(in crate::status) ended: Option<Timestamp>,
    /// Which of its main containers have exited while others run.
    pub(in crate::status) partly_ended: Option<String>,
    /// The container that keeps the pod running although its deciding ones have ended.
    pub(in crate::status) held_by: Option<String>,
    /// Times that its containers were started again.
    pub(in crate::status) restarts: u32,
    /// It is not in the API any more.
    pub(in crate::status) gone: bool,
    /// A grace period ends after this time.
    pub(in crate::status) recheck_in: Option<Duration>,
    /// What is worth knowing even if the case passes.
    pub(in crate::status) notes: Vec<String>,
}

impl PodAssessment {
    /// Why it ended as it did, where its exits do not say it all.
    pub(in crate::status) fn cause(&self) -> Option<String> {
        if let PodState::Ended { cause, .. } = &self.state { cause.clone() } else { None }
    }

    /// Why it was deleted before it ended.
    pub(in crate::status) fn deletion(&self) -> Option<(Option<&str>, Option<Disruption>)> {
        let why = Some(Disruption::Deleted);
        match &self.state {
            PodState::Ended { failed: true, cause, disruption } if *disruption == why => Some((cause.as_deref(), why)),
            PodState::Disrupted(disrupted) if disrupted.why == why => Some((Some(&disrupted.cause), why)),
            _ => None,
        }
    }

    /// Why it failed or was disrupted. A deletion does not count: mostly the pod's owner deletes it.
    pub(in crate::status) fn failure(&self) -> Option<(Option<&str>, Option<Disruption>)> {
        match &self.state {
            PodState::Ended { disruption: Some(Disruption::Deleted), .. } => None,
            PodState::Ended { failed: true, cause, disruption } => Some((cause.as_deref(), *disruption)),
            PodState::Disrupted(disrupted) if disrupted.why.is_some_and(|why| why != Disruption::Deleted) => {
                Some((Some(&disrupted.cause), disrupted.why))
            }
            PodState::Hopeless(why) | PodState::Broken(why) => Some((Some(why), None)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::status) enum PodState {
    Waiting(String),
    Running,
    Ended {
        failed: bool,
        cause: Option<String>,
        disruption: Option<Disruption>,
    },
    /// Disrupted before it ended.
    Disrupted(Disrupted),
    /// Deleted by Muster before it ended.
    Removed,
    Hopeless(String),
    Broken(String),
}

/// Who decides whether a container that ended runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::status) enum Restarts {
    /// No owner: the first end counts.
    Never,
    Owners,
}

/// A pod with everything that its assessment needs.
pub(in crate::status) struct PodView<'a> {
    pub(in crate::status) view: View<'a>,
    pub(in crate::status) seen: &'a SeenPod,
    pub(in crate::status) pod: &'a Pod,
    pub(in crate::status) status: &'a PodStatus,
    pub(in crate::status) containers: Vec<ContainerLog>,
    pub(in crate::status) restarts: Restarts,
    /// How many pods had its name after it.
    pub(in crate::status) later: u32,
}

pub(in crate::status) fn assess(view: View<'_>, seen: &SeenPod, restarts: Restarts, later: u32) -> PodAssessment {
    let pod = seen.pod.as_ref();
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let containers = sections::containers(pod, view.handle);
    let this = PodView { view, seen, pod, status, containers, restarts, later };
    let mut assessed = PodAssessment {
        name: this.name().to_owned(),
        place: 0,
        uid: pod.metadata.uid.clone(),
        node: this.node().map(str::to_owned),
        state: PodState::Running,
        exits: this.exits(),
        started: this.started(),
        told: this.told(),
        ended: this.ended(),
        partly_ended: this.partly_ended(),
        held_by: None,
        restarts: this.statuses().map(|status| u32::try_from(status.restart_count).unwrap_or(0)).sum(),
        gone: seen.gone,
        recheck_in: None,
        notes: Vec::new(),
    };
    this.judge(&mut assessed);
    assessed
}

impl PodView<'_> {
    fn judge(&self, assessed: &mut PodAssessment) {
        let all_ended = self.primaries().all(|status| self.end_of(status).is_some()) && self.primaries().next().is_some();
        let phase = self.status.phase.as_deref().unwrap_or_default();
        if let Some(disrupted) = disruption::not_finished(self).filter(|_| phase == "Succeeded") {
            assessed.state = PodState::Disrupted(disrupted);
        } else if phase == "Succeeded" {
            assessed.state = PodState::Ended { failed: false, cause: self.bad_end(), disruption: None };
        } else if phase == "Failed" {
            self.failed(assessed);
        } else if let Some(disrupted) = disruption::lost(self, &mut assessed.recheck_in) {
            assessed.state = match (all_ended && !self.was_told_to_end(), self.seen.deleted_by_us) {
                (true, _) => self.by_exits(None),
                (false, true) => PodState::Removed,
                (false, false) => PodState::Disrupted(disrupted),
            };
        } else if let Some(state) = self.init_failed().or_else(|| self.never_starts(&mut assessed.recheck_in)) {
            assessed.state = state;
        } else if all_ended && self.is_over(assessed) {
            assessed.state = self.by_exits(None);
        } else if assessed.started.is_none() {
            assessed.state = PodState::Waiting(waiting::reason(self, &mut assessed.recheck_in));
        }
    }

    /// Not decided for a pod that is being deleted: its owner may replace it.
    fn never_starts(&self, recheck_in: &mut Option<Duration>) -> Option<PodState> {
        if self.goes() { None } else { waiting::never_starts(self, recheck_in) }
    }

    /// All deciding containers have ended, but the phase of the pod does not show it: at once where one was or would be
    /// restarted, else after the grace period.
    fn is_over(&self, assessed: &mut PodAssessment) -> bool {
        let failed = assessed.exits.iter().any(|exit| exit.exit.status() != Some(0));
        if self.restarts == Restarts::Never && (assessed.restarts > 0 || (failed && self.policy() != "Never")) {
            if !failed {
                assessed.notes.push(format!(
                    "{} is started again after it has succeeded: its restartPolicy is {}",
                    self.place(),
                    self.policy()
                ));
            }
            return true;
        }
        if self.restarts == Restarts::Owners && self.policy() != "Never" && failed {
            return false;
        }
        let ended = assessed.ended.unwrap_or(self.view.observed.since);
        if self.view.is_within(ended, grace::SIDECAR_GRACE, &mut assessed.recheck_in) {
            return false;
        }
        assessed.held_by = self.statuses().find(|status| is_running(status)).map(|status| status.name.clone());
        if let Some(container) = &assessed.held_by {
            assessed.notes.push(format!("container {container} keeps {} running after its work has ended", self.place()));
        }
        true
    }

    /// Phase Failed: refused, disrupted, or by itself.
    fn failed(&self, assessed: &mut PodAssessment) {
        if let Some(disrupted) = disruption::failed(self) {
            assessed.state = PodState::Ended { failed: true, cause: Some(disrupted.cause), disruption: disrupted.why };
            return;
        }
        if let Some(state) = self.init_failed().or_else(|| waiting::never_started(self)) {
            assessed.state = match state {
                // The next attempt may get another node.
                PodState::Broken(cause) if self.restarts == Restarts::Owners => {
                    PodState::Ended { failed: true, cause: Some(cause), disruption: None }
                }
                state => state,
            };
            return;
        }
        if self.restarts == Restarts::Never && self.all_fine(assessed) {
            let others = self.statuses().filter_map(|status| Some((status, terminated(status)?)));
            for (status, end) in others.filter(|(_, end)| end.exit_code != 0) {
                assessed.notes.push(format!(
                    "container {} of {} exited with {}, which does not count",
                    status.name,
                    self.place(),
                    end.exit_code
                ));
            }
        }
        assessed.state = self.by_exits(Some(self.status));
        if let PodState::Ended { failed, .. } = &mut assessed.state
            && self.restarts == Restarts::Owners
        {
            *failed = true;
        }
    }

    fn all_fine(&self, assessed: &PodAssessment) -> bool {
        self.primaries().next().is_some() && assessed.exits.iter().all(|exit| exit.exit == Exit::Code(0))
    }

    /// By the exits of the deciding containers, and the reason of the pod itself where it has one.
    fn by_exits(&self, pod: Option<&PodStatus>) -> PodState {
        let failing = self.bad_ends().next();
        let reason = pod.filter(|pod| pod.reason.is_some() || pod.message.is_some());
        let none_ended = self.primaries().all(|status| self.end_of(status).is_none());
        let contradicts = pod.is_some() && self.statuses().all(|status| terminated(status).is_some_and(|end| end.exit_code == 0));
        let cause = match (failing, reason) {
            (Some((status, end)), _) => self.end_cause(status, end),
            (None, Some(pod)) => Some(format!(
                "{} failed{}",
                self.place(),
                cause::detail(Some(&cause::reason_and(pod.reason.as_deref(), pod.message.as_deref())))
            )),
            (None, None) if pod.is_some() && (none_ended || contradicts) => {
                Some(format!("{} failed without a reason", self.place()))
            }
            (None, None) => None,
        };
        // A 0 that is no success says so itself.
        let is_failure = |(status, end)| self.exit(status, end) != Exit::NoSuccess;
        let failed = failing.is_some_and(is_failure) || (pod.is_some() && (reason.is_some() || none_ended || contradicts));
        let unknown = failing.is_some_and(|(status, end)| self.exit(status, end) == Exit::Unknown);
        PodState::Ended { failed, cause, disruption: unknown.then_some(Disruption::Node) }
    }

    /// Deciding containers, and init containers beside them, that did not end well.
    fn bad_ends(&self) -> impl Iterator<Item = (&ContainerStatus, &ContainerStateTerminated)> {
        let primaries = self.primaries().filter_map(|status| Some((status, self.end_of(status)?)));
        let all = primaries.chain(self.killed_inits());
        all.filter(|(status, end)| self.exit(status, end) != Exit::Code(0))
    }

    fn bad_end(&self) -> Option<String> {
        self.bad_ends().find_map(|(status, end)| self.end_cause(status, end))
    }

    /// An init container failed for good.
    fn init_failed(&self) -> Option<PodState> {
        let (status, end) = self.failed_inits().next()?;
        let why = self.end_cause(status, end).unwrap_or_else(|| format!("it exited with {}", end.exit_code));
        let cause = format!("init container {} of {} failed, so nothing else was started: {why}", status.name, self.place());
        Some(PodState::Ended { failed: true, cause: Some(cause), disruption: None })
    }

    /// Init containers that ended badly and are not started again.
    pub(in crate::status) fn failed_inits(&self) -> impl Iterator<Item = (&ContainerStatus, &ContainerStateTerminated)> {
        let for_good =
            self.status.phase.as_deref() == Some("Failed") || self.restarts == Restarts::Never || self.policy() == "Never";
        let inits = self.status.init_container_statuses.iter().flatten().filter(move |_| for_good);
        self.logged(inits).filter(|(_, end)| end.exit_code != 0)
    }

    /// Init containers that ended with a 0 that is no success: the next one was started all the same.
    fn killed_inits(&self) -> impl Iterator<Item = (&ContainerStatus, &ContainerStateTerminated)> {
        let all = self.logged(self.status.init_container_statuses.iter().flatten());
        all.filter(|(status, end)| self.exit(status, end) == Exit::NoSuccess)
    }

    fn logged<'s>(
        &'s self,
        all: impl Iterator<Item = &'s ContainerStatus>,
    ) -> impl Iterator<Item = (&'s ContainerStatus, &'s ContainerStateTerminated)> {
        let logged = all.filter(|status| self.containers.iter().any(|known| known.name == status.name && known.logged()));
        logged.filter_map(|status| Some((status, self.end_of(status)?)))
    }

    pub(in crate::status) fn exits(&self) -> Vec<SectionExit> {
        let ends = self.primaries().filter_map(|status| Some((status, self.end_of(status)?)));
        let mut ends: Vec<_> = self.failed_inits().chain(self.killed_inits()).chain(ends).collect();
        // As their sections stand in the stdout.
        ends.sort_by_key(|(status, _)| &status.name);
        let exit = |(status, end): (&ContainerStatus, &ContainerStateTerminated)| {
            let (start, later) = (ends::start_of(status, end), self.later);
            let origin = SectionOrigin { start, later, ..sections::origin(self.pod, &status.name, self.view.handle) };
            let (section_id, node) = (Some(origin.id()), self.node().map(str::to_owned));
            let time = |at: &Option<Time>| at.as_ref().and_then(clock::known);
            let (started, ended) = (time(&end.started_at), time(&end.finished_at));
            let image = Some(status.image_id.clone()).filter(|image| !image.is_empty());
            SectionExit { section: origin.title(), section_id, node, exit: self.exit(status, end), image, started, ended }
        };
        ends.into_iter().map(exit).collect()
    }

    /// The end of a container, if it is final.
    pub(in crate::status) fn end_of<'s>(&self, status: &'s ContainerStatus) -> Option<&'s ContainerStateTerminated> {
        let earlier = || status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        match self.restarts {
            Restarts::Never if status.restart_count > 0 => earlier().or_else(|| terminated(status)),
            // Nothing starts it again in a pod that goes: a Job deletes the pod whose container failed too often.
            Restarts::Owners if status.restart_count > 0 && self.goes() => terminated(status).or_else(earlier),
            Restarts::Never | Restarts::Owners => terminated(status),
        }
    }

    fn goes(&self) -> bool {
        self.seen.gone || self.pod.metadata.deletion_timestamp.is_some()
    }

    pub(in crate::status) fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    pub(in crate::status) fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    pub(in crate::status) fn node(&self) -> Option<&str> {
        self.pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
    }

    pub(in crate::status) fn place(&self) -> Place<'_> {
        Place { pod: self.name(), node: self.node() }
    }

    pub(in crate::status) fn policy(&self) -> &str {
        self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always")
    }

    /// Main containers, in the order of their status.
    pub(in crate::status) fn statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.container_statuses.iter().flatten()
    }

    pub(in crate::status) fn primaries(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.statuses().filter(|status| self.containers.iter().any(|known| known.primary && known.name == status.name))
    }

    pub(in crate::status) fn condition(&self, kind: &str) -> Option<&k8s_openapi::api::core::v1::PodCondition> {
        self.status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
    }
}
