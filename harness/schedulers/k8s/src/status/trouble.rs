//! Reads the events of a job, which are asked for only while it does not move.

use crate::{api::clock, job::Trouble, quota, status::cause::quote};
use k8s_openapi::api::core::v1::Event;
use muster_text::time::Timestamp;
use std::sync::Arc;

/// The events of a job, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Events<'a>(&'a [Arc<Event>]);

/// Why an object's pods are not created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blocked {
    /// They can never be created with this manifest.
    Hopeless(String),
    /// Something that they refer to does not exist. It may still be created.
    Missing(String),
    /// The cluster refuses them.
    Broken(String),
    /// A webhook refuses them. Its rule may depend on what does not exist yet, and the controller tries again.
    Denied {
        why: String,
        /// The first time, as far as it is known.
        since: Option<Timestamp>,
    },
    /// They may be created later.
    Waits(String),
}

impl<'a> Events<'a> {
    pub(crate) fn of(trouble: &'a Trouble) -> Self {
        Self(&trouble.events)
    }

    /// The events of one pod.
    pub(super) fn of_pod(self, name: &str) -> impl DoubleEndedIterator<Item = &'a Event> {
        self.0.iter().map(AsRef::as_ref).filter(move |event| is_about(event, "Pod", name))
    }

    /// The newest event of a pod with one of these reasons.
    pub(super) fn newest_of_pod(self, name: &str, reasons: &[&str]) -> Option<&'a Event> {
        self.of_pod(name).rev().find(|event| reasons.contains(&reason(event)))
    }

    /// The events about anything that is not a pod, newest first.
    fn of_owners(self) -> impl Iterator<Item = &'a Event> {
        self.0.iter().rev().map(AsRef::as_ref).filter(|event: &&Event| event.involved_object.kind.as_deref() != Some("Pod"))
    }

    /// The newest event of an owner with one of these reasons.
    pub(super) fn newest_of_owners(self, reasons: &[&str]) -> Option<&'a Event> {
        self.of_owners().find(|event| reasons.contains(&reason(event)))
    }

    pub(super) fn newest_warning_of_owners(self) -> Option<&'a Event> {
        self.of_owners().find(|event| event.type_.as_deref() == Some("Warning"))
    }

    /// Why the owner's pods cannot be created, by the newest refusal of one.
    pub(super) fn refused_pods(self) -> Option<Blocked> {
        let refused = self.of_owners().find(|event| {
            event.type_.as_deref() == Some("Warning")
                && (reason(event).contains("FailedCreate") || message(event).contains("is forbidden: "))
        });
        refused.map(|event| match classify(message(event)) {
            Blocked::Denied { why, .. } => Blocked::Denied { why, since: first(event) },
            other => other,
        })
    }
}

/// What a refusal to create a pod means.
pub(super) fn classify(message: &str) -> Blocked {
    if let Some(refusal) = quota::read(message) {
        return match refusal.decide() {
            quota::Decision::Never(why) => Blocked::Hopeless(why),
            quota::Decision::Wait(why) => Blocked::Waits(why),
        };
    }
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    // Controllers write `Error creating: ` before the message of the server.
    let detail = quote(message.strip_prefix("Error creating: ").unwrap_or(message));
    if has(&["because it is being terminated"]) {
        Blocked::Broken(format!("the namespace is being deleted: {detail}"))
    } else if has(&["failed calling webhook"]) {
        Blocked::Waits(format!("an admission webhook does not answer: {detail}"))
    } else if has(&["violates PodSecurity"]) {
        Blocked::Hopeless(format!("the namespace's Pod Security level refuses the pods: {detail}"))
    } else if has(&["denied the request"]) {
        Blocked::Denied { why: format!("an admission webhook refuses the pods: {detail}"), since: None }
    } else if has(&[" per Container", " per Pod", " ratio is "]) {
        Blocked::Hopeless(format!("the namespace's LimitRange refuses the pods: {detail}"))
    } else if has(&["error looking up service account", "no PriorityClass with name"]) {
        Blocked::Missing(format!("the pods name what does not exist: {detail}"))
    } else if has(&[" is invalid: "]) {
        Blocked::Hopeless(format!("the API server refuses the pods as invalid: {detail}"))
    } else {
        Blocked::Waits(format!("its pods cannot be created: {detail}"))
    }
}

pub(crate) fn is_about(event: &Event, kind: &str, name: &str) -> bool {
    event.involved_object.kind.as_deref() == Some(kind) && event.involved_object.name.as_deref() == Some(name)
}

pub(crate) fn reason(event: &Event) -> &str {
    event.reason.as_deref().unwrap_or_default()
}

pub(crate) fn message(event: &Event) -> &str {
    event.message.as_deref().unwrap_or_default()
}

/// How often it happened.
pub(crate) fn times(event: &Event) -> u32 {
    let series = event.series.as_ref().and_then(|series| series.count);
    series.or(event.count).and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1)
}

/// When it first happened.
fn first(event: &Event) -> Option<Timestamp> {
    let plain = event.first_timestamp.as_ref().map(|time| time.0);
    plain.or(event.event_time.as_ref().map(|time| time.0)).map(clock::of)
}

/// When it last happened.
pub(crate) fn last(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let plain = || event.last_timestamp.as_ref().or(event.first_timestamp.as_ref()).map(|time| time.0);
    let new_style = || event.event_time.as_ref().map(|time| time.0);
    series.or_else(plain).or_else(new_style).or(event.metadata.creation_timestamp.as_ref().map(|time| time.0)).map(clock::of)
}
