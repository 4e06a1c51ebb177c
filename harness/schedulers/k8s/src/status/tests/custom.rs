//! Custom resources: rules, conditions, phases, pods.

use super::says;
use crate::status::testing::Scene;

const FINE: &str = "status: {phase: Succeeded, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '@3', finishedAt: '@9'}}}]}";
const BAD: &str = "status: {phase: Failed, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 7, startedAt: '@3', finishedAt: '@9'}}}]}";
const RUNNING: &str = "status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: '@3'}}}]}";
const KILLED: &str = "{metadata: {deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}, status: {phase: Failed, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 143, startedAt: '@3', finishedAt: '@9'}}}]}}";

const RULES: &str = "
succeeded: size(pods) == int(self.spec.jobInstances) && pods.all(p, p.status.phase == 'Succeeded')
failed: pods.exists(p, p.status.phase == 'Failed')";

fn ipujob() -> Scene {
    Scene::of("IPUJob").object("spec: {jobInstances: 2}").rules(RULES)
}

// Rules.

#[test]
fn a_rule_decides_over_the_object_and_its_pods() {
    says!(ipujob().pod("x-0", FINE).pod("x-1", RUNNING), @r#"running since @3 on ["n1"]"#);
    says!(ipujob().pod("x-0", FINE).pod("x-1", FINE), @"ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)");
    says!(ipujob().pod("x-0", FINE).pod("x-1", BAD), @"
    ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(7)
    cause: IPUJob x failed, by its rule `failed`
    ");
}

#[test]
fn a_pod_that_was_replaced_does_not_count_for_the_rules() {
    says!(ipujob().pod("x-0", FINE).pod("x-1", RUNNING).gone().pod("x-2", FINE), @"ended @3-@9: x-0@n1 Code(0), x-2@n1 Code(0)");
    says!(ipujob().pod("x-0", FINE).pod("x-1", FINE).gone(), @"ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)");
}

const PENDING: &str = "status: {phase: Pending}";

#[test]
fn only_the_last_pod_of_a_name_is_judged() {
    let scene = |last: &str| ipujob().pod("x-0", FINE).pod("x-1", BAD).gone().pod("x-1", BAD).gone().pod("x-1", last);
    says!(scene(RUNNING), @r#"running since @3 on ["n1"]"#);
    says!(scene(FINE), @r"
    ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)
    superseded: x-1#3 Code(7), x-1#2 Code(7)
    note: 2 failed attempts before: pod x-1 on n1 exited with 7, pod x-1 on n1 exited with 7
    note: 2 pods were replaced under the same name, and only the last is judged: x-1
    ");
    says!(scene(PENDING), @r"
    ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(7)
    superseded: x-1#2 Code(7)
    cause: IPUJob x failed, by its rule `failed`
    note: 1 pod was replaced under the same name, and only the last is judged: x-1
    ");
}

#[test]
fn a_pod_that_was_replaced_is_not_one_more_pod() {
    let scene = Scene::of("IPUJob").object("{}").expecting(2).pod("x-0", FINE).gone().pod("x-0", FINE).at(60);
    assert!(scene.says().starts_with("running since @3"), "{}", scene.says());
    let scene = scene.pod("x-1", FINE);
    assert!(scene.says().starts_with("ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)\nsuperseded: x-0#2"), "{}", scene.says());
}

#[test]
fn a_kind_may_want_each_pod_of_a_name_judged() {
    let rules = "{lives: all, succeeded: 'size(pods) == 2', failed: 'false'}";
    says!(Scene::of("IPUJob").object("{}").rules(rules).pod("x-0", FINE).gone().pod("x-0", FINE), @"ended @3-@9: x-0#2@n1 Code(0), x-0@n1 Code(0)");
}

#[test]
fn conditions_are_the_types_that_are_true() {
    let scene = |kind: &str| {
        Scene::of("TrainJob")
            .object(&format!("status: {{conditions: [{{type: Created, status: 'True'}}, {{type: {kind}, status: 'True'}}, {{type: Running, status: 'False'}}]}}"))
            .rules("{succeeded: \"'Done' in conditions\", failed: \"'Running' in conditions || 'Broken' in conditions\"}")
            .pod("x-0", FINE)
    };
    says!(scene("Done"), @"ended @3-@9: x-0@n1 Code(0)");
    says!(scene("Broken"), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: TrainJob x failed, by its rule `failed`
    ");
    says!(scene("Odd"), @r#"
    running since @3 on ["n1"]
    again in 60s
    "#);
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_a_mistake_and_not_false() {
    let rules = |rule: &str| Scene::of("IPUJob").object("{}").rules(&format!("succeeded: \"{rule}\"")).pod("x-0", FINE);
    says!(rules("self.status.phase == 'Done'"), @"hopeless: rule `succeeded` of IPUJob x, `self.status.phase == 'Done'`, cannot be evaluated: there is no key `status` here (it has `apiVersion`, `kind`, `metadata`, `spec`; get(map, 'status', default) does without)");
    says!(rules("self.spec"), @"hopeless: rule `succeeded` of IPUJob x, `self.spec`, cannot be evaluated: the result is a map, not true or false (compare it with something)");
    says!(rules("range(9999).all(i, range(9999).all(j, true))"), @"hopeless: rule `succeeded` of IPUJob x, `range(9999).all(i, range(9999).all(j, true))`, cannot be evaluated: this takes more than 1000000 steps (do it in the script, or with fewer elements)");
    says!(rules("pods.all(p,"), @"hopeless: rule `succeeded` of IPUJob x, `pods.all(p,`, cannot be evaluated: the expression ends too early");
    says!(rules("has(self.status) && self.status.phase == 'Done'"), @r#"
    running since @3 on ["n1"]
    again in 60s
    "#);
}

#[test]
fn a_single_rule_leaves_the_rest_to_the_status() {
    let scene = |status: &str| {
        Scene::of("IPUJob").object(&format!("status: {{{status}}}")).rules("succeeded: \"false\"").pod("x-0", RUNNING)
    };
    says!(scene("phase: Failed, message: out of IPUs"), @"
    ended @3-@3: x@? Unknown
    cause: IPUJob x failed: Failed: out of IPUs
    ");
    says!(scene("phase: Succeeded"), @r#"running since @3 on ["n1"]"#);
    let failed = |status: &str| {
        Scene::of("IPUJob").object(&format!("status: {{{status}}}")).rules("failed: \"false\"").pod("x-0", RUNNING)
    };
    says!(failed("phase: Succeeded"), @"ended @3-@3:");
    says!(failed("phase: Failed"), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_rule_that_never_speaks_ends_a_minute_after_the_pods() {
    let scene = || Scene::of("IPUJob").object("{}").rules("succeeded: \"false\"").pod("x-0", FINE);
    says!(scene().at(60), @r#"
    running since @3 on ["n1"]
    again in 9s
    "#);
    says!(scene().at(70), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: all pods of IPUJob x ended 60 s ago, and neither of its rules `succeeded` and `failed` holds
    ");
}

#[test]
fn a_pod_may_have_a_rule_too() {
    let scene = |pod: &str| Scene::own_pod(pod).rules("{succeeded: \"self.status.phase == 'Running'\", failed: \"false\"}");
    says!(scene(RUNNING), @"ended @3-@3:");
    says!(scene(BAD), @r#"
    running since @3 on ["n1"]
    again in 60s
    "#);
}

#[test]
fn of_a_workload_that_was_restarted_the_last_life_is_judged() {
    let of = |attempt: u8, status: &str| {
        format!("metadata: {{creationTimestamp: '@{attempt}', labels: {{attempt: '{attempt}'}}}}\n{status}")
    };
    let rules = "{pods: {life: attempt}, succeeded: \"size(pods) == 2 && 'Completed' in conditions\", failed: 'false'}";
    let scene = |kind: &str| {
        let status = format!("status: {{conditions: [{{type: {kind}, status: 'True', lastTransitionTime: '@10'}}]}}");
        let scene = Scene::of("JobSet").object(&status).rules(rules).at(30);
        let scene = scene.pod("x-0-a", &of(0, FINE)).gone().pod("x-1-a", &of(0, BAD)).gone();
        scene.pod("x-0-b", &of(1, FINE)).pod("x-1-b", &of(1, FINE))
    };
    assert_eq!(scene("Completed").judged(), ["x-0-b", "x-1-b"]);
    says!(scene("Completed"), @"
    ended @3-@9: x-0-b@n1 Code(0), x-1-b@n1 Code(0)
    superseded: x-0-a Code(0), x-1-a Code(7)
    note: 1 failed attempt before: pod x-1-a on n1 exited with 7
    note: 1 pod does not count for the end, and what it wrote is not judged: x-0-a
    ");
    let failed = Scene { handle: Scene::of("JobSet").handle, ..scene("Failed") };
    assert_eq!(failed.judged().len(), 4, "without the label");
}

// Conditions and phases.

#[test]
fn the_usual_conditions_are_understood() {
    let scene = |kind: &str, reason: &str| {
        Scene::of("JobSet")
            .object(&format!("status: {{conditions: [{{type: {kind}, status: 'True', reason: {reason}, message: detail so, lastTransitionTime: '@10'}}]}}"))
            .pod("x-0", FINE)
            .at(30)
    };
    for kind in ["Complete", "Completed", "Succeeded", "JobSucceeded", "Finished"] {
        assert_eq!(scene(kind, "Done").says(), "ended @3-@9: x-0@n1 Code(0)", "{kind}");
    }
    says!(scene("Failed", "FailurePolicy"), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: JobSet x failed: FailurePolicy: detail so
    ");
    says!(scene("JobFailed", "Odd"), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: JobSet x failed: Odd: detail so
    ");
    says!(scene("Stalled", "Odd"), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: JobSet x failed: Odd: detail so
    ");
    says!(scene("Finished", "JobFailed"), @"
    ended @3-@9: x-0@n1 Code(0), x@? Unknown
    cause: JobSet x failed: JobFailed: detail so
    ");
    says!(scene("Suspended", "Odd"), @"ended @3-@9: x-0@n1 Code(0)");
}

#[test]
fn the_usual_phases_are_understood() {
    let scene = |status: &str| Scene::of("Workflow").object(&format!("status: {{{status}}}")).pod("x-0", RUNNING);
    for status in [
        "phase: Succeeded",
        "state: completed",
        "state: {phase: Completed}",
        "jobStatus: SUCCEEDED",
        "appState: {state: FINISHED}",
        "workflowState: Complete",
    ] {
        assert!(scene(status).says().starts_with("ended"), "{status}");
    }
    for status in [
        "phase: Error",
        "state: {phase: Aborted}",
        "jobDeploymentStatus: ValidationFailed",
        "applicationState: {state: SUBMISSION_FAILED}",
        "phase: Terminated",
    ] {
        assert!(scene(status).says().contains("Unknown"), "{status}");
    }
    says!(scene("phase: Failed, message: step 3 failed"), @"
    ended @3-@3: x@? Unknown
    cause: Workflow x failed: Failed: step 3 failed
    ");
    says!(scene("jobDeploymentStatus: Complete, jobStatus: FAILED"), @"
    ended @3-@3: x@? Unknown
    cause: Workflow x failed: FAILED
    ");
    says!(scene("phase: Running"), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_status_of_an_older_spec_means_nothing() {
    says!(Scene::of("JobSet").object("{metadata: {generation: 2}, status: {observedGeneration: 1, phase: Failed}}").pod("x-0", RUNNING), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn workers_that_are_taken_away_after_success_do_not_matter() {
    let scene =
        Scene::of("MPIJob").object("status: {conditions: [{type: Succeeded, status: 'True', lastTransitionTime: '@10'}]}").at(30);
    says!(scene.pod("x-launcher", FINE).pod("x-worker-0", KILLED).pod("x-worker-1", RUNNING).gone(), @"
    ended @3-@9: x-launcher@n1 Code(0)
    superseded: x-worker-0 Code(143)
    note: 1 pod does not count for the end, and what it wrote is not judged: x-worker-0
    ");
}

// Pods.

#[test]
fn pods_that_have_all_ended_and_settled_are_the_end_without_a_rule() {
    let scene = |second: &str| Scene::of("IPUJob").object("{}").expecting(2).pod("x-0", FINE).pod("x-1", second);
    says!(scene(FINE).at(20), @r#"
    running since @3 on ["n1"]
    again in 4s
    "#);
    says!(scene(FINE).at(24), @"ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(0)");
    says!(scene(BAD).at(24), @"ended @3-@9: x-0@n1 Code(0), x-1@n1 Code(7)");
    says!(scene(RUNNING).at(24), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn too_few_pods_are_not_the_end() {
    says!(Scene::of("IPUJob").object("{}").expecting(2).pod("x-0", FINE).at(60), @r#"
    running since @3 on ["n1"]
    stuck
    "#);
}

#[test]
fn no_pod_is_never_the_end() {
    says!(Scene::of("IPUJob").object("{}").at(600), @"
    pending: IPUJob x has no pod yet
    stuck
    ");
    says!(Scene::of("IPUJob").object("{}").pod("x-0", RUNNING).gone().at(600), @"running since @3 on []");
}

#[test]
fn an_owner_that_is_not_seen_leaves_its_pods_to_speak() {
    says!(Scene::of("IPUJob"), @"
    not seen
    again in 5s
    ");
    says!(Scene::of("IPUJob").pod("x-0", RUNNING), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_pod_that_crashes_for_ever_ends_a_workload_that_says_nothing() {
    let looping = "{spec: {restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, startedAt: '@3', finishedAt: '@9'}}}]}}";
    says!(Scene::of("IPUJob").object("{}").pod("x-0", looping), @"
    ended @3-@3: x@? Unknown
    cause: pod x-0 on n1 was started again 3 times and IPUJob x does not report its end
    ");
    says!(Scene::of("IPUJob").object("{}").rules(RULES).pod("x-0", looping), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_gang_that_does_not_fit_says_how_much_of_it_exists() {
    let message = "pods \"x-2\" is forbidden: exceeded quota: compute, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8";
    let scene = || Scene::of("MPIJob").object("{}").expecting(3).pod("x-0", RUNNING).pod("x-1", RUNNING).at(60);
    // Until it is time to ask for events, another assessment is due.
    says!(scene().at(8), @r#"
    running since @3 on ["n1"]
    again in 2s
    "#);
    says!(scene(), @r#"
    running since @3 on ["n1"]
    stuck
    "#);
    says!(scene().event("Job x-launcher", "FailedCreate", message), @"
    pending: 2 of 3 pods exist, 1 blocked: quota compute: requests.nvidia.com/gpu requested 4, used 8, limited 8
    stuck
    ");
    says!(scene().pod("x-2", RUNNING).event("Job x-launcher", "FailedCreate", message), @r#"running since @3 on ["n1"]"#);
}

#[test]
fn a_deleted_workload_is_gone() {
    says!(Scene::of("IPUJob").object("{}").pod("x-0", RUNNING).object_gone(), @"gone (Deleted): IPUJob x was deleted by another user or program before it ended");
    let finished = Scene::of("IPUJob").object("status: {phase: Succeeded}").pod("x-0", FINE).gone().object_gone();
    says!(finished, @"ended @3-@9: x-0@n1 Code(0)");
}

#[test]
fn pods_that_were_all_deleted_before_they_started_are_not_a_success() {
    let deleted = "{metadata: {deletionTimestamp: '@38', deletionGracePeriodSeconds: 30}, status: {phase: Failed}}";
    let scene = Scene::of("IPUJob").object("{status: {phase: Running}}").expecting(2).pod("x-0", deleted).pod("x-1", deleted);
    says!(scene.at(600), @"
    ended @38-@38: x@? Unknown
    disrupted: Deleted
    cause: pod x-0 on n1 was deleted by another user or program
    ");
}
