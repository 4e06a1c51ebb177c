//! ReFrame's results database, for reading only: a row for each session, with its whole run report as JSON.

use crate::{Location, StoreError};
use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};
use std::path::Path;

/// An open database of ReFrame.
#[derive(Debug)]
pub struct ReframeDatabase {
    location: Location,
    connection: SqliteConnection,
}

impl ReframeDatabase {
    /// Opens a database of ReFrame 4.7 or later.
    ///
    /// # Errors
    /// [`StoreError::NotReframe`] if it has other tables.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let location = Location::from(path);
        let failed = |cause: sqlx::Error| StoreError::Open { database: Location::from(path), cause: cause.into() };
        let options = SqliteConnectOptions::new().filename(path).read_only(true);
        let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
        let text = "SELECT count(*) FROM sqlite_master WHERE name IN ('sessions', 'testcases', 'metadata')";
        let tables: i64 = sqlx::query_scalar(text).fetch_one(&mut connection).await.map_err(failed)?;
        if tables < 3 {
            return Err(StoreError::NotReframe { database: location });
        }
        Ok(Self { location, connection })
    }

    /// The ids of its sessions, the oldest first.
    pub async fn sessions(&mut self) -> Result<Vec<String>, StoreError> {
        let text = "SELECT uuid FROM sessions ORDER BY session_start_unix, uuid";
        let ids = sqlx::query_scalar(text).fetch_all(&mut self.connection).await;
        ids.map_err(|cause| self.failed("sessions", cause))
    }

    /// The run report of a session.
    pub async fn report(&mut self, session: &str) -> Result<String, StoreError> {
        let text = "SELECT json_blob FROM sessions WHERE uuid = $1";
        let row = sqlx::query(text).bind(session.to_owned()).fetch_one(&mut self.connection).await;
        row.and_then(|row| row.try_get(0)).map_err(|cause| self.failed("a session", cause))
    }

    fn failed(&self, what: &'static str, cause: sqlx::Error) -> StoreError {
        StoreError::Read { database: self.location.clone(), what, cause: cause.into() }
    }
}
