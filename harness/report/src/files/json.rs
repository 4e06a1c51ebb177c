//! The JSON run report: one file a session, for programs. Its fields are described in docs/run-report.md and
//! docs/run-report.schema.json, which a test holds against what is written here.
//!
//! The content depends on the session alone, never on the options of the command that writes it. A figure that JSON
//! has no number for is the text "NaN", "inf" or "-inf". Texts are as they were collected, control characters (escaped)
//! included, but for what looks like a secret.

use crate::{
    RenderError,
    counts::Results,
    text::{
        number::{difference_of, exact, limits_of},
        secret::masked,
        style::is_unwanted,
        time::utc,
    },
};
use muster_core::{
    case::{Identifier, SessionId},
    job::scheduler::{Exit, NodeSeen, SectionExit},
    night::FigureRules,
    result::{CaseResult, Phase, Session, Times},
    rules::perf::Measurement,
    usage::{InstanceTime, Total, Usage},
};
use muster_text::{Value, time::Timestamp};
use serde::{Serialize, Serializer};
use serde_json::json;
use std::{borrow::Cow, fmt::Write};

/// The version of the format. Its second number grows with every new field, the first when one changes or goes.
pub const REPORT_VERSION: &str = "1.3";

/// The report of a session. `environment` is what is known of the machines and versions it ran on.
pub fn report(results: &Results<'_>, environment: Option<&Value>) -> Result<String, RenderError> {
    let file = File {
        report_version: REPORT_VERSION,
        session: session(results.session),
        environment,
        cases: results,
        totals: totals(results),
    };
    written(&file)
}

/// JSON in which every control character and direction mark is escaped: the same data, and `cat` shows it safely.
pub(crate) fn written(value: &impl Serialize) -> Result<String, RenderError> {
    let text = serde_json::to_string_pretty(value).map_err(RenderError::of("write the JSON"))? + "\n";
    // serde_json escapes what is before the space. Of the rest of ASCII only DEL is unwanted.
    if text.bytes().all(|byte| byte < 0x7f) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unwanted(c) {
            // All of them have four digits, and none is outside of a text.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Ok(escaped)
}

#[derive(Serialize)]
struct File<'a> {
    report_version: &'static str,
    session: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a Value>,
    #[serde(serialize_with = "one_by_one")]
    cases: &'a Results<'a>,
    totals: Value,
}

/// A session may have a hundred thousand cases: never all of them as values at once.
fn one_by_one<S: Serializer>(results: &Results<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(results.attempts().iter().map(|result| case(result)))
}

fn session(session: &Session) -> Value {
    json!({
        "id": session.id.0,
        "started": utc(session.started),
        "started_unix_us": session.started.0,
        "ended": session.ended.map(utc),
        "ended_unix_us": session.ended.map(|at| at.0),
        // Sessions of older versions are stored as they were typed.
        "command": session.command.iter().map(|word| masked(word)).collect::<Vec<_>>(),
        "system": session.system,
        "user": session.user,
        "host": session.host,
        "workdir": session.workdir.to_string_lossy(),
        "version": session.version,
        "num_cases": session.num_cases,
        "interrupted": session.interrupted,
        "counting": session.counting,
        "fail_on_skip": session.fail_on_skip,
        "extras": map(&session.extras),
    })
}

/// A case as it is written: there may be many, so none is made a value first.
#[derive(Serialize)]
struct Case<'a> {
    name: &'a str,
    check: &'a str,
    hash: &'a str,
    system: &'a str,
    partition: &'a str,
    environ: &'a str,
    descr: &'a str,
    file: &'a str,
    tags: &'a [String],
    maintainers: &'a [String],
    parameters: Value,
    scheduler: &'a str,
    num_tasks: u32,
    /// Empty: not known, or no manifest.
    #[serde(skip_serializing_if = "str::is_empty")]
    check_hash: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    manifest_hash: &'a str,
    #[serde(skip_serializing_if = "FigureRules::is_silent")]
    night: &'a FigureRules,
    identifier: Option<&'a Identifier>,
    hidden: &'a str,
    attempt: u32,
    flaky: bool,
    quarantine: Option<Value>,
    restored_from: Option<&'a SessionId>,
    outcome: Verdict<'a>,
    phase: Phase,
    cause: Option<Cow<'a, str>>,
    warnings: Vec<Cow<'a, str>>,
    nodes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    described_nodes: &'a [NodeSeen],
    exits: Vec<Value>,
    measurements: Vec<Value>,
    times: CaseTimes,
    folder: Option<Cow<'a, str>>,
    log_tail: Option<Cow<'a, str>>,
    look: &'a [String],
    delete: &'a [String],
    leftovers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<CaseUsage<'a>>,
}

/// The instances that a case has used.
#[derive(Serialize)]
struct CaseUsage<'a> {
    instance_seconds: u64,
    cost: Option<f64>,
    currency: &'a str,
    instances: &'a [InstanceTime],
}

#[derive(Serialize)]
struct Verdict<'a> {
    word: &'a str,
    detail: Option<Cow<'a, str>>,
    fine: bool,
}

