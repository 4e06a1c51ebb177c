//! The errors of the store.

use crate::Location;
use muster_core::case::SessionId;
use sqlx::{error::DatabaseError, postgres::PgDatabaseError, sqlite::SqliteError};
use std::{error::Error, fmt, io, path::PathBuf, sync::Arc};

/// A failed operation on the results database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the database cannot be made.
    #[error("create the folder {} of the results database", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// There is nothing to read yet.
    #[error("there is no results database {}", database.display())]
    Missing { database: Location },
    /// A pipe would make its reader wait for ever.
    #[error("{} is a {kind}: a results database is a file", path.display())]
    NoFile { path: PathBuf, kind: &'static str },
    /// The file cannot be opened as a database.
    #[error("open the results database {}", database.display())]
    Open {
        database: Location,
        #[source]
        cause: SqlError,
    },
    /// Another program wrote the database.
    #[error("{} is a database, but not one of muster", database.display())]
    Foreign { database: Location },
    /// A database that was to be imported.
    #[error("{} is a database, but not one of ReFrame", database.display())]
    NotReframe { database: Location },
    /// The file was written by a later muster.
    #[error("the results database {} has schema {found}, and this muster knows only {known}: use a newer one", database.display())]
    NewerSchema { database: Location, found: i64, known: i64 },
    /// The file was written by an earlier muster, and a reader changes nothing.
    #[error(
        "the results database {} has schema {found}, and this muster reads schema {known}: \
         `muster results migrate{}` brings it up to date", database.display(), database.flag()
    )]
    OlderSchema { database: Location, found: i64, known: i64 },
    /// The tables could not be brought up to date; nothing was changed.
    #[error("bring the results database {} to schema {version}", database.display())]
    Migrate {
        database: Location,
        version: i64,
        #[source]
        cause: SqlError,
    },
    /// A transaction failed and was rolled back: a full disk, a lock held for ten seconds, an identifier used twice.
    #[error("write to the results database {}", database.display())]
    Write {
        database: Location,
        #[source]
        cause: SqlError,
    },
    /// A value has no text form (a path that is not UTF-8).
    #[error("store the {what} of {of}")]
    Encode {
        what: &'static str,
        of: String,
        #[source]
        cause: serde_json::Error,
    },
    #[error("the results database {} is closed", database.display())]
    Closed { database: Location },
    /// The database is away, and what is to be written cannot be kept here either.
    #[error("write to the spool {}, while the results database is away", path.display())]
    Spool {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// The database is still away at the end.
    #[error(
        "the results database {} is locked or does not answer: {count} messages are kept in {}; the next command that writes to this database \
         on this machine writes them first", database.display(), path.display()
    )]
    Spooled { database: Location, path: PathBuf, count: u64 },
    /// Something is written for a session that was not started here.
    #[error("session {session} was not started in this store")]
    NotStarted { session: SessionId },
    /// A session of this id was written before.
    #[error("session {session} is stored already")]
    AlreadyStored { session: SessionId },
    /// A session that was to be taken over has ended, or has another owner by now.
    #[error("session {session} has been taken over by another process, or has ended")]
    Taken { session: SessionId },
    /// A query failed, or a row makes no sense.
    #[error("read {what} from the results database {}", database.display())]
    Read {
        database: Location,
        what: &'static str,
        #[source]
        cause: SqlError,
    },
    /// Nothing that is stored has this name. `hint`: what may be meant.
    #[error("no {what} in the results database {} is called `{name}`{hint}", database.display())]
    NoName { database: Location, what: &'static str, name: String, hint: String },
    #[error("`{old}` {why}")]
    Alias { old: String, why: String },
    #[error("no annotation has the number {number}: `muster results annotate --list` shows them")]
    NoAnnotation { number: i64 },
    #[error("session {session} still runs: end it first")]
    Running { session: SessionId },
    #[error("something of session {session} may be left: `muster sweep` removes it, then the session can be deleted")]
    Unswept { session: SessionId },
    #[error("no backup to {}: {why}", target.display())]
    Backup { target: Location, why: String },
    #[error("no session begins with `{prefix}`{}", as_night(prefix))]
    NoSession { prefix: String },
    #[error("several sessions begin with `{prefix}`: {}", list(matches))]
    ManySessions {
        prefix: String,
        /// Some of them, newest first.
        matches: Vec<SessionId>,
    },
}

