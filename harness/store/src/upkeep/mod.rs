//! The upkeep of a database: what changes results that are stored.
//!
//! ```text
//! rebuild     sessions of earlier versions into nights; summaries again from attempts and measurements
//! rename      an alias, and summaries under the new name; or taken back
//! annotate    what people say of a night, a metric, a node; or taken back
//! going       which sessions and logs, before they are removed
//! remove      sessions, those that are old, logs; then the space is given back
//! verdicts    the changes that were found in a night
//! backup      a copy of a file while others write to it
//! ```
//! Sessions may run meanwhile: each transaction is short, or waited for by the sessions.

mod annotate;
mod backup;
mod going;
mod rebuild;
mod remove;
mod rename;
mod verdicts;

pub use annotate::Annotation;
pub use going::Going;
pub use rebuild::Rebuilt;
pub use remove::{Keep, Space, WhyKept};
pub use rename::Alias;

use crate::{
    Location, StoreError, connect,
    error::SqlError,
    sql::{Connection, Row, query},
    write,
};
use muster_text::diagnostic::did_you_mean;
use sqlx::Error;

/// A database, open for its upkeep.
#[derive(Debug)]
pub struct Upkeep {
    database: Location,
    connection: Connection,
}

impl Upkeep {
    /// Opens a database that there is, brings its tables up to date, and writes what processes that are gone have kept for it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none.
    pub async fn open(database: impl Into<Location>) -> Result<Self, StoreError> {
        let database = database.into();
        if !connect::exists(&database)? {
            return Err(StoreError::Missing { database });
        }
        // What is changed may be about what a session could not write.
        write::recover(&database).await?.iter().for_each(|note| tracing::warn!("{note}"));
        let (connection, _) = connect::for_writing(&database).await?;
        Ok(Self { database, connection })
    }

    pub async fn close(self) -> Result<(), StoreError> {
        let Self { database, connection } = self;
        connection.close().await.map_err(|cause| StoreError::Write { database, cause: cause.into() })
    }

    /// Returns the number of sessions in no night, because an earlier version has stored them.
    pub async fn num_unplaced(&mut self) -> Result<i64, StoreError> {
        let count = query("SELECT count(*) FROM session WHERE night IS NULL").fetch_scalar(&mut self.connection).await;
        count.map_err(|cause| self.unread("sessions", cause))
    }

    fn is_known(&self, what: &'static str, name: &str, known: &[String]) -> Result<(), StoreError> {
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        let hint = did_you_mean(name, known.iter().map(String::as_str)).map(|hint| format!(": {hint}")).unwrap_or_default();
        Err(StoreError::NoName { database: self.database.clone(), what, name: name.to_owned(), hint })
    }

    /// The first column of all rows.
    async fn names(&mut self, text: &'static str) -> Result<Vec<String>, StoreError> {
        let rows = query(text).fetch_all(&mut self.connection).await;
        let names = rows.and_then(|rows| rows.iter().map(|row: &Row| row.try_get(0)).collect());
        names.map_err(|cause| self.unread("names", cause))
    }

    fn unread(&self, what: &'static str, cause: Error) -> StoreError {
        StoreError::Read { database: self.database.clone(), what, cause: cause.into() }
    }

    fn unwritten(&self, cause: impl Into<SqlError>) -> StoreError {
        StoreError::Write { database: self.database.clone(), cause: cause.into() }
    }
}

/// Ends a transaction that has begun: with all of it, or nothing.
async fn ended<T>(connection: &mut Connection, done: Result<T, Error>) -> Result<T, Error> {
    match done {
        Ok(done) => connection.commit().await.map(|()| done),
        Err(error) => {
            // Fails only if the database has rolled back already.
            let _ = connection.rollback().await;
            Err(error)
        }
    }
}
