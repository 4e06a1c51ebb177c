//! Kueue: why it does not admit, and when it never will.

use super::says;
use crate::status::testing::Scene;

const RUNNING: &str = "status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: '@3'}}}]}";
const GATED: &str = "{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {nodeName: null, schedulingGates: [{name: kueue.x-k8s.io/admission}]}, status: {phase: Pending, startTime: null, conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}}";

/// A Job in queue q, suspended.
fn job() -> Scene {
    Scene::job("{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true}}").at(30)
}

/// Without quota, for this reason.
fn refused(scene: Scene, reason: &str, message: &str) -> Scene {
    scene.kueue(&format!("{{type: QuotaReserved, status: 'False', reason: {reason}, message: \"{message}\"}}"))
}

#[test]
fn a_suspended_job_names_its_queue() {
    says!(job(), @"
    pending: Job x is suspended until Kueue admits it from queue q
    stuck
    ");
}

#[test]
fn without_the_right_to_read_workloads_the_events_say_why() {
    let mut scene = job();
    scene.observed.trouble.denied = vec!["get workloads.kueue.x-k8s.io".into()];
    says!(scene, @"
    pending: Job x is suspended until Kueue admits it from queue q (why cannot be seen without the right to get workloads.kueue.x-k8s.io)
    stuck
    ");
    says!(scene.event("Job x", "Pending", "couldn't assign flavors: insufficient unused quota"), @"
    pending: Job x is suspended until Kueue admits it from queue q: couldn't assign flavors: insufficient unused quota
    stuck
    ");
}

#[test]
fn every_reason_to_wait_is_shown() {
    for reason in [
        "WaitingForQuota",
        "PendingEvaluation",
        "WaitingForPreemptedWorkloads",
        "WaitingForPodsReady",
        "TopologyPlacementFailed",
        "Pending",
    ] {
        let says = refused(job(), reason, "insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed").says();
        let expected = format!(
            "pending: waits in Kueue: {reason}: insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed\nstuck"
        );
        assert_eq!(says, expected);
    }
}

#[test]
fn what_kueue_will_never_admit_is_hopeless_after_a_grace() {
    let never = |seconds: i64| refused(job(), "ExceedsMaxQuota", "request > maximum capacity (16 > 8)").at(seconds);
    says!(never(5), @"
    pending: waits in Kueue: ExceedsMaxQuota: request > maximum capacity (16 > 8)
    again in 5s
    ");
    says!(never(10), @"hopeless: Kueue will not admit the workload: ExceedsMaxQuota: request > maximum capacity (16 > 8)");
    says!(refused(job(), "NoMatchingFlavor", "no flavor matches"), @"hopeless: Kueue will not admit the workload: NoMatchingFlavor: no flavor matches");
    says!(refused(job(), "Misconfigured", "LocalQueue q doesn't exist"), @"hopeless: Kueue will not admit the workload: Misconfigured: LocalQueue q doesn't exist");
    says!(refused(job(), "Inadmissible", "LocalQueue q doesn't exist"), @"hopeless: Kueue will not admit the workload: Inadmissible: LocalQueue q doesn't exist");
    let too_much = "insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests (0) + current podset request (8) > maximum capacity (4)";
    says!(refused(job(), "Pending", &format!("couldn't assign flavors to pod set main: {too_much}")), @"hopeless: Kueue will not admit the workload: Pending: couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests (0) + current podset request (8) > maximum capacity (4)");
    let other = "insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed";
    says!(refused(job(), "Pending", &format!("couldn't assign flavors to pod set main: {too_much}, {other}")), @"
    pending: waits in Kueue: Pending: couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests (0) + current podset request (8) > maximum capacity (4), insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed
    stuck
    ");
}

#[test]
fn a_stopped_queue_is_the_clusters_fault() {
    says!(refused(job(), "Suspended", "ClusterQueue is stopped"), @"broken: Kueue will not admit the workload: Suspended: ClusterQueue is stopped");
    says!(refused(job(), "Inadmissible", "ClusterQueue cq is inactive"), @"broken: Kueue will not admit the workload: Inadmissible: ClusterQueue cq is inactive");
}

#[test]
fn an_admitted_job_is_kueues_no_more() {
    let scene = Scene::job("{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: false}}").pod("x-a", RUNNING);
    says!(scene.kueue("{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'True'}"), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_job_with_quota_waits_for_its_checks() {
    says!(job().kueue("{type: QuotaReserved, status: 'True', reason: QuotaReserved}"), @"
    pending: Kueue has reserved quota and runs its checks
    stuck
    ");
}

#[test]
fn an_evicted_job_starts_over() {
    let evicted = "{type: Evicted, status: 'True', reason: Preempted, message: 'Preempted to accommodate a workload (UID: 1)'}";
    says!(job().pod("x-a", RUNNING).gone().kueue(evicted), @"
    pending: evicted by Kueue (Preempted: Preempted to accommodate a workload (UID: 1)), it starts over when it is admitted again
    stuck
    ");
    says!(job().pod("x-a", RUNNING).gone().kueue(&format!("{evicted}, {{type: QuotaReserved, status: 'False', reason: WaitingForQuota, message: full}}")), @"
    pending: evicted, waits in Kueue: WaitingForQuota: full
    stuck
    ");
}

#[test]
fn a_deactivated_workload_does_not_come_back() {
    let deactivated =
        |reason: &str| format!("{{type: Evicted, status: 'True', reason: {reason}, message: The workload is deactivated}}");
    says!(job().kueue(&deactivated("Deactivated")), @"broken: Kueue has deactivated the workload: Deactivated: The workload is deactivated");
    says!(job().pod("x-a", RUNNING).gone().kueue(&deactivated("DeactivatedDueToRequeuingLimitExceeded")), @"
    ended @3-@3: x@? Unknown
    disrupted: Evicted
    cause: Kueue has deactivated the workload: DeactivatedDueToRequeuingLimitExceeded: The workload is deactivated
    ");
    says!(job().pod("x-a", RUNNING).gone().kueue(&deactivated("DeactivatedDueToMaximumExecutionTimeExceeded")), @"
    ended @3-@3: x@? Unknown
    limit: Run
    cause: Kueue has deactivated the workload: DeactivatedDueToMaximumExecutionTimeExceeded: The workload is deactivated
    ");
}

#[test]
fn a_gated_pod_says_what_kueue_says() {
    let pod = || Scene::own_pod(GATED).object("metadata: {labels: {kueue.x-k8s.io/queue-name: q}}").at(30);
    says!(pod(), @"
    pending: pod x waits until Kueue admits it from queue q
    stuck
    ");
    says!(refused(pod(), "WaitingForQuota", "full"), @"
    pending: pod x waits in Kueue: WaitingForQuota: full
    stuck
    ");
    says!(refused(pod(), "ExceedsMaxQuota", "too much"), @"hopeless: Kueue will not admit the workload: ExceedsMaxQuota: too much");
    says!(refused(pod(), "Suspended", "ClusterQueue is stopped"), @"broken: Kueue will not admit the workload: Suspended: ClusterQueue is stopped");
}

#[test]
fn a_custom_resource_in_a_queue_waits_too() {
    let scene = Scene::of("JobSet").object("{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true}}").at(30);
    says!(scene, @"
    pending: JobSet x is suspended until Kueue admits it from queue q
    stuck
    ");
}
