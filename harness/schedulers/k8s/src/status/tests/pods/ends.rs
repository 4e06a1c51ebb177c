//! Crashes, restarts, signals and deadlines.

use super::failed;
use crate::job::Deadline;
use crate::status::testing::Scene;
use crate::status::tests::says;

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
    limit: Run
    cause: pod x on n1 ran longer than its activeDeadlineSeconds of 30 s
    ");
}

#[test]
fn a_deadline_is_a_limit_and_that_of_the_plan_names_its_settings() {
    let ended = |ours: u64, containers: &str| {
        let mut scene = Scene::own_pod(&format!(
            "{{spec: {{activeDeadlineSeconds: 30}}, status: {{phase: Failed, reason: DeadlineExceeded, containerStatuses: [{containers}]}}}}"
        ));
        scene.handle.deadline = Some(Deadline { seconds: ours, from: "sched_options.max_lifetime".into() });
        scene
    };
    let killed = "{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {startedAt: '@3', finishedAt: '@33', exitCode: 137, reason: Error}}}";
    says!(ended(30, killed), @"
    ended @3-@33: x@n1 Code(137)
    limit: Run
    cause: Pod x was still running at its deadline in the cluster, 30.0s (sched_options.max_lifetime)
    ");
    says!(ended(30, ""), @"
    ended @0-@0: x@n1 Unknown
    limit: Pending
    cause: Pod x was still waiting at its deadline in the cluster, 30.0s (sched_options.max_lifetime)
    ");
    says!(ended(60, killed), @"
    ended @3-@33: x@n1 Code(137)
    limit: Run
    cause: pod x on n1 ran longer than its activeDeadlineSeconds of 30 s
    ");
}