/// The database's reason for a failure. Shared by all whose rows were in one transaction.
#[derive(Debug, Clone)]
pub struct SqlError(Arc<sqlx::Error>);

// Result codes of SQLite, without their extensions (sqlite.org/rescode.html).
const BUSY: i32 = 5;
const READ_ONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;

/// What to do about a lock.
const LOCKED: &str = ": another process, perhaps a stopped one, is writing to it; let it go on or end it (`fuser` names it), or \
                      choose another database with --db";

// States of PostgreSQL, or their first letters (postgresql.org/docs/current/errcodes-appendix.html).
/// Two transactions wait for each other, or change the same rows: one of them is rolled back, and may be tried again.
const COLLISION: [&str; 3] = ["40001", "40P01", "55P03"];
const OUT_OF_TIME: [&str; 2] = ["55P03", "57014"];
const DISK_FULL: [&str; 1] = ["53100"];
/// Integrity, data, a limit.
const ABOUT_A_ROW: [&str; 3] = ["23", "22", "54"];
/// The server ends, starts, is a copy that takes no writes yet, has no connection left, or has given this one up.
const AWAY: [&str; 7] = ["57P", "08", "25006", "25P03", "53300", "58", "XX"];

impl SqlError {
    /// SQLite's result code.
    fn code(&self) -> Option<i32> {
        let error = self.0.as_database_error()?.try_downcast_ref::<SqliteError>()?;
        error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
    }

    /// Whether PostgreSQL's state begins with one of these.
    fn has_state(&self, states: &[&str]) -> bool {
        let error = self.0.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        error.is_some_and(|error| states.iter().any(|state| error.code().starts_with(state)))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.code() == Some(BUSY) || self.has_state(&COLLISION)
    }

    /// A lock was not free in time, or what was asked took too long.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.has_state(&OUT_OF_TIME)
    }

    /// There is no room on the disk.
    pub(crate) fn is_full(&self) -> bool {
        self.code() == Some(FULL) || self.has_state(&DISK_FULL)
    }

    /// The server is not there, or gone.
    pub(crate) fn is_away(&self) -> bool {
        let is_connection = matches!(&*self.0, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_));
        is_connection || self.has_state(&AWAY)
    }

    /// A reader may have come while a writer opened or closed the file, or the server was started again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.code(), Some(READ_ONLY | CORRUPT | CANNOT_OPEN)) || self.is_away()
    }

    /// It is about what was to be written, and not about the file or a lock.
    pub(crate) fn is_about_a_row(&self) -> bool {
        self.is_no_row() || matches!(self.code(), Some(TOO_BIG | CONSTRAINT)) || self.has_state(&ABOUT_A_ROW)
    }

    /// A row of this key is there already.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.0.as_database_error().is_some_and(DatabaseError::is_unique_violation)
    }

    /// The row that was to be changed is not there, or not as it was.
    pub(crate) fn is_no_row(&self) -> bool {
        matches!(&*self.0, sqlx::Error::RowNotFound)
    }
}

impl From<sqlx::Error> for SqlError {
    fn from(error: sqlx::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            sqlx::Error::Database(error) => {
                write!(f, "{} (code {})", error.message(), error.code().unwrap_or_default())?;
                f.write_str(if self.code() == Some(BUSY) { LOCKED } else { "" })
            }
            // In the words of sqlx, a file that may not be read is a problem of communication.
            sqlx::Error::Io(error) => error.fmt(f),
            sqlx::Error::Configuration(error) => error.fmt(f),
            other => other.fmt(f),
        }
    }
}

/// Without a source: sqlx writes its causes into its own texts.
impl Error for SqlError {}

