//! Opening the file for someone who may only read it: nothing is created or changed in its folder, not even a lock file.
//!
//! ```text
//! journal of the file   -wal has frames   -shm        the file is opened
//! write-ahead log       -                 there       shared with a writer, or after one was killed: SQLite reads the -wal
//! write-ahead log       no                not there   as it is: no writer has it open
//! write-ahead log       yes               not there   as a copy with its -wal: SQLite would have to make the -shm
//! rollback              -                 -           shared; after a writer was killed as a copy, because SQLite would roll back
//! ```
//! What is opened as it is, or as a copy, is looked at again after each query: if a writer came in between, it is read again.

use crate::{
    StoreError,
    error::SqlError,
    file::{connect::BUSY, is_file_if_any},
    schema,
    sql::{Connection, GATHERED},
};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// How often a file is opened again that changes meanwhile, and how long to wait between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// The first page of a database says here how it is written: 1 with a rollback journal, 2 with a write-ahead log.
const WRITE_VERSION: usize = 18;

/// The file, open for reading.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// What lay there when it was opened, if no lock keeps it as it was.
    seen: Option<Files>,
    /// Where its copy is.
    _copy: Option<TempDir>,
}

/// How the file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Shared,
    AsItIs,
    Copied,
}

/// The file and what lies beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Files {
    has_log: bool,
    database: Option<Stamp>,
    wal: Option<Stamp>,
    shm: bool,
    journal: Option<Stamp>,
}

/// What differs after a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Files {
    fn beside(path: &Path) -> io::Result<Self> {
        let stamp = |suffix| fs::metadata(sibling(path, suffix)).ok().map(|found| Stamp::of(&found));
        let mut head = [0; WRITE_VERSION + 1];
        let mut file = File::open(path)?;
        // What has no first page yet has no tables either.
        let is_whole = file.read_exact(&mut head).is_ok();
        Ok(Self {
            has_log: is_whole && head[WRITE_VERSION] == 2,
            database: stamp(""),
            wal: stamp("-wal"),
            shm: stamp("-shm").is_some(),
            journal: stamp("-journal"),
        })
    }

    fn way(&self) -> Way {
        match self {
            Self { has_log: false, .. } | Self { wal: Some(_), shm: true, .. } => Way::Shared,
            Self { wal: Some(Stamp { size: 1.., .. }), .. } => Way::Copied,
            Self { .. } => Way::AsItIs,
        }
    }
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self { inode: found.ino(), size: found.size(), modified: (found.mtime(), found.mtime_nsec()) }
    }
}

impl Opened {
    /// # Errors
    /// [`StoreError::OlderSchema`] if its tables are not those of this version, which only a writer brings up to date.
    pub(crate) async fn open(path: &Path) -> Result<Self, StoreError> {
        is_file_if_any(path)?;
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { database: path.into() },
            _ => StoreError::Open { database: path.into(), cause: sqlx::Error::Io(cause).into() },
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let files = Files::beside(path).map_err(failed)?;
            // What cannot be shared in the end is copied: a rollback journal that is left, or a log whose index nobody has made yet.
            let way = if tries == TRIES { Way::Copied } else { files.way() };
            match Self::tried(path, files, way).await {
                Ok(Some(opened)) => return Ok(opened),
                Err(StoreError::Open { cause, .. } | StoreError::Read { cause, .. }) if tries < TRIES && cause.may_pass() => {}
                Err(error) => return Err(error),
                Ok(None) if tries < TRIES => {}
                Ok(None) => return Err(failed(io::Error::other("it changes all the time"))),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// `None`: it changed meanwhile.
    async fn tried(path: &Path, files: Files, way: Way) -> Result<Option<Self>, StoreError> {
        let failed = |cause: SqlError| StoreError::Open { database: path.into(), cause };
        let copy = match way {
            Way::Copied => Some(copied(path).map_err(|cause| failed(sqlx::Error::Io(cause).into()))?),
            Way::Shared | Way::AsItIs => None,
        };
        let database = copy.as_ref().map_or_else(|| path.to_owned(), |copy| copy.path().join("results.db"));
        let options = SqliteConnectOptions::new().filename(database).busy_timeout(BUSY);
        let options = options.row_buffer_size(GATHERED).disable_statement_logging();
        let options = match way {
            Way::Shared => options.read_only(true),
            Way::AsItIs => options.read_only(true).immutable(true),
            Way::Copied => options,
        };
        let mut connection = Connection::Sqlite(options.connect().await.map_err(|cause| failed(cause.into()))?);
        let seen = (way != Way::Shared).then_some(files);
        let checked = schema::is_newest(&mut connection, &path.into()).await;
        let opened = Self { connection, seen, _copy: copy };
        if !opened.is_current(path) {
            return Ok(None);
        }
        checked.map(|()| Some(opened))
    }

    /// Whether what was read is what is there: no writer came in between, or it cannot do any harm.
    pub(crate) fn is_current(&self, path: &Path) -> bool {
        self.seen.as_ref().is_none_or(|seen| Files::beside(path).is_ok_and(|now| now == *seen))
    }
}

/// A copy of the file and its journals in a folder that only this user can read.
fn copied(path: &Path) -> io::Result<TempDir> {
    let folder = TempDir::with_prefix("muster-")?;
    for suffix in ["", "-wal", "-journal"] {
        match fs::copy(sibling(path, suffix), folder.path().join(format!("results.db{suffix}"))) {
            Err(error) if suffix.is_empty() || error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(folder)
}

/// SQLite appends its suffixes to the path of the file itself.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_is_opened_depends_on_what_lies_beside_it() {
        let stamp = |size| Some(Stamp { inode: 1, size, modified: (0, 0) });
        let rows = [
            // write-ahead log, -wal, -shm
            (false, None, false, Way::Shared),
            (false, stamp(9), true, Way::Shared),
            (true, None, false, Way::AsItIs),
            (true, None, true, Way::AsItIs),
            (true, stamp(0), false, Way::AsItIs),
            (true, stamp(0), true, Way::Shared),
            (true, stamp(9), true, Way::Shared),
            (true, stamp(9), false, Way::Copied),
        ];
        for (has_log, wal, shm, way) in rows {
            let files = Files { has_log, database: stamp(4096), wal, shm, journal: None };
            assert_eq!(files.way(), way, "{files:?}");
        }
    }
}
