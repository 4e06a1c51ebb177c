//! Reads the JSON run report back, for `muster results import`. The inverse of `json`.

use crate::RenderError;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::scheduler::{Exit, NodeSeen, SectionExit},
    night::FigureRules,
    result::{About, CaseResult, Counting, Phase, Quarantine, Session, Times},
    rules::perf::{Bounds, Direction, Measurement},
    usage::Usage,
};
use muster_text::{Value, time::Timestamp};
use serde::{Deserialize, de::DeserializeOwned};

const READ: &str = "read the run report";

#[derive(Deserialize)]
struct File {
    report_version: String,
    session: Head,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Head {
    id: SessionId,
    started_unix_us: Timestamp,
    ended_unix_us: Option<Timestamp>,
    command: Vec<String>,
    system: String,
    user: String,
    host: String,
    workdir: String,
    version: String,
    num_cases: u32,
    interrupted: bool,
    #[serde(default)]
    counting: Counting,
    #[serde(default)]
    fail_on_skip: bool,
    #[serde(default)]
    extras: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    check: String,
    hash: String,
    system: String,
    partition: String,
    environ: String,
    descr: String,
    file: String,
    tags: Vec<String>,
    maintainers: Vec<String>,
    parameters: serde_json::Map<String, Value>,
    scheduler: String,
    num_tasks: u32,
    #[serde(default)]
    check_hash: String,
    #[serde(default)]
    manifest_hash: String,
    #[serde(default)]
    night: FigureRules,
    identifier: Option<Identifier>,
    #[serde(default)]
    hidden: String,
    attempt: u32,
    #[serde(default)]
    flaky: bool,
    #[serde(default)]
    quarantine: Option<Quarantine>,
    #[serde(default)]
    restored_from: Option<SessionId>,
    outcome: Word,
    phase: Phase,
    cause: Option<String>,
    warnings: Vec<String>,
    nodes: Vec<String>,
    exits: Vec<SectionEnd>,
    measurements: Vec<Figure>,
    times: Clock,
    folder: Option<String>,
    log_tail: Option<String>,
    look: Vec<String>,
    delete: Vec<String>,
    leftovers: Vec<String>,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    described_nodes: Vec<NodeSeen>,
}

/// An outcome: `fail` and `sanity`.
#[derive(Deserialize)]
struct Word {
    word: String,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct SectionEnd {
    section: String,
    node: Option<String>,
    code: Option<i32>,
    signal: Option<i32>,
}

#[derive(Deserialize)]
struct Figure {
    variable: String,
    key: Option<String>,
    section: Option<String>,
    node: Option<String>,
    value: Value,
    unit: String,
    reference: Option<Value>,
    lower: Option<Value>,
    upper: Option<Value>,
    verdict: String,
    reason: Option<String>,
    direction: Option<Direction>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "keys of the report")]
struct Clock {
    begun_unix_us: Timestamp,
    launched_unix_us: Option<Timestamp>,
    started_unix_us: Option<Timestamp>,
    ended_unix_us: Option<Timestamp>,
    finished_unix_us: Timestamp,
}

/// Returns whether a JSON document is a run report of Muster, not one of ReFrame.
pub fn is_one(document: &Value) -> bool {
    document.get("report_version").is_some()
}

/// The session and its attempts.
///
/// # Errors
/// Text that is no run report, or one of a later version of the format.
pub fn read(document: Value) -> Result<(Session, Vec<CaseResult>), RenderError> {
    let failed = |cause: String| RenderError::of::<String>(READ)(cause);
    let file: File = serde_json::from_value(document).map_err(RenderError::of(READ))?;
    if !file.report_version.starts_with("1.") {
        return Err(failed(format!("its version is {}, and this muster knows 1.x", file.report_version)));
    }
    let cases = file.cases.into_iter().map(case).collect::<Result<_, _>>().map_err(failed)?;
    Ok((session(file.session), cases))
}

fn session(head: Head) -> Session {
    Session {
        id: head.id,
        started: head.started_unix_us,
        ended: head.ended_unix_us,
        command: head.command,
        system: head.system,
        user: head.user,
        host: head.host,
        workdir: head.workdir.into(),
        version: head.version,
        num_cases: head.num_cases,
        interrupted: head.interrupted,
        counting: head.counting,
        fail_on_skip: head.fail_on_skip,
        extras: texts(head.extras),
        ..Session::default()
    }
}

fn case(case: Case) -> Result<CaseResult, String> {
    let name = CaseName {
        display: case.name,
        check: case.check,
        hash: case.hash,
        system: case.system,
        partition: case.partition,
        environ: case.environ,
        hidden: case.hidden,
    };
    let of = name.to_string();
    Ok(CaseResult {
        about: About {
            descr: case.descr,
            tags: case.tags,
            maintainers: case.maintainers,
            file: case.file,
            parameters: texts(case.parameters),
            scheduler: case.scheduler.into(),
            num_tasks: case.num_tasks,
            check_hash: case.check_hash,
            manifest_hash: case.manifest_hash,
            night: case.night,
            ..About::default()
        },
        outcome: variant(&case.outcome.word, case.outcome.detail).map_err(|why| format!("{of}: {why}"))?,
        measurements: case
            .measurements
            .into_iter()
            .map(measurement)
            .collect::<Result<_, _>>()
            .map_err(|why| format!("{of}: {why}"))?,
        name,
        identifier: case.identifier,
        attempt: case.attempt,
        phase: case.phase,
        cause: case.cause,
        warnings: case.warnings,
        nodes: case.nodes,
        exits: case.exits.into_iter().map(exit).collect(),
        times: Times {
            begun: case.times.begun_unix_us,
            launched: case.times.launched_unix_us,
            started: case.times.started_unix_us,
            ended: case.times.ended_unix_us,
            finished: case.times.finished_unix_us,
        },
        folder: case.folder.map(Into::into),
        log_tail: case.log_tail,
        look: case.look,
        delete: case.delete,
        leftovers: case.leftovers,
        flaky: case.flaky,
        quarantine: case.quarantine,
        restored_from: case.restored_from,
        usage: case.usage,
        described: case.described_nodes,
        ..CaseResult::default()
    })
}

fn exit(end: SectionEnd) -> SectionExit {
    let exit = match (end.code, end.signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    };
    SectionExit { section: end.section, node: end.node, exit, ..SectionExit::default() }
}

fn measurement(figure: Figure) -> Result<Measurement, String> {
    let optional = |value: Option<Value>| value.filter(|value| !value.is_null()).map(|value| number(&value)).transpose();
    let bounds = match optional(figure.reference)? {
        Some(reference) => Some(Bounds { reference, lower: optional(figure.lower)?, upper: optional(figure.upper)? }),
        None => None,
    };
    Ok(Measurement {
        variable: figure.variable,
        key: figure.key,
        section: figure.section,
        node: figure.node,
        value: number(&figure.value)?,
        unit: figure.unit,
        bounds,
        verdict: variant(&figure.verdict, figure.reason)?,
        direction: figure.direction,
    })
}

/// A number, or the name of one that JSON has none for.
fn number(value: &Value) -> Result<f64, String> {
    let named = value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or(named).ok_or_else(|| format!("{value} is not a number"))
}

/// An enum by its word and what is in its brace.
fn variant<T: DeserializeOwned>(word: &str, detail: Option<String>) -> Result<T, String> {
    let value = match detail {
        None => Value::from(word),
        Some(detail) => Value::Object([(word.to_owned(), Value::from(detail))].into_iter().collect()),
    };
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Pairs of an object, in their order.
fn texts(map: serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    map.into_iter().map(|(name, value)| (name, text(value))).collect()
}
