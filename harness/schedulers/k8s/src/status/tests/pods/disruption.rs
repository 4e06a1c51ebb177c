//! Pods that are preempted, evicted or deleted.

use super::{RUNNING, container, failed};
use crate::status::testing::Scene;
use crate::status::tests::says;

#[test]
fn node_pressure_evicts_and_an_own_limit_fails() {
    says!(failed("exitCode: 137, reason: Error", "reason: Evicted, message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi.',"), @"
    ended @3-@9: x@n1 Code(137)
    disrupted: Evicted
    cause: pod x on n1 was evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi
    ");
    says!(failed("exitCode: 137, reason: Error", "reason: Evicted, message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.',"), @"
    ended @3-@9: x@n1 Code(137)
    cause: pod x on n1 was evicted because it used more storage than its own limit: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi
    ");
}

#[test]
fn every_disruption_has_its_sentence() {
    let disrupted = |reason: &str, message: &str| {
        failed(
            "exitCode: 143, reason: Error",
            &format!(
                "conditions: [{{type: DisruptionTarget, status: 'True', lastTransitionTime: '@8', reason: {reason}, message: '{message}'}}],"
            ),
        )
    };
    says!(disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Preempted
    cause: pod x on n1 was preempted by a pod of higher priority: default-scheduler: preempting to accommodate a higher priority pod
    ");
    says!(disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Evicted
    cause: pod x on n1 was evicted through the API, as a drain of its node does: Eviction API: evicting
    ");
    says!(disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Node
    cause: the node of pod x on n1 was lost or tainted: Taint manager: deleting due to NoExecute taint
    ");
    says!(disrupted("DeletionByPodGC", "PodGC: node no longer exists"), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Node
    cause: the node of pod x on n1 does not exist any more: PodGC: node no longer exists
    ");
    says!(disrupted("TerminationByKubelet", "The node was low on resource: memory."), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Evicted
    cause: pod x on n1 was ended by its node: The node was low on resource: memory
    ");
    says!(disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Node
    cause: the node of pod x on n1 was shut down: Pod was terminated in response to imminent node shutdown
    ");
    says!(disrupted("SomethingNew", ""), @"
    ended @3-@9: x@n1 Code(143)
    disrupted: Evicted
    cause: pod x on n1 was removed (SomethingNew)
    ");
}

#[test]
fn a_failure_before_the_disruption_is_the_pods_own() {
    says!(failed("exitCode: 1, reason: Error", "conditions: [{type: DisruptionTarget, status: 'True', lastTransitionTime: '@20', reason: EvictionByEvictionAPI}],"), @"ended @3-@9: x@n1 Code(1)");
}

#[test]
fn a_refusal_of_the_kubelet_is_a_finding_about_the_node() {
    let refused = |reason: &str, message: &str| {
        Scene::own_pod(&format!("status: {{phase: Failed, reason: {reason}, message: '{message}'}}"))
    };
    says!(refused("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"), @"
    ended @0-@0: x@n1 Unknown
    disrupted: Node
    cause: n1 refused pod x (UnexpectedAdmissionError): Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected
    ");
    says!(refused("OutOfcpu", "Node didn''t have enough resource: cpu"), @"
    ended @0-@0: x@n1 Unknown
    disrupted: Node
    cause: n1 refused pod x (OutOfcpu): Node didn't have enough resource: cpu
    ");
    says!(refused("NodeAffinity", "Predicate NodeAffinity failed"), @"
    ended @0-@0: x@n1 Unknown
    disrupted: Node
    cause: n1 refused pod x (NodeAffinity): Predicate NodeAffinity failed
    ");
    says!(refused("NodeShutdown", "Pod was rejected as the node is shutting down."), @"
    ended @0-@0: x@n1 Unknown
    disrupted: Node
    cause: the node of pod x on n1 was shut down: Pod was rejected as the node is shutting down
    ");
    says!(refused("NodeLost", ""), @"
    ended @0-@0: x@n1 Unknown
    disrupted: Node
    cause: the node of pod x on n1 was lost
    ");
}

#[test]
fn a_lost_container_is_a_lost_node() {
    says!(failed("exitCode: 137, reason: ContainerStatusUnknown, message: The container could not be located when the pod was terminated", ""), @"
    ended @3-@9: x@n1 Unknown
    disrupted: Node
    cause: container main of pod x on n1 was lost with its node's state: its exit status is unknown
    ");
}

#[test]
fn a_pod_that_another_user_deletes_is_deleted() {
    says!(container(RUNNING).gone(), @"gone (Deleted): pod x on n1 was deleted by another user or program");
    let terminating = "{metadata: {deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {running: {startedAt: '@3'}}}]}}";
    says!(Scene::own_pod(terminating).at(20), @r#"
    running since @3 on ["n1"]
    again in 60s
    "#);
    says!(Scene::own_pod(terminating).gone().at(20), @"gone (Deleted): pod x on n1 was deleted by another user or program");
}

#[test]
fn a_program_that_exits_with_0_because_it_is_terminated_has_not_succeeded() {
    let stopped = |end: u32| {
        Scene::own_pod(&format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}}, status: {{phase: Succeeded, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{exitCode: 0, startedAt: '@3', finishedAt: '@{end}'}}}}}}]}}}}"
        ))
    };
    says!(stopped(9), @"gone (Deleted): pod x on n1 was deleted by another user or program");
    says!(stopped(7), @"ended @3-@7: x@n1 Code(0)");
    says!(stopped(7).gone(), @"ended @3-@7: x@n1 Code(0)");
}

#[test]
fn a_pod_that_we_delete_is_not_disrupted() {
    says!(container(RUNNING).gone().by_us(), @"
    ended @3-@3: x@n1 Unknown
    cause: Muster deleted pod x before it ended
    ");
}

#[test]
fn a_lost_node_is_distinguished_from_a_deletion() {
    let lost = |finalizers: &str| {
        Scene::own_pod(&format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30{finalizers}}}, status: {{phase: Running, conditions: [{{type: DisruptionTarget, status: 'True', lastTransitionTime: '@8', reason: DeletionByTaintManager, message: 'Taint manager: deleting due to NoExecute taint'}}], containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{running: {{startedAt: '@3'}}}}}}]}}}}"
        ))
    };
    says!(lost("").at(57), @r#"
    running since @3 on ["n1"]
    again in 1s
    "#);
    says!(lost("").at(59), @"gone (Node): the node of pod x on n1 was lost or tainted: Taint manager: deleting due to NoExecute taint; it should be gone since 20 s, but its node has not confirmed its end");
    says!(lost(", finalizers: [kueue.x-k8s.io/managed, batch.kubernetes.io/job-tracking]").at(59), @"gone (Node): the node of pod x on n1 was lost or tainted: Taint manager: deleting due to NoExecute taint; it should be gone since 20 s, but it is held by the finalizers kueue.x-k8s.io/managed, batch.kubernetes.io/job-tracking");
}

