//! Jobs that have succeeded, and those that run elsewhere.

use super::{complete, container, ended, good, job, running};
use crate::status::testing::Scene;
use crate::status::tests::says;

#[test]
fn a_complete_job_shows_the_exits_of_its_pods() {
    says!(complete().pod("x-1", &good()).pod("x-0", &good()), @"ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)");
}

#[test]
fn a_job_that_succeeds_at_the_second_attempt_passes_with_a_note() {
    says!(complete().pod("x-a", &ended("Failed", 1)).pod("x-b", &good()), @"
    ended @3-@9: x-b@n1 Code(0)
    superseded: x-a Code(1)
    note: 1 failed attempt before: pod x-a on n1 exited with 1
    ");
    let two = complete().pod("x-a", &ended("Failed", 1)).pod("x-b", &ended("Failed", 2)).pod("x-c", &good());
    says!(two, @"
    ended @3-@9: x-c@n1 Code(0)
    superseded: x-a Code(1), x-b Code(2)
    note: 2 failed attempts before: pod x-a on n1 exited with 1, pod x-b on n1 exited with 2
    ");
    let state = "{terminated: {exitCode: 0, startedAt: '@3', finishedAt: '@9'}}";
    let restarted = format!("{{spec: {{restartPolicy: OnFailure}}, status: {{phase: Succeeded, {}}}}}", container(state, 2));
    says!(complete().pod("x-a", &restarted), @"
    ended @3-@9: x-a@n1 Code(0)
    note: 2 failed attempts before: pod x-a was restarted 2 times
    ");
}

#[test]
fn the_pods_of_a_complete_job_are_waited_for_a_moment() {
    let scene = || {
        Scene::job("status: {succeeded: 2, completionTime: '@10', conditions: [{type: Complete, status: 'True', lastTransitionTime: '@10'}]}").pod("x-a", &good())
    };
    says!(scene().at(11), @r#"
    running since @3 on ["n1"]
    again in 4s
    "#);
    says!(scene().pod("x-b", &good()).at(11), @"ended @3-@9: x-a@n1 Code(0), x-b@n1 Code(0)");
    says!(scene().at(16), @"
    ended @3-@9: x-a@n1 Code(0)
    unread: Job x
    note: 1 pod of Job x succeeded, and Muster did not see it
    ");
    says!(scene().object_gone().at(11), @"
    ended @3-@9: x-a@n1 Code(0)
    unread: Job x
    note: 1 pod of Job x succeeded, and Muster did not see it
    ");
}

#[test]
fn a_clock_far_ahead_of_ours_holds_nothing_up() {
    let scene = |seconds: u32| {
        Scene::job(&format!(
            "status: {{succeeded: 1, completionTime: '@{seconds}', conditions: [{{type: Complete, status: 'True'}}]}}"
        ))
        .pod("x-a", &running())
    };
    says!(scene(12).at(11), @r#"
    running since @3 on ["n1"]
    again in 5s
    "#);
    says!(scene(600).at(11), @"
    ended @3-@600: 
    unread: Job x
    note: 1 pod of Job x succeeded, and Muster did not see it
    ");
}

#[test]
fn pods_that_vanish_before_success_are_a_note() {
    says!(complete().pod("x-a", &running()).gone(), @"
    ended @3-@10: 
    note: 1 pod vanished before the end was seen: x-a
    ");
    says!(complete().pod("x-a", &running()).gone().pod("x-b", &good()), @"ended @3-@9: x-b@n1 Code(0)");
}

#[test]
fn pods_that_linger_after_a_success_policy_do_not_matter() {
    says!(job("Complete", "SuccessPolicy", "").pod("x-a", &good()).pod("x-b", &running()), @"ended @3-@9: x-a@n1 Code(0)");
}

#[test]
fn no_pod_seen_is_no_success() {
    says!(complete(), @"
    ended @10-@10: x@? Unknown
    cause: Job x reports success, but no pod of it was ever seen
    ");
}

#[test]
fn a_job_without_pods_to_run_succeeds_with_a_note() {
    says!(job("Complete", "CompletionsReached", "spec: {completions: 0}"), @"
    ended @10-@10: 
    note: Job x has no pods to run
    ");
}

#[test]
fn a_job_managed_elsewhere_succeeds_without_logs() {
    says!(job("Complete", "CompletionsReached", "spec: {managedBy: kueue.x-k8s.io/multikueue}"), @"
    ended @10-@10: 
    note: Job x is managed by kueue.x-k8s.io/multikueue, which runs its pods elsewhere: their logs are not available
    ");
}

#[test]
fn a_job_that_runs_elsewhere_runs() {
    let scene = |active: u32| {
        Scene::job(&format!("{{spec: {{managedBy: kueue.x-k8s.io/multikueue}}, status: {{active: {active}, startTime: '@7'}}}}"))
    };
    says!(scene(2).at(20), @"running since @7 on []");
    says!(scene(0).at(20), @"
    pending: Job x has no pod yet
    stuck
    ");
}

/// A pod that was told to end at @8, so that its program ended with 0 at @9.
fn stopped(status: &str) -> String {
    format!("{{metadata: {{deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}}, {status}}}")
}

#[test]
fn a_pod_that_a_success_counts_and_that_was_told_to_end_disrupts_the_job() {
    let scene = |succeeded: u32| {
        Scene::job(&format!(
            "status: {{succeeded: {succeeded}, completionTime: '@10', conditions: [{{type: Complete, status: 'True'}}]}}"
        ))
        .at(30)
    };
    says!(scene(1).pod("x-a", &stopped(&good())), @"
    ended @3-@9: x-a@n1 Code(0)
    disrupted: Deleted
    cause: pod x-a on n1 was deleted by another user or program
    ");
    says!(scene(1).pod("x-a", &stopped(&good())).gone(), @"
    ended @3-@9: x-a@n1 Code(0)
    disrupted: Deleted
    cause: pod x-a on n1 was deleted by another user or program
    ");
    says!(scene(1).pod("x-a", &stopped(&good())).pod("x-b", &good()), @"
    ended @3-@9: x-b@n1 Code(0)
    superseded: x-a Code(0)
    note: 1 pod does not count for the end, and what it wrote is not judged: x-a
    ");
    says!(scene(2).pod("x-a", &stopped(&good())).pod("x-b", &good()), @"
    ended @3-@9: x-a@n1 Code(0), x-b@n1 Code(0)
    disrupted: Deleted
    cause: pod x-a on n1 was deleted by another user or program
    ");
    says!(scene(1).pod("x-a", &stopped(&good())).by_us(), @"ended @3-@9: x-a@n1 Code(0)");
    let evicted = good().replace(
        "phase: Succeeded,",
        "phase: Succeeded, conditions: [{type: DisruptionTarget, status: 'True', lastTransitionTime: '@7', reason: EvictionByEvictionAPI}],",
    );
    assert!(scene(1).pod("x-a", &evicted).says().contains("disrupted: Evicted"));
}

#[test]
fn a_jobset_is_disrupted_by_what_was_told_before_its_end_and_not_by_its_own_cleanup() {
    let scene = |at: u32| {
        Scene::of("JobSet")
            .object(&format!("status: {{conditions: [{{type: Completed, status: 'True', lastTransitionTime: '@{at}'}}]}}"))
            .rules("{succeeded: \"'Completed' in conditions\", failed: \"'Failed' in conditions\"}")
            .pod("x-a", &good())
            .pod("x-b", &stopped(&good()))
            .at(30)
            .says()
    };
    assert!(scene(10).contains("disrupted: Deleted"), "{}", scene(10));
    assert!(scene(9).contains("disrupted: Deleted"), "{}", scene(9));
    // It was cleaned up, and what it wrote until then counts.
    assert_eq!(scene(8), "ended @3-@9: x-a@n1 Code(0)");
}

/// A `JobSet` of two pods that completed at @10, with this spec.
fn jobset(spec: &str) -> Scene {
    let status = "{conditions: [{type: Completed, status: 'True', lastTransitionTime: '@10'}]}";
    Scene::of("JobSet")
        .object(&format!("{{spec: {spec}, status: {status}}}"))
        .rules("{succeeded: \"'Completed' in conditions\"}")
        .expecting(2)
        .pod("x-a", &good())
        .at(60)
}

#[test]
fn a_pod_of_a_jobset_that_nobody_saw_to_run_leaves_its_log_unread() {
    const PENDING: &str = "status: {phase: Pending}";
    const TOLD: &str = "{metadata: {deletionTimestamp: '@41', deletionGracePeriodSeconds: 30}, status: {phase: Pending}}";
    let rows = [
        ("it was not seen", jobset("{}"), true),
        ("one is enough", jobset("{successPolicy: {operator: Any}}"), false),
        ("some pods of a Job are", jobset("{replicatedJobs: [{template: {spec: {successPolicy: {rules: []}}}}]}"), false),
        ("it vanished before it was seen to start", jobset("{}").pod("x-b", PENDING).gone(), true),
        ("it waited, and was cleaned up", jobset("{}").pod("x-b", TOLD).gone(), false),
        ("it was seen", jobset("{}").pod("x-b", &good()), false),
    ];
    for (name, scene, is_unread) in rows {
        assert_eq!(scene.says().contains("unread: JobSet x"), is_unread, "{name}: {}", scene.says());
    }
}

#[test]
fn a_worker_that_was_deleted_long_before_the_end_was_not_cleaned_up() {
    let scene = |completed: u32| {
        let status = format!("status: {{conditions: [{{type: Succeeded, status: 'True', lastTransitionTime: '@{completed}'}}]}}");
        let ends = "[{name: master, selector: role=master}, {name: worker, ends: false}]";
        let rules = format!("{{succeeded: \"'Succeeded' in conditions\", roles: {ends}}}");
        let master = good().replace("status:", "metadata: {labels: {role: master}}\nstatus:");
        Scene::of("PyTorchJob")
            .object(&status)
            .rules(&rules)
            .at(99)
            .pod("x-master", &master)
            .pod("x-worker", &stopped(&good()))
            .says()
    };
    assert_eq!(scene(38), "ended @3-@9: x-master@n1 Code(0)");
    assert!(scene(39).contains("disrupted: Deleted"), "{}", scene(39));
}

#[test]
fn an_oom_kill_of_a_finished_pod_is_named_and_that_of_an_earlier_start_is_not() {
    let oom = good().replace("exitCode: 0", "exitCode: 0, reason: OOMKilled");
    says!(complete().pod("x-a", &oom), @"
    ended @3-@9: x-a@n1 NoSuccess
    cause: a process of container main of pod x-a on n1 was killed for its memory (OOMKilled): it has no limit, so the node had no more
    ");
    let state = "{terminated: {exitCode: 0, startedAt: '@6', finishedAt: '@9'}}, lastState: {terminated: {exitCode: 0, reason: OOMKilled, startedAt: '@3', finishedAt: '@5'}}";
    let again = format!("{{spec: {{restartPolicy: OnFailure}}, status: {{phase: Succeeded, {}}}}}", container(state, 1));
    assert!(complete().pod("x-a", &again).says().contains("x-a@n1 Code(0)"));
}
