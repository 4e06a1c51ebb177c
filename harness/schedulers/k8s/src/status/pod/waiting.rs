//! A pod whose deciding containers have not started: what it waits for, and whether that can ever come.

use crate::api::clock;
use crate::status::{
    cause, grace, kueue,
    pod::{
        PodState, PodView, Restarts,
        ends::{NOT_STARTED, is_running, terminated},
    },
    trouble,
};
use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod, PodStatus};
use muster_text::time::{Timestamp, format_duration};
use std::time::Duration;

/// Waiting reasons of a container whose image cannot be pulled.
const PULL: [&str; 5] =
    ["ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"];
/// Messages of registries and runtimes about an image that will not appear by itself.
const NO_SUCH_IMAGE: [&str; 10] = [
    "not found",
    "manifest unknown",
    "does not exist",
    "unauthorized",
    "denied",
    "authorization failed",
    "403 Forbidden",
    "no match for platform",
    "no such host",
    "SignatureValidationFailed",
];

/// A container that can never start, if there is one; else `recheck_in` may be set.
pub(in crate::status) fn never_starts(this: &PodView<'_>, recheck_in: &mut Option<Duration>) -> Option<PodState> {
    let inits = this.status.init_container_statuses.iter().flatten();
    let all = inits.chain(this.statuses());
    all.filter_map(|status| Some((status, status.state.as_ref()?.waiting.as_ref()?)))
        .find_map(|(status, waiting)| stopped(this, status, waiting, recheck_in))
        .or_else(|| never_started(this))
        // Another object of the job, or another user, may be creating it.
        .or_else(|| after(this, grace::CONFIG_GRACE, PodState::Hopeless(missing_volume(this)?), recheck_in))
        .or_else(|| after(this, grace::CONFIG_GRACE, PodState::Hopeless(missing_claim(this)?), recheck_in))
        .or_else(|| no_node_ever(this, recheck_in))
}

fn stopped(
    this: &PodView<'_>,
    status: &ContainerStatus,
    waiting: &ContainerStateWaiting,
    recheck_in: &mut Option<Duration>,
) -> Option<PodState> {
    let detail = cause::detail(waiting.message.as_deref());
    let (container, image) = (format!("container {} of {}", status.name, this.place()), &status.image);
    let hopeless = |what: String| Some(PodState::Hopeless(what));
    let mut after =
        |since: Timestamp, limit: Duration, state: PodState| (!this.view.is_within(since, limit, recheck_in)).then_some(state);
    match waiting.reason.as_deref().unwrap_or_default() {
        "InvalidImageName" => hopeless(format!("{container} has no valid image name: `{image}`")),
        "ErrImageNeverPull" => {
            hopeless(format!("image {image} of {container} is not on the node, and its imagePullPolicy is Never"))
        }
        reason if PULL.contains(&reason) => {
            let detail = pull_detail(this, image, waiting);
            let sentence = |what: &str| format!("image {image} of {container} {what}: {detail}");
            if !NO_SUCH_IMAGE.iter().any(|words| detail.contains(words)) && reason != "SignatureValidationFailed" {
                let what = format!("could not be pulled for {}", cause::seconds(grace::REGISTRY_LIMIT));
                return after(pulled_since(this, status), grace::REGISTRY_LIMIT, PodState::Broken(sentence(&what)));
            }
            let hopeless = PodState::Hopeless(sentence("cannot be pulled"));
            if pull_failures(this, image) < grace::IMAGE_PULL_FAILURES {
                let own = this.view.handle.hopeless_after.map(Duration::from_secs);
                let limit = own.map_or(grace::IMAGE_PULL_LIMIT, |own| own.min(grace::IMAGE_PULL_LIMIT));
                after(pulled_since(this, status), limit, hopeless)
            } else {
                Some(hopeless)
            }
        }
        "CreateContainerConfigError" => {
            let hopeless = PodState::Hopeless(format!("{container} cannot be configured{detail}"));
            after(scheduled(this), grace::CONFIG_GRACE, hopeless)
        }
        // The kubelet tries again whatever the restartPolicy: nothing was started that could have ended.
        "CreateContainerError" => after(scheduled(this), grace::CONFIG_GRACE, not_startable(&container, &detail)),
        "RunContainerError" | "PostStartHookError"
            if this.policy() == "Never" || u32::try_from(status.restart_count).unwrap_or(0) >= grace::START_FAILURES =>
        {
            Some(not_startable(&container, &detail))
        }
        _ => None,
    }
}

