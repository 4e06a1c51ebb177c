//! Writes the messages of a spool: this writer's own when its database is there again, and those of processes that are gone.

use super::{
    PAUSE, away,
    spool::{Contents, Spool},
};
use crate::{
    error::SqlError,
    sql::query,
    write::{
        batch::Writer,
        message::{Message, Text},
        rows::SessionCases,
    },
};
use std::{collections::BTreeSet, mem, sync::Arc};
use tokio::time::sleep;

/// The most messages of a spool in one transaction.
const REPLAYED: usize = 256;

impl Writer {
    /// Writes what processes that are gone have left on this machine. Returns what the user should know of it.
    pub(in crate::write) async fn adopt(&mut self) -> Result<Vec<String>, SqlError> {
        let Some(outage) = &self.outage else { return Ok(Vec::new()) };
        let mut notes = Vec::new();
        for left in outage.spools.abandoned() {
            let path = left.path().to_owned();
            let adopted = self.adopt_one(left).await;
            self.sessions.clear();
            notes.extend(match adopted {
                Ok(note) => note,
                Err(error) if error.is_away() => return Err(error),
                // It keeps nobody from working.
                Err(error) => {
                    Some(format!("the spool {} of a process that is gone is not written, and stays: {error}", path.display()))
                }
            });
        }
        Ok(notes)
    }

    /// A spool stays as it is if one of its sessions is not here: two servers may have one name, and a database may be an older copy.
    async fn adopt_one(&mut self, left: Spool) -> Result<Option<String>, SqlError> {
        let path = left.path().to_owned();
        let contents = left.read().map_err(|cause| sqlx::Error::Decode(cause.into()))?;
        for session in contents.messages.iter().filter_map(Message::of_session).collect::<BTreeSet<_>>() {
            if self.number_of(session).await?.is_none() {
                return Ok(Some(format!(
                    "the spool {} stays: its session {session} is not in {}; if it was deleted there, remove the file",
                    path.display(),
                    self.database.display()
                )));
            }
        }
        let own = self.outage.as_mut().map(|outage| mem::replace(&mut outage.spool, left));
        let replayed = self.replay_all(contents).await;
        if let (Some(outage), Some(own)) = (&mut self.outage, own) {
            outage.spool = own;
        }
        // A full disk leaves an empty one.
        Ok(match replayed? {
            0 => None,
            1 => Some(format!("1 message of a process that is gone is written, from {}", path.display())),
            count => Some(format!("{count} messages of a process that is gone are written, from {}", path.display())),
        })
    }

    /// Writes all messages of the spool, and empties it. Returns how many.
    pub(super) async fn replay(&mut self) -> Result<usize, SqlError> {
        let Some(outage) = &mut self.outage else { return Ok(0) };
        let contents = outage.spool.read().map_err(|cause| sqlx::Error::Decode(cause.into()))?;
        self.replay_all(contents).await
    }

    /// The same with what has been read of it.
    async fn replay_all(&mut self, contents: Contents) -> Result<usize, SqlError> {
        let written = usize::try_from(contents.written).unwrap_or(usize::MAX);
        let mut is_done: Vec<bool> = (0..contents.messages.len()).map(|at| at < written).collect();
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
                self.note_written(end);
            }
            next = if end > next { end } else { next + 1 };
        }
        if let Some(outage) = &mut self.outage {
            outage.replayed = None;
            outage.spool.clear().map_err(sqlx::Error::Io)?;
        }
        Ok(is_done.len())
    }

    /// A replay that is interrupted goes on from here. A server says by itself what it has committed. Without the note, which a full
    /// disk does not take, messages are tried again, and found to be there.
    fn note_written(&mut self, count: usize) {
        if let Some(outage) = self.outage.as_mut().filter(|_| self.database.as_file().is_some())
            && let Err(error) = outage.spool.written(count as u64)
        {
            tracing::debug!(%error, "what is replayed is not noted in the spool");
        }
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
}
