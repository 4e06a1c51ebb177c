//! Disruptions of a pod: preempted, evicted, node lost, refused by the kubelet, deleted.

use crate::api::clock;
use crate::status::{
    cause, grace,
    pod::{PodView, ends::terminated},
};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use muster_core::job::scheduler::Disruption;
use std::time::Duration;

/// A disruption of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::status) struct Disrupted {
    /// `None`: the check itself caused it.
    pub(in crate::status) why: Option<Disruption>,
    pub(in crate::status) cause: String,
}

fn by(why: Disruption, cause: String) -> Disrupted {
    Disrupted { why: Some(why), cause }
}

/// A pod in phase Failed that did not fail by itself, or failed as a whole.
pub(in crate::status) fn failed(this: &PodView<'_>) -> Option<Disrupted> {
    let reason = this.status.reason.as_deref().unwrap_or_default();
    let detail = cause::detail(this.status.message.as_deref());
    let place = this.place();
    if let Some(disrupted) = refused(this, reason, &detail) {
        return Some(disrupted);
    }
    Some(match reason {
        "DeadlineExceeded" => {
            let limit = this.pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
            let limit = limit.map_or_else(String::new, |limit| format!(" of {limit} s"));
            Disrupted { why: None, cause: format!("{place} ran longer than its activeDeadlineSeconds{limit}") }
        }
        "Evicted" if is_own_storage(this.status.message.as_deref().unwrap_or_default()) => {
            Disrupted { why: None, cause: format!("{place} was evicted because it used more storage than its own limit{detail}") }
        }
        "Evicted" => by(Disruption::Evicted, format!("{place} was evicted{detail}")),
        "NodeLost" => by(Disruption::Node, format!("the node of {place} was lost{detail}")),
        "Preempting" => by(Disruption::Preempted, format!("{place} made room for a critical pod{detail}")),
        "Terminated" | "NodeShutdown" => by(Disruption::Node, format!("the node of {place} was shut down{detail}")),
        _ => return not_finished(this),
    })
}

/// The pod's node does not answer. A kubelet sets `Ready` with `ContainersReady` if there are no readiness gates: one without the
/// other comes from the node controller, which sets `Ready` to false on all pods of a node without heartbeats.
pub(crate) fn node_is_silent(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is = |kind: &str, status: &str| conditions.iter().any(|condition| condition.type_ == kind && condition.status == status);
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    gates.is_empty() && is("ContainersReady", "True") && is("Ready", "False")
}

/// The disruption of a pod that has vanished, or should have by now. Until then `recheck_in` is set.
pub(in crate::status) fn lost(this: &PodView<'_>, recheck_in: &mut Option<Duration>) -> Option<Disrupted> {
    if this.seen.gone {
        return Some(condition(this).unwrap_or_else(|| deleted_by_others(this)));
    }
    if this.status.phase.as_deref() == Some("Unknown") {
        let detail = cause::detail(this.status.message.as_deref());
        return Some(by(Disruption::Node, format!("the node of {} does not answer{detail}", this.place())));
    }
    let due = clock::of(this.pod.metadata.deletion_timestamp.as_ref()?.0);
    let all_stopped = this.statuses().next().is_some() && this.statuses().all(|status| terminated(status).is_some());
    let silent = node_is_silent(this.pod);
    let tainted =
        this.condition("DisruptionTarget").and_then(|condition| condition.reason.as_deref()) == Some("DeletionByTaintManager");
    let period = if silent || tainted { grace::LOST_NODE } else { grace::FINALIZER };
    if !all_stopped && this.view.is_within(due, period, recheck_in) {
        return None;
    }
    let ours = || Disrupted { why: None, cause: format!("Muster deleted {}", this.place()) };
    // Older clusters do not say why they delete the pods of a lost node.
    let unsaid = || {
        let cause = format!("the node of {} does not answer, and the pod was deleted", this.place());
        (silent && !this.seen.deleted_by_us).then_some(by(Disruption::Node, cause))
    };
    let mut disrupted = condition(this).or_else(unsaid).or_else(|| deleted(this)).unwrap_or_else(ours);
    let finalizers = this.pod.metadata.finalizers.as_deref().unwrap_or_default();
    if !all_stopped {
        let held = match finalizers {
            _ if silent => "its node does not answer".to_owned(),
            [] => "its node has not confirmed its end".to_owned(),
            held => format!("it is held by the finalizers {}", held.join(", ")),
        };
        disrupted.cause = format!("{}; it should be gone since {}, but {held}", disrupted.cause, cause::seconds(period));
    }
    Some(disrupted)
}

