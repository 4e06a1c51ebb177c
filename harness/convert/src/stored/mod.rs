//! ReFrame's run reports (data version 4), and those in its database, as sessions and results of Muster.
//!
//! What ReFrame does not write down stays unknown: when a case began is the end of its job less its whole time. A case that failed
//! before its job ended has no time in ReFrame; here it has the end of the session, so that questions by time find it.

use muster_core::{
    case::{CaseName, SessionId},
    job::{
        scheduler::{Exit, SectionExit},
        workload::Clock,
    },
    result::{About, CaseResult, Counting, Failure, Fault, Outcome, Phase, Session, Times},
    rules::{
        perf::{Measurement, Verdict},
        reference::Reference,
    },
};
use muster_text::{Value, time::Timestamp};
use std::collections::HashMap;

/// The reason why a document is not read: a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoredError(String);

/// The keys of `session_info` that ReFrame writes itself. All others are extras.
const OWN_KEYS: [&str; 19] = [
    "data_version",
    "hostname",
    "uuid",
    "time_start",
    "time_start_unix",
    "time_end",
    "time_end_unix",
    "time_elapsed",
    "cmdline",
    "config_files",
    "log_files",
    "prefix_output",
    "prefix_stage",
    "user",
    "version",
    "workdir",
    "num_cases",
    "num_failures",
    "num_aborted",
];

/// Returns whether a JSON document is a run report of ReFrame.
pub fn is_one(document: &Value) -> bool {
    document.get("session_info").is_some() && document.get("runs").is_some()
}

/// The session of a run report, and its attempts in the order of their ends.
///
/// # Errors
/// A document that is no run report, or one of another version of the format.
pub fn read(document: &Value) -> Result<(Session, Vec<CaseResult>), StoredError> {
    let info = document.get("session_info").ok_or_else(|| StoredError("it has no `session_info`".to_owned()))?;
    let version = text(info, "data_version");
    if !version.starts_with("4.") {
        return Err(StoredError(format!("its data version is `{version}`: only those of ReFrame 4.7 and later (4.x) are read")));
    }
    let runs = document.get("runs").and_then(Value::as_array).ok_or_else(|| StoredError("it has no `runs`".to_owned()))?;
    let mut session = session(info)?;
    let mut attempts: HashMap<CaseName, u32> = HashMap::new();
    let mut results = Vec::new();
    for case in runs.iter().filter_map(|run| run.get("testcases")?.as_array()).flatten() {
        let name = name(case);
        let attempt = attempts.entry(name.clone()).or_default();
        *attempt += 1;
        results.push(result(case, name, *attempt, &session)?);
    }
    results.sort_by_key(|result| (result.times.finished, result.attempt));
    mark_flaky(session.counting, &mut results);
    session.num_cases = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
    session.system = results.first().map(|result| result.name.system.clone()).unwrap_or_default();
    Ok((session, results))
}

fn session(info: &Value) -> Result<Session, StoredError> {
    let time = |key: &str| seconds(info.get(key));
    let command: Vec<String> = text(info, "cmdline").split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect();
    let again = ["--reruns", "--duration"];
    let is_rerun = command.iter().any(|word| again.iter().any(|flag| word == flag || word.starts_with(&format!("{flag}="))));
    let extras =
        info.as_object().into_iter().flatten().filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()) && *key != "num_skipped");
    let uuid = text(info, "uuid");
    if uuid.is_empty() {
        return Err(StoredError("its `session_info` has no `uuid`".to_owned()));
    }
    Ok(Session {
        id: SessionId(uuid.to_owned()),
        started: time("time_start_unix").ok_or_else(|| StoredError("its `session_info` has no `time_start_unix`".to_owned()))?,
        ended: time("time_end_unix"),
        command,
        user: text(info, "user").to_owned(),
        host: text(info, "hostname").to_owned(),
        workdir: text(info, "workdir").into(),
        version: format!("ReFrame {}", text(info, "version")),
        counting: if is_rerun { Counting::Every } else { Counting::Last },
        extras: extras.map(|(key, value)| (key.clone(), shown(value))).collect(),
        ..Session::default()
    })
}

