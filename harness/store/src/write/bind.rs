//! Values into statements, in the order of their columns: the inverse is `decode`.

use crate::{
    Statement,
    write::message::{AttemptEntry, CaseEntry, IntentEntry, JobKey, Text},
};
use muster_core::rules::perf::{Direction, Measurement, Verdict};
use muster_text::time::Timestamp;
use std::sync::Arc;

pub(crate) fn case(statement: Statement, (id, session, entry): &(i64, i64, &CaseEntry)) -> Statement {
    let name = &entry.name;
    statement
        .bind(*id)
        .bind(*session)
        .bind(name.display.clone())
        .bind(name.check.clone())
        .bind(name.hash.clone())
        .bind(name.system.clone())
        .bind(name.partition.clone())
        .bind(name.environ.clone())
        .bind(Arc::clone(&entry.about))
        .bind(name.hidden.clone())
}

pub(crate) fn intent(statement: Statement, (session, case, entry): &(i64, i64, &IntentEntry)) -> Statement {
    statement
        .bind(*session)
        .bind(Arc::clone(&entry.key.identifier))
        .bind(*case)
        .bind(entry.attempt)
        .bind("intent")
        .bind(Arc::clone(&entry.stage))
        .bind(Arc::clone(&entry.plan))
        .bind(Arc::clone(&entry.rules))
        .bind(Arc::clone(&entry.limits))
        .bind(entry.begun.0)
}

pub(crate) fn job(statement: Statement, key: &JobKey) -> Statement {
    statement.bind(Arc::clone(&key.session)).bind(Arc::clone(&key.identifier))
}

pub(crate) fn job_text(statement: Statement, (key, text): &(&JobKey, &Text)) -> Statement {
    job(statement, key).bind(Arc::clone(text))
}

pub(crate) fn launched(statement: Statement, (key, text, at): &(&JobKey, &Text, Timestamp)) -> Statement {
    job_text(statement, &(*key, *text)).bind(at.0)
}

pub(crate) fn attempt(statement: Statement, (id, case, entry): &(i64, i64, &AttemptEntry)) -> Statement {
    let times = &entry.times;
    statement
        .bind(*id)
        .bind(*case)
        .bind(entry.number)
        .bind(entry.job.as_ref().map(|job| Arc::clone(&job.identifier)))
        .bind(entry.outcome)
        .bind(entry.reason.clone())
        .bind(entry.phase)
        .bind(entry.cause.clone())
        .bind(times.begun.0)
        .bind(time(times.launched))
        .bind(time(times.started))
        .bind(time(times.ended))
        .bind(times.finished.0)
        .bind(entry.folder.clone())
        .bind(Arc::clone(&entry.detail))
        .bind(i64::from(entry.flaky))
        .bind(entry.quarantine.clone())
        .bind(entry.restored_from.clone())
}

pub(crate) fn measurement(statement: Statement, (attempt, position, m): &(i64, i64, &Measurement)) -> Statement {
    let bounds = m.bounds.as_ref();
    let (verdict, reason) = match &m.verdict {
        Verdict::None => ("none", None),
        Verdict::Pass => ("pass", None),
        Verdict::Warn => ("warn", None),
        Verdict::Fail => ("fail", None),
        Verdict::Xfail(why) => ("xfail", Some(why.clone())),
        Verdict::Xpass(why) => ("xpass", Some(why.clone())),
    };
    let direction = m.direction.map(|direction| match direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
    });
    statement
        .bind(*attempt)
        .bind(*position)
        .bind(m.variable.clone())
        .bind(m.key.clone())
        .bind(m.section.clone())
        .bind(m.node.clone())
        // SQLite would do the same without being asked; PostgreSQL would store NaN.
        .bind((!m.value.is_nan()).then_some(m.value))
        .bind(m.unit.clone())
        .bind(bounds.map(|bounds| bounds.reference))
        .bind(bounds.and_then(|bounds| bounds.lower))
        .bind(bounds.and_then(|bounds| bounds.upper))
        .bind(verdict)
        .bind(reason)
        .bind(direction)
}

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}
