//! Opening the file: which journal it gets, and who may write.
//!
//! Write-ahead logging needs memory shared by all who use the file, which no network file system gives: there the
//! journal is DELETE, and the store says so.

use crate::{
    StoreError,
    error::SqlError,
    file::is_file_if_any,
    schema,
    sql::{Connection, GATHERED, query},
};
use muster_host::files;
use sqlx::{
    AssertSqlSafe, ConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};
use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

/// How long to wait for another process that writes.
pub(crate) const BUSY: Duration = Duration::from_secs(10);

/// Opens for writing: makes folder and file, brings the tables up to date. Also returns what the user should know.
pub(crate) async fn for_writing(path: &Path) -> Result<(Connection, Vec<String>), StoreError> {
    is_file_if_any(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files::create_dir_all(folder).map_err(|cause| StoreError::Folder { path: folder.to_owned(), cause })?;
    // SQLite gives what it creates 0644; what it puts beside a database has the database's mode.
    match files::create_new(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            tracing::debug!(%error, path = %path.display(), "SQLite will say why it cannot be created");
        }
        _ => {}
    }
    let network = network_file_system(folder);
    open(path, network).await
}

async fn open(path: &Path, network: Option<&str>) -> Result<(Connection, Vec<String>), StoreError> {
    let failed = |cause: sqlx::Error| StoreError::Open { database: path.into(), cause: cause.into() };
    let (wanted, synchronous) = match network {
        None => ("wal", SqliteSynchronous::Normal),
        Some(_) => ("delete", SqliteSynchronous::Full),
    };
    let options = options(path).create_if_missing(true).synchronous(synchronous);
    let mut connection = Connection::Sqlite(options.connect().await.map_err(failed)?);
    let journal = set_journal(&mut connection, wanted).await;
    let journal = journal.map_err(|cause| StoreError::Open { database: path.into(), cause })?;
    schema::to_newest(&mut connection, &path.into()).await?;
    let note = match network {
        Some(kind) => Some(format!("is on a network file system ({kind})")),
        None if journal != wanted => Some("is on a file system without shared memory".to_owned()),
        None => None,
    };
    let notes = note.map(|why| {
        format!("the results database {} {why}: its journal is {}, which is slower", path.display(), journal.to_uppercase())
    });
    Ok((connection, notes.into_iter().collect()))
}

/// Opens for a process that reads what it is about to write to: the tables are brought up to date. `query_only` keeps the
/// connection from writing anything else.
pub(crate) async fn for_reading(path: &Path) -> Result<Connection, StoreError> {
    let failed = |cause: sqlx::Error| StoreError::Open { database: path.into(), cause: cause.into() };
    if !path.try_exists().map_err(|cause| failed(sqlx::Error::Io(cause)))? {
        return Err(StoreError::Missing { database: path.into() });
    }
    is_file_if_any(path)?;
    let mut connection = Connection::Sqlite(options(path).connect().await.map_err(failed)?);
    schema::to_newest(&mut connection, &path.into()).await?;
    query("PRAGMA query_only = ON").execute(&mut connection).await.map_err(failed)?;
    Ok(connection)
}

/// Whether a file is a database of Muster.
pub(crate) async fn is_database(path: &Path) -> bool {
    let Ok(connection) = options(path).read_only(true).immutable(true).connect().await else { return false };
    schema::is_ours(&mut Connection::Sqlite(connection)).await
}

/// What SQLite says of the pages of a file that nobody writes: `ok`.
pub(crate) async fn integrity(path: &Path) -> Result<String, sqlx::Error> {
    let mut connection = Connection::Sqlite(options(path).read_only(true).immutable(true).connect().await?);
    query("PRAGMA integrity_check(1)").fetch_scalar(&mut connection).await
}

fn options(path: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY).foreign_keys(true);
    options.row_buffer_size(GATHERED).disable_statement_logging()
}

/// Returns the journal that the file really has. SQLite does not wait for a lock here, so this does.
async fn set_journal(connection: &mut Connection, wanted: &str) -> Result<String, SqlError> {
    let started = Instant::now();
    loop {
        let now: String = query("PRAGMA journal_mode").fetch_scalar(connection).await?;
        if now == wanted {
            return Ok(now);
        }
        let change = AssertSqlSafe(format!("PRAGMA journal_mode = {wanted}"));
        match query(change).fetch_scalar(connection).await.map_err(SqlError::from) {
            Err(error) if error.is_busy() && started.elapsed() < BUSY => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            answer => return answer,
        }
    }
}

/// The kind of network file system that holds `folder`, if it is one.
#[cfg(target_os = "linux")]
fn network_file_system(folder: &Path) -> Option<&'static str> {
    // Magic numbers of statfs(2) and of the vendors' own headers. FUSE is sshfs, s3fs and the like.
    const KINDS: [(u32, &str); 15] = [
        (0x0000_6969, "nfs"),
        (0x0000_517b, "smb"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb2"),
        (0x0bd0_0bd0, "lustre"),
        (0x4750_4653, "gpfs"),
        (0x1983_0326, "beegfs"),
        (0x00c3_6400, "ceph"),
        (0xaad7_aaea, "panfs"),
        (0x5346_414f, "afs"),
        (0x6b41_4653, "afs"),
        (0x7461_636f, "ocfs2"),
        (0x0116_1970, "gfs2"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "fuse"),
    ];
    // The kernel's word is signed on some machines; the magic numbers are its low 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let kind = rustix::fs::statfs(folder).ok()?.f_type as u32;
    KINDS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Only Linux is asked: elsewhere the journal is a write-ahead log wherever SQLite accepts one.
#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Store, Upkeep};
    use muster_core::error::chain;

    #[tokio::test]
    async fn what_is_no_file_is_refused_at_once_by_all() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket] = ["pipe", "socket"].map(|name| folder.path().join(name));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in
            [(pipe.as_path(), "pipe"), (&socket, "socket"), (folder.path(), "directory"), (Path::new("/dev/zero"), "device")]
        {
            let said = [
                chain(&Reader::open(path).await.unwrap_err()),
                chain(&Reader::of_writer(path).await.unwrap_err()),
                chain(&Store::open(path).await.unwrap_err()),
                chain(&Upkeep::open(path).await.unwrap_err()),
                chain(&crate::migrate(&path.into()).await.unwrap_err()),
            ];
            for said in said {
                assert_eq!(said, format!("{} is a {kind}: a results database is a file", path.display()));
            }
        }
    }

    #[tokio::test]
    async fn on_a_network_file_system_the_journal_is_delete_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        let (mut connection, notes) = open(&path, Some("nfs")).await.unwrap();
        let journal: String = query("PRAGMA journal_mode").fetch_scalar(&mut connection).await.unwrap();
        assert_eq!(journal, "delete");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with("is on a network file system (nfs): its journal is DELETE, which is slower"), "{notes:?}");
    }

    #[tokio::test]
    async fn elsewhere_it_is_a_write_ahead_log_and_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/results.db");
        let (mut connection, notes) = for_writing(&path).await.unwrap();
        let journal: String = query("PRAGMA journal_mode").fetch_scalar(&mut connection).await.unwrap();
        let synchronous: i64 = query("PRAGMA synchronous").fetch_scalar(&mut connection).await.unwrap();
        let foreign_keys: bool = query("PRAGMA foreign_keys").fetch_scalar(&mut connection).await.unwrap();
        assert_eq!((journal.as_str(), synchronous, foreign_keys, notes), ("wal", 1, true, vec![]));
        connection.close().await.unwrap();
    }
}
