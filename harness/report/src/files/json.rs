//! The JSON run report: one file a session, for programs. Its fields are described in docs/run-report.md and
//! docs/run-report.schema.json, which a test holds against what is written here.
//!
//! The content depends on the session alone, never on the options of the command that writes it. A figure that JSON
//! has no number for is the text "NaN", "inf" or "-inf". Texts are as they were collected, control characters (escaped)
//! included.

use crate::{
    RenderError,
    counts::{Counts, Results},
    text::{
        number::difference_of,
        secret::masked,
        style::is_unwanted,
        time::utc,
        words::{verdict_reason, verdict_word},
    },
};
use muster_core::{
    job::scheduler::{Exit, SectionExit},
    result::{CaseResult, Outcome, Quarantine, Session, Times},
    rules::perf::{Direction, Measurement},
};
use muster_text::{Value, time::Timestamp};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::{borrow::Cow, collections::BTreeMap, fmt::Write};

/// The version of the format. Its second number grows with every new field, the first when one changes or goes.
pub const REPORT_VERSION: &str = "1.1";

/// The report of a session. `environment` is what is known of the machines and versions it ran on.
pub fn report(results: &Results<'_>, environment: Option<&Value>) -> Result<String, RenderError> {
    let file = File {
        report_version: REPORT_VERSION,
        session: SessionView::of(results.session),
        environment,
        cases: results.attempts().iter().map(|case| CaseView::of(case)).collect(),
        totals: Totals::of(results),
    };
    written(&file)
}

/// JSON in which every control character and direction mark is escaped: the same data, and `cat` shows it safely.
pub(crate) fn written(value: &impl Serialize) -> Result<String, RenderError> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    if !text.chars().any(is_unwanted) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unwanted(c) {
            // All of them have four digits, and none stands outside of a text.
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
    session: SessionView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a Value>,
    cases: Vec<CaseView<'a>>,
    totals: Totals,
}

#[derive(Serialize)]
struct SessionView<'a> {
    id: &'a str,
    started: String,
    started_unix_us: i64,
    ended: Option<String>,
    ended_unix_us: Option<i64>,
    /// Sessions of older versions are stored as they were typed.
    command: Vec<Cow<'a, str>>,
    system: &'a str,
    user: &'a str,
    host: &'a str,
    workdir: Cow<'a, str>,
    version: &'a str,
    num_cases: u32,
    interrupted: bool,
    counting: &'static str,
    #[serde(serialize_with = "as_map")]
    extras: &'a [(String, String)],
}

impl<'a> SessionView<'a> {
    fn of(session: &'a Session) -> Self {
        Self {
            id: &session.id.0,
            started: utc(session.started),
            started_unix_us: session.started.0,
            ended: session.ended.map(utc),
            ended_unix_us: session.ended.map(|at| at.0),
            command: session.command.iter().map(|word| masked(word)).collect(),
            system: &session.system,
            user: &session.user,
            host: &session.host,
            workdir: session.workdir.to_string_lossy(),
            version: &session.version,
            num_cases: session.num_cases,
            interrupted: session.interrupted,
            counting: session.counting.as_str(),
            extras: &session.extras,
        }
    }
}

#[derive(Serialize)]
struct CaseView<'a> {
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
    #[serde(serialize_with = "as_map")]
    parameters: &'a [(String, String)],
    scheduler: &'static str,
    num_tasks: u32,
    identifier: Option<&'a str>,
    hidden: &'a str,
    attempt: u32,
    flaky: bool,
    quarantine: Option<QuarantineView<'a>>,
    restored_from: Option<&'a str>,
    outcome: OutcomeView<'a>,
    phase: &'static str,
    cause: Option<&'a str>,
    warnings: &'a [String],
    nodes: &'a [String],
    exits: Vec<ExitView<'a>>,
    measurements: Vec<MeasurementView<'a>>,
    times: TimesView,
    folder: Option<Cow<'a, str>>,
    log_tail: Option<&'a str>,
    look: &'a [String],
    delete: &'a [String],
    leftovers: &'a [String],
}

impl<'a> CaseView<'a> {
    fn of(case: &'a CaseResult) -> Self {
        let (name, about) = (&case.name, &case.about);
        Self {
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
            parameters: &about.parameters,
            scheduler: about.scheduler.as_str(),
            num_tasks: about.num_tasks,
            identifier: case.identifier.as_ref().map(muster_core::case::Identifier::as_str),
            hidden: &name.hidden,
            attempt: case.attempt,
            flaky: case.flaky,
            quarantine: case.quarantine.as_ref().map(QuarantineView::of),
            restored_from: case.restored_from.as_ref().map(|session| session.0.as_str()),
            outcome: OutcomeView::of(&case.outcome),
            phase: case.phase.as_str(),
            cause: case.cause.as_deref(),
            warnings: &case.warnings,
            nodes: &case.nodes,
            exits: case.exits.iter().map(ExitView::of).collect(),
            measurements: case.measurements.iter().map(MeasurementView::of).collect(),
            times: TimesView::of(&case.times),
            folder: case.folder.as_ref().map(|folder| folder.to_string_lossy()),
            log_tail: case.log_tail.as_deref(),
            look: &case.look,
            delete: &case.delete,
            leftovers: &case.leftovers,
        }
    }
}

