//! The statements that write, for as many rows at once as there are: a statement costs a trip to the thread that owns
//! the connection, so 32 rows of one kind go in one.

use crate::{
    sql::{Connection, Dialect, Row as Answer, Statement, query},
    write::{
        live::LiveRow,
        message::{AttemptEntry, CaseEntry, IntentEntry},
    },
};
use muster_core::{
    rules::perf::{Direction, Measurement},
    usage::Usage,
};
use muster_text::time::Timestamp;
use sqlx::AssertSqlSafe;
use std::sync::Arc;

/// What one row is made of: two numbers that the writer gives out, and the rest.
pub(crate) type Row<'m, T> = (i64, i64, &'m T);

/// The columns of a table that gets many rows, each beside what is written into it. The inverse is `decode`.
type Columns<T> = &'static [(&'static str, fn(Statement, Row<T>) -> Statement)];

/// Of a case, the numbers are its own and its session's.
const CASE: Columns<CaseEntry> = &[
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
const JOB: Columns<IntentEntry> = &[
    ("session", |s, (session, ..)| s.bind(session)),
    ("identifier", |s, (.., intent)| s.bind(Arc::clone(&intent.key.identifier))),
    (r#""case""#, |s, (_, case, _)| s.bind(case)),
    ("attempt", |s, (.., intent)| s.bind(intent.attempt)),
    ("purpose", |s, (.., intent)| s.bind(intent.purpose.as_str())),
    ("state", |s, _| s.bind("intent")),
    ("stage", |s, (.., intent)| s.bind(Arc::clone(&intent.stage))),
    ("plan", |s, (.., intent)| s.bind(Arc::clone(&intent.plan))),
    ("rules", |s, (.., intent)| s.bind(Arc::clone(&intent.rules))),
    ("limits", |s, (.., intent)| s.bind(Arc::clone(&intent.limits))),
    ("begun", |s, (.., intent)| s.bind(intent.begun.0)),
];

/// Of an attempt, the numbers are its own and its case's.
const ATTEMPT: Columns<AttemptEntry> = &[
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
    ("purpose", |s, (.., entry)| s.bind(entry.result.purpose.as_str())),
    ("instance_seconds", |s, (.., entry)| s.bind(used(entry).map(|usage| i64::try_from(usage.seconds()).unwrap_or(i64::MAX)))),
    ("cost", |s, (.., entry)| s.bind(entry.result.usage.cost())),
    ("currency", |s, (.., entry)| s.bind(used(entry).map(|usage| usage.currency.clone()))),
    ("restored_from", |s, (.., entry)| s.bind(entry.result.restored_from.as_ref().map(|session| session.0.clone()))),
];

/// Of a measurement, the numbers are that of its attempt and its position in it.
const MEASUREMENT: Columns<Measurement> = &[
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

/// Of a state, the numbers are those of its case and of its session.
const LIVE: Columns<LiveRow> = &[
    (r#""case""#, |s, (case, ..)| s.bind(case)),
    ("session", |s, (_, session, _)| s.bind(session)),
    ("change", |s, (.., row)| s.bind(row.change)),
    ("attempt", |s, (.., row)| s.bind(row.progress.attempt)),
    ("state", |s, (.., row)| s.bind(row.progress.state.as_str())),
    ("since", |s, (.., row)| s.bind(row.progress.since.0)),
    ("note", |s, (.., row)| s.bind(row.progress.note.clone())),
    ("nodes", |s, (.., row)| s.bind(row.nodes())),
];

/// Takes the place of the state before, which began earlier if it is the same. The result of an attempt is its last state: what was
/// reported before may be written after it, if more has queued than one transaction takes.
const LIVE_INSTEAD: &str = r#"ON CONFLICT ("case") DO UPDATE SET change = excluded.change, attempt = excluded.attempt,
    state = excluded.state, note = excluded.note, nodes = excluded.nodes, since = CASE
    WHEN live.state = excluded.state AND live.attempt = excluded.attempt THEN live.since ELSE excluded.since END
    WHERE excluded.state = 'ended' OR live.state <> 'ended' OR excluded.attempt > live.attempt"#;

fn used(entry: &AttemptEntry) -> Option<&Usage> {
    Some(&entry.result.usage).filter(|usage| !usage.is_empty())
}

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}

/// Deletes the attempts that a signal aborted, so that they run again. If something of an attempt may be left, its plan stays, in
/// state `intent`: it may or may not have been launched.
pub(crate) const REOPEN: [&str; 5] = [
    r#"UPDATE live SET state = 'waiting', note = NULL, nodes = NULL,
    change = (SELECT coalesce(max(change), 0) + 1 FROM live WHERE session = $1) WHERE session = $1 AND EXISTS
    (SELECT 1 FROM attempt a WHERE a."case" = live."case" AND a.number = live.attempt AND a.outcome = 'abort')"#,
    r#"DELETE FROM measurement WHERE attempt IN (SELECT a.id FROM attempt a JOIN "case" c ON c.id = a."case"
    WHERE c.session = $1 AND a.outcome = 'abort')"#,
    r#"DELETE FROM job WHERE session = $1 AND state = 'cleaned' AND EXISTS (SELECT 1 FROM attempt a
    WHERE a."case" = job."case" AND a.number = job.attempt AND a.outcome = 'abort')"#,
    r#"UPDATE job SET state = 'intent', launched = NULL, launched_at = NULL WHERE session = $1 AND EXISTS (SELECT 1 FROM attempt a
    WHERE a."case" = job."case" AND a.number = job.attempt AND a.outcome = 'abort')"#,
    r#"DELETE FROM attempt WHERE outcome = 'abort' AND "case" IN (SELECT id FROM "case" WHERE session = $1)"#,
];

