//! What the store could not do.

use muster_core::case::SessionId;
use std::{io, path::PathBuf, sync::Arc};

/// A failed operation on the results database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the database cannot be made.
    #[error("create the folder {} of the results database", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// There is nothing to read yet.
    #[error("there is no results database {}", path.display())]
    Missing {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The file cannot be opened as a database.
    #[error("open the results database {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
    /// The file is somebody else's database.
    #[error("{} is a database, but not one of muster", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later muster.
    #[error("the results database {} has schema {found}, and this muster knows only {known}: use a newer one", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The tables could not be brought up to date; nothing was changed.
    #[error("bring the results database {} to schema {version}", path.display())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// The step that failed.
        version: i64,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
    /// A transaction failed and was rolled back: a full disk, a lock held too long, a broken rule.
    #[error("write to the results database {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why; shared by all whose rows were in that transaction.
        #[source]
        cause: Arc<sqlx::Error>,
    },
    /// A value has no text form (a path that is not UTF-8).
    #[error("store the {what} of {of}")]
    Encode {
        /// What kind of value.
        what: &'static str,
        /// Whose.
        of: String,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The writer has ended.
    #[error("the results database {} is closed", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// Something is written for a session that was not begun here.
    #[error("session {session} was not begun in this store")]
    NotBegun {
        /// Which.
        session: SessionId,
    },
    /// A query failed, or a row makes no sense.
    #[error("read {what} from the results database {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        what: &'static str,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
    /// No session is called so.
    #[error("no session begins with `{prefix}`")]
    NoSession {
        /// What was asked for.
        prefix: String,
    },
    /// Several sessions are called so.
    #[error("several sessions begin with `{prefix}`: {}", list(matches))]
    ManySessions {
        /// What was asked for.
        prefix: String,
        /// Some of them, newest first.
        matches: Vec<SessionId>,
    },
    /// The file is damaged.
    #[error("the results database {} is damaged: {report}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        report: String,
    },
}

fn list(sessions: &[SessionId]) -> String {
    sessions.iter().map(|session| session.0.as_str()).collect::<Vec<_>>().join(", ")
}
