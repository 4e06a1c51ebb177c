//! Bringing the tables of a database up to date: forward only, all steps or none, safe when two processes open it.
//!
//! A step is written once, in the words of SQLite; [`crate::sql::Dialect::step`] translates it. So a step has whole words in capitals, and
//! its comments are on lines of their own.

use crate::{
    Location, StoreError,
    sql::{Connection, query},
};
use sqlx::AssertSqlSafe;

/// Step `n` of this list makes version `n + 1`. A step that has been released is never changed.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_spine.sql"),
    include_str!("migrations/0002_resume.sql"),
    include_str!("migrations/0003_rounds.sql"),
    include_str!("migrations/0004_owners.sql"),
    include_str!("migrations/0005_live.sql"),
    include_str!("migrations/0006_team.sql"),
    include_str!("migrations/0007_clock.sql"),
    include_str!("migrations/0008_questions.sql"),
    include_str!("migrations/0009_changes.sql"),
    include_str!("migrations/0010_series.sql"),
    include_str!("migrations/0011_figure_rules.sql"),
    include_str!("migrations/0012_usage.sql"),
    include_str!("migrations/0013_series_in_parts.sql"),
    include_str!("migrations/0014_whole_runs.sql"),
    include_str!("migrations/0015_fail_on_skip.sql"),
    include_str!("migrations/0016_sources.sql"),
];

/// Brings the database to the version this crate knows.
pub(crate) async fn to_newest(connection: &mut Connection, database: &Location) -> Result<(), StoreError> {
    apply(connection, database, STEPS).await
}

/// Says whether the database is of the version this crate knows.
///
/// # Errors
/// [`StoreError::OlderSchema`] or [`StoreError::NewerSchema`] if it is not.
pub(crate) async fn is_newest(connection: &mut Connection, database: &Location) -> Result<(), StoreError> {
    match missing(connection, database, STEPS).await?.first() {
        None => Ok(()),
        Some((next, _)) => Err(StoreError::OlderSchema { database: database.clone(), found: next - 1, known: newest(STEPS) }),
    }
}

async fn apply(connection: &mut Connection, database: &Location, steps: &'static [&'static str]) -> Result<(), StoreError> {
    // Looking needs no lock; most databases are up to date.
    if missing(connection, database, steps).await?.is_empty() {
        return Ok(());
    }
    let failed = |version, cause: sqlx::Error| StoreError::Migrate { database: database.clone(), version, cause: cause.into() };
    let dialect = connection.dialect();
    connection.script(dialect.begin_alone()).await.map_err(|cause| failed(newest(steps), cause))?;
    let result = async {
        // Another process may have been faster.
        for (version, step) in missing(connection, database, steps).await? {
            apply_one(connection, version, step).await.map_err(|cause| failed(version, cause))?;
        }
        connection.commit().await.map_err(|cause| failed(newest(steps), cause))
    };
    let result = result.await;
    if result.is_err() {
        // Fails only if it was rolled back already.
        let _ = connection.rollback().await;
    }
    result
}

async fn apply_one(connection: &mut Connection, version: i64, step: &'static str) -> Result<(), sqlx::Error> {
    let dialect = connection.dialect();
    if version == 1 {
        connection.script(AssertSqlSafe(dialect.first_step())).await?;
    }
    connection.script(AssertSqlSafe(dialect.step(version, step))).await?;
    let row = query("INSERT INTO schema_version (version, applied) VALUES ($1, CURRENT_TIMESTAMP)").bind(version);
    row.execute(connection).await.map(drop)
}

/// The steps that this database has not seen, each with the version it makes.
async fn missing(
    connection: &mut Connection,
    database: &Location,
    steps: &'static [&'static str],
) -> Result<Vec<(i64, &'static str)>, StoreError> {
    let found = version(connection, database).await?;
    let known = newest(steps);
    if found > known {
        return Err(StoreError::NewerSchema { database: database.clone(), found, known });
    }
    Ok((1..).zip(steps.iter().copied()).filter(|(version, _)| *version > found).collect())
}

/// Whether it is a database of Muster, whatever its version.
pub(crate) async fn is_ours(connection: &mut Connection) -> bool {
    query("SELECT count(*) FROM schema_version").fetch_scalar::<i64>(connection).await.is_ok()
}

/// 0 for an empty database.
async fn version(connection: &mut Connection, database: &Location) -> Result<i64, StoreError> {
    let failed = |cause: sqlx::Error| StoreError::Open { database: database.clone(), cause: cause.into() };
    let rows = query(connection.dialect().tables()).fetch_all(connection).await.map_err(failed)?;
    let tables: Vec<&str> = rows.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>().map_err(failed)?;
    if tables.is_empty() {
        return Ok(0);
    }
    if !tables.contains(&"schema_version") {
        return Err(StoreError::Foreign { database: database.clone() });
    }
    let newest = query("SELECT coalesce(max(version), 0) FROM schema_version");
    newest.fetch_scalar(connection).await.map_err(failed)
}