/// One statement in the forms for 1, 2, 4, 8, 16 and 32 rows: any number of rows takes few trips, and few texts stay
/// prepared.
pub(crate) struct ForRows([Arc<str>; 6]);

impl ForRows {
    pub(crate) fn new(dialect: Dialect, head: &str, columns: usize, tail: &str) -> Self {
        Self(std::array::from_fn(|power| {
            let value = |row: usize, column: usize| dialect.placeholder(row * columns + column + 1).to_string();
            let row = |row| format!("({})", (0..columns).map(|column| value(row, column)).collect::<Vec<_>>().join(", "));
            format!("{head} {} {tail}", (0..1 << power).map(row).collect::<Vec<_>>().join(", ")).into()
        }))
    }

    pub(crate) fn insert(dialect: Dialect, table: &str, columns: &[&str], tail: &str) -> Self {
        Self::new(dialect, &format!("INSERT INTO {table} ({}) VALUES", columns.join(", ")), columns.len(), tail)
    }

    /// `values` names its columns `column1`, `column2` in SQLite as in PostgreSQL.
    fn update_job(dialect: Dialect, set: &str, columns: usize, only: &str) -> Self {
        let tail = format!(
            ") AS row WHERE job.session = (SELECT number FROM session WHERE id = row.column1) \
             AND job.identifier = row.column2 {only}"
        );
        Self::new(dialect, &format!("UPDATE job SET {set} FROM (VALUES"), columns, &tail)
    }

    /// Executes the statement for all rows.
    pub(crate) async fn execute<T: Sync>(
        &self,
        connection: &mut Connection,
        rows: &[T],
        bind: impl Fn(Statement, &T) -> Statement + Send,
    ) -> Result<(), sqlx::Error> {
        for (text, rows) in self.parts(rows) {
            rows.iter().fold(query(text), &bind).execute(connection).await?;
        }
        Ok(())
    }

    /// The same of a statement that answers with rows.
    pub(crate) async fn fetch<T: Sync>(
        &self,
        connection: &mut Connection,
        rows: &[T],
        bind: impl Fn(Statement, &T) -> Statement + Send,
    ) -> Result<Vec<Answer>, sqlx::Error> {
        let mut answers = Vec::new();
        for (text, rows) in self.parts(rows) {
            answers.extend(rows.iter().fold(query(text), &bind).fetch_all(connection).await?);
        }
        Ok(answers)
    }

    /// The rows, in parts for which there is a statement.
    fn parts<'r, T>(&self, rows: &'r [T]) -> Vec<(AssertSqlSafe<Arc<str>>, &'r [T])> {
        let (mut parts, mut rest) = (Vec::new(), rows);
        while !rest.is_empty() {
            let power = rest.len().ilog2().min(5);
            let (now, later) = rest.split_at(1 << power);
            parts.push((AssertSqlSafe(Arc::clone(&self.0[power as usize])), now));
            rest = later;
        }
        parts
    }
}

/// The insertion of rows of one table.
pub(crate) struct Insert<T: 'static> {
    statement: ForRows,
    columns: Columns<T>,
}

impl<T: Sync> Insert<T> {
    fn into(dialect: Dialect, table: &str, columns: Columns<T>, tail: &str) -> Self {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        Self { statement: ForRows::insert(dialect, table, &names, tail), columns }
    }

