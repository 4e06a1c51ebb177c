//! Jobs that have failed, or were taken away.

use super::{container, ended, good, job, running};
use crate::job::Deadline;
use crate::status::testing::Scene;
use crate::status::tests::says;

#[test]
fn every_reason_of_failure_has_its_sentence() {
    let failed = |reason: &str, more: &str| job("Failed", reason, more).pod("x-a", &ended("Failed", 1));
    says!(failed("BackoffLimitExceeded", "spec: {backoffLimit: 0}"), @"
    ended @3-@9: x-a@n1 Code(1)
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows
    ");
    says!(failed("PodFailurePolicy", ""), @"
    ended @3-@9: x-a@n1 Code(1)
    cause: Job x failed: its podFailurePolicy ended it: detail so
    ");
    let indexes = |reason: &str, more: &str| {
        Scene::job(&format!(
            "{{status: {{conditions: [{{type: Failed, status: 'True', reason: {reason}}}], failedIndexes: '1,3', completedIndexes: 0-2}}{more}}}"
        ))
    };
    says!(indexes("FailedIndexes", ""), @"
    ended @0-@0: x@? Unknown
    cause: Job x failed: not every index succeeded (indexes 1,3 failed, 0-2 completed)
    ");
    says!(indexes("MaxFailedIndexesExceeded", ", spec: {maxFailedIndexes: 1}"), @"
    ended @0-@0: x@? Unknown
    cause: Job x failed: more indexes failed than its maxFailedIndexes of 1 allows (indexes 1,3 failed, 0-2 completed)
    ");
    says!(job("Failed", "SomethingNew", ""), @"
    ended @10-@10: x@? Unknown
    cause: Job x failed: SomethingNew: detail so
    ");
}

#[test]
fn a_deadline_is_a_limit_even_if_all_exits_look_fine() {
    let failed = || job("Failed", "DeadlineExceeded", "spec: {activeDeadlineSeconds: 20}");
    says!(failed().pod("x-a", &good()), @"
    ended @3-@9: x-a@n1 Code(0), x@? Unknown
    limit: Run
    cause: Job x failed: it ran longer than its activeDeadlineSeconds of 20 s
    ");
    says!(failed().pod("x-a", &running()).gone(), @"
    ended @3-@10: x@? Unknown
    limit: Run
    cause: Job x failed: it ran longer than its activeDeadlineSeconds of 20 s
    ");
    let ours = |mut scene: Scene| {
        scene.handle.deadline = Some(Deadline { seconds: 20, from: "max_pending_time + time_limit + 5m".into() });
        scene
    };
    says!(ours(failed().pod("x-a", &running()).gone()), @"
    ended @3-@10: x@? Unknown
    limit: Run
    cause: Job x was still running at its deadline in the cluster, 20.0s (max_pending_time + time_limit + 5m)
    ");
    says!(ours(failed()), @"
    ended @10-@10: x@? Unknown
    limit: Pending
    cause: Job x was still waiting at its deadline in the cluster, 20.0s (max_pending_time + time_limit + 5m)
    ");
    says!(ours(job("Failed", "BackoffLimitExceeded", "spec: {backoffLimit: 0}").pod("x-a", &good())), @"
    ended @3-@9: x-a@n1 Code(0), x@? Unknown
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows
    ");
}

#[test]
fn a_job_whose_pods_were_all_disrupted_is_disrupted() {
    let preempted = "status: {phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', lastTransitionTime: '@8', reason: PreemptionByScheduler}], containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 143, startedAt: '@3', finishedAt: '@9'}}}]}";
    let failed = || job("Failed", "BackoffLimitExceeded", "spec: {backoffLimit: 0}").pod("x-a", preempted);
    says!(failed(), @"
    ended @3-@9: x-a@n1 Code(143)
    disrupted: Preempted
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows; pod x-a on n1 was preempted by a pod of higher priority
    ");
    says!(failed().pod("x-b", &ended("Failed", 1)), @"
    ended @3-@9: x-a@n1 Code(143), x-b@n1 Code(1)
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows
    ");
}

#[test]
fn a_job_whose_pod_another_user_deletes_is_disrupted_and_what_the_job_deletes_itself_is_not() {
    let terminating = |phase: &str, state: &str, restarts: u32| {
        format!(
            "{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}}, spec: {{restartPolicy: OnFailure}}, status: {{phase: {phase}, {}}}}}",
            container(state, restarts)
        )
    };
    let killed = terminating("Failed", "{terminated: {exitCode: 143, startedAt: '@3', finishedAt: '@9'}}", 0);
    let failed = |reason: &str| job("Failed", reason, "spec: {backoffLimit: 0, activeDeadlineSeconds: 9}");
    says!(failed("BackoffLimitExceeded").pod("x-a", &killed), @"
    ended @3-@9: x-a@n1 Code(143)
    disrupted: Deleted
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows; pod x-a on n1 was deleted by another user or program
    ");
    says!(failed("BackoffLimitExceeded").pod("x-a", &killed).pod("x-b", &ended("Failed", 1)), @"
    ended @3-@9: x-a@n1 Code(143), x-b@n1 Code(1)
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows
    ");
    says!(failed("DeadlineExceeded").pod("x-a", &killed), @"
    ended @3-@9: x-a@n1 Code(143)
    limit: Run
    cause: Job x failed: it ran longer than its activeDeadlineSeconds of 9 s
    ");
    let looping =
        "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, startedAt: '@3', finishedAt: '@4'}}";
    says!(failed("BackoffLimitExceeded").pod("x-a", &terminating("Running", looping, 3)).gone(), @"
    ended @3-@4: x-a@n1 Code(1)
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows; container main of pod x-a on n1 crashed after 3 restarts
    ");
}

#[test]
fn a_refused_pod_disrupts_its_job() {
    let refused = "status: {phase: Failed, reason: UnexpectedAdmissionError, message: 'Allocate failed'}";
    says!(job("Failed", "BackoffLimitExceeded", "spec: {backoffLimit: 0}").pod("x-a", refused), @"
    ended @10-@10: x@? Unknown
    disrupted: Node
    cause: Job x failed: more pods failed than its backoffLimit of 0 allows; n1 refused pod x-a (UnexpectedAdmissionError): Allocate failed
    ");
}

// On the way.