/// A container that the runtime could not start: it has an exit status, but none of a program of the check.
pub(in crate::status) fn never_started(this: &PodView<'_>) -> Option<PodState> {
    let inits = this.status.init_container_statuses.iter().flatten();
    let earlier = |status: &'_ ContainerStatus| status.last_state.as_ref()?.terminated.clone();
    let last = |status: &'_ ContainerStatus| terminated(status).cloned().or_else(|| earlier(status));
    // Where a container is started again, only after some failures.
    let counts = |status: &&ContainerStatus| {
        let is_tried_again = this.restarts == Restarts::Owners && this.policy() != "Never";
        !is_tried_again || u32::try_from(status.restart_count).unwrap_or(0) >= grace::START_FAILURES
    };
    inits
        .chain(this.primaries())
        .filter(counts)
        .filter(|status| !is_running(status))
        .filter_map(|status| Some((status, last(status)?)))
        .find(|(_, end)| end.reason.as_deref().is_some_and(|reason| NOT_STARTED.contains(&reason)))
        .map(|(status, end)| {
            let container = format!("container {} of {}", status.name, this.place());
            not_startable(&container, &cause::detail(end.message.as_deref()))
        })
}

/// An error of the manifest if the runtime names the file, otherwise of the node: a hook, a device, a full disk.
fn not_startable(container: &str, detail: &str) -> PodState {
    const MANIFEST: [&str; 6] = [
        "executable file not found",
        "no such file or directory",
        "permission denied",
        "exec format error",
        "not a directory",
        "no command specified",
    ];
    // Before it stand the runtime's layers, each with its own "failed to".
    let detail = detail.split_once("unable to start container process: ").map_or(detail, |(_, why)| why).trim_start_matches(": ");
    let detail = if detail.is_empty() { "the runtime gives no reason" } else { detail };
    let sentence = format!("{container} cannot be started: {detail}");
    if MANIFEST.iter().any(|words| detail.contains(words)) { PodState::Hopeless(sentence) } else { PodState::Broken(sentence) }
}

/// A volume of an object that does not exist. Only events show it.
fn missing_volume(this: &PodView<'_>) -> Option<String> {
    let event = this.view.events().of_pod(this.name()).next_back()?;
    let message = trouble::message(event);
    let missing = ["configmap \"", "secret \""].iter().any(|what| message.contains(what)) && message.contains("not found");
    let is_it = trouble::reason(event) == "FailedMount" && missing && this.started().is_none();
    is_it.then(|| format!("{} cannot start, for it mounts what is not there: {}", this.place(), cause::quote(message)))
}

/// A claim that does not exist, as the scheduler reports.
fn missing_claim(this: &PodView<'_>) -> Option<String> {
    let condition = this.condition("PodScheduled").filter(|condition| condition.status != "True")?;
    let message = condition.message.as_deref()?;
    let missing = message.contains("persistentvolumeclaim \"") && message.contains("not found");
    missing.then(|| format!("{} cannot be scheduled, for it mounts what is not there: {}", this.place(), cause::quote(message)))
}

