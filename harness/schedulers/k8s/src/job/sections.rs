//! The containers of a pod that have a section in the stdout, with its name and its order.
//!
//! Sections are named only here: exits (`status`) and logs (`logs`) match by section id. Every init and main container
//! is logged. A native sidecar (an init container with `restartPolicy: Always`) is not: it belongs to the platform, not to the
//! workload, and its end means nothing.

use crate::{
    api::{DEFAULT_CONTAINER_ANNOTATION, clock, selector},
    job::Handle,
    kind::{Role, WorkloadRules},
};
use k8s_openapi::api::core::v1::Pod;
use muster_core::job::stdout::SectionOrigin;
use std::collections::BTreeMap;

/// A container of a pod, in the order of its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerLog {
    /// Its name.
    pub name: String,
    /// A native sidecar: neither logged nor waited for.
    pub sidecar: bool,
    /// It decides how the pod ended. Init containers decide too, but only by failing.
    pub primary: bool,
}

impl ContainerLog {
    /// Whether its log is a section.
    pub(crate) fn logged(&self) -> bool {
        !self.sidecar
    }
}

/// Every container of a pod: init containers first, each group in the manifest's order.
///
/// Primary are those that the rules name, else the one that the pod's annotation for the default container names, else those
/// of the manifest (what the cluster has added is not waited for), else all main containers. A name that the pod does not
/// have counts as not given.
pub(crate) fn containers(pod: &Pod, handle: &Handle) -> Vec<ContainerLog> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let has = |name: &&String| spec.containers.iter().any(|container| container.name == **name);
    let default = pod.metadata.annotations.as_ref().and_then(|all| all.get(DEFAULT_CONTAINER_ANNOTATION));
    let default = default.map_or(&[][..], std::slice::from_ref);
    let choices = [&handle.rules.primary_containers[..], default, &handle.own_containers[..]];
    let mut named = choices.into_iter().map(|names| names.iter().filter(has).collect::<Vec<_>>());
    let deciding = named.find(|names| !names.is_empty()).unwrap_or_default();
    let init = spec.init_containers.iter().flatten().map(|container| ContainerLog {
        name: container.name.clone(),
        sidecar: container.restart_policy.as_deref() == Some("Always"),
        primary: false,
    });
    let main = spec.containers.iter().map(|container| ContainerLog {
        name: container.name.clone(),
        sidecar: false,
        primary: deciding.is_empty() || deciding.contains(&&container.name),
    });
    init.chain(main).collect()
}

/// Where a container's section comes from, and its order. Its `title` is the section's name: the pod's, and the
/// container's too where several of the pod are logged.
pub(crate) fn origin(pod: &Pod, container: &str, handle: &Handle) -> SectionOrigin {
    let empty = BTreeMap::new();
    let labels = pod.metadata.labels.as_ref().unwrap_or(&empty);
    let several = containers(pod, handle).iter().filter(|container| container.logged()).count() > 1;
    SectionOrigin {
        name: pod.metadata.name.clone().unwrap_or_default(),
        container: several.then(|| container.to_owned()),
        role: role(labels, &handle.rules),
        index: index(pod, labels),
        created: pod.metadata.creation_timestamp.as_ref().map(|time| clock::of(time.0)).unwrap_or_default(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        uid: pod.metadata.uid.clone(),
        ..SectionOrigin::default()
    }
}

/// The first role whose selector takes the pod; a pod that none takes comes last.
fn role(labels: &BTreeMap<String, String>, rules: &WorkloadRules) -> u32 {
    let takes = |selector: &Option<String>| selector.as_ref().is_none_or(|selector| selector::matches(selector, labels));
    let place = rules.roles.iter().position(|role| takes(&role.selector)).unwrap_or(rules.roles.len());
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The role of a pod, if it has one.
pub(crate) fn role_of<'r>(pod: &Pod, rules: &'r WorkloadRules) -> Option<&'r Role> {
    let empty = BTreeMap::new();
    rules.roles.get(usize::try_from(role(pod.metadata.labels.as_ref().unwrap_or(&empty), rules)).ok()?)
}

const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Which completion of its Job a pod is for.
pub(crate) fn completion_index(pod: &Pod) -> Option<&str> {
    let metadata = &pod.metadata;
    let maps = [&metadata.labels, &metadata.annotations];
    maps.into_iter().flatten().find_map(|map| map.get(COMPLETION_INDEX)).map(String::as_str)
}

