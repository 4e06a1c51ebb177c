//! Jobs that go on, wait, or cannot.

use super::{complete, container, ended, good, job, running};
use crate::status::testing::Scene;
use crate::status::tests::says;

#[test]
fn interim_conditions_are_not_the_end() {
    says!(job("SuccessCriteriaMet", "CompletionsReached", "").pod("x-a", &running()), @r#"running since @3 on ["n1"]"#);
    says!(job("FailureTarget", "BackoffLimitExceeded", "").pod("x-a", &running()), @r#"running since @3 on ["n1"]"#);
    says!(Scene::job("status: {conditions: [{type: Complete, status: 'False'}, {type: Failed, status: Unknown}]}").pod("x-a", &running()), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_job_between_two_attempts_runs() {
    let next = "{spec: {nodeName: null}, status: {phase: Pending, startTime: null}}";
    says!(Scene::job("{}").pod("x-a", &ended("Failed", 1)).pod("x-b", next), @r#"
    running since @3 on ["n1"]
    again in 25s
    "#);
}

#[test]
fn a_job_that_restarts_its_containers_decides_itself_when_it_is_over() {
    let looping = "{spec: {restartPolicy: OnFailure}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, startedAt: '@3', finishedAt: '@9'}}}]}}";
    says!(Scene::job("{}").pod("x-a", looping).at(60), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_job_whose_pods_can_never_start_is_hopeless() {
    let bad = "status: {phase: Pending, containerStatuses: [{name: main, image: 'Bad:::', imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: InvalidImageName}}}]}";
    says!(Scene::job("{}").pod("x-a", bad), @"hopeless: container main of pod x-a on n1 has no valid image name: `Bad:::`");
}

#[test]
fn a_pod_that_is_deleted_before_it_could_start_says_nothing_of_its_job() {
    let config = "status: {phase: Pending, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: CreateContainerConfigError, message: 'configmap c not found'}}}]}";
    let hopeless = Scene::job("{}").pod("x-a", &format!("{{{config}}}"));
    assert!(hopeless.at(35).says().starts_with("hopeless: "));
    let goes = format!("{{metadata: {{deletionTimestamp: '@40', deletionGracePeriodSeconds: 30}}, {config}}}");
    for second in [35, 100] {
        let detail = Scene::job("{}").pod("x-a", &goes).at(second).says();
        assert!(detail.starts_with("pending: "), "{detail}");
    }
}

#[test]
fn a_node_that_cannot_start_a_container_costs_a_job_an_attempt_only() {
    let broken = "status: {phase: Failed, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 128, reason: StartError, message: 'nvml error', startedAt: '1970-01-01T00:00:00Z', finishedAt: '@4'}}}]}";
    says!(Scene::job("{}").pod("x-a", broken), @"
    pending: Job x has not started another pod yet: container main of pod x-a on n1 cannot be started: nvml error
    again in 5s
    ");
    says!(complete().pod("x-a", broken).pod("x-b", &good()), @"
    ended @3-@9: x-b@n1 Code(0)
    superseded: x-a Code(128)
    note: 1 failed attempt before: pod x-a on n1 exited with 128
    ");
}

#[test]
fn a_container_that_its_job_starts_again_may_fail_to_start_three_times() {
    let looping = |restarts: u32| {
        let state = "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 128, reason: StartError, message: 'nvml error', startedAt: '1970-01-01T00:00:00Z', finishedAt: '@4'}}";
        Scene::job("{}").pod(
            "x-a",
            &format!("{{spec: {{restartPolicy: OnFailure}}, status: {{phase: Running, {}}}}}", container(state, restarts)),
        )
    };
    says!(looping(2), @"
    pending: container main of pod x-a on n1 crashed and is started again later
    again in 5s
    ");
    says!(looping(3), @"broken: container main of pod x-a on n1 cannot be started: nvml error");
}

#[test]
fn a_job_whose_pods_are_held_by_sidecars_ends() {
    let held = "{metadata: {annotations: {kubectl.kubernetes.io/default-container: main}}, spec: {containers: [{name: main}, {name: istio-proxy}]}, status: {phase: Running, containerStatuses: [{name: istio-proxy, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: '@3'}}}, {name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@4', finishedAt: '@9'}}}]}}";
    says!(Scene::job("{}").expecting(1).pod("x-a", held).at(20), @r#"
    running since @4 on ["n1"]
    in pod x-a on n1, container main has exited with 0, and istio-proxy still runs
    again in 19s
    "#);
    says!(Scene::job("{}").expecting(1).pod("x-a", held).at(40), @"
    ended @4-@9: x-a/main@n1 Code(0)
    note: container istio-proxy keeps pod x-a on n1 running after its work has ended
    ");
    says!(Scene::job("{}").expecting(3).pod("x-a", held).at(40), @"
    ended @4-@9: x-a/main@n1 Code(0), x@? Unknown
    cause: container istio-proxy keeps pod x-a running after its work has ended, so Job x never goes on: make it a native sidecar
    ");
}

#[test]
fn a_deleted_job_is_gone_unless_it_was_complete() {
    says!(Scene::job("{}").pod("x-a", &running()).gone().object_gone(), @"gone (Deleted): Job x was deleted by another user or program before it ended");
    says!(Scene::job("{}").pod("x-a", &running()).gone().by_us().object_gone(), @"
    ended @3-@3: x@? Unknown
    cause: Muster deleted Job x before it ended
    ");
    says!(complete().pod("x-a", &good()).gone().object_gone(), @"ended @3-@9: x-a@n1 Code(0)");
}

// No pods.

#[test]
fn a_job_without_pods_says_so() {
    says!(Scene::job("{}"), @"
    pending: Job x has no pod yet
    again in 5s
    ");
    says!(Scene::job("{}").at(20), @"
    pending: Job x has no pod yet
    stuck
    ");
}

#[test]
fn a_refusal_of_a_jobs_pods_is_read_from_its_events() {
    let refused = |message: &str| Scene::job("{}").at(60).event("Job x", "FailedCreate", message);
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: exceeded quota: compute, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8"), @"
    pending: quota compute: requests.nvidia.com/gpu requested 4, used 6, limited 8
    stuck
    ");
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: exceeded quota: compute, requested: requests.nvidia.com/gpu=16, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=8"), @"hopeless: requests.nvidia.com/gpu requested 16, but quota compute has 8 at all: ask for less, or have the quota raised");
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: failed quota: compute: must specify limits.cpu for: main"), @"hopeless: quota compute requires the manifest to set limits.cpu for: main");
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: violates PodSecurity \"restricted:latest\": privileged (container \"main\" must not set securityContext.privileged=true)"), @r#"hopeless: the namespace's Pod Security level refuses the pods: pods "x-abcde" is forbidden: violates PodSecurity "restricted:latest": privileged (container "main" must not set securityContext.privileged=true)"#);
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi"), @r#"hopeless: the namespace's LimitRange refuses the pods: pods "x-abcde" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi"#);
    let denied = || refused("Error creating: admission webhook \"policy.example.org\" denied the request: no latest tags");
    says!(denied(), @r#"
    pending: an admission webhook refuses the pods: admission webhook "policy.example.org" denied the request: no latest tags
    stuck
    again in 63s
    "#);
    says!(denied().at(124), @r#"hopeless: an admission webhook refuses the pods: admission webhook "policy.example.org" denied the request: no latest tags"#);
    says!(refused("Error creating: Internal error occurred: failed calling webhook \"policy.example.org\": failed to call webhook: context deadline exceeded"), @r#"
    pending: an admission webhook does not answer: Internal error occurred: failed calling webhook "policy.example.org": failed to call webhook: context deadline exceeded
    stuck
    "#);
    says!(refused("Error creating: pods \"x-\" is forbidden: error looking up service account ns/runner: serviceaccount \"runner\" not found"), @r#"hopeless: the pods name what does not exist: pods "x-" is forbidden: error looking up service account ns/runner: serviceaccount "runner" not found"#);
    says!(refused("Error creating: pods \"x-\" is forbidden: no PriorityClass with name urgent was found"), @r#"hopeless: the pods name what does not exist: pods "x-" is forbidden: no PriorityClass with name urgent was found"#);
    says!(refused("Error creating: Pod \"x-abcde\" is invalid: spec.containers[0].image: Required value"), @r#"hopeless: the API server refuses the pods as invalid: Pod "x-abcde" is invalid: spec.containers[0].image: Required value"#);
    says!(refused("Error creating: pods \"x-abcde\" is forbidden: unable to create new content in namespace ns because it is being terminated"), @r#"broken: the namespace is being deleted: pods "x-abcde" is forbidden: unable to create new content in namespace ns because it is being terminated"#);
    says!(refused("Error creating: etcdserver: leader changed"), @"
    pending: its pods cannot be created: etcdserver: leader changed
    stuck
    ");
}

#[test]
fn a_service_account_may_still_be_created() {
    let message = "Error creating: pods \"x-\" is forbidden: error looking up service account ns/runner: serviceaccount \"runner\" not found";
    says!(Scene::job("{}").at(20).event("Job x", "FailedCreate", message), @r#"
    pending: the pods name what does not exist: pods "x-" is forbidden: error looking up service account ns/runner: serviceaccount "runner" not found
    stuck
    again in 10s
    "#);
}

#[test]
fn an_old_refusal_does_not_count_once_there_are_pods() {
    let message = "Error creating: pods \"x-abcde\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=8, limited: pods=8";
    says!(Scene::job("{}").expecting(3).pod("x-a", &running()).event("Job x", "FailedCreate", message), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn what_may_not_be_seen_is_reported() {
    let mut scene = Scene::job("{}").at(20);
    scene.observed.trouble.denied = vec!["list events".into()];
    says!(scene, @"
    pending: Job x has no pod yet, and why cannot be seen without the right to list events
    stuck
    ");
}

// Suspended.

#[test]
fn a_suspended_job_that_no_queue_resumes_is_hopeless() {
    let mut scene = Scene::job("spec: {suspend: true}");
    scene.handle.objects[0].manifest = serde_json::json!({"spec": {"suspend": true}});
    says!(scene, @"hopeless: Job x has `suspend: true` and no label kueue.x-k8s.io/queue-name, so nothing will ever start it: remove the one or add the other");
}

#[test]
fn a_job_that_the_cluster_suspends_wants_a_queue() {
    says!(Scene::job("spec: {suspend: true}"), @"
    pending: Job x was suspended when it was created
    again in 5s
    ");
    says!(Scene::job("spec: {suspend: true}").at(31), @"hopeless: Job x was suspended when it was created and is in no queue: the cluster wants a label kueue.x-k8s.io/queue-name");
}

#[test]
fn a_job_that_another_user_suspends_is_evicted() {
    says!(Scene::job("spec: {suspend: true}").pod("x-a", &running()).gone(), @"
    ended @3-@3: x@? Unknown
    disrupted: Evicted
    cause: Job x was suspended by another user or program while it ran
    ");
}

#[test]
fn a_job_suspended_for_its_manager_waits() {
    says!(Scene::job("spec: {suspend: true, managedBy: kueue.x-k8s.io/multikueue}"), @"
    pending: Job x is suspended
    again in 5s
    ");
}