/// No node could ever take it, and none was added for a while.
fn no_node_ever(this: &PodView<'_>, recheck_in: &mut Option<Duration>) -> Option<PodState> {
    let period = Duration::from_secs(this.view.handle.hopeless_after?);
    let since = *this.view.observed.hopeless.get(this.pod.metadata.uid.as_deref()?)?;
    if this.view.is_within(since, period, recheck_in) {
        return None;
    }
    let cause = unplaced(this).unwrap_or_default();
    let waited = format_duration(period);
    Some(PodState::Hopeless(format!(
        "{cause}; that has not changed in {waited} and cannot by itself: change the manifest or the nodes, or set \
         `sched_options.hopeless_after` to null where nodes are added on demand"
    )))
}

/// The scheduler's message about a pod that it cannot place.
fn unplaced(this: &PodView<'_>) -> Option<String> {
    let condition = this.condition("PodScheduled").filter(|condition| condition.status != "True")?;
    let name = this.name();
    Some(match (condition.reason.as_deref(), condition.message.as_deref()) {
        (Some("Unschedulable") | None, message) => {
            // After it the scheduler repeats the same for each way of making room.
            let first = |message: &'_ str, rest: &str| message.split(rest).next().unwrap_or_default().to_owned();
            let message = message.map(|message| first(&first(message, " preemption: "), " no new claims"));
            format!("pod {name} fits on no node{}", cause::detail(message.as_deref()))
        }
        (reason, message) => format!("pod {name} is not scheduled ({})", cause::reason_and(reason, message)),
    })
}

/// `state`, once the period since the pod was scheduled is over.
fn after(this: &PodView<'_>, period: Duration, state: PodState, recheck_in: &mut Option<Duration>) -> Option<PodState> {
    (!this.view.is_within(scheduled(this), period, recheck_in)).then_some(state)
}

/// What the pod waits for.
pub(in crate::status) fn reason(this: &PodView<'_>, recheck_in: &mut Option<Duration>) -> String {
    if this.node().is_none() {
        return unscheduled(this, recheck_in);
    }
    let place = this.place();
    let inits = this.status.init_container_statuses.iter().flatten();
    let sidecar = |name: &str| this.containers.iter().any(|container| container.name == name && container.sidecar);
    if let Some(init) =
        inits.clone().find(|init| !sidecar(&init.name) && init.state.as_ref().is_some_and(|state| state.running.is_some()))
    {
        return format!("init container {} of {place} runs", init.name);
    }
    let waiting = inits.chain(this.statuses()).find_map(|status| Some((status, status.state.as_ref()?.waiting.as_ref()?)));
    let Some((status, waiting)) = waiting else {
        return format!("{place} has a node and waits for its kubelet");
    };
    let container = format!("container {} of {place}", status.name);
    match waiting.reason.as_deref().unwrap_or_default() {
        reason if PULL.contains(&reason) => cannot_pull_yet(this, status, waiting),
        "ContainerCreating" | "PodInitializing" | "" => creating(this),
        "CrashLoopBackOff" => format!("{container} crashed and is started again later"),
        reason => format!("{container} waits ({})", cause::reason_and(Some(reason), waiting.message.as_deref())),
    }
}

fn cannot_pull_yet(this: &PodView<'_>, status: &ContainerStatus, waiting: &ContainerStateWaiting) -> String {
    let (container, place) = (&status.name, this.place());
    format!(
        "image {} of container {container} of {place} cannot be pulled yet: {}",
        status.image,
        pull_detail(this, &status.image, waiting)
    )
}

/// A container that waits for its image, whatever the others do.
fn without_image(status: &PodStatus) -> Option<(&ContainerStatus, &ContainerStateWaiting)> {
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let mut waiting = all.filter_map(|status| Some((status, status.state.as_ref()?.waiting.as_ref()?)));
    waiting.find(|(_, waiting)| waiting.reason.as_deref().is_some_and(|why| PULL.contains(&why)))
}

/// Whether a container of a pod waits for its image: the events say why.
pub(crate) fn lacks_image(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(without_image).is_some()
}

/// The image that one of its containers waits for.
pub(in crate::status) fn cannot_pull(this: &PodView<'_>) -> Option<String> {
    without_image(this.status).map(|(status, waiting)| cannot_pull_yet(this, status, waiting))
}

