//! Any other kind: by its rules, by the conditions and phases that most controllers write, by its pods.
//!
//! ```text
//! rules (check, site, table: CEL) > status.conditions > status.phase and its relatives > all pods ended and settled
//! ```

use crate::job::{JobState, replaced_pods};
use crate::status::{
    View, cause, conditions, grace,
    owner::{Owner, Pods},
    pod::PodState,
    text, transition,
};
use muster_text::time::Timestamp;
use muster_text::{
    Value,
    expr::{Arithmetic, Effort, Expr, Scope},
};
use std::{sync::Arc, time::Duration};

/// How many turns of loops a rule may take each time the object changes: a thousand pods beside a thousand others.
const RULE_STEPS: u64 = 1_000_000;

const GOOD_CONDITIONS: [&str; 4] = ["Complete", "Completed", "Succeeded", "JobSucceeded"];
const BAD_CONDITIONS: [&str; 3] = ["Failed", "JobFailed", "Stalled"];
const PHASES: [&str; 9] = [
    "/status/phase",
    "/status/state",
    "/status/state/phase",
    "/status/jobStatus",
    "/status/jobDeploymentStatus",
    "/status/appState/state",
    "/status/applicationState/state",
    "/status/workflowState",
    "/status/terminalState",
];
const GOOD_PHASES: [&str; 4] = ["succeeded", "completed", "complete", "finished"];
const BAD_PHASES: [&str; 6] = ["failed", "error", "aborted", "terminated", "submission_failed", "validationfailed"];

/// The status of the object, by its rules if it has any.
pub(in crate::status) fn owner(view: View<'_>, object: &Value) -> Owner {
    match by_rules(view, object) {
        Owner::Going if !has_rules(view) => by_status(object),
        owner => owner,
    }
}

pub(in crate::status) fn has_rules(view: View<'_>) -> bool {
    view.handle.rules.succeeded.is_some() || view.handle.rules.failed.is_some()
}

/// Rules are complete if both are given. A missing one is replaced by the general meaning of the status.
pub(in crate::status) fn by_rules(view: View<'_>, object: &Value) -> Owner {
    let holds = |which: &str, rule: &Option<String>| rule.as_deref().map(|rule| evaluate(view, object, which, rule)).transpose();
    let rules = &view.handle.rules;
    let (succeeded, failed) = match (holds("succeeded", &rules.succeeded), holds("failed", &rules.failed)) {
        (Ok(succeeded), Ok(failed)) => (succeeded, failed),
        (Err(why), _) | (_, Err(why)) => return Owner::Says(JobState::Hopeless(why)),
    };
    let at = conditions(object).filter_map(transition).max();
    match (succeeded, failed) {
        (Some(true), _) => Owner::Succeeded { at: succeeded_at(object) },
        (_, Some(true)) => Owner::failed(format!("{} failed, by its rule `failed`", view.title()), at),
        (Some(false), None) => match by_status(object) {
            failed @ Owner::Failed { .. } => failed,
            _ => Owner::Going,
        },
        (None, Some(false)) => match by_status(object) {
            succeeded @ Owner::Succeeded { .. } => succeeded,
            _ => Owner::Going,
        },
        _ => Owner::Going,
    }
}

/// When the workload succeeded, if its object says so.
fn succeeded_at(object: &Value) -> Option<Timestamp> {
    const CONDITIONS: [&str; 1] = ["Finished"];
    const TIMES: [&str; 5] = ["completionTime", "endTime", "finishedAt", "terminationTime", "state/lastTransitionTime"];
    let mut conditions = GOOD_CONDITIONS.iter().chain(&CONDITIONS).filter_map(|kind| crate::status::condition(object, kind));
    let by_field = |field: &&str| crate::status::time(object.pointer(&format!("/status/{field}"))?);
    conditions.find_map(transition).or_else(|| TIMES.iter().find_map(by_field))
}

fn evaluate(view: View<'_>, object: &Value, which: &str, rule: &str) -> Result<bool, String> {
    let wrong = |error: muster_text::expr::ExprError| {
        let hint = error.hint.map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("rule `{which}` of {}, `{rule}`, cannot be evaluated: {}{hint}", view.title(), error.message)
    };
    let expr = Expr::compile(rule, Arithmetic::Exact).map_err(wrong)?;
    let mut scope = Scope::new();
    scope.set_effort(Arc::new(Effort::counted(RULE_STEPS)));
    scope.set("self", object.clone());
    if expr.names().iter().any(|name| name == "pods") {
        scope.set("pods", pods(view));
    }
    scope.set("conditions", true_conditions(object));
    expr.eval_bool(&scope).map_err(wrong)
}