fn newest(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
    use std::sync::LazyLock;

    /// What a later muster might have: our steps and one more.
    static LATER: LazyLock<Vec<&str>> =
        LazyLock::new(|| [STEPS, &["ALTER TABLE session ADD COLUMN seed INTEGER; UPDATE session SET seed = 7;"]].concat());

    static BROKEN: LazyLock<Vec<&str>> =
        LazyLock::new(|| [STEPS, &["CREATE TABLE more (id INTEGER); INSERT INTO nothing VALUES (1);"]].concat());

    async fn file(folder: &tempfile::TempDir) -> Connection {
        let options = SqliteConnectOptions::new().filename(folder.path().join("results.db")).create_if_missing(true);
        Connection::Sqlite(options.connect().await.unwrap())
    }

    async fn number(connection: &mut Connection, text: &'static str) -> i64 {
        query(text).fetch_scalar(connection).await.unwrap()
    }

    const INSERT: &str =
        "INSERT INTO session (number, id, started, command, system, user_name, host, workdir, version, num_cases,
        interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id)
        VALUES (1, 'a', 1, '[]', '', '', '', '', '', 0, 0, '', 0, 0, '')";

    #[tokio::test]
    async fn an_empty_file_gets_all_steps_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        for _ in 0..2 {
            to_newest(&mut connection, &"results.db".into()).await.unwrap();
            assert_eq!(number(&mut connection, "SELECT count(*) FROM schema_version").await, newest(STEPS));
        }
    }

    #[tokio::test]
    async fn an_older_file_keeps_its_rows_and_gets_the_missing_steps() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        to_newest(&mut connection, &"results.db".into()).await.unwrap();
        connection.script(INSERT).await.unwrap();
        apply(&mut connection, &"results.db".into(), &LATER).await.unwrap();
        assert_eq!(number(&mut connection, "SELECT seed FROM session").await, 7);
        assert_eq!(number(&mut connection, "SELECT max(version) FROM schema_version").await, newest(&LATER));
    }

    #[tokio::test]
    async fn runs_of_an_older_file_get_their_session_time_and_bounds() {
        const ROWS: &str = r#"INSERT INTO subject VALUES (1, 's', 'p', 'e', 'c');
            INSERT INTO metric (id, subject, variable, key, unit) VALUES (1, 1, 'v', '', ''), (2, 1, 't', 'k', ''), (3, 1, 'gone', '', '');
            INSERT INTO basis VALUES (1, '', '', '');
            INSERT INTO "case" (id, session, display, check_name, hash, system, partition, environ, about)
            VALUES (5, 1, 'c', 'c', '', 's', 'p', 'e', '{}');
            INSERT INTO attempt (id, "case", number, outcome, reason, phase, begun, finished, detail)
            VALUES (7, 5, 1, 'fail', 'sanity', '', 10, 20, '{}'), (8, 5, 2, 'fail', 'performance', '', 30, 40, '{}'),
            (9, 5, 3, 'pass', NULL, '', 50, 60, '{}');
            INSERT INTO measurement (attempt, position, variable, key, value, unit, reference, lower, upper, verdict)
            VALUES (8, 0, 't', 'k', 1, '', 5, NULL, 6, 'pass'), (8, 1, 'v', NULL, 2, '', 7, 6, NULL, 'pass'),
            (8, 2, 'v', NULL, 2, '', 8, NULL, NULL, 'pass'), (9, 0, 'v', NULL, 2, '', 9, NULL, NULL, 'pass');
            INSERT INTO run_figure (metric, night, "case", repeat, value, basis)
            VALUES (1, 0, 5, 0, 2, 1), (1, 0, 5, 3, 2, 1), (2, 0, 5, 0, 1, 1), (3, 0, 5, 0, 1, 1), (1, 0, 99, 0, 2, 1);"#;
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        apply(&mut connection, &"results.db".into(), &STEPS[..13]).await.unwrap();
        connection.script(INSERT).await.unwrap();
        connection.script(ROWS).await.unwrap();
        to_newest(&mut connection, &"results.db".into()).await.unwrap();
        let rows = query(
            r#"SELECT metric || ' ' || "case" || ' ' || repeat || ': ' || coalesce(session || ' ' || finished || ' ' ||
            coalesce(reference, '-') || ' ' || coalesce(lower, '-') || ' ' || coalesce(upper, '-'), 'none') FROM run_figure"#,
        );
        let rows = rows.fetch_all(&mut connection).await.unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.try_get(0).unwrap()).collect();
        assert_eq!(
            rows,
            ["1 5 0: 1 40 7.0 6.0 -", "1 5 3: 1 60 9.0 - -", "1 99 0: none", "2 5 0: 1 40 5.0 - 6.0", "3 5 0: 1 40 - - -"]
        );
    }

    #[tokio::test]
    async fn a_newer_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        apply(&mut connection, &"results.db".into(), &LATER).await.unwrap();
        let error = to_newest(&mut connection, &"results.db".into()).await.unwrap_err();
        assert!(
            matches!(error, StoreError::NewerSchema { found, known, .. } if found == newest(&LATER) && known == newest(STEPS)),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_step_that_fails_undoes_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        let error = apply(&mut connection, &"results.db".into(), &BROKEN).await.unwrap_err();
        assert!(matches!(error, StoreError::Migrate { version, .. } if version == newest(&BROKEN)), "{error:?}");
        assert_eq!(number(&mut connection, "SELECT count(*) FROM sqlite_master").await, 0);
        to_newest(&mut connection, &"results.db".into()).await.unwrap();
    }

    #[tokio::test]
    async fn somebody_elses_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        connection.script("CREATE TABLE bookmarks (url TEXT)").await.unwrap();
        let error = to_newest(&mut connection, &"results.db".into()).await.unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
        assert_eq!(number(&mut connection, "SELECT count(*) FROM sqlite_master").await, 1);
    }
}
