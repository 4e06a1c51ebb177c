//! Results databases for tests: from SQL, as earlier versions have stored them, and on a PostgreSQL server. SQLite stays out of the other
//! tests.

pub mod server;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::runtime::{Builder, Runtime};

/// Makes the database with these statements.
///
/// # Errors
/// A file that cannot be written, or a statement that fails.
pub fn create(path: &Path, statements: &str) -> Result<(), sqlx::Error> {
    finish(async {
        let mut connection = open(path).await?;
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut connection).await?;
        connection.close().await
    })
}

/// Every column, as `table.column`.
///
/// # Errors
/// A file that is not there, or that is no database.
pub fn columns(path: &Path) -> Result<BTreeSet<String>, sqlx::Error> {
    const COLUMNS: &str =
        "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'";
    finish(async {
        let mut connection = open(path).await?;
        let columns: Vec<String> = sqlx::query_scalar(COLUMNS).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(columns.into_iter().collect())
    })
}

/// The rows of a query with one column of texts.
///
/// # Errors
/// A file that is not there, or a query that fails.
pub fn rows(path: &Path, query: &str) -> Result<Vec<String>, sqlx::Error> {
    finish(async {
        let mut connection = open(path).await?;
        let rows = sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(rows)
    })
}

/// Returns whether another process is within a transaction that writes.
///
/// # Errors
/// No database, or none that can be read.
pub fn is_being_written(path: &Path) -> Result<bool, sqlx::Error> {
    finish(async {
        let mut connection = open(path).await?;
        sqlx::raw_sql("PRAGMA busy_timeout = 0").execute(&mut connection).await?;
        let begun = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await;
        let is_busy = match &begun {
            Ok(_) => false,
            Err(sqlx::Error::Database(error)) if error.message().contains("locked") => true,
            Err(_) => return begun.map(|_| false),
        };
        connection.close().await?;
        Ok(is_busy)
    })
}

/// A database to which nobody else can write, until this is dropped.
pub struct Locked {
    runtime: Runtime,
    connection: Option<SqliteConnection>,
}

impl Locked {
    /// Begins a transaction that writes.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn new(path: &Path) -> Result<Self, sqlx::Error> {
        let runtime = runtime()?;
        let connection = runtime.block_on(async {
            let mut connection = open(path).await?;
            sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await?;
            Ok::<_, sqlx::Error>(connection)
        })?;
        Ok(Self { runtime, connection: Some(connection) })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = self.runtime.block_on(connection.close());
        }
    }
}

async fn open(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).disable_statement_logging().connect().await
}

fn finish<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    runtime()?.block_on(work)
}

fn runtime() -> Result<Runtime, sqlx::Error> {
    Builder::new_current_thread().enable_all().build().map_err(sqlx::Error::Io)
}
