//! Ends that look good, and of which only a reason or an event says that they are not.

use super::{Scene, failed};
use crate::status::tests::says;

/// A Pod whose main container ended with 0 from @3 to @9, with this in its spec, in its end and beside its status.
fn good(spec: &str, end: &str, more: &str) -> Scene {
    Scene::own_pod(&format!(
        "{{spec: {{containers: [{{name: main{spec}}}]}}, status: {{phase: Succeeded, {more} containerStatuses: [{{name: main, image: i, imageID: '', \
         ready: false, restartCount: 0, state: {{terminated: {{exitCode: 0, startedAt: '@3', finishedAt: '@9'{end}}}}}}}]}}}}"
    ))
}

const PROBED: &str = ", livenessProbe: {exec: {command: ['true']}}";
const LIVENESS: &str = "Container main failed liveness probe";

fn unread(mut scene: Scene) -> Scene {
    scene.observed.trouble.ended_pods.clear();
    scene
}

#[test]
fn a_0_with_another_reason_than_completed_is_no_success() {
    says!(good("", ", reason: Completed", ""), @"ended @3-@9: x@n1 Code(0)");
    says!(good(", resources: {limits: {memory: 4Gi}}", ", reason: OOMKilled", ""), @"
    ended @3-@9: x@n1 NoSuccess
    cause: a process of container main of pod x on n1 was killed for its memory (OOMKilled): it used more than its limit of 4Gi
    ");
    for reason in ["Error", "StartError", "DeadlineExceeded"] {
        let says = good("", &format!(", reason: {reason}"), "").says();
        assert!(says.starts_with("ended @3-@9: x@n1 NoSuccess\ncause: ") && says.ends_with(reason), "{says}");
    }
    assert!(good("", ", reason: ContainerStatusUnknown", "").says().starts_with("ended @3-@9: x@n1 Unknown\ncause: "));
    let init = "initContainerStatuses: [{name: fetch, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, reason: OOMKilled, startedAt: '@1', finishedAt: '@2'}}}],";
    let beside = |policy: &str| {
        good(&format!("}}], initContainers: [{{name: fetch{policy}"), "", init)
            .says()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(beside(""), "ended @3-@9: x/fetch@n1 NoSuccess, x/main@n1 Code(0)");
    assert_eq!(beside(", restartPolicy: Always"), "ended @3-@9: x@n1 Code(0)", "a native sidecar");
}

#[test]
fn a_failed_pod_whose_containers_all_ended_with_0_has_not_succeeded() {
    says!(failed("exitCode: 0, reason: Completed", ""), @"
    ended @3-@9: x@n1 Code(0), x@n1 Unknown
    cause: pod x on n1 failed without a reason
    ");
    let storage = "reason: Evicted, message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.',";
    assert!(
        failed("exitCode: 0, reason: Completed", storage).says().starts_with("ended @3-@9: x@n1 Code(0), x@n1 Unknown\ncause:")
    );
    for reason in ["Terminated", "UnexpectedAdmissionError"] {
        let says = failed("exitCode: 0, reason: Completed", &format!("reason: {reason},")).says();
        assert!(says.contains("disrupted: Node"), "{says}");
    }
    assert!(failed("exitCode: 0, reason: Completed", "reason: DeadlineExceeded,").says().contains("limit: Run"));
}

#[test]
fn a_kill_that_only_an_event_shows_is_no_success() {
    let killed = |scene: Scene, message: &str| scene.event("Pod x", "Killing", message);
    says!(killed(good(PROBED, "", ""), LIVENESS), @"
    ended @3-@9: x@n1 NoSuccess
    cause: container main of pod x on n1 was killed (status 0): Container main failed liveness probe
    ");
    let probe = good(PROBED, "", "").event("Pod x", "Unhealthy", "Liveness probe failed: timeout");
    says!(killed(probe, "Stopping container main"), @"
    ended @3-@9: x@n1 NoSuccess
    cause: container main of pod x on n1 was killed (status 0): Liveness probe failed: timeout
    ");
    assert!(killed(good(", lifecycle: {postStart: {}}", "", ""), "FailedPostStartHook").says().contains("NoSuccess"));
    says!(good(PROBED, "", "").event("Pod x", "Unhealthy", "Liveness probe failed: once"), @"ended @3-@9: x@n1 Code(0)");
    says!(killed(good(PROBED, ", startedAt: '@5'", ""), LIVENESS), @"ended @5-@9: x@n1 Code(0)");
    says!(unread(good(PROBED, "", "")).at(20), @"
    running since @1 on []
    stuck
    again in 19s
    ");
    says!(unread(good(PROBED, "", "")).at(40), @"
    ended @3-@9: x@n1 NoSuccess
    cause: whether a probe or a hook ended container main of pod x on n1 is not known: its events could not be read (right: list events)
    ");
    says!(unread(good("", "", "")), @"ended @3-@9: x@n1 Code(0)");
}

#[test]
fn only_a_kill_starts_a_container_again_that_ended_with_0() {
    let again = |policy: &str| {
        Scene::own_pod(&format!(
            "{{spec: {{restartPolicy: {policy}}}, status: {{phase: Running, containerStatuses: [{{name: main, image: i, imageID: '', ready: true, restartCount: 1, \
             state: {{running: {{startedAt: '@10'}}}}, lastState: {{terminated: {{exitCode: 0, reason: Completed, startedAt: '@3', finishedAt: '@9'}}}}}}]}}}}"
        ))
    };
    assert!(again("OnFailure").says().starts_with("ended @3-@9: x@n1 NoSuccess"), "{}", again("OnFailure").says());
    assert!(again("Always").says().starts_with("ended @3-@9: x@n1 Code(0)"));
}

#[test]
fn where_times_do_not_tell_an_event_says_whether_a_pod_was_told_to_end() {
    // (deletion, grace) and the end at @9
    for (due, grace, by_event) in [("@39", 30, true), ("@40", 30, true), ("@38", 30, false), ("@12", 0, true)] {
        let deleted = |text: Scene| {
            let mut scene = text;
            let seen = scene.observed.pods.last_mut().unwrap();
            let pod = std::sync::Arc::make_mut(&mut seen.pod);
            let times =
                crate::status::testing::timed(&format!("{{deletionTimestamp: '{due}', deletionGracePeriodSeconds: {grace}}}"));
            pod.metadata.deletion_timestamp = serde_json::from_value(times["deletionTimestamp"].clone()).unwrap();
            pod.metadata.deletion_grace_period_seconds = Some(grace);
            seen.told = crate::job::told::Told::of(&seen.pod, None);
            scene
        };
        let is_told = |scene: Scene| scene.says().starts_with("gone (Deleted)");
        let stopped = || deleted(good("", "", "")).event("Pod x", "Killing", "Stopping container main");
        assert!(is_told(stopped()), "{due} {grace}");
        assert_eq!(is_told(deleted(good("", "", ""))), !by_event, "{due} {grace}");
        assert!(is_told(unread(deleted(good("", "", ""))).at(40)), "{due} {grace}: what is not known is not good");
    }
}
