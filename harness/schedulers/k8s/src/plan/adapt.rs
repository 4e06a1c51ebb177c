//! Changes to the objects so that they end, can be watched, and can be found by their users.
//!
//! The deadline in the cluster ends a workload even if the harness is gone:
//! ```text
//! the kind's own field (table: `deadline`) | else the pod templates | `deadline: none`, helpers: none, `muster sweep` removes them
//! ```
//! A Pod counts from its start on a node and a Job from its creation: what waits for a node for ever is left to `muster sweep`.

use super::options::Options;
use crate::{
    api::{CASE_ANNOTATION, DEFAULT_CONTAINER_ANNOTATION, HOSTNAME_LABEL, QUEUE_LABEL},
    job::Deadline,
    kind::{Kinds, Stop, WorkloadRules},
    manifest::{Document, at, each_pod, each_pod_of, place, set},
};
use muster_core::job::workload::{Limits, Program, Workload};
use muster_text::{Value, diagnostic::Diagnostic};
use std::time::Duration;

/// What is over stays at least so long: its logs are read, and its verdict is seen.
const TTL: Duration = Duration::from_hours(1);

/// Adapts all documents, the workload at `main` above all. Returns the notes.
pub(super) fn adapt(
    workload: &Workload,
    options: &Options,
    kinds: &Kinds,
    documents: &mut [Document],
    main: usize,
    rules: &mut WorkloadRules,
    keep: Duration,
) -> Result<Vec<String>, Vec<Diagnostic>> {
    let (mut notes, mut mistakes) = (Vec::new(), Vec::new());
    for document in documents.iter_mut() {
        let Some(kind) = kinds.find(&document.resource) else { continue };
        if let Some(path) = &kind.ttl
            && let Some(written) = at(&document.value, path).and_then(Value::as_u64)
            && written < keep.max(TTL).as_secs()
        {
            set(&mut document.value, path, keep.max(TTL).as_secs().into());
            notes.push(format!(
                "{path} of {} is longer, so that its logs can be read before the cluster removes it",
                document.resource.kind
            ));
        }
    }
    let Some(document) = documents.get_mut(main) else { return Ok(notes) };
    annotate(workload, options, document);
    if let Some(node) = &options.node {
        pin(node, document);
    }
    env_vars(workload, rules, document);
    restart_policy(document, rules, &mut notes).unwrap_or_else(|mistake| mistakes.push(mistake));
    let suspend = kinds.find(&document.resource).and_then(|kind| kind.suspend.as_deref());
    let is_queued = document.label(QUEUE_LABEL).is_some();
    if let Some(path) = suspend {
        let is_suspended = at(&document.value, path).and_then(Value::as_bool) == Some(true);
        if is_suspended && !is_queued {
            let message = format!("{document} is suspended (`{path}: true`) and in no queue: nothing would ever start it");
            mistakes.push(Diagnostic::general(message).hint(format!("leave `suspend` out, or add the label `{QUEUE_LABEL}`")));
        }
        // A queue controller would resume what we suspended.
        if is_queued && matches!(&rules.stop, Stop::Patch(patch) if at(patch, path).is_some()) {
            rules.stop = Stop::Delete;
        }
    }
    if mistakes.is_empty() { Ok(notes) } else { Err(mistakes) }
}

/// The user's labels and annotations go on the workload alone, not into its templates: a queue's label there would have the
/// queue manage each pod once more. What the manifest says itself stays.
fn annotate(workload: &Workload, options: &Options, document: &mut Document) {
    let mut put = |kind: &str, key: &str, value: &str, always: bool| {
        let Some(map) = place(&mut document.value, &format!("metadata.{kind}")) else { return };
        if !map.is_object() {
            *map = Value::Object(serde_json::Map::new());
        }
        if always || map.get(key).is_none_or(Value::is_null) {
            map[key] = value.into();
        }
    };
    for (key, value) in &options.labels {
        put("labels", key, value, false);
    }
    for (key, value) in &options.annotations {
        put("annotations", key, value, false);
    }
    put("annotations", CASE_ANNOTATION, &workload.case.to_string(), true);
}

/// Every pod of the workload runs on this node or nowhere. As a selector, not as `nodeName`: the scheduler still counts what fits.
fn pin(node: &str, document: &mut Document) {
    each_pod(&mut document.value, &mut |pod| {
        let Some(selector) = place(pod, "spec.nodeSelector") else { return };
        if !selector.is_object() {
            *selector = Value::Object(serde_json::Map::new());
        }
        selector[HOSTNAME_LABEL] = node.into();
    });
}

/// `env_vars` in every primary container that does not set them itself.
fn env_vars(workload: &Workload, rules: &WorkloadRules, document: &mut Document) {
    let Program::Own { env_vars } = &workload.program else { return };
    if env_vars.is_empty() {
        return;
    }
    each_pod(&mut document.value, &mut |pod| {
        let mut primary = rules.primary_containers.clone();
        if primary.is_empty() {
            let default =
                pod.pointer("/metadata/annotations").and_then(|annotations| annotations.get(DEFAULT_CONTAINER_ANNOTATION));
            primary.extend(default.and_then(Value::as_str).map(str::to_owned));
        }
        let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten();
        let is_primary = |container: &Value| {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            primary.is_empty() || primary.iter().any(|primary| primary == name)
        };
        for env in containers.filter(|container| is_primary(container)).filter_map(|container| place(container, "env")) {
            if !env.is_array() {
                *env = Value::Array(Vec::new());
            }
            for (name, value) in env_vars {
                let is_set =
                    env.as_array().is_some_and(|env| env.iter().any(|entry| entry.get("name") == Some(&name.as_str().into())));
                if let (false, Some(env)) = (is_set, env.as_array_mut()) {
                    env.push(serde_json::json!({ "name": name, "value": value }));
                }
            }
        }
    });
}

