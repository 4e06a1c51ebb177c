//! The time when a pod was told to end, by what was seen of it first.
//!
//! When a node removes a pod, it sets `deletionTimestamp` again, without a grace. So the first request that was seen counts.

use crate::{api::clock, job::SeenPod};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use muster_text::time::Timestamp;

/// Conditions that announce the end of a pod.
const ANNOUNCE: [&str; 2] = ["DisruptionTarget", "TerminationTarget"];

/// When a pod was first told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Then, by the server's clock.
    At(Timestamp),
    /// The pod was over when that was seen: only an event can say which of both came first.
    Perhaps,
    /// The pod had been seen to be over before.
    AfterItsEnd,
}

impl Told {
    /// Of a pod that is new, or was like this before and had not been told.
    pub(crate) fn of(pod: &Pod, before: Option<&Pod>) -> Option<Self> {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let mut announced =
            conditions.iter().filter(|one| one.status == "True" && ANNOUNCE.contains(&one.type_.as_str())).peekable();
        let deleted = pod.metadata.deletion_timestamp.as_ref().map(|time| clock::of(time.0));
        if deleted.is_none() && announced.peek().is_none() {
            return None;
        }
        if before.is_some_and(is_over) {
            return Some(Self::AfterItsEnd);
        }
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let requested =
            deleted.filter(|_| grace > 0 || !is_over(pod)).map(|due| Timestamp(due.0 - grace.saturating_mul(1_000_000)));
        let announced = announced.filter_map(|one| one.last_transition_time.as_ref().map(|time| clock::of(time.0)));
        Some(announced.chain(requested).min().map_or(Self::Perhaps, Self::At))
    }
}

/// Whether its events have to say how it ended: it may have been told to end just before, or its node may have killed it.
pub(crate) fn needs_events(seen: &SeenPod) -> bool {
    let Some(mut ends) = main_ends(&seen.pod).filter(|_| seen.is_over()) else { return false };
    let mut containers = seen.pod.spec.iter().flat_map(|spec| &spec.containers);
    let is_unclear = match seen.told {
        None | Some(Told::AfterItsEnd) => false,
        Some(Told::Perhaps) => true,
        Some(Told::At(at)) => ends.any(|end| end.is_none_or(|end| end <= at)),
    };
    is_unclear || containers.any(|container| may_be_killed(&seen.pod, &container.name))
}

/// The last end of its main containers, if all have ended.
pub(crate) fn last_end(pod: &Pod) -> Option<Timestamp> {
    main_ends(pod)?.flatten().max()
}

fn main_ends(pod: &Pod) -> Option<impl Iterator<Item = Option<Timestamp>>> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let end =
        |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().and_then(clock::known));
    statuses.iter().map(end).collect::<Option<Vec<_>>>().map(Vec::into_iter)
}

/// Whether a container has a probe or a hook. Where one fails the node kills the container, and its status does not show that.
pub(crate) fn may_be_killed(pod: &Pod, container: &str) -> bool {
    let hooked = |one: &Container| one.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.post_start.is_some());
    let probed = |one: &Container| one.liveness_probe.is_some() || one.startup_probe.is_some();
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers).filter(|one| one.name == container);
    containers.any(|one| hooked(one) || probed(one))
}

fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::{at, timed};

    /// What is seen of a pod, one word a version: its phase, and `+` and seconds of grace once its deletion is due at @40.
    #[test]
    fn the_first_word_to_a_pod_that_it_has_to_end_counts() {
        let rows = [
            ("Running Succeeded", None),
            ("Running Running+30 Succeeded+30 Succeeded+0", Some(Told::At(at(10)))),
            ("Running Running+0", Some(Told::At(at(40)))),
            ("Running Succeeded Succeeded+0", Some(Told::AfterItsEnd)),
            // Between two lists.
            ("Running Succeeded+0", Some(Told::Perhaps)),
            ("Succeeded+0", Some(Told::Perhaps)),
            ("Running Succeeded+30", Some(Told::At(at(10)))),
        ];
        for (versions, expected) in rows {
            let (mut told, mut before) = (None, None);
            for version in versions.split(' ') {
                let (phase, deleted) = version.split_once('+').map_or((version, String::new()), |(phase, grace)| {
                    (phase, format!("deletionTimestamp: '@40', deletionGracePeriodSeconds: {grace}"))
                });
                let pod: Pod =
                    serde_json::from_value(timed(&format!("{{metadata: {{{deleted}}}, status: {{phase: {phase}}}}}"))).unwrap();
                told = told.or_else(|| Told::of(&pod, before.as_ref()));
                before = Some(pod);
            }
            assert_eq!(told, expected, "{versions}");
        }
    }
}