#[test]
fn a_pod_that_is_deleted_on_a_silent_node_is_given_up_soon() {
    let silent = |more: &str, gates: &str, containers_ready: &str| {
        Scene::own_pod(&format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30, finalizers: [batch.kubernetes.io/job-tracking]}}, spec: {{readinessGates: [{gates}]}}, status: {{phase: Running, conditions: [{more}{{type: Ready, status: 'False', lastTransitionTime: '@7'}}, {{type: ContainersReady, status: '{containers_ready}', lastTransitionTime: '@3'}}], containerStatuses: [{{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {{running: {{startedAt: '@3'}}}}}}]}}}}"
        ))
    };
    let tainted = "{type: DisruptionTarget, status: 'True', lastTransitionTime: '@8', reason: DeletionByTaintManager, message: 'Taint manager: deleting due to NoExecute taint'}, ";
    says!(silent(tainted, "", "True").at(57), @r#"
    running since @3 on ["n1"]
    again in 1s
    "#);
    says!(silent(tainted, "", "True").at(59), @"gone (Node): the node of pod x on n1 was lost or tainted: Taint manager: deleting due to NoExecute taint; it should be gone since 20 s, but its node does not answer");
    says!(silent("", "", "True").at(59), @"gone (Node): the node of pod x on n1 does not answer, and the pod was deleted; it should be gone since 20 s, but its node does not answer");
    says!(silent("", "", "True").by_us().at(59), @"
    ended @3-@3: x@n1 Unknown
    cause: Muster deleted pod x before it ended
    ");
    let waits_on = |scene: Scene| {
        let says = scene.at(59).says();
        assert!(says.starts_with("running since @3") && says.ends_with("again in 39s"), "{says}");
    };
    waits_on(silent("", "", "False"));
    waits_on(silent("", "{conditionType: example.org/warm}", "True"));
}

#[test]
fn kueue_stopping_a_pod_is_a_preemption_or_an_eviction() {
    let stopped = |message: &str| {
        Scene::own_pod(&format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}}, status: {{phase: Running, conditions: [{{type: TerminationTarget, status: 'True', reason: StoppedByKueue, message: {message}}}], containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{running: {{startedAt: '@3'}}}}}}]}}}}"
        ))
    };
    says!(stopped("Preempted to accommodate a higher priority Workload").gone(), @"gone (Preempted): Kueue stopped pod x on n1: Preempted to accommodate a higher priority Workload");
    says!(stopped("Exceeded the PodsReady timeout default/group").gone(), @"gone (Evicted): Kueue stopped pod x on n1: Exceeded the PodsReady timeout default/group");
}
