//! Reads the scheduler's message about a pod that it cannot place: may the state change by itself?
//!
//! ```text
//! 0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't match Pod's node affinity/selector. preemption: 0/5 nodes are ...
//!                          `- one reason a node, each final or passing --------------------'        `- which nodes could make room
//! ```
//! Labels, taints of people and the size of nodes stay as they are; other pods, and nodes that are not ready, do not. A
//! reason that is not known here is taken for passing.

use k8s_openapi::api::core::v1::Pod;

/// Reasons that no time changes.
const FINAL: [&str; 6] = [
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match the requested node name",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "node(s) had volume node affinity conflict",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) had no available volume zone",
];
const TAINTS: [&str; 2] = ["node(s) had untolerated taint {", "node(s) had untolerated taint(s)"];
/// Parts of taints that the cluster sets while something passes: not ready, draining, starting, being upgraded.
const PASSING_TAINTS: [&str; 11] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeleted",
    "DeletionCandidate",
    "not-ready",
    "notready",
    "startup",
    "uninitialized",
    "disrupt",
    "maintenance",
    "upgrade",
];
/// What a scheduler says of a node on which the removal of other pods would make no room.
const NO_ROOM: &str = "Preemption is not helpful for scheduling";

/// No existing node could ever run the pod.
pub(crate) fn is_hopeless(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut unscheduled = conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let reason = |reason: Option<&str>| reason.is_none_or(|reason| reason == "Unschedulable");
    unscheduled.any(|condition| reason(condition.reason.as_deref()) && condition.message.as_deref().is_some_and(never_fits))
}

/// Whether the message of the scheduler says so.
fn never_fits(message: &str) -> bool {
    let Some((nodes, rest)) = message.split_once(" nodes are available: ") else { return false };
    let Some(nodes) = nodes.strip_prefix("0/").and_then(|nodes| nodes.parse::<u32>().ok()).filter(|nodes| *nodes > 0) else {
        return false;
    };
    let preemption = rest.split_once("preemption: ").map_or("", |(_, preemption)| preemption);
    let reasons = rest.split_once(". ").map_or(rest, |(reasons, _)| reasons);
    let no_room = counted(preemption.split_once(": ").map_or("", |(_, reasons)| reasons))
        .filter(|(_, reason)| *reason == NO_ROOM)
        .map(|(count, _)| count)
        .sum::<u32>();
    let mut reasons = counted(reasons).peekable();
    reasons.peek().is_some() && reasons.all(|(_, reason)| is_final(reason, no_room >= nodes))
}

/// `too_small`: the scheduler has compared what the pod wants with the size of every node.
fn is_final(reason: &str, too_small: bool) -> bool {
    if TAINTS.iter().any(|taint| reason.starts_with(taint)) {
        return !PASSING_TAINTS.iter().any(|part| reason.contains(part));
    }
    FINAL.contains(&reason) || too_small && reason.starts_with("Insufficient ")
}

/// `3 reason, 1 other reason.` with their counts.
fn counted(list: &str) -> impl Iterator<Item = (u32, &str)> {
    let pairs = list.trim().trim_end_matches('.').split(", ");
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let (count, reason) = pair.split_once(' ').unwrap_or(("", pair));
        // What does not begin with a count is not a known reason.
        count.parse().map_or((0, pair), |count| (count, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_change_by_itself_is_distinguished_from_what_cannot() {
        let none = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
        let some = "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.";
        let rows = [
            ("3 node(s) didn't match Pod's node affinity/selector.", none, true),
            ("3 node(s) didn't match Pod's node affinity/selector.", "", true),
            ("1 node(s) had untolerated taint {team: a}, 2 node(s) didn't match Pod's node affinity/selector.", none, true),
            (
                "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient nvidia.com/gpu.",
                none,
                true,
            ),
            ("3 Insufficient nvidia.com/gpu.", none, true),
            ("3 Insufficient nvidia.com/gpu. no new claims to deallocate,", none, true),
            // Other pods may have it: no node is known to be too small, or one is not.
            ("3 Insufficient nvidia.com/gpu.", "", false),
            ("3 Insufficient nvidia.com/gpu.", some, false),
            ("1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.", some, false),
            (
                "1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 2 node(s) didn't match Pod's node affinity/selector.",
                none,
                false,
            ),
            ("1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 Insufficient cpu.", none, false),
            ("3 node(s) had untolerated taint {nvidia.com/gpu.driver-upgrade-state: }.", none, false),
            ("3 node(s) were unschedulable.", none, false),
            ("3 Too many pods.", "", false),
            ("3 node(s) didn't match pod anti-affinity rules.", none, false),
            ("3 something new.", none, false),
            ("pod has unbound immediate PersistentVolumeClaims.", none, false),
        ];
        for (reasons, preemption, expected) in rows {
            assert_eq!(
                never_fits(&format!("0/3 nodes are available: {reasons} {preemption}")),
                expected,
                "{reasons} {preemption}"
            );
        }
        for message in ["", "no nodes available to schedule pods", "0/0 nodes are available: ", "0/3 nodes are available: ."] {
            assert!(!never_fits(message), "{message}");
        }
    }
}
