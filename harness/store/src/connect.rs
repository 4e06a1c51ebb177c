//! Opening a database, wherever it is.

use crate::{
    Location, StoreError,
    file::{self, reading},
    server,
    sql::Connection,
};
use std::{
    ops::{Deref, DerefMut},
    path::Path,
};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};

/// A database, open for reading.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Whatever is written meanwhile, it is read as of one moment.
    Shared(Connection),
    /// A file that its writer may change in a way that this does not see.
    File(reading::Opened),
}

/// Opens for writing: makes what is missing, brings the tables up to date. Also returns what the user should know.
pub(crate) async fn for_writing(database: &Location) -> Result<(Connection, Vec<String>), StoreError> {
    match database {
        Location::File(path) => file::connect::for_writing(path).await,
        Location::Server(server) => server::connect::for_writing(server).await,
    }
}

/// Opens for reading only: needs no right to write, and changes nothing.
pub(crate) async fn for_reading(database: &Location) -> Result<Opened, StoreError> {
    match database {
        Location::File(path) => reading::Opened::open(path).await.map(Opened::File),
        Location::Server(server) => server::connect::for_reading(server).await.map(Opened::Shared),
    }
}

/// Opens for a process that reads what it is about to write to: the tables are brought up to date.
pub(crate) async fn for_reading_of_writer(database: &Location) -> Result<Opened, StoreError> {
    match database {
        Location::File(path) => file::connect::for_reading(path).await.map(Opened::Shared),
        Location::Server(server) => server::connect::for_reading_of_writer(server).await.map(Opened::Shared),
    }
}

/// Returns whether there may be a database to read. Of a server only a connection tells.
///
/// # Errors
/// Whether there is a file is not known: a folder may not be searched, links lead in a circle.
pub fn exists(database: &Location) -> Result<bool, StoreError> {
    let found = database.as_file().map_or(Ok(true), Path::try_exists);
    found.map_err(|cause| StoreError::Open { database: database.clone(), cause: sqlx::Error::Io(cause).into() })
}

/// Brings the tables of a database up to date, and does nothing else.
///
/// # Errors
/// [`StoreError::Missing`] if there is none.
pub async fn migrate(database: &Location) -> Result<(), StoreError> {
    if !exists(database)? {
        return Err(StoreError::Missing { database: database.clone() });
    }
    let (connection, _) = for_writing(database).await?;
    connection.close().await.map_err(|cause| StoreError::Write { database: database.clone(), cause: cause.into() })
}

impl Opened {
    pub(crate) fn connection(&mut self) -> &mut Connection {
        match self {
            Self::Shared(connection) | Self::File(reading::Opened { connection, .. }) => connection,
        }
    }

    /// Whether what was read is what is there.
    pub(crate) fn is_current(&self, database: &Location) -> bool {
        match (self, database) {
            (Self::File(opened), Location::File(path)) => opened.is_current(path),
            (Self::File(_) | Self::Shared(_), _) => true,
        }
    }

    /// Opens it again, as what lies there now asks for. A server is connected to again if the connection is lost.
    pub(crate) async fn reopen(&mut self, database: &Location) -> Result<(), StoreError> {
        match (&self, database) {
            (Self::File(_), Location::File(_)) | (Self::Shared(Connection::Postgres(_)), Location::Server(_)) => {
                *self = for_reading(database).await?;
            }
            (Self::File(_) | Self::Shared(_), _) => {}
        }
        Ok(())
    }
}

/// The connections of a reader. Each question has one of its own.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Vec<Mutex<Option<Opened>>>,
    /// A permit for each place.
    free: Semaphore,
}

/// A connection that answers no other question.
pub(crate) struct Lent<'a> {
    opened: MappedMutexGuard<'a, Opened>,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub(crate) fn of(first: Opened) -> Self {
        Self { places: vec![Mutex::new(Some(first))], free: Semaphore::new(1) }
    }

    pub(crate) fn up_to(mut self, at_once: usize) -> Self {
        self.places.resize_with(at_once.max(1), Mutex::default);
        Self { free: Semaphore::new(self.places.len()), ..self }
    }

    /// Waits for a connection that answers no other question. Those that wait are served in their order.
    pub(crate) async fn free(&self, database: &Location) -> Result<Lent<'_>, StoreError> {
        let closed = || StoreError::Closed { database: database.clone() };
        let permit = self.free.acquire().await.map_err(|_| closed())?;
        let mut place = self.places.iter().find_map(|place| place.try_lock().ok()).ok_or_else(closed)?;
        let opened = match place.take() {
            Some(opened) => opened,
            None => for_reading(database).await?,
        };
        Ok(Lent { opened: MutexGuard::map(place, |place| place.insert(opened)), _permit: permit })
    }
}

impl Deref for Lent<'_> {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Store};
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_file_has_one_connection_and_questions_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = Location::File(folder.path().join("results.db"));
        Store::open(&database).await.unwrap().close().await.unwrap();
        let reader = Reader::open(&database).await.unwrap().answering(8);
        let first = reader.connection().await.unwrap();
        assert!(timeout(Duration::from_millis(50), reader.remarks()).await.is_err());
        drop(first);
        assert_eq!(reader.remarks().await.unwrap(), []);
    }

    #[test]
    fn a_file_that_may_not_be_looked_at_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Location::File(folder.path().join(name));
        std::fs::write(folder.path().join("plain"), "").unwrap();
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        assert!(exists(&at("plain")).unwrap() && !exists(&at("none/r.db")).unwrap());
        for unknown in ["loop", "plain/r.db", &"a".repeat(300)] {
            assert!(matches!(exists(&at(unknown)), Err(StoreError::Open { .. })), "{unknown}");
        }
    }
}
