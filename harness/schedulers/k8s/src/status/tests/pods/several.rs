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

/// A Pod of main, which runs, and helper, which waits so; `more` is laid beside.
fn helper_waits(waiting: &str, more: &str) -> String {
    format!(
        "{{spec: {{containers: [{{name: main}}, {{name: helper}}]}}, status: {{phase: Pending, {more} containerStatuses: [{{name: helper, image: 'reg/h:1', imageID: '', ready: false, restartCount: 0, state: {{waiting: {{{waiting}}}}}}}, {{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {{running: {{startedAt: '@3'}}}}}}]}}}}"
    )
}

#[test]
fn an_image_that_one_of_several_containers_lacks_is_named_and_final() {
    let missing = helper_waits("reason: ErrImagePull, message: 'reg/h:1: not found'", "");
    let pod = |second: i64| Scene::own_pod(&missing).at(second);
    says!(pod(60), @r#"
    running since @3 on ["n1"]
    image reg/h:1 of container helper of pod x on n1 cannot be pulled yet: reg/h:1: not found
    stuck
    again in 63s
    "#);
    says!(pod(123), @"hopeless: image reg/h:1 of container helper of pod x on n1 cannot be pulled: reg/h:1: not found");
    let mut soon = pod(24);
    soon.handle.hopeless_after = Some(20);
    says!(soon, @"hopeless: image reg/h:1 of container helper of pod x on n1 cannot be pulled: reg/h:1: not found");
    let good = "status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: '@3'}}}]}";
    for kind in ["Job", "JobSet"] {
        let scene = Scene::of(kind).object("{}").pod("x-a", good).pod("x-b", &missing).at(123).says();
        assert_eq!(scene, "hopeless: image reg/h:1 of container helper of pod x-b on n1 cannot be pulled: reg/h:1: not found");
    }
    says!(Scene::own_pod(&helper_waits("reason: InvalidImageName", "")), @"hopeless: container helper of pod x on n1 has no valid image name: `reg/h:1`");
}

/// The kubelets before 1.32 say in events alone why, and the watch asks for these of a job that is stuck.
#[test]
fn the_events_of_a_running_pod_say_why_an_image_is_missing() {
    let scene = || Scene::own_pod(&helper_waits("reason: ImagePullBackOff, message: 'Back-off pulling image \"reg/h:1\"'", ""));
    assert!(scene().at(30).assess().stuck);
    let failed = |scene: Scene| {
        let other = scene.event("Pod x", "Failed", "Failed to pull image \"reg/other:1\": i/o timeout");
        other.event("Pod x", "Failed", "Failed to pull image \"reg/h:1\": pull access denied")
    };
    assert!(failed(scene()).at(45).says().starts_with("running"));
    let all = failed(failed(failed(scene()))).at(45);
    says!(all, @r#"hopeless: image reg/h:1 of container helper of pod x on n1 cannot be pulled: Failed to pull image "reg/h:1": pull access denied"#);
}

#[test]
fn a_registry_is_waited_for_from_the_first_pull_that_can_have_failed() {
    let late = "conditions: [{type: Initialized, status: 'True', lastTransitionTime: '@900'}],";
    let waits = helper_waits("reason: ErrImagePull, message: 'i/o timeout'", late);
    let scene = |second: i64| Scene::own_pod(&waits).at(second).says();
    assert!(scene(1499).starts_with("running since @3"), "{}", scene(1499));
    assert!(scene(1500).starts_with("broken: image reg/h:1 of container helper of pod x on n1 could not be pulled for 600 s"));
}