/// What is written like the beginning of an id may be meant as a night.
fn as_night(prefix: &str) -> String {
    let has_digits = prefix.len() == 8 && prefix.bytes().all(|byte| byte.is_ascii_digit());
    let night = has_digits.then(|| format!("{}-{}-{}", &prefix[..4], &prefix[4..6], &prefix[6..]));
    let night = night.filter(|night| muster_text::time::Date::parse(night).is_ok());
    night.map_or_else(String::new, |night| format!(": the night is `{night}`"))
}

/// The first five of them.
fn list(sessions: &[SessionId]) -> String {
    let more = if sessions.len() > 5 { ", ..." } else { "" };
    sessions.iter().take(5).map(|session| session.0.as_str()).collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::error::chain;

    #[test]
    fn an_error_names_what_failed_where_and_its_cause_once() {
        let database = Location::from("state/results.db");
        let sqlx = || SqlError::from(sqlx::Error::WorkerCrashed);
        let json = || serde_json::from_str::<u8>("x").unwrap_err();
        let session = |id: &str| SessionId(id.into());
        let errors = [
            StoreError::Folder { path: "state".into(), cause: io::ErrorKind::PermissionDenied.into() },
            StoreError::Missing { database: database.clone() },
            StoreError::NoFile { path: "state".into(), kind: "directory" },
            StoreError::Open { database: database.clone(), cause: sqlx() },
            StoreError::Open {
                database: database.clone(),
                cause: sqlx::Error::Io(io::ErrorKind::PermissionDenied.into()).into(),
            },
            StoreError::Foreign { database: database.clone() },
            StoreError::NotReframe { database: database.clone() },
            StoreError::NewerSchema { database: database.clone(), found: 3, known: 1 },
            StoreError::OlderSchema { database: database.clone(), found: 1, known: 3 },
            StoreError::Migrate { database: database.clone(), version: 2, cause: sqlx() },
            StoreError::Write { database: database.clone(), cause: sqlx() },
            StoreError::Encode { what: "job", of: "nbody @eidf:gpu+default".into(), cause: json() },
            StoreError::Closed { database: database.clone() },
            StoreError::Spool { path: "spool/db.spool".into(), cause: io::ErrorKind::StorageFull.into() },
            StoreError::Spooled { database: "postgres://ada:pw@db/m".into(), path: "spool/db.spool".into(), count: 3 },
            StoreError::NotStarted { session: session("0199aa") },
            StoreError::Read { database, what: "results", cause: sqlx() },
            StoreError::NoSession { prefix: "7".into() },
            StoreError::NoSession { prefix: "20261124".into() },
            StoreError::Running { session: session("0199aa") },
            StoreError::Unswept { session: session("0199aa") },
            StoreError::ManySessions { prefix: "0".into(), matches: vec![session("0199bb"), session("0199aa")] },
        ];
        let lines: String = errors.iter().map(|error| chain(error) + "\n").collect();
        insta::assert_snapshot!(lines, @"
        create the folder state of the results database: permission denied
        there is no results database state/results.db
        state is a directory: a results database is a file
        open the results database state/results.db: attempted to communicate with a crashed background worker
        open the results database state/results.db: permission denied
        state/results.db is a database, but not one of muster
        state/results.db is a database, but not one of ReFrame
        the results database state/results.db has schema 3, and this muster knows only 1: use a newer one
        the results database state/results.db has schema 1, and this muster reads schema 3: `muster results migrate --db state/results.db` brings it up to date
        bring the results database state/results.db to schema 2: attempted to communicate with a crashed background worker
        write to the results database state/results.db: attempted to communicate with a crashed background worker
        store the job of nbody @eidf:gpu+default: expected value at line 1 column 1
        the results database state/results.db is closed
        write to the spool spool/db.spool, while the results database is away: no storage space
        the results database postgres://ada:***@db/m is locked or does not answer: 3 messages are kept in spool/db.spool; the next command that writes to this database on this machine writes them first
        session 0199aa was not started in this store
        read results from the results database state/results.db: attempted to communicate with a crashed background worker
        no session begins with `7`
        no session begins with `20261124`: the night is `2026-11-24`
        session 0199aa still runs: end it first
        something of session 0199aa may be left: `muster sweep` removes it, then the session can be deleted
        several sessions begin with `0`: 0199bb, 0199aa
        ");
    }
}
