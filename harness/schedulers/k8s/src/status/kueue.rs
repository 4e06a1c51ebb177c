//! Kueue: why a workload is not admitted, and whether it ever will be.
//!
//! Kueue suspends Jobs and gates Pods; its own Workload object says why. Where we may not read that, or have not yet,
//! the name of the queue is all there is to say.

use super::{View, cause, condition, conditions, grace, text};
use crate::api::QUEUE_LABEL;
use muster_text::Value;
use std::time::Duration;

/// What Kueue makes of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    Waits(String),
    /// The queue will never admit this workload.
    Never(String),
    /// The queue is stopped or inactive.
    Stopped(String),
    /// It was admitted and then deactivated: it will not start again.
    Deactivated {
        cause: String,
        own_limit: bool,
    },
}

/// The queue of an object.
pub(crate) fn queue(object: &Value) -> Option<&str> {
    let find = |place: &str| object.pointer(place)?.get(QUEUE_LABEL)?.as_str();
    find("/metadata/labels").or_else(|| find("/metadata/annotations")).filter(|queue| !queue.is_empty())
}

/// The state in Kueue; `None` while it is unknown, or if Kueue has admitted the workload.
pub(super) fn admission(view: View<'_>, recheck_in: &mut Option<Duration>) -> Option<Admission> {
    let workload = view.observed.trouble.kueue.as_deref()?;
    let is_true = |kind: &str| condition(workload, kind);
    let detail = cause::of_condition;
    let evicted = is_true("Evicted");
    let inactive = workload.pointer("/spec/active") == Some(&Value::Bool(false));
    if inactive || evicted.is_some_and(|evicted| text(evicted, "reason").starts_with("Deactivated")) {
        let why = evicted.map_or_else(|| "no reason given".to_owned(), detail);
        let own_limit = why.contains("MaximumExecutionTimeExceeded");
        return Some(Admission::Deactivated { cause: format!("Kueue has deactivated the workload: {why}"), own_limit });
    }
    if is_true("Admitted").is_some() {
        return None;
    }
    let is_refused = |quota: &&Value| text(quota, "type") == "QuotaReserved" && text(quota, "status") == "False";
    let Some(quota) = conditions(workload).find(is_refused) else {
        let evicted =
            evicted.map(|evicted| format!("evicted by Kueue ({}), it starts over when it is admitted again", detail(evicted)));
        return evicted
            .or_else(|| is_true("QuotaReserved").map(|_| "Kueue has reserved quota and runs its checks".to_owned()))
            .map(Admission::Waits);
    };
    let hopeless = match (text(quota, "reason"), text(quota, "message")) {
        ("ExceedsMaxQuota" | "NoMatchingFlavor" | "Misconfigured", _) => Admission::Never as fn(String) -> Admission,
        ("Suspended", _) => Admission::Stopped,
        // Each flavor has a clause of its own: one that is only full now is enough to wait for.
        (_, message) if message.contains("maximum capacity") && !message.contains("insufficient unused quota") => {
            Admission::Never
        }
        (_, message) if message.contains("doesn't exist") => Admission::Never,
        (_, message) if message.contains("is inactive") || message.contains("is stopped") => Admission::Stopped,
        _ => return Some(Admission::Waits(format!("{}waits in Kueue: {}", evicted.map_or("", |_| "evicted, "), detail(quota)))),
    };
    Some(if view.is_within(view.observed.since, grace::KUEUE_GRACE, recheck_in) {
        Admission::Waits(format!("waits in Kueue: {}", detail(quota)))
    } else {
        hopeless(format!("Kueue will not admit the workload: {}", detail(quota)))
    })
}

/// What is known of the queue without Kueue's Workload: its name, and what Kueue's events say.
pub(super) fn queued(view: View<'_>, queue: Option<&str>) -> String {
    let queue = queue.map_or_else(String::new, |queue| format!(" from queue {queue}"));
    let event = view.events().newest_of_owners(&["Pending", "QuotaReserved", "AdmissionCheckUpdated", "EvictedDueToPreempted"]);
    let detail = match event {
        Some(event) => cause::detail(event.message.as_deref()),
        None if !view.observed.trouble.denied.is_empty() => {
            format!(" (why cannot be seen without the right to {})", view.observed.trouble.denied.join(", "))
        }
        None => String::new(),
    };
    format!("until Kueue admits it{queue}{detail}")
}

/// Why a gated pod waits, in one fragment.
pub(super) fn gated(view: View<'_>, pod: &str) -> String {
    match admission(view, &mut None) {
        Some(Admission::Waits(why) | Admission::Never(why) | Admission::Stopped(why)) => format!("pod {pod} {why}"),
        Some(Admission::Deactivated { cause, .. }) => cause,
        None => format!("pod {pod} waits {}", queued(view, view.object().and_then(queue))),
    }
}