fn case(case: &CaseResult) -> Case<'_> {
    let (name, about) = (&case.name, &case.about);
    Case {
        name: &name.display,
        check: &name.check,
        hash: &name.hash,
        system: &name.system,
        partition: &name.partition,
        environ: &name.environ,
        descr: &about.descr,
        file: &about.file,
        tags: &about.tags,
        maintainers: &about.maintainers,
        parameters: map(&about.parameters),
        scheduler: &about.scheduler,
        num_tasks: about.num_tasks,
        check_hash: &about.check_hash,
        manifest_hash: &about.manifest_hash,
        night: &about.night,
        identifier: case.identifier.as_ref(),
        hidden: &name.hidden,
        attempt: case.attempt,
        flaky: case.flaky,
        quarantine: case.quarantine.as_ref().map(|quarantine| {
            json!({
                "reason": quarantine.reason,
                "until": quarantine.until.to_string(),
            })
        }),
        restored_from: case.restored_from.as_ref(),
        outcome: Verdict {
            word: case.outcome.row().word,
            detail: case.outcome.detail().map(masked),
            fine: case.outcome.is_fine(),
        },
        phase: case.phase,
        cause: case.cause.as_deref().map(masked),
        warnings: case.warnings.iter().map(|warning| masked(warning)).collect(),
        nodes: &case.nodes,
        described_nodes: &case.described,
        exits: case.exits.iter().map(exit).collect(),
        measurements: case.measurements.iter().map(measurement).collect(),
        times: times(&case.times),
        folder: case.folder.as_ref().map(|folder| folder.to_string_lossy()),
        log_tail: case.log_tail.as_deref().map(masked),
        look: &case.look,
        delete: &case.delete,
        leftovers: &case.leftovers,
        usage: (!case.usage.is_empty()).then(|| usage(&case.usage)),
    }
}

fn usage(usage: &Usage) -> CaseUsage<'_> {
    CaseUsage { instance_seconds: usage.seconds(), cost: usage.cost(), currency: &usage.currency, instances: &usage.instances }
}

fn exit(exit: &SectionExit) -> Value {
    let (code, signal) = match exit.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::NoSuccess | Exit::Unknown => (None, None),
    };
    json!({ "section": exit.section, "node": exit.node, "code": code, "signal": signal })
}

fn measurement(measurement: &Measurement) -> Value {
    let [reference, lower, upper] = limits_of(measurement).map(|limit| limit.map(figure));
    json!({
        "variable": measurement.variable,
        "key": measurement.key,
        "section": measurement.section,
        "node": measurement.node,
        "value": figure(measurement.value),
        "unit": measurement.unit,
        "reference": reference,
        "lower": lower,
        "upper": upper,
        "diff_percent": difference_of(measurement),
        "verdict": measurement.verdict.word(),
        "reason": measurement.verdict.reason(),
        "direction": measurement.direction,
    })
}

/// A number, or the name of what JSON has no number for.
fn figure(value: f64) -> Value {
    if value.is_finite() { value.into() } else { exact(value).into() }
}

#[derive(Serialize)]
struct CaseTimes {
    begun: String,
    begun_unix_us: i64,
    launched: Option<String>,
    launched_unix_us: Option<i64>,
    started: Option<String>,
    started_unix_us: Option<i64>,
    ended: Option<String>,
    ended_unix_us: Option<i64>,
    finished: String,
    finished_unix_us: i64,
    total_s: f64,
}

fn times(times: &Times) -> CaseTimes {
    let number = |at: Option<Timestamp>| at.map(|at| at.0);
    CaseTimes {
        begun: utc(times.begun),
        begun_unix_us: times.begun.0,
        launched: times.launched.map(utc),
        launched_unix_us: number(times.launched),
        started: times.started.map(utc),
        started_unix_us: number(times.started),
        ended: times.ended.map(utc),
        ended_unix_us: number(times.ended),
        finished: utc(times.finished),
        finished_unix_us: times.finished.0,
        total_s: times.total().as_secs_f64(),
    }
}

fn totals(results: &Results<'_>) -> Value {
    let (session, counts) = (results.session, results.counts());
    let mut totals = json!({
        "cases": counts.total,
        "checks": counts.checks,
        "ran": counts.ran(),
        "passed": counts.passed,
        "failed": counts.failed,
        "expected_failures": counts.expected,
        "quarantined": counts.quarantined,
        "skipped": counts.skipped,
        "aborted": counts.aborted,
        "stopped": counts.stopped,
        "not_run": counts.not_run,
        "exit_code": results.exit_code(),
        "by_outcome": counts.by_outcome,
        "figures": results.attempts().iter().map(|case| case.measurements.len()).sum::<usize>() + results.dropped().figures,
        "attempts": results.attempts().len() + results.dropped().attempts,
        "elapsed_s": session.ended.map(|ended| ended.since(session.started).as_secs_f64()),
    });
    let Total { seconds, cost, unpriced } = results.usage();
    if seconds > 0 {
        totals["usage"] = json!({ "instance_seconds": seconds, "cost": cost, "unpriced": unpriced });
    }
    totals
}

/// Pairs as a JSON object, in their order.
pub(crate) fn map(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}
