//! A pod, phase by phase.

use super::{RUNNING, container, failed};
use crate::status::testing::Scene;
use crate::status::tests::says;

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
    cause: container main of pod x on n1 reports: no GPU found
    ");
    says!(Scene::own_pod("status: {phase: Failed}"), @"
    ended @0-@0: x@n1 Unknown
    cause: pod x on n1 failed without a reason
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