fn creating(this: &PodView<'_>) -> String {
    const STEPS: [&str; 7] = [
        "Pulling",
        "Pulled",
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "FailedToRetrieveImagePullSecret",
        "NetworkNotReady",
    ];
    let event = this.view.events().newest_of_pod(this.name(), &STEPS);
    match event.map(|event| (trouble::reason(event), trouble::message(event))) {
        Some(("Pulling", message)) => format!("{} pulls an image: {}", this.place(), cause::quote(message)),
        None | Some(("Pulled", _)) => format!("{} is being created", this.place()),
        Some((reason, message)) => {
            format!("{} is being created, but {}", this.place(), cause::reason_and(Some(reason), Some(message)))
        }
    }
}

fn unscheduled(this: &PodView<'_>, recheck_in: &mut Option<Duration>) -> String {
    let name = this.name();
    let gates = this.pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
    let gates: Vec<_> = gates.map(|gate| gate.name.as_str()).collect();
    if gates.iter().any(|gate| gate.starts_with("kueue.x-k8s.io/")) {
        return kueue::gated(this.view, name);
    }
    if !gates.is_empty() {
        return format!("pod {name} has scheduling gates that are not removed yet: {}", cause::names(gates.into_iter()));
    }
    if let Some(why) = unplaced(this) {
        return why;
    }
    let created = this.pod.metadata.creation_timestamp.as_ref().map(|time| clock::of(time.0)).unwrap_or_default();
    if this.view.is_within(created.max(this.view.observed.since), grace::SCHEDULER_SILENT, recheck_in) {
        return format!("pod {name} waits for the scheduler");
    }
    let scheduler = this.pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or("default-scheduler");
    format!("no scheduler has looked at pod {name} for {}: does {scheduler} run?", cause::seconds(grace::SCHEDULER_SILENT))
}

/// When the kubelet took the pod over, but not before the watch started: the clocks may differ.
fn scheduled(this: &PodView<'_>) -> Timestamp {
    let started = this.status.start_time.as_ref().map(|time| clock::of(time.0));
    started.unwrap_or_default().max(this.view.observed.since)
}

/// Since when the kubelet may have tried to pull a container's image: init containers, other images and an earlier life come first.
fn pulled_since(this: &PodView<'_>, status: &ContainerStatus) -> Timestamp {
    let initialized = this.condition("Initialized").filter(|condition| condition.status == "True");
    let ended = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()?.finished_at.as_ref());
    let times = [initialized.and_then(|condition| condition.last_transition_time.as_ref()), ended];
    times.into_iter().flatten().filter_map(clock::known).chain(this.started()).fold(scheduled(this), Timestamp::max)
}

/// The message of the registry: old kubelets report it only in events.
fn pull_detail(this: &PodView<'_>, image: &str, waiting: &ContainerStateWaiting) -> String {
    let own = waiting.message.as_deref().unwrap_or_default();
    let backs_off = own.starts_with("Back-off pulling image");
    let own = if backs_off { own.split_once(": ").map_or("", |(_, why)| why) } else { own };
    let is_bare = own.is_empty();
    let event = pull_events(this, image).next_back().map(trouble::message);
    match event.filter(|_| is_bare) {
        Some(event) => cause::quote(event),
        None => cause::reason_and(waiting.reason.as_deref().filter(|_| own.is_empty()), Some(own)),
    }
}

fn pull_failures(this: &PodView<'_>, image: &str) -> u32 {
    pull_events(this, image).map(trouble::times).sum()
}

fn pull_events<'a>(this: &PodView<'a>, image: &str) -> impl DoubleEndedIterator<Item = &'a k8s_openapi::api::core::v1::Event> {
    let (events, failed) = (this.view.events().of_pod(this.name()), format!("pull image \"{image}\""));
    events.filter(move |event| trouble::reason(event) == "Failed" && trouble::message(event).contains(&failed))
}