/// The display name, its parameters, and among these what is hidden.
fn name(case: &Value) -> CaseName {
    let whole = [text(case, "display_name"), text(case, "name")].into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let mut words = whole.split(" %");
    let check = words.next().unwrap_or_default();
    let (hidden, shown): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('.'));
    let joined = |words: &[&str]| words.iter().map(|word| format!("%{word}")).collect::<Vec<_>>().join(" ");
    CaseName {
        display: if shown.is_empty() { check.to_owned() } else { format!("{check} {}", joined(&shown)) },
        check: check.to_owned(),
        hash: text(case, "hashcode").to_owned(),
        system: text(case, "system").to_owned(),
        partition: text(case, "partition").to_owned(),
        environ: text(case, "environ").to_owned(),
        hidden: joined(&hidden),
    }
}

fn result(case: &Value, name: CaseName, attempt: u32, session: &Session) -> Result<CaseResult, StoredError> {
    let of = name.to_string();
    let wrong = |why: String| StoredError(format!("{of}: {why}"));
    let (phase, outcome) = outcome(case).map_err(wrong)?;
    let parameters = name.display.split(" %").skip(1).filter_map(|word| word.split_once('='));
    let ended = seconds(case.get("job_completion_time_unix"));
    let finished = ended.or(session.ended).unwrap_or(session.started);
    let total = case.get("time_total").and_then(Value::as_f64).filter(|seconds| *seconds >= 0.0).unwrap_or_default();
    let exit = case.get("job_exitcode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    // ReFrame moves what a passing case leaves to the outputs, and keeps a failed one where it ran.
    let folders = if outcome.is_fine() { ["outputdir", "stagedir"] } else { ["stagedir", "outputdir"] };
    let exit = exit.map(|code| SectionExit {
        section: text(case, "job_stdout").to_owned(),
        exit: Exit::Code(code),
        ..SectionExit::default()
    });
    Ok(CaseResult {
        about: About {
            descr: text(case, "descr").to_owned(),
            tags: texts(case, "tags"),
            maintainers: texts(case, "maintainers"),
            file: text(case, "filename").to_owned(),
            parameters: parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            scheduler: text(case, "scheduler").to_owned().into(),
            num_tasks: case.get("num_tasks").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
            ..About::default()
        },
        name,
        attempt,
        outcome,
        phase,
        cause: Some(text(case, "fail_reason").to_owned()).filter(|cause| !cause.is_empty()),
        nodes: texts(case, "job_nodelist"),
        exits: exit.into_iter().collect(),
        measurements: measurements(case).map_err(wrong)?,
        times: Times {
            begun: micros(seconds_of(finished) - total).unwrap_or(finished),
            launched: seconds(case.get("job_submit_time")),
            started: None,
            ended,
            finished,
        },
        folder: folders.map(|key| text(case, key)).into_iter().find(|path| !path.is_empty()).map(Into::into),
        ..CaseResult::default()
    })
}

/// What decided, and how it ended.
fn outcome(case: &Value) -> Result<(Phase, Outcome), String> {
    let phase = match text(case, "fail_phase") {
        "" if text(case, "result") == "skip" => Phase::Plan,
        "setup" => Phase::Plan,
        "compile" | "compile_wait" | "run" => Phase::Launch,
        "run_wait" => Phase::Run,
        "sanity" => Phase::Sanity,
        "" | "performance" => Phase::Performance,
        _ => Phase::Cleanup,
    };
    let outcome = match text(case, "result") {
        "pass" => Outcome::Pass,
        "xfail" => Outcome::Xfail,
        "xpass" => Outcome::Xpass,
        "skip" => Outcome::Skip,
        "abort" => Outcome::Abort,
        "fail" => failure(phase, text(case, "fail_reason")),
        other => return Err(format!("unknown result `{other}`")),
    };
    Ok((phase, outcome))
}

/// ReFrame tells failures apart by their phase and their sentence only.
fn failure(phase: Phase, reason: &str) -> Outcome {
    if reason.contains("maximum pending time") {
        return Outcome::Timeout(Clock::Pending);
    }
    if reason.contains("time limit") || reason.contains("timed out") {
        return Outcome::Timeout(Clock::Run);
    }
    match phase {
        Phase::Performance => Outcome::Fail(Failure::Performance),
        Phase::Sanity => Outcome::Fail(Failure::Sanity),
        Phase::Run => Outcome::Fail(Failure::Workload),
        Phase::Plan => Outcome::Error(Fault::Config),
        Phase::Stage | Phase::Launch | Phase::Cleanup => Outcome::Error(Fault::Infra),
    }
}

/// `{"sys:part:var": [value, reference, lower, upper, unit, result]}`
fn measurements(case: &Value) -> Result<Vec<Measurement>, String> {
    let values = case.get("perfvalues").and_then(Value::as_object).into_iter().flatten();
    values.map(|(key, row)| measurement(key, row)).collect()
}

fn measurement(key: &str, row: &Value) -> Result<Measurement, String> {
    let variable = key.splitn(3, ':').last().unwrap_or(key);
    let wrong = || format!("the figure `{key}` is not [value, reference, lower, upper, unit, result]");
    let Some([value, reference, lower, upper, unit, rest @ ..]) = row.as_array().map(Vec::as_slice) else { return Err(wrong()) };
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let (lower, upper) = (number(lower), number(upper));
    // Without a reference ReFrame writes 0 with open ends.
    let is_none = number(reference).is_none_or(|reference| reference == 0.0) && lower.is_none() && upper.is_none();
    let bounds = number(reference)
        .filter(|_| !is_none)
        .map(|value| Reference { value, lower, upper, unit: None, warn: None, xfail: None }.bounds());
    let verdict = match rest.first().and_then(Value::as_str) {
        Some("xfail") => Verdict::Xfail(String::new()),
        Some("xpass") => Verdict::Xpass(String::new()),
        Some("fail") => Verdict::Fail,
        _ if bounds.is_none() => Verdict::None,
        _ => Verdict::Pass,
    };
    Ok(Measurement {
        variable: variable.to_owned(),
        key: None,
        section: None,
        node: None,
        value: number(value).unwrap_or(f64::NAN),
        unit: unit.as_str().unwrap_or_default().to_owned(),
        bounds,
        verdict,
        direction: None,
    })
}

/// A pass after a failure in the same session.
fn mark_flaky(counting: Counting, results: &mut [CaseResult]) {
    if counting == Counting::Every {
        return;
    }
    for result in results.iter_mut() {
        result.flaky = result.attempt > 1 && result.outcome == Outcome::Pass;
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of texts; a text alone is a list of what stands between its commas.
fn texts(value: &Value, key: &str) -> Vec<String> {
    match value.get(key) {
        Some(Value::Array(list)) => list.iter().map(shown).collect(),
        Some(Value::String(text)) => text.split(',').filter(|text| !text.is_empty()).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn seconds(value: Option<&Value>) -> Option<Timestamp> {
    value.and_then(Value::as_f64).and_then(micros)
}

/// Seconds since the epoch; `None`: no time of this era.
fn micros(seconds: f64) -> Option<Timestamp> {
    #[allow(clippy::cast_possible_truncation, reason = "between the years 1970 and 9999")]
    (0.0..253_402_300_800.0).contains(&seconds).then(|| Timestamp((seconds * 1e6).round() as i64))
}

#[allow(clippy::cast_precision_loss, reason = "microseconds of this era have less than 53 bits")]
fn seconds_of(at: Timestamp) -> f64 {
    at.0 as f64 / 1e6
}

#[cfg(test)]
mod tests;
