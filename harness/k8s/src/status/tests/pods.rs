//! Pods: what a `status` says.

use super::says;
use crate::status::testing::Scene;

/// A Pod whose only container has this state.
fn container(state: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Running, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {state}}}]}}"
    ))
}

/// A Pod in phase Failed whose only container ended so.
fn failed(end: &str, more: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Failed, {more} containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, \
         state: {{terminated: {{startedAt: '@3', finishedAt: '@9', {end}}}}}}}]}}"
    ))
}

/// A Pod whose only container waits so.
fn waiting(reason: &str, message: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Pending, containerStatuses: [{{name: main, image: 'reg/i:1', imageID: '', ready: false, restartCount: 0, \
         state: {{waiting: {{reason: {reason}, message: '{message}'}}}}}}]}}"
    ))
}

const RUNNING: &str = "{running: {startedAt: '@3'}}";

// Phases.

#[test]
fn a_pod_is_not_seen_until_it_is() {
    says!(Scene::of("Pod"), @"
    not seen
    again in 5s
    ");
    says!(Scene::of("Pod").at(11), @"
    not seen
    stuck
    ");
}

#[test]
fn a_running_pod_runs_since_its_container_started() {
    says!(container(RUNNING), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_pod_that_only_the_workload_watch_has_shown_counts() {
    let scene = Scene::of("Pod").object("{spec: {containers: [{name: main}]}, status: {phase: Pending}}");
    says!(scene, @"
    pending: pod x waits for the scheduler
    again in 5s
    ");
}

#[test]
fn a_succeeded_pod_ended_well() {
    let scene = container("{terminated: {exitCode: 0, startedAt: '@3', finishedAt: '@9', reason: Completed}}");
    says!(scene, @r#"
    running since @3 on ["n1"]
    again in 30s
    "#);
    let scene = Scene::own_pod(
        "status: {phase: Succeeded, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@3', finishedAt: '@9'}}}]}",
    );
    says!(scene, @"ended @3-@9: x@n1 Code(0)");
}

#[test]
fn a_failed_pod_shows_its_exit_and_its_last_words() {
    says!(failed("exitCode: 3", ""), @"ended @3-@9: x@n1 Code(3)");
    says!(failed("exitCode: 3, message: \"no GPU\\nfound\\n\"", ""), @"
    ended @3-@9: x@n1 Code(3)
    cause: container main of pod x on n1 says: no GPU found
    ");
    says!(Scene::own_pod("status: {phase: Failed}"), @"
    ended @0-@0: x@n1 Unknown
    cause: pod x on n1 failed and does not say why
    ");
    says!(Scene::own_pod("status: {phase: Failed, reason: Odd, message: for no reason}"), @"
    ended @0-@0: x@n1 Unknown
    cause: pod x on n1 failed: Odd: for no reason
    ");
}

#[test]
fn a_pod_of_an_unknown_phase_has_lost_its_node() {
    says!(Scene::own_pod("status: {phase: Unknown, reason: NodeLost, message: 'Node n1 which was running pod x is unresponsive'}"), @"gone (Node): the node of pod x on n1 does not answer: Node n1 which was running pod x is unresponsive");
}

// Before it runs.

#[test]
fn an_unschedulable_pod_says_what_the_scheduler_says() {
    let scene = Scene::own_pod(
        "{spec: {nodeName: null}, status: {phase: Pending, startTime: null, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found.'}]}}",
    );
    says!(scene.at(60), @"
    pending: pod x fits on no node: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu
    stuck
    ");
}

#[test]
fn a_missing_claim_is_final_after_a_grace() {
    let scene = || {
        Scene::own_pod(
            "{spec: {nodeName: null}, status: {phase: Pending, startTime: null, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/1 nodes are available: persistentvolumeclaim \"data\" not found.'}]}}",
        )
    };
    says!(scene().at(5), @r#"
    pending: pod x fits on no node: 0/1 nodes are available: persistentvolumeclaim "data" not found
    again in 5s
    "#);
    says!(scene().at(31), @r#"hopeless: pod x cannot be scheduled, for it mounts what is not there: 0/1 nodes are available: persistentvolumeclaim "data" not found"#);
}

#[test]
fn a_gated_pod_says_whose_gate_it_is() {
    let gated = |gate: &str| {
        Scene::own_pod(&format!(
            "{{spec: {{nodeName: null, schedulingGates: [{{name: {gate}}}]}}, status: {{phase: Pending, startTime: null, conditions: [{{type: PodScheduled, status: 'False', reason: SchedulingGated}}]}}}}"
        ))
    };
    says!(gated("example.org/licence"), @"
    pending: pod x is gated until whoever set it removes example.org/licence
    again in 5s
    ");
    says!(gated("kueue.x-k8s.io/admission"), @"
    pending: pod x waits until Kueue admits it
    again in 5s
    ");
}

#[test]
fn a_silent_scheduler_is_noticed() {
    let scene = || Scene::own_pod("{spec: {nodeName: null, schedulerName: volcano}, status: {phase: Pending, startTime: null}}");
    says!(scene(), @"
    pending: pod x waits for the scheduler
    again in 5s
    ");
    says!(scene().at(40), @"
    pending: no scheduler has looked at pod x for 30 s: does volcano run?
    stuck
    ");
}

#[test]
fn a_bad_image_name_is_final_at_once() {
    says!(waiting("InvalidImageName", "Failed to apply default image tag"), @"hopeless: container main of pod x on n1 has no valid image name: `reg/i:1`");
}

#[test]
fn an_image_that_may_not_be_pulled_and_is_not_there_is_final_at_once() {
    says!(waiting("ErrImageNeverPull", "Container image is not present with pull policy of Never"), @"hopeless: image reg/i:1 of container main of pod x on n1 is not on the node, and its imagePullPolicy is Never");
}

#[test]
fn a_missing_image_is_final_after_three_failures_or_two_minutes() {
    let said = "Back-off pulling image \"reg/i:1\": ErrImagePull: rpc error: code = NotFound desc = reg/i:1: not found";
    let scene = || waiting("ImagePullBackOff", said);
    says!(scene().at(60), @"
    pending: image reg/i:1 of container main of pod x on n1 cannot be pulled yet: ErrImagePull: rpc error: code = NotFound desc = reg/i:1: not found
    stuck
    again in 61s
    ");
    says!(scene().at(122), @"hopeless: image reg/i:1 of container main of pod x on n1 cannot be pulled: ErrImagePull: rpc error: code = NotFound desc = reg/i:1: not found");
    let pulls =
        (0..3).fold(scene(), |scene, _| scene.event("Pod x", "Failed", "Failed to pull image \"reg/i:1\": reg/i:1: not found"));
    says!(pulls.at(60), @"hopeless: image reg/i:1 of container main of pod x on n1 cannot be pulled: ErrImagePull: rpc error: code = NotFound desc = reg/i:1: not found");
}

#[test]
fn an_old_kubelet_says_only_in_events_why_it_cannot_pull() {
    let scene = waiting("ImagePullBackOff", "Back-off pulling image \"reg/i:1\"").at(130);
    says!(scene, @"
    pending: image reg/i:1 of container main of pod x on n1 cannot be pulled yet: ImagePullBackOff
    stuck
    again in 471s
    ");
    says!(scene.event("Pod x", "Failed", "Failed to pull image \"reg/i:1\": pull access denied"), @r#"hopeless: image reg/i:1 of container main of pod x on n1 cannot be pulled: Failed to pull image "reg/i:1": pull access denied"#);
}

#[test]
fn a_registry_that_does_not_answer_is_waited_for_longer() {
    let scene = || waiting("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout");
    says!(scene().at(130), @"
    pending: image reg/i:1 of container main of pod x on n1 cannot be pulled yet: dial tcp 10.0.0.1:443: i/o timeout
    stuck
    again in 471s
    ");
    says!(scene().at(602), @"broken: image reg/i:1 of container main of pod x on n1 could not be pulled for 600 s: dial tcp 10.0.0.1:443: i/o timeout");
}

#[test]
fn every_way_in_which_an_image_cannot_be_had_is_known() {
    for reason in ["ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"] {
        let says = waiting(reason, "no signature").at(130).says();
        assert!(says.contains("image reg/i:1 of container main of pod x on n1 cannot be pulled"), "{reason}: {says}");
    }
    says!(waiting("SignatureValidationFailed", "no signature").at(130), @"hopeless: image reg/i:1 of container main of pod x on n1 cannot be pulled: no signature");
}

#[test]
fn missing_configuration_is_final_after_a_grace() {
    let scene = || waiting("CreateContainerConfigError", "configmap \"input\" not found");
    says!(scene().at(20), @r#"
    pending: container main of pod x on n1 waits (CreateContainerConfigError: configmap "input" not found)
    stuck
    again in 11s
    "#);
    says!(scene().at(31), @r#"hopeless: container main of pod x on n1 cannot be configured: configmap "input" not found"#);
}

#[test]
fn a_container_that_cannot_be_created_is_final_after_a_grace() {
    let scene = || waiting("CreateContainerError", "context deadline exceeded");
    says!(scene().at(20), @"
    pending: container main of pod x on n1 waits (CreateContainerError: context deadline exceeded)
    stuck
    again in 11s
    ");
    says!(scene().at(31), @"broken: container main of pod x on n1 cannot be started: context deadline exceeded");
}

#[test]
fn a_container_that_cannot_be_started_is_the_manifests_fault_or_the_nodes() {
    says!(waiting("RunContainerError", "exec: \"nbody\": executable file not found in $PATH: unknown"), @r#"hopeless: container main of pod x on n1 cannot be started: exec: "nbody": executable file not found in $PATH: unknown"#);
    says!(waiting("PostStartHookError", "hook failed"), @"broken: container main of pod x on n1 cannot be started: hook failed");
    says!(waiting("RunContainerError", "failed to create containerd task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"nbody\": permission denied"), @r#"hopeless: container main of pod x on n1 cannot be started: exec: "nbody": permission denied"#);
    let start_error = |message: &str| failed(&format!("exitCode: 128, reason: StartError, message: '{message}'"), "");
    says!(start_error("exec: \"nbody\": executable file not found in $PATH: unknown"), @r#"hopeless: container main of pod x on n1 cannot be started: exec: "nbody": executable file not found in $PATH: unknown"#);
    says!(start_error("nvidia-container-cli: initialization error: nvml error: driver not loaded"), @"broken: container main of pod x on n1 cannot be started: nvidia-container-cli: initialization error: nvml error: driver not loaded");
}

#[test]
fn a_pod_that_is_being_created_says_what_holds_it_up() {
    let scene = || waiting("ContainerCreating", "");
    says!(scene(), @"
    pending: pod x on n1 is being created
    again in 5s
    ");
    says!(scene().event("Pod x", "Pulling", "Pulling image \"reg/i:1\""), @r#"
    pending: pod x on n1 pulls an image: Pulling image "reg/i:1"
    again in 5s
    "#);
    says!(scene().at(300).event("Pod x", "FailedMount", "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32"), @r#"
    pending: pod x on n1 is being created, but FailedMount: MountVolume.SetUp failed for volume "data" : mount failed: exit status 32
    stuck
    "#);
    says!(scene().at(300).event("Pod x", "FailedCreatePodSandBox", "Failed to create pod sandbox: no IP addresses available in range set"), @"
    pending: pod x on n1 is being created, but FailedCreatePodSandBox: Failed to create pod sandbox: no IP addresses available in range set
    stuck
    ");
    says!(scene().at(300).event("Pod x", "FailedAttachVolume", "Multi-Attach error for volume \"pvc-1\""), @r#"
    pending: pod x on n1 is being created, but FailedAttachVolume: Multi-Attach error for volume "pvc-1"
    stuck
    "#);
}

#[test]
fn a_volume_of_a_missing_configmap_is_final_after_a_grace() {
    let scene = || {
        waiting("ContainerCreating", "").event(
            "Pod x",
            "FailedMount",
            "MountVolume.SetUp failed for volume \"c\" : configmap \"input\" not found",
        )
    };
    says!(scene().at(20), @r#"
    pending: pod x on n1 is being created, but FailedMount: MountVolume.SetUp failed for volume "c" : configmap "input" not found
    stuck
    again in 11s
    "#);
    says!(scene().at(40), @r#"hopeless: pod x on n1 cannot start, for it mounts what is not there: MountVolume.SetUp failed for volume "c" : configmap "input" not found"#);
}

// Crashes and restarts.

#[test]
fn a_crash_loop_is_over_with_the_first_crash() {
    let scene = Scene::own_pod(
        "{spec: {restartPolicy: OnFailure}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 2, reason: Error, startedAt: '@3', finishedAt: '@4'}}}]}}",
    );
    says!(scene, @"
    ended @3-@4: x@n1 Code(2)
    cause: container main of pod x on n1 crashed and is started again (restartPolicy OnFailure); its end counts
    ");
}

#[test]
fn a_batch_pod_that_is_started_again_after_success_has_succeeded() {
    let scene = Scene::own_pod(
        "{spec: {restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 0, reason: Completed, startedAt: '@3', finishedAt: '@4'}}}]}}",
    );
    says!(scene, @"
    ended @3-@4: x@n1 Code(0)
    note: pod x on n1 is started again after it has succeeded: its restartPolicy is Always
    ");
}

#[test]
fn a_container_killed_for_its_memory_names_its_limit() {
    let oom = "exitCode: 137, reason: OOMKilled";
    let limited = |limits: &str| {
        Scene::own_pod(&format!(
            "{{spec: {{containers: [{{name: main{limits}}}]}}, status: {{phase: Failed, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{startedAt: '@3', finishedAt: '@9', {oom}}}}}}}]}}}}"
        ))
    };
    says!(limited(", resources: {limits: {memory: 4Gi}}"), @"
    ended @3-@9: x@n1 Signal(9)
    cause: container main of pod x on n1 was killed for its memory (OOMKilled): it used more than its limit of 4Gi
    ");
    says!(limited(""), @"
    ended @3-@9: x@n1 Signal(9)
    cause: container main of pod x on n1 was killed for its memory (OOMKilled): it has no limit, so the node had no more
    ");
}

#[test]
fn a_killed_child_is_no_signal_to_the_container() {
    says!(failed("exitCode: 1, reason: OOMKilled", ""), @"
    ended @3-@9: x@n1 Code(1)
    cause: a process of container main of pod x on n1 was killed for its memory (OOMKilled): it has no limit, so the node had no more
    ");
}

#[test]
fn a_status_above_128_is_a_signal_only_if_the_kubelet_says_so() {
    says!(failed("exitCode: 137, reason: Error", ""), @"
    ended @3-@9: x@n1 Code(137)
    cause: container main of pod x on n1 was killed (status 137), and not for its memory as far as the kubelet saw
    ");
    says!(failed("exitCode: 139, signal: 11, reason: Error", ""), @"ended @3-@9: x@n1 Signal(11)");
    let killed = || failed("exitCode: 137, reason: Error", "").event("Pod x", "Unhealthy", "Readiness probe failed: timeout");
    says!(killed().event("Pod x", "Killing", "Stopping container main"), @"
    ended @3-@9: x@n1 Code(137)
    cause: container main of pod x on n1 was killed (status 137): Stopping container main
    ");
    let probe = killed().event("Pod x", "Unhealthy", "Liveness probe failed: timeout");
    says!(probe.event("Pod x", "Killing", "Stopping container main"), @"
    ended @3-@9: x@n1 Code(137)
    cause: container main of pod x on n1 was killed (status 137): Liveness probe failed: timeout
    ");
}

#[test]
fn a_deadline_of_the_pod_is_named() {
    let scene = Scene::own_pod(
        "{spec: {activeDeadlineSeconds: 30}, status: {phase: Failed, reason: DeadlineExceeded, message: Pod was active on the node longer than the specified deadline, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {startedAt: '@3', finishedAt: '@33', exitCode: 137, reason: Error}}}]}}",
    );
    says!(scene, @"
    ended @3-@33: x@n1 Code(137)
    cause: pod x on n1 ran longer than its activeDeadlineSeconds of 30 s
    ");
}

// Taken away.

#[test]
fn node_pressure_evicts_and_an_own_limit_fails() {
    says!(failed("exitCode: 137, reason: Error", "reason: Evicted, message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi.',"), @"
    ended @3-@9: x@n1 Code(137)
    disrupted: Evicted
    cause: pod x on n1 was evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi
    ");
    says!(failed("exitCode: 137, reason: Error", "reason: Evicted, message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.',"), @"
    ended @3-@9: x@n1 Code(137)
    cause: pod x on n1 was evicted, for it used more storage than its own limit: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi
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
    cause: pod x on n1 was taken away (SomethingNew)
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
    cause: container main of pod x on n1 was lost with its node's state: nobody knows how it ended
    ");
}

#[test]
fn a_pod_that_somebody_deletes_is_deleted() {
    says!(container(RUNNING).gone(), @"gone (Deleted): pod x on n1 was deleted by somebody else");
    let terminating = "{metadata: {deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {running: {startedAt: '@3'}}}]}}";
    says!(Scene::own_pod(terminating).at(20), @r#"
    running since @3 on ["n1"]
    again in 60s
    "#);
    says!(Scene::own_pod(terminating).gone().at(20), @"gone (Deleted): pod x on n1 was deleted by somebody else");
}

#[test]
fn a_program_that_ends_with_0_because_it_is_told_to_stop_has_not_succeeded() {
    let stopped = |end: u32| {
        Scene::own_pod(&format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}}, status: {{phase: Succeeded, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{exitCode: 0, startedAt: '@3', finishedAt: '@{end}'}}}}}}]}}}}"
        ))
    };
    says!(stopped(9), @"gone (Deleted): pod x on n1 was deleted by somebody else");
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
fn a_lost_node_is_told_from_a_deletion() {
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

// Several containers.

#[test]
fn a_failed_init_container_is_the_end() {
    let scene = Scene::own_pod(
        "{spec: {initContainers: [{name: fetch}]}, status: {phase: Failed, initContainerStatuses: [{name: fetch, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 4, startedAt: '@3', finishedAt: '@9'}}}], containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]}}",
    );
    says!(scene, @"
    ended @9-@9: x/fetch@n1 Code(4)
    cause: init container fetch of pod x on n1 failed, so nothing else was started: it exited with 4
    ");
    let looping = Scene::own_pod(
        "{spec: {restartPolicy: OnFailure, initContainers: [{name: fetch}]}, status: {phase: Pending, initContainerStatuses: [{name: fetch, image: i, imageID: '', ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 4, startedAt: '@3', finishedAt: '@9', message: 'no route'}}}], containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]}}",
    );
    says!(looping, @"
    ended @9-@9: x/fetch@n1 Code(4)
    cause: init container fetch of pod x on n1 failed, so nothing else was started: container fetch of pod x on n1 says: no route
    ");
}

#[test]
fn a_running_init_container_is_waited_for() {
    let scene = Scene::own_pod(
        "{spec: {initContainers: [{name: fetch}]}, status: {phase: Pending, initContainerStatuses: [{name: fetch, image: i, imageID: '', ready: false, restartCount: 0, state: {running: {startedAt: '@3'}}}], containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]}}",
    );
    says!(scene, @"
    pending: init container fetch of pod x on n1 runs
    again in 5s
    ");
}

#[test]
fn a_native_sidecar_is_no_part_of_the_verdict() {
    let scene = Scene::own_pod(
        "{spec: {initContainers: [{name: proxy, restartPolicy: Always}]}, status: {phase: Succeeded, initContainerStatuses: [{name: proxy, image: i, imageID: '', ready: false, restartCount: 3, state: {terminated: {exitCode: 137, startedAt: '@3', finishedAt: '@12'}}}], containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@4', finishedAt: '@9'}}}]}}",
    );
    says!(scene, @"ended @4-@12: x@n1 Code(0)");
}

#[test]
fn a_classic_sidecar_holds_the_pod_for_a_grace_only() {
    let scene = |code: u32| {
        Scene::own_pod(&format!(
            "{{metadata: {{annotations: {{kubectl.kubernetes.io/default-container: main}}}}, spec: {{containers: [{{name: main}}, {{name: istio-proxy}}]}}, status: {{phase: Running, containerStatuses: [{{name: istio-proxy, image: i, imageID: '', ready: true, restartCount: 0, state: {{running: {{startedAt: '@3'}}}}}}, {{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{exitCode: {code}, startedAt: '@4', finishedAt: '@9'}}}}}}]}}}}"
        ))
    };
    says!(scene(0).at(20), @r#"
    running since @4 on ["n1"]
    again in 19s
    "#);
    says!(scene(0).at(40), @"
    ended @4-@9: x/main@n1 Code(0)
    note: container istio-proxy keeps pod x on n1 running after its work has ended
    ");
    says!(scene(1).at(40), @"
    ended @4-@9: x/main@n1 Code(1)
    note: container istio-proxy keeps pod x on n1 running after its work has ended
    ");
}

#[test]
fn a_failing_container_that_does_not_decide_is_a_note() {
    let scene = Scene::own_pod(
        "{metadata: {annotations: {kubectl.kubernetes.io/default-container: main}}, spec: {containers: [{name: main}, {name: side}]}, status: {phase: Failed, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@4', finishedAt: '@9'}}}, {name: side, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 1, startedAt: '@3', finishedAt: '@9'}}}]}}",
    );
    says!(scene, @"
    ended @4-@9: x/main@n1 Code(0)
    note: container side of pod x on n1 exited with 1, which does not count
    ");
}

#[test]
fn every_deciding_container_is_a_section() {
    let scene = Scene::own_pod(
        "{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Failed, containerStatuses: [{name: a, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@4', finishedAt: '@9'}}}, {name: b, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 5, startedAt: '@3', finishedAt: '@12'}}}]}}",
    );
    says!(scene, @"ended @3-@12: x/a@n1 Code(0), x/b@n1 Code(5)");
}