/// A pod that succeeded only because it was terminated: a program may exit with 0 after SIGTERM.
pub(in crate::status) fn not_finished(this: &PodView<'_>) -> Option<Disrupted> {
    if this.was_told_to_end() { condition(this).or_else(|| deleted(this)) } else { None }
}

/// The disruption that the pod's conditions show.
fn condition(this: &PodView<'_>) -> Option<Disrupted> {
    let is_true = |condition: &&PodCondition| condition.status == "True";
    let detail = |condition: &PodCondition| cause::detail(condition.message.as_deref());
    let place = this.place();
    if let Some(kueue) = this.condition("TerminationTarget").filter(is_true) {
        let is_preempted = kueue.message.as_deref().is_some_and(|message| message.contains("Preempted"));
        let why = if is_preempted { Disruption::Preempted } else { Disruption::Evicted };
        return Some(by(why, format!("Kueue stopped {place}{}", detail(kueue))));
    }
    let condition = this.condition("DisruptionTarget").filter(is_true)?;
    let detail = detail(condition);
    let shutdown = condition.message.as_deref().is_some_and(|message| message.contains("shutdown"));
    let (why, what) = match condition.reason.as_deref().unwrap_or_default() {
        "PreemptionByScheduler" => (Disruption::Preempted, format!("{place} was preempted by a pod of higher priority")),
        "EvictionByEvictionAPI" => {
            (Disruption::Evicted, format!("{place} was evicted through the API, as a drain of its node does"))
        }
        "DeletionByTaintManager" => (Disruption::Node, format!("the node of {place} was lost or tainted")),
        "DeletionByPodGC" => (Disruption::Node, format!("the node of {place} does not exist any more")),
        "TerminationByKubelet" if shutdown => (Disruption::Node, format!("the node of {place} was shut down")),
        "TerminationByKubelet" => (Disruption::Evicted, format!("{place} was ended by its node")),
        other => (Disruption::Evicted, format!("{place} was removed ({other})")),
    };
    Some(by(why, format!("{what}{detail}")))
}

fn deleted(this: &PodView<'_>) -> Option<Disrupted> {
    this.pod.metadata.deletion_timestamp.as_ref().filter(|_| !this.seen.deleted_by_us)?;
    Some(deleted_by_others(this))
}

fn deleted_by_others(this: &PodView<'_>) -> Disrupted {
    by(Disruption::Deleted, format!("{} was deleted by another user or program", this.place()))
}

/// The kubelet did not admit the pod: nothing of it ran, and another node might admit it.
fn refused(this: &PodView<'_>, reason: &str, detail: &str) -> Option<Disrupted> {
    const REASONS: [&str; 9] = [
        "UnexpectedAdmissionError",
        "NodeAffinity",
        "NodePorts",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "TopologyAffinityError",
        "AppArmor",
        "InvalidNodeInfo",
        "InitContainerRestartPolicyForbidden",
    ];
    let is_refusal = REASONS.contains(&reason) || reason.starts_with("OutOf");
    let node = this.node().unwrap_or("the node");
    let cause = format!("{node} refused pod {} ({reason}){detail}", this.name());
    is_refusal.then_some(by(Disruption::Node, cause))
}

/// The exceeded limit is from the manifest, not the node's.
fn is_own_storage(message: &str) -> bool {
    ["exceeds the total limit of containers", "exceeded its local ephemeral storage limit", "Usage of EmptyDir volume"]
        .iter()
        .any(|words| message.contains(words))
}
