//! The files that are kept of a workload that did not pass, and commands that show more.
//!
//! They contain no secrets: values of variables with a name like a secret's are masked, and so is the data of
//! Secrets. Fields that the server only keeps for itself (`managedFields`, the last applied configuration) are left out.
//!
//! The caller fetches the objects and writes the files.

use crate::{
    api::{ClusterPlace, LABEL, clock},
    job::{Handle, Observed, SeenPod, hide_data},
    status::trouble,
};
use k8s_openapi::api::core::v1::Event;
use muster_core::secret::MASK;
use muster_text::{Value, shell};
use std::{fmt::Write, sync::Arc};

/// The files of the diagnosis, with their names: `owner.yaml`, `pods.yaml`, `nodes.txt`, `kueue.yaml`,
/// `events.txt`; those that would be empty are not there.
pub(super) fn files(handle: &Handle, observed: &Observed) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let is_own_pod = handle.workload().is_some_and(|own| own.resource.is_pod());
    if let (Some(owner), false) = (observed.workload.object(), is_own_pod && !observed.pods.is_empty()) {
        files.push(("owner.yaml".to_owned(), yaml(&redacted(owner))));
    }
    if !observed.pods.is_empty() {
        files.push(("pods.yaml".to_owned(), pods(&observed.pods)));
        files.push(("nodes.txt".to_owned(), nodes(&observed.pods)));
    }
    if let Some(kueue) = &observed.trouble.kueue {
        files.push(("kueue.yaml".to_owned(), yaml(&redacted(kueue))));
    }
    if !observed.trouble.events.is_empty() || !observed.trouble.denied.is_empty() {
        files.push(("events.txt".to_owned(), events(observed)));
    }
    files
}

/// The commands that show more of what is still there.
pub(super) fn look(handle: &Handle, observed: &Observed) -> Vec<String> {
    const MANY: usize = 3;
    let Some(workload) = handle.workload() else { return Vec::new() };
    let resource = workload.resource.for_kubectl();
    let mut commands = vec![kubectl(&handle.place, &["describe", &resource, &workload.name])];
    let is_pod = workload.resource.is_pod();
    let id = workload.manifest.pointer("/metadata/labels").and_then(|labels| labels.get(LABEL)?.as_str());
    if let (Some(id), false) = (id, is_pod) {
        commands.push(kubectl(&handle.place, &["get", "pods", "-o", "wide", "-l", &format!("{LABEL}={id}")]));
    }
    let mut there: Vec<_> = observed.pods.iter().filter(|seen| !seen.gone).collect();
    // Those that failed first, each group as it is.
    there.sort_by_key(|seen| seen.phase() != "Failed");
    for seen in there.into_iter().take(MANY) {
        if !is_pod {
            commands.push(kubectl(&handle.place, &["describe", "pods", seen.name()]));
        }
        commands.push(kubectl(&handle.place, &["logs", seen.name(), "--all-containers", "--prefix"]));
    }
    commands
}

/// The command that removes what was kept.
pub(super) fn delete(handle: &Handle) -> Vec<String> {
    let any_created = handle.objects.iter().any(|object| object.uid.is_some());
    // Who uses something goes before it.
    let objects = handle.objects.iter().rev().filter(|object| object.uid.is_some() || !any_created);
    let names: Vec<_> = objects.map(|object| format!("{}/{}", object.resource.for_kubectl(), object.name)).collect();
    let words: Vec<_> = ["delete", "--ignore-not-found"].into_iter().chain(names.iter().map(String::as_str)).collect();
    if names.is_empty() { Vec::new() } else { vec![kubectl(&handle.place, &words)] }
}

/// A call of kubectl in this place, as a shell reads it.
pub(super) fn kubectl(place: &ClusterPlace, words: &[&str]) -> String {
    let context = place.context.as_deref().map(|context| ["--context", context]);
    let place = ["-n", &place.namespace];
    let all = ["kubectl"].into_iter().chain(context.into_iter().flatten()).chain(place).chain(words.iter().copied());
    all.map(shell::quote).collect::<Vec<_>>().join(" ")
}

/// An object without secrets and without what only the server needs.
pub(super) fn redacted(object: &Value) -> Value {
    let mut object = object.clone();
    redact(&mut object);
    object
}

fn redact(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(map) => {
            map.remove("managedFields");
            if let Some(annotations) = map.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
            hide_data(map);
            let is_secret = map.get("name").and_then(Value::as_str).is_some_and(names_a_secret);
            if let Some(value) = map.get_mut("value").filter(|value| is_secret && value.is_string()) {
                *value = MASK.into();
            }
            map.values_mut().for_each(redact);
        }
        _ => {}
    }
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["pass", "secret", "token", "key", "cred"].iter().any(|word| name.contains(word))
}

fn pods(pods: &[SeenPod]) -> String {
    let mut text = String::new();
    for seen in pods {
        let state = match (seen.gone, seen.deleted_by_us) {
            (true, true) => " # deleted by Muster; as it was last",
            (true, false) => " # vanished; as it was last",
            (false, true) => " # being deleted by Muster",
            (false, false) => "",
        };
        let pod = serde_json::to_value(seen.pod.as_ref()).unwrap_or_default();
        let _ = write!(text, "---{state}\n{}", yaml(&redacted(&pod)));
    }
    text
}

/// Where each pod ran, and which of its conditions do not hold: the node's own are not ours to read.
fn nodes(pods: &[SeenPod]) -> String {
    let mut rows = vec![["NODE", "POD", "PHASE", "NOT TRUE"].map(str::to_owned)];
    for seen in pods {
        let status = seen.pod.status.as_ref();
        let conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        let missing = conditions.filter(|condition| condition.status != "True").map(|condition| {
            let reason = condition.reason.as_deref().map_or_else(String::new, |reason| format!("({reason})"));
            format!("{}{reason}", condition.type_)
        });
        let missing = missing.collect::<Vec<_>>().join(",");
        let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        let phase = or_dash(seen.phase()) + if seen.gone { " (gone)" } else { "" };
        rows.push([or_dash(seen.node().unwrap_or_default()), seen.name().to_owned(), phase, or_dash(&missing)]);
    }
    rows[1..].sort();
    table(&rows)
}

/// As kubectl lists events, oldest first, with the time instead of an age.
fn events(observed: &Observed) -> String {
    let mut rows = vec![["LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"].map(str::to_owned)];
    rows.extend(observed.trouble.events.iter().map(row));
    let mut text = if rows.len() > 1 { table(&rows) } else { String::new() };
    for right in &observed.trouble.denied {
        let _ = writeln!(text, "# not seen: the right is missing to {right}");
    }
    text
}

fn row(event: &Arc<Event>) -> [String; 6] {
    let about = &event.involved_object;
    let kind = about.kind.as_deref().unwrap_or_default().to_lowercase();
    [
        trouble::last(event).and_then(clock::shown).unwrap_or_else(|| "-".to_owned()),
        one_line(event.type_.as_deref().unwrap_or("-")),
        one_line(trouble::reason(event)),
        one_line(&format!("{kind}/{}", about.name.as_deref().unwrap_or_default())),
        trouble::times(event).to_string(),
        one_line(trouble::message(event)),
    ]
}

/// Text of the cluster is data: nothing in it may act on a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

fn yaml(value: &Value) -> String {
    serde_yaml::to_string(value).unwrap_or_else(|error| format!("# cannot be written: {error}\n"))
}

#[cfg(test)]
mod tests;