#[derive(Serialize)]
struct QuarantineView<'a> {
    reason: &'a str,
    until: String,
}

impl<'a> QuarantineView<'a> {
    fn of(quarantine: &'a Quarantine) -> Self {
        Self { reason: &quarantine.reason, until: quarantine.until.to_string() }
    }
}

#[derive(Serialize)]
struct OutcomeView<'a> {
    word: &'static str,
    detail: Option<&'a str>,
    fine: bool,
}

impl<'a> OutcomeView<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        Self { word: outcome.word(), detail: outcome.detail(), fine: outcome.is_fine() }
    }
}

#[derive(Serialize)]
struct ExitView<'a> {
    section: &'a str,
    node: Option<&'a str>,
    code: Option<i32>,
    signal: Option<i32>,
}

impl<'a> ExitView<'a> {
    fn of(exit: &'a SectionExit) -> Self {
        let (code, signal) = match exit.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
            Exit::Unknown => (None, None),
        };
        Self { section: &exit.section, node: exit.node.as_deref(), code, signal }
    }
}

#[derive(Serialize)]
struct MeasurementView<'a> {
    variable: &'a str,
    key: Option<&'a str>,
    section: Option<&'a str>,
    node: Option<&'a str>,
    value: Figure,
    unit: &'a str,
    reference: Option<Figure>,
    lower: Option<Figure>,
    upper: Option<Figure>,
    diff_percent: Option<f64>,
    verdict: &'static str,
    reason: Option<&'a str>,
    direction: Option<&'static str>,
}

impl<'a> MeasurementView<'a> {
    fn of(measurement: &'a Measurement) -> Self {
        let bounds = measurement.bounds;
        Self {
            variable: &measurement.variable,
            key: measurement.key.as_deref(),
            section: measurement.section.as_deref(),
            node: measurement.node.as_deref(),
            value: Figure(measurement.value),
            unit: &measurement.unit,
            reference: bounds.map(|bounds| Figure(bounds.reference)),
            lower: bounds.and_then(|bounds| bounds.lower).map(Figure),
            upper: bounds.and_then(|bounds| bounds.upper).map(Figure),
            diff_percent: difference_of(measurement),
            verdict: match verdict_word(&measurement.verdict) {
                "-" => "none",
                word => word,
            },
            reason: verdict_reason(&measurement.verdict),
            direction: measurement.direction.map(|direction| match direction {
                Direction::Higher => "higher",
                Direction::Lower => "lower",
            }),
        }
    }
}

/// A number, or the name of what JSON has no number for.
struct Figure(f64);

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&crate::text::number::exact(self.0))
        }
    }
}

#[derive(Serialize)]
struct TimesView {
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

impl TimesView {
    fn of(times: &Times) -> Self {
        let text = |at: Option<Timestamp>| at.map(utc);
        let number = |at: Option<Timestamp>| at.map(|at| at.0);
        Self {
            begun: utc(times.begun),
            begun_unix_us: times.begun.0,
            launched: text(times.launched),
            launched_unix_us: number(times.launched),
            started: text(times.started),
            started_unix_us: number(times.started),
            ended: text(times.ended),
            ended_unix_us: number(times.ended),
            finished: utc(times.finished),
            finished_unix_us: times.finished.0,
            total_s: times.total().as_secs_f64(),
        }
    }
}

#[derive(Serialize)]
struct Totals {
    cases: u32,
    checks: u32,
    ran: u32,
    passed: u32,
    failed: u32,
    expected_failures: u32,
    quarantined: u32,
    skipped: u32,
    aborted: u32,
    stopped: u32,
    not_run: u32,
    by_outcome: BTreeMap<String, u32>,
    figures: usize,
    attempts: usize,
    elapsed_s: Option<f64>,
}

impl Totals {
    fn of(results: &Results<'_>) -> Self {
        let session = results.session;
        let Counts { total, checks, passed, failed, expected, quarantined, skipped, aborted, stopped, not_run, .. } =
            results.counts();
        Self {
            cases: total,
            checks,
            ran: results.counts().ran(),
            passed,
            failed,
            expected_failures: expected,
            quarantined,
            skipped,
            aborted,
            stopped,
            not_run,
            by_outcome: results.counts().by_outcome,
            figures: results.attempts().iter().map(|case| case.measurements.len()).sum(),
            attempts: results.attempts().len(),
            elapsed_s: session.ended.map(|ended| ended.since(session.started).as_secs_f64()),
        }
    }
}

/// Pairs as a JSON object, in their order.
pub(crate) fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
