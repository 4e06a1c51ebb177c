//! While the server is away, or a file is locked for longer than a session waits: messages go to the spool, so that what runs goes on;
//! when the database is there again, they are written first.
//!
//! ```text
//! a connection is lost -> Away: messages are spooled and acknowledged, a task connects again -> replay -> messages are written
//! ```
//! Whether the last transaction was committed is not known when a connection is lost. Its messages are spooled with its number, and
//! the server says later what became of it. What a lock has kept from being written was not committed.

mod fate;
mod line;
mod replay;
mod spool;
mod spools;
#[cfg(test)]
mod tests;

pub(super) use line::Line;
pub use spools::left_behind;
pub(super) use spools::may_have_left;

use crate::{
    Location, StoreError, connect,
    error::SqlError,
    sql::Connection,
    write::{batch::Writer, message::Envelope},
};
use fate::{Fate, fate};
use spool::{Spool, TOUCHED_EVERY, Tried, touch};
use spools::Spools;
use std::{
    future, io, mem,
    ops::Range,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long to wait between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of a session waits for a server that is away. What is in the spool is then written by whoever comes next.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// The same if nothing is waited for any more.
const HURRIED_WAIT: Duration = Duration::from_secs(1);
/// How long a lock of a file is waited for when nothing else is waited for any more.
const LAST_BUSY: &str = "PRAGMA busy_timeout = 1000";

/// What a writer needs when its database is away.
pub(super) struct Outage {
    spools: Spools,
    spool: Spool,
    /// Why it is away.
    reason: Option<SqlError>,
    /// Messages for which there is no room: their senders wait.
    held: Vec<Envelope>,
    /// Connects again.
    returns: Option<JoinHandle<Connection>>,
    /// The number of the last transaction.
    transaction: Option<i64>,
    /// The messages of the spool that it writes.
    replayed: Option<Range<u64>>,
}

impl Outage {
    pub(super) fn of(database: &Location) -> Option<Self> {
        Spools::of(database).map(Self::with)
    }

    fn with(spools: Spools) -> Self {
        let spool = spools.new_one();
        Self { spools, spool, reason: None, held: Vec::new(), returns: None, transaction: None, replayed: None }
    }

    /// With spools in this folder.
    #[cfg(test)]
    pub(super) fn within(folder: &Path, database: &Location) -> Option<Self> {
        Spools::of(database).map(|spools| Self::with(spools.within(folder)))
    }

    /// A transaction of this number begins.
    pub(super) fn begins(&mut self, transaction: Option<i64>) {
        self.transaction = transaction;
    }

    /// What is about to be committed was in the spool: whoever reads it next must know.
    pub(super) fn commits(&mut self) -> io::Result<()> {
        match (self.transaction, &self.replayed) {
            (Some(transaction), Some(range)) => {
                self.spool.tried(Tried { transaction, first: range.start, count: range.end - range.start })
            }
            _ => Ok(()),
        }
    }
}

impl Writer {
    /// Whether the connection is of no use any more.
    pub(super) fn is_lost(&self, error: &SqlError) -> bool {
        let is_away = match &self.database {
            Location::Server(_) => error.is_away(),
            // It was waited for as long as a session may wait. Who has begun none is told at once.
            Location::File(_) => error.is_busy() && !self.sessions.is_empty(),
        };
        self.outage.is_some() && is_away
    }

    /// Gives the connection up, keeps the messages of the transaction that was not finished, and begins to connect again.
    pub(super) fn lose(&mut self, error: &SqlError, envelopes: &mut Vec<Envelope>) {
        let Some(outage) = &mut self.outage else { return };
        self.connection = None;
        let spool = outage.spool.path().display();
        // Of one outage a user is told once.
        if outage.reason.replace(error.clone()).is_none() {
            let database = self.database.display();
            self.line.warn(match &self.database {
                Location::Server(_) => {
                    format!(
                        "the results database {database} does not answer ({error}); results are kept in {spool} until it does"
                    )
                }
                Location::File(_) => {
                    format!("the results database {database} is still locked; results are kept in {spool} until it is free")
                }
            });
        }
        outage.returns = Some(tokio::spawn(connected(self.database.clone(), outage.spool.path().to_owned())));
        let transaction = outage.transaction.take();
        self.keep(envelopes, transaction);
    }

    /// Spools messages, and answers them. `transaction`: in which they may have been committed.
    pub(super) fn keep(&mut self, envelopes: &mut Vec<Envelope>, transaction: Option<i64>) {
        let Some(outage) = &mut self.outage else { return };
        let (mut kept, mut acks, mut refused, mut without_room) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for envelope in envelopes.drain(..) {
            match fate(&envelope.message) {
                Fate::Launch if !outage.spool.has_room_for_launches() => without_room.push(envelope),
                Fate::Spooled if outage.spool.is_full() => without_room.push(envelope),
                Fate::Launch | Fate::Spooled => {
                    kept.push(envelope.message);
                    acks.push(envelope.ack);
                }
                Fate::Refused => refused.push(envelope),
                Fate::Dropped => {}
            }
        }
        if !kept.is_empty() {
            let tried = transaction.map(|transaction| Tried { transaction, first: outage.spool.len(), count: kept.len() as u64 });
            let written = outage.spool.append(kept).and_then(|()| tried.map_or(Ok(()), |tried| outage.spool.tried(tried)));
            let path = outage.spool.path();
            for ack in acks.into_iter().flatten() {
                let failed = |error: &io::Error| StoreError::Spool { path: path.to_owned(), cause: error.kind().into() };
                // If the waiter was dropped, the answer is lost. The message is kept.
                let _ = ack.send(written.as_ref().map_err(failed).copied());
            }
        }
        if self.line.is_hurried() {
            refuse(outage.spool.path(), without_room);
        } else {
            self.hold(without_room);
        }
        let reason = self.outage.as_ref().and_then(|outage| outage.reason.clone()).unwrap_or_else(away);
        for envelope in refused {
            self.answer(envelope, Err(reason.clone()));
        }
    }

    /// Messages for which there is no room wait for the server.
    fn hold(&mut self, envelopes: Vec<Envelope>) {
        let Some(outage) = &mut self.outage else { return };
        if outage.held.is_empty() && !envelopes.is_empty() {
            let path = outage.spool.path().display();
            self.line.warn(format!("the spool {path} is full: nothing more is launched until the database answers"));
        }
        outage.held.extend(envelopes);
    }

    /// Nothing is waited for any more: answers those who wait for room in the spool, and shortens the wait for a lock.
    pub(super) async fn release(&mut self) {
        if let Some(outage) = &mut self.outage {
            refuse(outage.spool.path(), mem::take(&mut outage.held));
        }
        if let (Location::File(_), Some(connection)) = (&self.database, &mut self.connection)
            && let Err(error) = connection.script(LAST_BUSY).await
        {
            tracing::debug!(%error, "a lock is waited for as before");
        }
    }

    /// Waits for the server, if it is away.
    pub(super) async fn returned(&mut self) -> Connection {
        if let Some(returns) = self.outage.as_mut().and_then(|outage| outage.returns.as_mut())
            && let Ok(connection) = returns.await
        {
            return connection;
        }
        future::pending().await
    }

    /// The database is there again: writes what is in the spool, then what waited.
    pub(super) async fn go_on(&mut self, connection: Connection) {
        self.connection = Some(connection);
        let replayed = self.replay().await;
        let Some(outage) = &mut self.outage else { return };
        outage.returns = None;
        match replayed {
            Ok(count) => {
                outage.reason = None;
                let answers = if self.database.as_file().is_some() { "is free again" } else { "answers again" };
                self.line
                    .warn(format!("the results database {} {answers}; {count} messages are written", self.database.display()));
                let mut held = mem::take(&mut outage.held);
                if !held.is_empty() {
                    // Also where it fails, it leaves none.
                    Box::pin(self.commit(&mut held)).await;
                }
            }
            Err(error) => {
                // A file is open again at once, and what is wrong with it, or with the spool, may stay.
                sleep(PAUSE).await;
                self.lose(&error, &mut Vec::new());
            }
        }
    }

    pub(crate) async fn close(mut self) -> Result<(), StoreError> {
        if self.connection.is_none()
            && let Ok(connection) = timeout(if self.line.is_hurried() { HURRIED_WAIT } else { LAST_WAIT }, self.returned()).await
        {
            self.go_on(connection).await;
        }
        let database = self.database.clone();
        match (self.connection.take(), &self.outage) {
            (Some(connection), _) => {
                connection.close().await.map_err(|cause| StoreError::Write { database, cause: cause.into() })
            }
            (None, Some(Outage { spool, .. })) if spool.len() > 0 => {
                Err(StoreError::Spooled { database, path: spool.path().to_owned(), count: spool.len() })
            }
            (None, _) => Err(StoreError::Write { database, cause: away() }),
        }
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        if let Some(returns) = &self.returns {
            returns.abort();
        }
    }
}

/// Connects, and says meanwhile that the spool has an owner: also while a server takes a connection and stays silent.
async fn connected(database: Location, spool: PathBuf) -> Connection {
    let mut connected = pin!(connect_again(&database));
    loop {
        tokio::select! {
            connection = &mut connected => return connection,
            () = sleep(TOUCHED_EVERY) => touch(&spool),
        }
    }
}

/// Connects, however long that takes. A file can be opened while others keep it locked.
async fn connect_again(database: &Location) -> Connection {
    loop {
        match connect::for_writing(database).await {
            Ok((mut connection, _)) => match free(&mut connection).await {
                Ok(()) => return connection,
                Err(error) => tracing::debug!(%error, "the results database is still locked"),
            },
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "the results database is still away"),
        }
        sleep(PAUSE).await;
    }
}

async fn free(connection: &mut Connection) -> Result<(), SqlError> {
    connection.begin().await?;
    Ok(connection.rollback().await?)
}

/// There was no room in the spool for these.
fn refuse(spool: &Path, envelopes: Vec<Envelope>) {
    for ack in envelopes.into_iter().filter_map(|envelope| envelope.ack) {
        let cause = io::Error::new(io::ErrorKind::StorageFull, "it is full");
        // If the waiter was dropped, it asks for nothing.
        let _ = ack.send(Err(StoreError::Spool { path: spool.to_owned(), cause }));
    }
}

/// What is answered to those who need the server.
pub(super) fn away() -> SqlError {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::NotConnected, "the server does not answer")).into()
}