    pub(crate) async fn execute(&self, connection: &mut Connection, rows: &[Row<'_, T>]) -> Result<(), sqlx::Error> {
        let bind = |statement, row: &Row<T>| self.columns.iter().fold(statement, |statement, (_, bind)| bind(statement, *row));
        self.statement.execute(connection, rows, bind).await
    }
}

/// All that is written for many rows.
pub(crate) struct Statements {
    pub(crate) case: Insert<CaseEntry>,
    pub(crate) intent: Insert<IntentEntry>,
    pub(crate) launched: ForRows,
    pub(crate) attempt: Insert<AttemptEntry>,
    pub(crate) measurement: Insert<Measurement>,
    pub(crate) ended: ForRows,
    pub(crate) cleaned: ForRows,
    pub(crate) swept: ForRows,
    /// The description of a case: at first it has the one that is known before it is planned.
    pub(crate) about: ForRows,
    pub(crate) live: Insert<LiveRow>,
}

impl Statements {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            case: Insert::into(dialect, r#""case""#, CASE, ""),
            intent: Insert::into(dialect, "job", JOB, ""),
            // A state only ever moves forward, whatever order the news comes in.
            launched: ForRows::update_job(
                dialect,
                "launched = row.column3, launched_at = row.column4, \
                 state = CASE job.state WHEN 'intent' THEN 'launched' ELSE job.state END",
                4,
                "",
            ),
            attempt: Insert::into(dialect, "attempt", ATTEMPT, ""),
            measurement: Insert::into(dialect, "measurement", MEASUREMENT, ""),
            ended: ForRows::update_job(dialect, "state = 'ended'", 2, "AND job.state <> 'cleaned'"),
            cleaned: ForRows::update_job(dialect, "state = 'cleaned'", 2, ""),
            swept: ForRows::update_job(dialect, "swept = 1", 2, "AND job.state IN ('intent', 'launched')"),
            about: ForRows::new(
                dialect,
                r#"UPDATE "case" SET about = row.column2 FROM (VALUES"#,
                2,
                r#") AS row WHERE "case".id = row.column1"#,
            ),
            live: Insert::into(dialect, "live", LIVE, LIVE_INSTEAD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connect, read::CHANGES};

    #[test]
    fn a_statement_has_a_placeholder_for_each_value_of_all_rows() {
        let statement = ForRows::insert(Dialect::Sqlite, "t", &["a", "b"], "");
        assert_eq!(&*statement.0[0], "INSERT INTO t (a, b) VALUES (?, ?) ");
        assert_eq!(&*statement.0[1], "INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ");
        assert_eq!(statement.0[5].matches('?').count(), 64);
        let statement = ForRows::insert(Dialect::Postgres, "t", &["a", "b"], "");
        assert_eq!(&*statement.0[1], "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4) ");
    }

    /// How SQLite would go about a statement.
    async fn plan(statement: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (mut connection, _) = connect::for_writing(&folder.path().join("results.db").into()).await.unwrap();
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        let steps = query(explain).fetch_all(&mut connection).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("detail").unwrap() + "\n").collect()
    }

    #[tokio::test]
    async fn a_job_is_found_by_its_index_however_many_change() {
        let statements = Statements::new(Dialect::Sqlite);
        for statement in [&statements.launched, &statements.ended, &statements.cleaned, &statements.swept] {
            for text in &statement.0 {
                let plan = plan(text).await;
                let search = plan.lines().find(|step| step.starts_with("SEARCH job")).unwrap_or_default();
                assert!(search.ends_with("sqlite_autoindex_job_1 (session=? AND identifier=?)"), "{plan}");
            }
        }
    }

    #[tokio::test]
    async fn what_has_changed_is_found_by_its_index() {
        insta::assert_snapshot!(plan(CHANGES).await, @"
        SEARCH l USING INDEX live_change (session=? AND change>?)
        SCALAR SUBQUERY 1
        SEARCH session USING COVERING INDEX sqlite_autoindex_session_1 (id=?)
        SEARCH c USING INTEGER PRIMARY KEY (rowid=?)
        SEARCH a USING INDEX sqlite_autoindex_attempt_1 (case=? AND number=?) LEFT-JOIN
        ");
    }

    #[tokio::test]
    async fn a_history_reads_nothing_but_its_own_case() {
        let history = r#"SELECT a.finished, m.value FROM "case" c JOIN attempt a ON a."case" = c.id
            JOIN measurement m ON m.attempt = a.id AND m.variable = 'flops'
            WHERE c.display = 'nbody' AND c.system = 'eidf' AND c.partition = 'gpu' AND c.environ = 'default'
            ORDER BY a.finished"#;
        insta::assert_snapshot!(plan(history).await, @"
        SEARCH c USING COVERING INDEX case_history (display=? AND system=? AND partition=? AND environ=?)
        SEARCH a USING INDEX sqlite_autoindex_attempt_1 (case=?)
        SEARCH m USING PRIMARY KEY (attempt=?)
        USE TEMP B-TREE FOR ORDER BY
        ");
    }
}
