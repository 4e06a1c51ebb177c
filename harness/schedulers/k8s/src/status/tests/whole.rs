//! Properties that hold for every observation.

use crate::{
    job::{Assessment, JobState, sections},
    status::testing::{Scene, at},
};
use muster_core::job::scheduler::{Exit, JobStatus};
use proptest::prelude::*;
use std::collections::BTreeSet;

const STATES: [&str; 12] = [
    "{running: {startedAt: '@3'}}",
    "{terminated: {exitCode: 0, startedAt: '@3', finishedAt: '@9'}}",
    "{terminated: {exitCode: 1, startedAt: '@3', finishedAt: '@9'}}",
    "{terminated: {exitCode: 137, reason: OOMKilled, startedAt: '@3', finishedAt: '@9'}}",
    "{terminated: {exitCode: 137, reason: ContainerStatusUnknown}}",
    "{terminated: {exitCode: 128, reason: StartError, message: bad, startedAt: '1970-01-01T00:00:00Z', finishedAt: '@4'}}",
    "{waiting: {reason: ContainerCreating}}",
    "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, startedAt: '@3', finishedAt: '@5'}}",
    "{waiting: {reason: ImagePullBackOff, message: 'not found'}}",
    "{waiting: {reason: ErrImagePull, message: timeout}}",
    "{waiting: {reason: CreateContainerConfigError, message: gone}}",
    "{}",
];
const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];
const OWNERS: [&str; 6] = [
    "{}",
    "{spec: {suspend: true}}",
    "{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true}}",
    "{status: {conditions: [{type: Complete, status: 'True', lastTransitionTime: '@10'}], succeeded: 2}}",
    "{status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, lastTransitionTime: '@10'}]}}",
    "{status: {phase: Running}}",
];
const DELETED: [&str; 3] =
    ["{}", "{deletionTimestamp: '@40', deletionGracePeriodSeconds: 30}", "{finalizers: [a/b], deletionTimestamp: '@40'}"];

/// One pod: phase, containers' states, restarts, deletion, gone, ours.
type AnyPod = (usize, Vec<usize>, u32, usize, bool, bool);

fn any_pod() -> impl Strategy<Value = AnyPod> {
    let states = prop::collection::vec(0..STATES.len(), 0..3);
    (0..PHASES.len(), states, 0..4_u32, 0..DELETED.len(), any::<bool>(), prop::bool::weighted(0.1))
}

fn pod_text((phase, states, restarts, deleted, ..): &AnyPod) -> String {
    let container = |index: usize| format!("{{name: c{index}}}");
    let one = |(index, state): (usize, &usize)| {
        format!("{{name: c{index}, image: i, imageID: '', ready: false, restartCount: {restarts}, state: {}}}", STATES[*state])
    };
    let containers: Vec<_> = (0..states.len().max(1)).map(container).collect();
    let statuses: Vec<_> = states.iter().enumerate().map(one).collect();
    format!(
        "{{metadata: {}, spec: {{restartPolicy: {}, containers: [{}]}}, status: {{phase: {}, containerStatuses: [{}]}}}}",
        DELETED[*deleted],
        if *restarts > 0 { "OnFailure" } else { "Never" },
        containers.join(", "),
        PHASES[*phase],
        statuses.join(", ")
    )
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let kinds = prop::sample::select(vec!["Pod", "Job", "IPUJob"]);
    let pods = prop::collection::vec(any_pod(), 0..3);
    (kinds, 0..OWNERS.len(), any::<bool>(), pods).prop_map(|(kind, owner, gone, pods)| {
        let mut scene = Scene::of(kind).expecting(2);
        if kind != "Pod" {
            scene = scene.object(OWNERS[owner]);
        }
        if gone && kind != "Pod" {
            scene = scene.object_gone();
        }
        for (index, pod) in pods.iter().enumerate() {
            let name = if kind == "Pod" { "x".to_owned() } else { format!("x-{index}") };
            scene = scene.pod(&name, &pod_text(pod));
            let seen = scene.observed.pods.last_mut().unwrap();
            (seen.gone, seen.deleted_by_us) = (pod.4, pod.5);
            if kind == "Pod" {
                break;
            }
        }
        scene
    })
}

/// After everything that the scenes say has happened.
const NOW: i64 = 12;
const LATE: i64 = 700;

/// What was said from when on, and whether it was stuck.
type Answers = Vec<(i64, JobState, bool)>;

