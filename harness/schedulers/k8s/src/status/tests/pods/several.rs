//! Pods of several containers.

use crate::status::testing::Scene;
use crate::status::tests::says;

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
    cause: init container fetch of pod x on n1 failed, so nothing else was started: container fetch of pod x on n1 reports: no route
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
    in pod x on n1, container main has exited with 0, and istio-proxy still runs
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
