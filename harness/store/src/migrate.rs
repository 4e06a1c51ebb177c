//! Bringing a file's tables up to date: forward only, all steps or none, whoever comes first.

use crate::StoreError;
use sqlx::SqliteConnection;
use std::path::Path;

/// Step `n` of this list makes version `n + 1`. A step that has been released is never changed.
const STEPS: &[&str] = &[include_str!("migrations/0001_spine.sql")];

/// Brings the file to the version this crate knows.
pub(crate) async fn to_newest(connection: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    apply(connection, path, STEPS).await
}

async fn apply(connection: &mut SqliteConnection, path: &Path, steps: &'static [&'static str]) -> Result<(), StoreError> {
    // Looking needs no lock; most files are up to date.
    if missing(connection, path, steps).await?.is_empty() {
        return Ok(());
    }
    let failed = |version, cause| StoreError::Migrate { path: path.to_owned(), version, cause };
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
    let failed = |cause| StoreError::Open { path: path.to_owned(), cause };
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