/// What the controllers number their pods with. A group's index comes before the index within the group.
fn index(pod: &Pod, labels: &BTreeMap<String, String>) -> u32 {
    const GROUP: [&str; 2] = ["jobset.sigs.k8s.io/job-global-index", "leaderworkerset.sigs.k8s.io/group-index"];
    const MEMBER: [&str; 5] = [
        COMPLETION_INDEX,
        "leaderworkerset.sigs.k8s.io/worker-index",
        "apps.kubernetes.io/pod-index",
        "training.kubeflow.org/replica-index",
        "volcano.sh/task-index",
    ];
    const MEMBERS: u32 = 1 << 16;
    let annotations = pod.metadata.annotations.as_ref();
    let find = |keys: &[&str]| -> Option<u32> {
        keys.iter().find_map(|key| labels.get(*key).or_else(|| annotations?.get(*key))?.parse().ok())
    };
    let member = find(&MEMBER).unwrap_or(0);
    find(&GROUP).map_or(member, |group| group.saturating_mul(MEMBERS).saturating_add(member.min(MEMBERS - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::{handle, pod};

    fn names(pod: &Pod, handle: &Handle, keep: impl Fn(&ContainerLog) -> bool) -> Vec<String> {
        containers(pod, handle).into_iter().filter(keep).map(|container| container.name).collect()
    }

    const THREE: &str = "
metadata: {name: p, annotations: {}}
spec:
  initContainers: [{name: fetch}, {name: proxy, restartPolicy: Always}]
  containers: [{name: main}, {name: side}]";

    #[test]
    fn all_main_containers_decide_unless_one_is_named() {
        let with_default = THREE.replace("{}", "{kubectl.kubernetes.io/default-container: side}");
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let named = |names: &[&str]| {
            let rules = WorkloadRules { primary_containers: list(names), ..WorkloadRules::default() };
            Handle { rules, ..Handle::default() }
        };
        let own = |names: &[&str]| Handle { own_containers: list(names), ..Handle::default() };
        let primary = |yaml: &str, handle: &Handle| names(&pod(yaml), handle, |container| container.primary).join(" ");
        assert_eq!(primary(THREE, &named(&[])), "main side");
        assert_eq!(primary(&with_default, &named(&[])), "side");
        assert_eq!(primary(&with_default, &named(&["main"])), "main");
        assert_eq!(primary(&with_default, &named(&["other"])), "side");
        assert_eq!(primary(THREE, &own(&["main"])), "main", "the cluster has added the other");
        assert_eq!(primary(THREE, &own(&["main", "side"])), "main side");
        assert_eq!(primary(THREE, &own(&["other"])), "main side", "the pod is not made as the manifest says");
        assert_eq!(primary(&with_default, &own(&["main"])), "side");
    }

    #[test]
    fn a_native_sidecar_has_no_section() {
        let logged = names(&pod(THREE), &Handle::default(), ContainerLog::logged);
        assert_eq!(logged, ["fetch", "main", "side"]);
    }

    #[test]
    fn a_section_is_called_after_its_pod_and_after_its_container_only_among_several() {
        let handle = handle("Pod");
        let title = |pod: &Pod, container, later| SectionOrigin { later, ..origin(pod, container, &handle) }.title();
        assert_eq!(title(&pod(THREE), "main", 0), "p/main");
        assert_eq!(title(&pod("{metadata: {name: p}, spec: {containers: [{name: main}]}}"), "main", 0), "p");
        let beside_a_sidecar =
            "{metadata: {name: p}, spec: {initContainers: [{name: proxy, restartPolicy: Always}], containers: [{name: main}]}}";
        assert_eq!(title(&pod(beside_a_sidecar), "main", 0), "p");
        assert_eq!(title(&pod(THREE), "main", 2), "p#3/main");
    }

    #[test]
    fn pods_are_ordered_by_role_and_by_the_index_of_their_controller() {
        let mut handle = handle("MPIJob");
        handle.rules.roles = vec![
            Role { name: "launcher".into(), selector: Some("role=launcher".into()), ends: true },
            Role { name: "worker".into(), selector: Some("role=worker".into()), ends: true },
        ];
        let rows = [
            ("{role: worker, training.kubeflow.org/replica-index: '12'}", (1, 12)),
            ("{role: launcher}", (0, 0)),
            ("{batch.kubernetes.io/job-completion-index: '3'}", (2, 3)),
            ("{jobset.sigs.k8s.io/job-global-index: '2', batch.kubernetes.io/job-completion-index: '3'}", (2, 2 * 65536 + 3)),
            ("{leaderworkerset.sigs.k8s.io/group-index: '0', leaderworkerset.sigs.k8s.io/worker-index: '1'}", (2, 1)),
            ("{apps.kubernetes.io/pod-index: '4'}", (2, 4)),
            ("{volcano.sh/task-index: '5'}", (2, 5)),
            ("{volcano.sh/task-index: x}", (2, 0)),
        ];
        for (labels, place) in rows {
            let origin = origin(&pod(&format!("{{metadata: {{name: p, labels: {labels}}}}}")), "main", &handle);
            assert_eq!((origin.role, origin.index), place, "{labels}");
        }
        let annotated = "{metadata: {name: p, annotations: {batch.kubernetes.io/job-completion-index: '7'}}}";
        assert_eq!(origin(&pod(annotated), "main", &handle).index, 7, "servers before 1.28 only annotate");
    }
}
