//! Bringing a file's tables up to date: forward only, all steps or none, safe when two processes open the file.

use crate::StoreError;
use sqlx::SqliteConnection;
use std::path::Path;

/// Step `n` of this list makes version `n + 1`. A step that has been released is never changed.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_spine.sql"),
    include_str!("migrations/0002_resume.sql"),
    include_str!("migrations/0003_rounds.sql"),
    include_str!("migrations/0004_owners.sql"),
    include_str!("migrations/0005_live.sql"),
    include_str!("migrations/0006_team.sql"),
];

/// Brings the file to the version this crate knows.
pub(crate) async fn to_newest(connection: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    apply(connection, path, STEPS).await
}

/// Says whether the file is of the version this crate knows.
///
/// # Errors
/// [`StoreError::OlderSchema`] or [`StoreError::NewerSchema`] if it is not.
pub(crate) async fn is_newest(connection: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    match missing(connection, path, STEPS).await?.first() {
        None => Ok(()),
        Some((next, _)) => Err(StoreError::OlderSchema { path: path.to_owned(), found: next - 1, known: newest(STEPS) }),
    }
}

async fn apply(connection: &mut SqliteConnection, path: &Path, steps: &'static [&'static str]) -> Result<(), StoreError> {
    // Looking needs no lock; most files are up to date.
    if missing(connection, path, steps).await?.is_empty() {
        return Ok(());
    }
    let failed = |version, cause: sqlx::Error| StoreError::Migrate { path: path.to_owned(), version, cause: cause.into() };
    sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut *connection).await.map_err(|cause| failed(newest(steps), cause))?;
    let result = async {
        // Another process may have been faster.
        for (version, step) in missing(connection, path, steps).await? {
            apply_one(connection, version, step).await.map_err(|cause| failed(version, cause))?;
        }
        sqlx::raw_sql("COMMIT").execute(&mut *connection).await.map_err(|cause| failed(newest(steps), cause))
    };
    let result = result.await.map(|_| ());
    if result.is_err() {
        // Fails only if SQLite has rolled back already.
        let _ = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
    }
    result
}

async fn apply_one(connection: &mut SqliteConnection, version: i64, step: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied TEXT NOT NULL) STRICT")
        .execute(&mut *connection)
        .await?;
    sqlx::raw_sql(step).execute(&mut *connection).await?;
    let row = sqlx::query("INSERT INTO schema_version (version, applied) VALUES ($1, CURRENT_TIMESTAMP)").bind(version);
    row.execute(&mut *connection).await?;
    Ok(())
}

/// The steps that this file has not seen, each with the version it makes.
async fn missing(
    connection: &mut SqliteConnection,
    path: &Path,
    steps: &'static [&'static str],
) -> Result<Vec<(i64, &'static str)>, StoreError> {
    let found = version(connection, path).await?;
    let known = newest(steps);
    if found > known {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known });
    }
    Ok((1..).zip(steps.iter().copied()).filter(|(version, _)| *version > found).collect())
}

/// 0 for an empty file.
async fn version(connection: &mut SqliteConnection, path: &Path) -> Result<i64, StoreError> {
    let failed = |cause: sqlx::Error| StoreError::Open { path: path.to_owned(), cause: cause.into() };
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table'")
        .fetch_all(&mut *connection)
        .await
        .map_err(failed)?;
    if tables.is_empty() {
        return Ok(0);
    }
    if !tables.iter().any(|name| name == "schema_version") {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_version");
    newest.fetch_one(&mut *connection).await.map_err(failed)
}

fn newest(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, sqlite::SqliteConnectOptions};
    use std::sync::LazyLock;

    /// What a later muster might have: our steps and one more.
    static LATER: LazyLock<Vec<&str>> =
        LazyLock::new(|| [STEPS, &["ALTER TABLE session ADD COLUMN seed INTEGER; UPDATE session SET seed = 7;"]].concat());

    static BROKEN: LazyLock<Vec<&str>> =
        LazyLock::new(|| [STEPS, &["CREATE TABLE more (id INTEGER); INSERT INTO nothing VALUES (1);"]].concat());

    async fn file(folder: &tempfile::TempDir) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(folder.path().join("results.db")).create_if_missing(true);
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    async fn number(connection: &mut SqliteConnection, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(connection).await.unwrap()
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
            to_newest(&mut connection, Path::new("results.db")).await.unwrap();
            assert_eq!(number(&mut connection, "SELECT count(*) FROM schema_version").await, newest(STEPS));
        }
    }

    #[tokio::test]
    async fn an_older_file_keeps_its_rows_and_gets_the_missing_steps() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        to_newest(&mut connection, Path::new("results.db")).await.unwrap();
        sqlx::raw_sql(INSERT).execute(&mut connection).await.unwrap();
        apply(&mut connection, Path::new("results.db"), &LATER).await.unwrap();
        assert_eq!(number(&mut connection, "SELECT seed FROM session").await, 7);
        assert_eq!(number(&mut connection, "SELECT max(version) FROM schema_version").await, newest(&LATER));
    }

    #[tokio::test]
    async fn a_newer_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        apply(&mut connection, Path::new("results.db"), &LATER).await.unwrap();
        let error = to_newest(&mut connection, Path::new("results.db")).await.unwrap_err();
        assert!(
            matches!(error, StoreError::NewerSchema { found, known, .. } if found == newest(&LATER) && known == newest(STEPS)),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_step_that_fails_undoes_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        let error = apply(&mut connection, Path::new("results.db"), &BROKEN).await.unwrap_err();
        assert!(matches!(error, StoreError::Migrate { version, .. } if version == newest(&BROKEN)), "{error:?}");
        assert_eq!(number(&mut connection, "SELECT count(*) FROM sqlite_master").await, 0);
        to_newest(&mut connection, Path::new("results.db")).await.unwrap();
    }

    #[tokio::test]
    async fn somebody_elses_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = file(&folder).await;
        sqlx::raw_sql("CREATE TABLE bookmarks (url TEXT)").execute(&mut connection).await.unwrap();
        let error = to_newest(&mut connection, Path::new("results.db")).await.unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
        assert_eq!(number(&mut connection, "SELECT count(*) FROM sqlite_master").await, 1);
    }
}