/// The pods as last seen. A vanished pod counts only if it had ended, and only until its replacement
/// has started.
fn pods(view: View<'_>) -> Value {
    let ended = |value: &Value| matches!(value.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    let last = replaced_pods::are_of_last_life(&view.observed.pods, view.handle);
    let counting = view.observed.pods.iter().zip(last).filter(|(_, is_last)| *is_last);
    let all = counting.filter_map(|(seen, _)| {
        let value = serde_json::to_value(seen.pod.as_ref()).ok()?;
        (!seen.gone || ended(&value)).then_some(value)
    });
    Value::Array(all.collect())
}

fn true_conditions(object: &Value) -> Value {
    let all = conditions(object).filter(|condition| crate::status::is_true(condition));
    Value::Array(all.filter_map(|condition| condition.get("type").cloned()).collect())
}

/// What conditions and phases generally mean. A status that is older than the spec means nothing.
fn by_status(object: &Value) -> Owner {
    let generation = |place: &str| object.pointer(place).and_then(Value::as_i64);
    if let (Some(observed), Some(now)) = (generation("/status/observedGeneration"), generation("/metadata/generation"))
        && observed < now
    {
        return Owner::Going;
    }
    if let Some(good) = GOOD_CONDITIONS.iter().find_map(|kind| crate::status::condition(object, kind)) {
        return Owner::Succeeded { at: transition(good) };
    }
    let name = title(object);
    if let Some(bad) = BAD_CONDITIONS.iter().find_map(|kind| crate::status::condition(object, kind)) {
        return Owner::failed(format!("{name} failed: {}", cause::of_condition(bad)), transition(bad));
    }
    if let Some(finished) = crate::status::condition(object, "Finished") {
        return match text(finished, "reason") {
            reason if reason.contains("Fail") || reason.contains("Error") => {
                Owner::failed(format!("{name} failed: {}", cause::of_condition(finished)), transition(finished))
            }
            _ => Owner::Succeeded { at: transition(finished) },
        };
    }
    by_phase(object, &name)
}

fn by_phase(object: &Value, name: &str) -> Owner {
    let phases: Vec<_> = PHASES.iter().filter_map(|place| object.pointer(place)?.as_str()).collect();
    let is = |phase: &str, list: &[&str]| list.contains(&phase.to_lowercase().as_str());
    // One of them may say that the deployment is over and another that the work in it failed.
    if let Some(bad) = phases.iter().find(|phase| is(phase, &BAD_PHASES)) {
        let message = object.pointer("/status/message").and_then(Value::as_str);
        return Owner::failed(format!("{name} failed: {}", cause::reason_and(Some(bad), message)), None);
    }
    if phases.iter().any(|phase| is(phase, &GOOD_PHASES)) { Owner::Succeeded { at: succeeded_at(object) } } else { Owner::Going }
}

/// The object does not show its end: all pods have ended, and none was created or deleted for a while.
pub(in crate::status) fn settled(view: View<'_>, pods: &Pods<'_>, recheck_in: &mut Option<Duration>) -> Option<JobState> {
    let expected = view.handle.expected_pods.unwrap_or(1).max(1);
    let crashed = pods.all.iter().find(|pod| !pod.gone && pod.restarts >= grace::CRASH_RESTARTS && pod.held_by.is_none());
    let ended = |state: &PodState| matches!(state, PodState::Ended { .. });
    let enough = u32::try_from(pods.all.iter().filter(|pod| ended(&pod.state)).count()).unwrap_or(u32::MAX) >= expected;
    let all_ended = enough && pods.all.iter().all(|pod| ended(&pod.state) || pod.gone);
    if !has_rules(view)
        && !all_ended
        && let Some(pod) = crashed
    {
        let place = cause::Place { pod: &pod.name, node: pod.node.as_deref() };
        let cause = format!(
            "{place} was started again {} and {} does not report its end",
            cause::count(pod.restarts as usize, "time"),
            view.title()
        );
        return Some(pods.ended_badly(None, cause));
    }
    if !all_ended {
        return None;
    }
    let last = pods.all.iter().filter_map(|pod| pod.ended).max().unwrap_or_default().max(view.observed.since);
    let period = if has_rules(view) { grace::RULE_SILENT } else { grace::SETTLE };
    if view.is_within(last, period, recheck_in) {
        return None;
    }
    if !has_rules(view) {
        return Some(pods.ended_by_pods());
    }
    let cause = format!(
        "all pods of {} ended {} ago, and neither of its rules `succeeded` and `failed` holds",
        view.title(),
        cause::seconds(period)
    );
    Some(pods.ended_badly(None, cause))
}

fn title(object: &Value) -> String {
    let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("/kind"), text("/metadata/name"))
}
