//! The columns of the tables that get many rows, each beside what is written into it. The inverse is `decode`.

use crate::{
    Statement,
    write::message::{AttemptEntry, CaseEntry, IntentEntry},
};
use muster_core::rules::perf::{Direction, Measurement};
use muster_text::time::Timestamp;
use std::sync::Arc;

/// What one row is made of: two numbers that the writer gives out, and the rest.
pub(crate) type Row<'m, T> = (i64, i64, &'m T);

/// The name of a column, and what binds its value.
pub(crate) type Columns<T> = &'static [(&'static str, fn(Statement, Row<T>) -> Statement)];

/// Of a case, the numbers are its own and its session's.
pub(crate) const CASE: Columns<CaseEntry> = &[
    ("id", |s, (id, ..)| s.bind(id)),
    ("session", |s, (_, session, _)| s.bind(session)),
    ("display", |s, (.., case)| s.bind(case.name.display.clone())),
    ("check_name", |s, (.., case)| s.bind(case.name.check.clone())),
    ("hash", |s, (.., case)| s.bind(case.name.hash.clone())),
    ("system", |s, (.., case)| s.bind(case.name.system.clone())),
    ("partition", |s, (.., case)| s.bind(case.name.partition.clone())),
    ("environ", |s, (.., case)| s.bind(case.name.environ.clone())),
    ("about", |s, (.., case)| s.bind(Arc::clone(&case.about))),
    ("hidden", |s, (.., case)| s.bind(case.name.hidden.clone())),
];

/// Of a job, the numbers are those of its session and of its case.
pub(crate) const JOB: Columns<IntentEntry> = &[
    ("session", |s, (session, ..)| s.bind(session)),
    ("identifier", |s, (.., intent)| s.bind(Arc::clone(&intent.key.identifier))),
    (r#""case""#, |s, (_, case, _)| s.bind(case)),
    ("attempt", |s, (.., intent)| s.bind(intent.attempt)),
    ("state", |s, _| s.bind("intent")),
    ("stage", |s, (.., intent)| s.bind(Arc::clone(&intent.stage))),
    ("plan", |s, (.., intent)| s.bind(Arc::clone(&intent.plan))),
    ("rules", |s, (.., intent)| s.bind(Arc::clone(&intent.rules))),
    ("limits", |s, (.., intent)| s.bind(Arc::clone(&intent.limits))),
    ("begun", |s, (.., intent)| s.bind(intent.begun.0)),
];

/// Of an attempt, the numbers are its own and its case's.
pub(crate) const ATTEMPT: Columns<AttemptEntry> = &[
    ("id", |s, (id, ..)| s.bind(id)),
    (r#""case""#, |s, (_, case, _)| s.bind(case)),
    ("number", |s, (.., entry)| s.bind(entry.result.attempt)),
    ("identifier", |s, (.., entry)| s.bind(entry.job.as_ref().map(|job| Arc::clone(&job.identifier)))),
    ("outcome", |s, (.., entry)| s.bind(entry.result.outcome.row().word)),
    ("reason", |s, (.., entry)| s.bind(entry.result.outcome.detail().map(str::to_owned))),
    ("phase", |s, (.., entry)| s.bind(entry.result.phase.as_str())),
    ("cause", |s, (.., entry)| s.bind(entry.result.cause.clone())),
    ("begun", |s, (.., entry)| s.bind(entry.result.times.begun.0)),
    ("launched", |s, (.., entry)| s.bind(time(entry.result.times.launched))),
    ("started", |s, (.., entry)| s.bind(time(entry.result.times.started))),
    ("ended", |s, (.., entry)| s.bind(time(entry.result.times.ended))),
    ("finished", |s, (.., entry)| s.bind(entry.result.times.finished.0)),
    ("folder", |s, (.., entry)| s.bind(entry.result.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()))),
    ("detail", |s, (.., entry)| s.bind(Arc::clone(&entry.detail))),
    ("flaky", |s, (.., entry)| s.bind(i64::from(entry.result.flaky))),
    ("quarantine", |s, (.., entry)| s.bind(entry.quarantine.clone())),
    ("restored_from", |s, (.., entry)| s.bind(entry.result.restored_from.as_ref().map(|session| session.0.clone()))),
];

/// Of a measurement, the numbers are that of its attempt and its position in it.
pub(crate) const MEASUREMENT: Columns<Measurement> = &[
    ("attempt", |s, (attempt, ..)| s.bind(attempt)),
    ("position", |s, (_, position, _)| s.bind(position)),
    ("variable", |s, (.., m)| s.bind(m.variable.clone())),
    ("key", |s, (.., m)| s.bind(m.key.clone())),
    ("section", |s, (.., m)| s.bind(m.section.clone())),
    ("node", |s, (.., m)| s.bind(m.node.clone())),
    // SQLite would do the same without being asked; PostgreSQL would store NaN.
    ("value", |s, (.., m)| s.bind((!m.value.is_nan()).then_some(m.value))),
    ("unit", |s, (.., m)| s.bind(m.unit.clone())),
    ("reference", |s, (.., m)| s.bind(m.bounds.as_ref().map(|bounds| bounds.reference))),
    ("lower", |s, (.., m)| s.bind(m.bounds.as_ref().and_then(|bounds| bounds.lower))),
    ("upper", |s, (.., m)| s.bind(m.bounds.as_ref().and_then(|bounds| bounds.upper))),
    ("verdict", |s, (.., m)| s.bind(m.verdict.word())),
    ("reason", |s, (.., m)| s.bind(m.verdict.reason().map(str::to_owned))),
    ("direction", |s, (.., m)| s.bind(m.direction.map(Direction::as_str))),
];

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}
