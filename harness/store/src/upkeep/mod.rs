//! The upkeep of a database: what changes results that are stored.
//!
//! ```text
//! rebuild     sessions of earlier versions into nights; summaries again from attempts and measurements
//! rename      an alias, and summaries under the new name
//! annotate    what people say of a night, a metric, a node
//! remove      sessions, those that are old, logs; then the space is given back
//! verdicts    the changes that were found in a night
//! backup      a copy of a file while others write to it
//! ```
//! Sessions may run meanwhile: each transaction is short, or waited for by the sessions.

mod backup;
mod rebuild;
mod remove;
mod rename;
mod verdicts;

pub use rebuild::Rebuilt;
pub use remove::{Keep, Pruned};

use crate::{
    Location, StoreError, connect,
    error::SqlError,
    sql::{Connection, Row, query},
    write::{self, history},
};
use muster_text::{
    diagnostic::did_you_mean,
    time::{Date, Timestamp},
    words,
};
use sqlx::Error;

/// A database, open for its upkeep.
#[derive(Debug)]
pub struct Upkeep {
    database: Location,
    connection: Connection,
}

words! {
    /// What an annotation does.
    pub enum Kind {
        /// Nothing but to be shown.
        Note = "note",
        /// The nights count for no figure.
        Maintenance = "maintenance",
        /// The level since a change is the new one.
        Accept = "accept",
        /// A change was none.
        Dismiss = "dismiss",
        /// It is shown and does not count.
        Known = "known",
    }
}

/// What people say of some nights. A scope that is `None` is all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub kind: Kind,
    pub system: Option<String>,
    pub partition: Option<String>,
    pub environ: Option<String>,
    /// A check, or a case as it is displayed.
    pub name: Option<String>,
    pub variable: Option<String>,
    pub node: Option<String>,
    pub session: Option<String>,
    /// The first night.
    pub from: Date,
    /// The last night; `None`: no end.
    pub until: Option<Date>,
    pub author: String,
    pub reason: String,
    pub link: Option<String>,
    pub created: Timestamp,
}

impl Upkeep {
    /// Opens a database that there is, brings its tables up to date, and writes what processes that are gone have kept for it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none.
    pub async fn open(database: impl Into<Location>) -> Result<Self, StoreError> {
        let database = database.into();
        if !database.exists() {
            return Err(StoreError::Missing { database });
        }
        // What is changed may be about what a session could not write.
        write::recover(&database).await?;
        let (connection, _) = connect::for_writing(&database).await?;
        Ok(Self { database, connection })
    }

    pub async fn close(self) -> Result<(), StoreError> {
        let Self { database, connection } = self;
        connection.close().await.map_err(|cause| StoreError::Write { database, cause: cause.into() })
    }

    /// How many sessions are in no night, because an earlier version has stored them.
    pub async fn num_unplaced(&mut self) -> Result<i64, StoreError> {
        let count = query("SELECT count(*) FROM session WHERE night IS NULL").fetch_scalar(&mut self.connection).await;
        count.map_err(|cause| self.unread("sessions", cause))
    }

    /// Stores what people say. Returns its number.
    ///
    /// # Errors
    /// [`StoreError::NoName`] if nothing that is stored has a name of its scope.
    pub async fn annotate(&mut self, annotation: &Annotation) -> Result<i64, StoreError> {
        let scopes = [
            ("system", &annotation.system, "SELECT DISTINCT system FROM session"),
            ("partition", &annotation.partition, "SELECT DISTINCT partition FROM subject"),
            ("environment", &annotation.environ, "SELECT DISTINCT environ FROM subject"),
            ("variable", &annotation.variable, "SELECT DISTINCT variable FROM metric"),
            ("node", &annotation.node, "SELECT DISTINCT name FROM node"),
            ("session", &annotation.session, "SELECT id FROM session"),
        ];
        for (what, name, known) in scopes {
            if let Some(name) = name {
                let known = self.names(known).await?;
                self.is_known(what, name, &known)?;
            }
        }
        if let Some(name) = &annotation.name {
            let subjects = self.names("SELECT DISTINCT name FROM subject").await?;
            let checks = subjects.iter().filter_map(|name| name.split(' ').next()).map(str::to_owned).collect::<Vec<_>>();
            self.is_known("check or case", name, &[subjects, checks].concat())?;
        }
        let a = annotation.clone();
        let insert = query(
            "INSERT INTO annotation (kind, system, partition, environ, name, variable, node, session, from_night, until, author, \
             reason, link, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id",
        );
        let insert = insert.bind(a.kind.as_str()).bind(a.system).bind(a.partition).bind(a.environ).bind(a.name);
        let insert = insert.bind(a.variable).bind(a.node).bind(a.session).bind(a.from.days()).bind(a.until.map(Date::days));
        let insert = insert.bind(a.author).bind(a.reason).bind(a.link).bind(a.created.0);
        let changes_verdicts = match annotation.kind {
            Kind::Note | Kind::Known => false,
            Kind::Maintenance | Kind::Accept | Kind::Dismiss => true,
        };
        let systems = match &annotation.system {
            _ if !changes_verdicts => Vec::new(),
            Some(system) => vec![system.clone()],
            None => self.names("SELECT DISTINCT system FROM night").await?,
        };
        let done = async {
            self.connection.begin().await?;
            let done = async {
                let id = insert.fetch_scalar(&mut self.connection).await?;
                for system in systems {
                    history::forget(&mut self.connection, &system, annotation.from.days()).await?;
                }
                Ok(id)
            };
            let done = done.await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))
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
