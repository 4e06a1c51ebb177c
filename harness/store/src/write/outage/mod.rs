//! While the server is away: messages go to the spool, so that what runs goes on; when it is there again, they are written first.
//!
//! ```text
//! a connection is lost -> Away: messages are spooled and acknowledged, a task connects again -> replay -> messages are written
//! ```
//! Whether the last transaction was committed is not known when a connection is lost. Its messages are spooled with its number, and
//! the server says later what became of it.

mod fate;
mod line;
mod spool;

pub(super) use line::Line;

use crate::{
    Location, StoreError, connect,
    error::SqlError,
    server::Options,
    sql::{Connection, query},
    write::{
        batch::Writer,
        message::{Envelope, Message, Text},
        rows::SessionCases,
    },
};
use fate::{Fate, fate};
use spool::{Spool, Tried};
use std::{collections::BTreeSet, future, io, mem, ops::Range, path::Path, sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long to wait between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of a session waits for a server that is away. What is in the spool is then written by whoever comes next.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// How long a lock of a file is waited for when nothing else is waited for any more.
const LAST_BUSY: &str = "PRAGMA busy_timeout = 1000";
/// The most messages of a spool in one transaction.
const REPLAYED: usize = 256;

/// What a writer needs when its server is away.
pub(super) struct Outage {
    options: Options,
    spool: Spool,
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
    /// `None`: a file is never away.
    pub(super) fn of(database: &Location) -> Option<Self> {
        let Location::Server(server) = database else { return None };
        let options = Options::of(server.url()).ok()?;
        let spool = Spool::new(&options.spool, &options.name, options.spool_limit);
        Some(Self { options, spool, held: Vec::new(), returns: None, transaction: None, replayed: None })
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
        self.outage.is_some() && error.is_away()
    }

    /// Gives the connection up, keeps the messages of the transaction that was not finished, and begins to connect again.
    pub(super) fn lose(&mut self, error: &SqlError, envelopes: &mut Vec<Envelope>) {
        let Some(outage) = &mut self.outage else { return };
        self.connection = None;
        let database = self.database.clone();
        self.line.warn(format!(
            "the results database {} does not answer ({error}); results are kept in {} until it does",
            database.display(),
            outage.spool.path().display()
        ));
        outage.returns = Some(tokio::spawn(connected(database)));
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
        for envelope in refused {
            self.answer(envelope, Err(away()));
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
        } else if let Some(connection) = &mut self.connection
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

    /// The server is there again: writes what is in the spool, then what waited.
    pub(super) async fn go_on(&mut self, connection: Connection) {
        self.connection = Some(connection);
        let replayed = self.replay().await;
        let Some(outage) = &mut self.outage else { return };
        outage.returns = None;
        match replayed {
            Ok(count) => {
                self.line.warn(format!(
                    "the results database {} answers again; {count} messages are written",
                    self.database.display()
                ));
                let mut held = mem::take(&mut outage.held);
                if !held.is_empty() {
                    // Also where it fails, it leaves none.
                    Box::pin(self.commit(&mut held)).await;
                }
            }
            Err(error) => self.lose(&error, &mut Vec::new()),
        }
    }

    /// Writes what processes that are gone have left on this machine. Returns what the user should know of it.
    pub(super) async fn adopt(&mut self) -> Result<Vec<String>, SqlError> {
        let Some(outage) = &self.outage else { return Ok(Vec::new()) };
        let Options { spool, name, spool_limit, .. } = &outage.options;
        let mut notes = Vec::new();
        for left in Spool::abandoned(spool, name, *spool_limit) {
            let path = left.path().to_owned();
            let adopted = self.adopt_one(left).await;
            self.sessions.clear();
            notes.push(match adopted {
                Ok(note) => note,
                Err(error) if error.is_away() => return Err(error),
                // It keeps nobody from working.
                Err(error) => {
                    format!("the spool {} of a process that is gone cannot be read, and stays: {error}", path.display())
                }
            });
        }
        Ok(notes)
    }

    /// A spool stays as it is if one of its sessions is not here: two servers may have one name, and a database may be an older copy.
    async fn adopt_one(&mut self, left: Spool) -> Result<String, SqlError> {
        let path = left.path().to_owned();
        let messages = left.read().map_err(|cause| sqlx::Error::Decode(cause.into()))?.messages;
        for session in messages.iter().filter_map(Message::of_session).collect::<BTreeSet<_>>() {
            if self.number_of(session).await?.is_none() {
                return Ok(format!(
                    "the spool {} stays: its session {session} is not in {}; if it was deleted there, remove the file",
                    path.display(),
                    self.database.display()
                ));
            }
        }
        let own = self.outage.as_mut().map(|outage| mem::replace(&mut outage.spool, left));
        let replayed = self.replay().await;
        if let (Some(outage), Some(own)) = (&mut self.outage, own) {
            outage.spool = own;
        }
        Ok(format!("{} messages of a process that is gone are written, from {}", replayed?, path.display()))
    }

    /// Writes all messages of the spool, and empties it. Returns how many.
    async fn replay(&mut self) -> Result<usize, SqlError> {
        let Some(outage) = &mut self.outage else { return Ok(0) };
        let contents = outage.spool.read().map_err(|cause| sqlx::Error::Decode(cause.into()))?;
        let mut is_done = vec![false; contents.messages.len()];
        for tried in contents.tried {
            if self.was_committed(tried.transaction).await? {
                let [start, end] = tried.range().map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(is_done.len()));
                is_done[start..end].fill(true);
            }
        }
        let mut next = 0;
        while next < is_done.len() {
            let end =
                (next..is_done.len().min(next + REPLAYED)).find(|at| is_done[*at]).unwrap_or(is_done.len().min(next + REPLAYED));
            if end > next {
                self.replay_some(next, &contents.messages[next..end]).await?;
            }
            next = if end > next { end } else { next + 1 };
        }
        if let Some(outage) = &mut self.outage {
            outage.replayed = None;
            outage.spool.clear().map_err(sqlx::Error::Io)?;
        }
        Ok(is_done.len())
    }

    /// Writes messages of the spool, the first of which has this number.
    async fn replay_some(&mut self, first: usize, messages: &[Message]) -> Result<(), SqlError> {
        let all: Vec<&Message> = messages.iter().collect();
        self.know_sessions(&all).await?;
        match self.replay_at(first, &all).await {
            Err(error) if error.is_about_a_row() => {}
            outcome => return outcome,
        }
        // One bad row must not take the others with it.
        for (at, message) in all.iter().enumerate() {
            match self.replay_at(first + at, &[message]).await {
                Err(error) if error.is_about_a_row() => tracing::warn!(error = &error as &dyn std::error::Error, "not stored"),
                outcome => outcome?,
            }
        }
        Ok(())
    }

    async fn replay_at(&mut self, first: usize, messages: &[&Message]) -> Result<(), SqlError> {
        if let Some(outage) = &mut self.outage {
            outage.replayed = Some(first as u64..(first + messages.len()) as u64);
        }
        let outcome = self.transaction(messages).await;
        if let Some(outage) = &mut self.outage {
            outage.replayed = None;
        }
        outcome
    }

    /// Whether a transaction was committed. Waits until the server knows.
    async fn was_committed(&mut self, transaction: i64) -> Result<bool, SqlError> {
        loop {
            let connection = self.connection.as_mut().ok_or_else(away)?;
            let status = query("SELECT txid_status($1)").bind(transaction).fetch_scalar::<Option<String>>(connection).await;
            match status.map_err(SqlError::from) {
                // Its connection is lost, but the server has not seen that yet.
                Ok(Some(status)) if status == "in progress" => sleep(PAUSE).await,
                Ok(status) => return Ok(status.is_some_and(|status| status == "committed")),
                Err(error) if error.is_away() => return Err(error),
                // The server is another, which does not know that number.
                Err(_) => return Ok(false),
            }
        }
    }

    /// Messages of another process are of sessions that this one has not started.
    async fn know_sessions(&mut self, messages: &[&Message]) -> Result<(), SqlError> {
        for session in messages.iter().filter_map(|message| message.session()) {
            if self.sessions.contains_key(session) {
                continue;
            }
            let Some(number) = self.number_of(session).await? else {
                self.line.warn(format!("session {session} is not in {}: what was kept of it is lost", self.database.display()));
                continue;
            };
            let connection = self.connection.as_mut().ok_or_else(away)?;
            let known = SessionCases::of(connection, number).await?;
            self.sessions.insert(Text::clone(session), known);
        }
        Ok(())
    }

    /// The number of a session; `None`: it is not in this database.
    async fn number_of(&mut self, session: &Text) -> Result<Option<i64>, SqlError> {
        let connection = self.connection.as_mut().ok_or_else(away)?;
        let found = query("SELECT number FROM session WHERE id = $1").bind(Arc::clone(session)).fetch_all(connection).await?;
        Ok(found.first().map(|row| row.try_get("number")).transpose()?)
    }

    pub(crate) async fn close(mut self) -> Result<(), StoreError> {
        if self.connection.is_none()
            && let Ok(connection) = timeout(LAST_WAIT, self.returned()).await
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

/// Connects, however long that takes.
async fn connected(database: Location) -> Connection {
    loop {
        match connect::for_writing(&database).await {
            Ok((connection, _)) => return connection,
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "the results database is still away"),
        }
        sleep(PAUSE).await;
    }
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
