//! The statements that write, for as many rows at once as there are: a statement costs a trip to the thread that owns
//! the connection, so 32 rows of one kind go in one.

use crate::{
    Statement,
    write::{
        columns::{self, Columns, Row},
        message::{AttemptEntry, CaseEntry, IntentEntry},
    },
};
use muster_core::rules::perf::Measurement;
use sqlx::{AssertSqlSafe, SqliteConnection};
use std::{fmt::Write, sync::Arc};

/// Deletes the attempts that a signal aborted, so that they run again. If something of an attempt may be left, its plan stays, in
/// state `intent`: it may or may not have been launched.
pub(crate) const REOPEN: [&str; 4] = [
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
    fn new(head: &str, columns: usize, tail: &str) -> Self {
        Self(std::array::from_fn(|power| {
            let rows: Vec<String> = (0..1 << power).map(|row| placeholders(row * columns, columns)).collect();
            format!("{head} {} {tail}", rows.join(", ")).into()
        }))
    }

    fn insert(table: &str, columns: &[&str]) -> Self {
        Self::new(&format!("INSERT INTO {table} ({}) VALUES", columns.join(", ")), columns.len(), "")
    }

    /// `values` names its columns `column1`, `column2` in SQLite as in PostgreSQL.
    fn update_job(set: &str, columns: usize, only: &str) -> Self {
        let tail = format!(
            ") AS row WHERE job.session = (SELECT number FROM session WHERE id = row.column1) \
             AND job.identifier = row.column2 {only}"
        );
        Self::new(&format!("UPDATE job SET {set} FROM (VALUES"), columns, &tail)
    }

    /// Executes the statement for all rows.
    pub(crate) async fn execute<T: Sync>(
        &self,
        connection: &mut SqliteConnection,
        rows: &[T],
        bind: impl Fn(Statement, &T) -> Statement + Send,
    ) -> Result<(), sqlx::Error> {
        let mut rest = rows;
        while !rest.is_empty() {
            let power = rest.len().ilog2().min(5);
            let (now, later) = rest.split_at(1 << power);
            let text = AssertSqlSafe(Arc::clone(&self.0[power as usize]));
            now.iter().fold(sqlx::query(text), &bind).execute(&mut *connection).await?;
            rest = later;
        }
        Ok(())
    }
}

/// `($4, $5, $6)`
fn placeholders(before: usize, columns: usize) -> String {
    let mut text = String::from("(");
    for column in 1..=columns {
        let comma = if column == 1 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}${}", before + column);
    }
    text.push(')');
    text
}

/// The insertion of rows of one table.
pub(crate) struct Insert<T: 'static> {
    statement: ForRows,
    columns: Columns<T>,
}

impl<T: Sync> Insert<T> {
    fn into(table: &str, columns: Columns<T>) -> Self {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        Self { statement: ForRows::insert(table, &names), columns }
    }

    pub(crate) async fn execute(&self, connection: &mut SqliteConnection, rows: &[Row<'_, T>]) -> Result<(), sqlx::Error> {
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
}

impl Statements {
    pub(crate) fn new() -> Self {
        Self {
            case: Insert::into(r#""case""#, columns::CASE),
            intent: Insert::into("job", columns::JOB),
            // A state only ever moves forward, whatever order the news comes in.
            launched: ForRows::update_job(
                "launched = row.column3, launched_at = row.column4, \
                 state = CASE job.state WHEN 'intent' THEN 'launched' ELSE job.state END",
                4,
                "",
            ),
            attempt: Insert::into("attempt", columns::ATTEMPT),
            measurement: Insert::into("measurement", columns::MEASUREMENT),
            ended: ForRows::update_job("state = 'ended'", 2, "AND job.state <> 'cleaned'"),
            cleaned: ForRows::update_job("state = 'cleaned'", 2, ""),
            swept: ForRows::update_job("swept = 1", 2, "AND job.state IN ('intent', 'launched')"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::connect;
    use sqlx::Row;

    #[test]
    fn a_statement_numbers_its_placeholders_through_all_rows() {
        let statement = ForRows::insert("t", &["a", "b"]);
        assert_eq!(&*statement.0[0], "INSERT INTO t (a, b) VALUES ($1, $2) ");
        assert_eq!(&*statement.0[1], "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4) ");
        assert!(statement.0[5].ends_with("($63, $64) "));
    }

    /// How SQLite would go about a statement.
    async fn plan(statement: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (mut connection, _) = connect::for_writing(&folder.path().join("results.db")).await.unwrap();
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        let steps = sqlx::query(explain).fetch_all(&mut connection).await.unwrap();
        steps.iter().map(|step| step.get::<String, _>("detail") + "\n").collect()
    }

    #[tokio::test]
    async fn a_job_is_found_by_its_index_however_many_change() {
        let statements = Statements::new();
        for statement in [&statements.launched, &statements.ended, &statements.cleaned, &statements.swept] {
            for text in &statement.0 {
                let plan = plan(text).await;
                let search = plan.lines().find(|step| step.starts_with("SEARCH job")).unwrap_or_default();
                assert!(search.ends_with("sqlite_autoindex_job_1 (session=? AND identifier=?)"), "{plan}");
            }
        }
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