/// By default Kubernetes restarts the containers of a Pod for ever, and such a pod never ends.
fn restart_policy(document: &mut Document, rules: &WorkloadRules, notes: &mut Vec<String>) -> Result<(), Diagnostic> {
    let path = match (document.resource.group.as_str(), document.resource.kind.as_str()) {
        ("", "Pod") => "spec.restartPolicy",
        ("batch", "Job") => "spec.template.spec.restartPolicy",
        _ => return Ok(()),
    };
    match at(&document.value, path).and_then(Value::as_str) {
        None => {
            set(&mut document.value, path, "Never".into());
            notes.push(format!("{path} of {} is Never, because the manifest does not set it", document.resource.kind));
            Ok(())
        }
        Some("Always") if rules.succeeded.is_none() => {
            let message = format!("{document} never ends: `{path}: Always` restarts its containers for ever");
            Err(Diagnostic::general(message).hint("write `Never`, or set the rule `succeeded` in `k8s_workloads`"))
        }
        Some(_) => Ok(()),
    }
}

/// The cluster's own limit is longer than ours by this: a Job's deadline takes its pods away, and their logs with them, so
/// that the harness has to come first.
const SLACK: Duration = Duration::from_mins(5);
/// The default for a workload without a time limit.
pub(super) const MAX_LIFETIME: Duration = Duration::from_hours(24);
/// The `deadline` of a kind whose pods must not have one either.
const NO_DEADLINE: &str = "none";
/// The deadline of a pod.
const POD_DEADLINE: &str = "spec.activeDeadlineSeconds";
/// The API takes no longer deadline.
const MAX_SECONDS: u64 = i32::MAX as u64;

/// How long the cluster lets a workload live; `None`: as long as it likes.
pub(super) fn deadline(limits: &Limits, max_lifetime: Option<Duration>) -> Option<Deadline> {
    let (length, from) = match limits.run {
        Some(run) => {
            let waiting = limits.pending.or(max_lifetime)?;
            let key = if limits.pending.is_some() { "max_pending_time" } else { "sched_options.max_lifetime" };
            (waiting.saturating_add(run).saturating_add(SLACK), format!("{key} + time_limit + 5m"))
        }
        None => (max_lifetime?, "sched_options.max_lifetime, as there is no time_limit".to_owned()),
    };
    Some(Deadline { seconds: length.as_secs().clamp(1, MAX_SECONDS), from })
}

/// Gives it to all documents that can have it and have none; `true`: the one at `main` has it now.
pub(super) fn give_deadline(deadline: &Deadline, documents: &mut [Document], main: usize, kinds: &Kinds) -> bool {
    let mut is_given = false;
    for (index, document) in documents.iter_mut().enumerate() {
        let kind = kinds.find(&document.resource);
        let has_it = match kind.and_then(|kind| kind.deadline.as_deref()) {
            Some(NO_DEADLINE) => false,
            Some(path) => give_at(&mut document.value, path, deadline.seconds),
            // What runs until it is deleted (a Deployment, say) restarts its pods, and may not give them one.
            None if kind.is_some_and(|kind| kind.helper) && index != main => false,
            None => give_pods(&mut document.value, deadline.seconds),
        };
        is_given |= has_it && index == main;
    }
    is_given
}

fn give_at(value: &mut Value, path: &str, seconds: u64) -> bool {
    let is_free = at(value, path).is_none();
    if is_free {
        set(value, path, seconds.into());
    }
    is_free
}

fn give_pods(value: &mut Value, seconds: u64) -> bool {
    // Controllers of this group refuse pods with a deadline, and may stand inside other kinds.
    let can_have = |value: &Value| !value.get("apiVersion").and_then(Value::as_str).is_some_and(|api| api.starts_with("apps/"));
    let mut is_given = false;
    each_pod_of(value, &can_have, &mut |pod| is_given |= give_at(pod, POD_DEADLINE, seconds));
    is_given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_deadline_unless_the_site_wants_none() {
        let hours = |hours: u64| Some(Duration::from_hours(hours));
        let minutes = |minutes: u64| Some(Duration::from_mins(minutes));
        // max_pending_time, time_limit, max_lifetime, the deadline in minutes.
        let rows = [
            (hours(2), minutes(10), hours(24), Some(135)),
            (hours(2), minutes(10), None, Some(135)),
            (hours(12), None, hours(24), Some(24 * 60)),
            (hours(12), None, hours(1), Some(60)),
            (None, None, hours(24), Some(24 * 60)),
            (None, minutes(10), hours(24), Some(24 * 60 + 15)),
            (None, minutes(10), None, None),
            (hours(2), None, None, None),
        ];
        for (pending, run, lifetime, expected) in rows {
            let limits = Limits { pending, run, judge: Duration::ZERO };
            let minutes = deadline(&limits, lifetime).map(|deadline| deadline.seconds / 60);
            assert_eq!(minutes, expected, "{pending:?} {run:?} {lifetime:?}");
        }
        let long = Limits { pending: Some(Duration::MAX), run: Some(Duration::MAX), judge: Duration::ZERO };
        assert_eq!(deadline(&long, None).map(|deadline| deadline.seconds), Some(MAX_SECONDS));
    }
}
