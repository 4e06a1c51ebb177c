//! A pod before it runs: what it waits for, and what will never come.

use super::{failed, waiting};
use crate::status::testing::{Scene, at};
use crate::status::tests::says;

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
fn what_no_node_can_ever_take_is_hopeless_after_a_while_unless_nodes_may_come() {
    let scene = |after: Option<u64>| {
        let mut scene = Scene::own_pod(
            "{spec: {nodeName: null}, status: {phase: Pending, startTime: null, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: \"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.\"}]}}",
        );
        scene.handle.hopeless_after = after;
        scene.observed.hopeless = [("u".to_owned(), at(100))].into();
        scene
    };
    says!(scene(Some(900)).at(900), @"
    pending: pod x fits on no node: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector
    stuck
    again in 100s
    ");
    says!(scene(Some(900)).at(1001), @"hopeless: pod x fits on no node: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector; that has not changed in 15m and cannot by itself: change the manifest or the nodes, or set `sched_options.hopeless_after` to null where nodes are added on demand");
    says!(scene(None).at(100_000), @"
    pending: pod x fits on no node: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector
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
    pending: pod x has scheduling gates that are not removed yet: example.org/licence
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
    let detail = "Back-off pulling image \"reg/i:1\": ErrImagePull: rpc error: code = NotFound desc = reg/i:1: not found";
    let scene = || waiting("ImagePullBackOff", detail);
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