/// The answers from second to second until the end, and those of a caller who assesses again only when it is due.
fn by_time_alone(mut scene: Scene) -> (Answers, Answers) {
    let (mut every, mut when_due) = (Vec::new(), Vec::new());
    let mut view = |second: i64, into: &mut Answers| {
        scene.now = at(second);
        let Assessment { state, recheck_in, stuck } = scene.assess();
        let over = is_over(&state);
        if into.last().is_none_or(|(_, last, was)| (last, *was) != (&state, stuck)) {
            into.push((second, state, stuck));
        }
        (over, recheck_in)
    };
    for second in NOW..LATE {
        if view(second, &mut every).0 {
            break;
        }
    }
    let mut next = Some(NOW);
    while let Some(second) = next.filter(|second| *second < LATE) {
        next = view(second, &mut when_due).1.map(|after| second + i64::try_from(after.as_secs()).unwrap());
    }
    (every, when_due)
}

fn is_over(state: &JobState) -> bool {
    !matches!(state, JobState::Status(JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_assessment_at_each_recheck_misses_nothing(scene in any_scene()) {
        let (every, when_due) = by_time_alone(scene);
        prop_assert_eq!(every, when_due);
    }

    #[test]
    fn an_end_is_the_end(mut scene in any_scene(), first in NOW..LATE, second in NOW..LATE) {
        let mut over_at = |second| {
            scene.now = at(second);
            is_over(&scene.assess().state)
        };
        prop_assert!(!over_at(first.min(second)) || over_at(first.max(second)));
    }

    #[test]
    fn good_exits_alone_are_not_a_success(scene in any_scene()) {
        let scene = scene.at(600);
        let JobState::Status(JobStatus::Ended(ending)) = scene.assess().state else { return Ok(()) };
        let fine = ending.exits.iter().all(|exit| exit.exit == Exit::Code(0)) && ending.disruption.is_none();
        let text = format!("{:?}", scene.observed);
        let detail = text.contains("Complete") || text.contains("exit_code: 0");
        prop_assert!(!fine || detail || text.contains("Succeeded"), "{ending:?} {text}");
    }

    #[test]
    fn exits_are_named_like_sections(scene in any_scene()) {
        let scene = scene.at(600);
        let JobState::Status(JobStatus::Ended(ending)) = scene.assess().state else { return Ok(()) };
        let mut known: BTreeSet<String> = BTreeSet::from(["x".to_owned()]);
        for seen in &scene.observed.pods {
            for container in sections::containers(&seen.pod, &scene.handle) {
                known.insert(sections::origin(&seen.pod, &container.name, &scene.handle).title());
            }
        }
        for exit in &ending.exits {
            prop_assert!(known.contains(&exit.section), "{exit:?} {known:?}");
        }
        prop_assert!(ending.started <= ending.ended && ending.ended <= at(600));
    }
}

#[test]
fn each_way_to_get_stuck_has_a_reason_of_its_own() {
    let waiting = |reason: &str, message: &str| {
        Scene::own_pod(&format!(
            "status: {{phase: Pending, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {{waiting: {{reason: {reason}, message: '{message}'}}}}}}]}}"
        ))
        .at(130)
    };
    let crashed = Scene::own_pod(
        "{spec: {restartPolicy: OnFailure}, status: {phase: Running, containerStatuses: [{name: main, image: i, imageID: '', ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, startedAt: '@3', finishedAt: '@4'}}}]}}",
    );
    let unschedulable = Scene::own_pod(
        "{spec: {nodeName: null}, status: {phase: Pending, startTime: null, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/1 nodes are available'}]}}",
    );
    let quota = "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4";
    let scenes = [
        ("cannot be pulled", waiting("ImagePullBackOff", "not found")),
        ("no valid image name", waiting("InvalidImageName", "")),
        ("cannot be configured", waiting("CreateContainerConfigError", "configmap not found")),
        ("crashed", crashed),
        ("fits on no node", unschedulable),
        ("quota q", Scene::job("{}").at(60).event("Job x", "FailedCreate", quota)),
        ("until Kueue admits it", Scene::job("{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true}}")),
    ];
    let says: BTreeSet<_> = scenes.iter().map(|(_, scene)| scene.says()).collect();
    assert_eq!(says.len(), scenes.len());
    for (reason, scene) in &scenes {
        assert!(scene.says().contains(reason), "{reason}: {}", scene.says());
    }
}
