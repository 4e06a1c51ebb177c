//! The writer: one transaction of everything that has queued, and what it knows of the sessions that it writes.

use crate::{
    Location, StoreError,
    error::SqlError,
    sql::{Connection, query},
    write::{
        live::{CaseKey, NewState, States},
        message::{Envelope, Message, Text},
        night::NightWriter,
        outage::{self, Line, Outage},
        rows::{Ids, KnownCase, Rows, SessionCases, Sessions},
        session,
        statements::{REOPEN, Statements},
    },
};
use muster_core::case::SessionId;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// How long a running session waits for the lock of another process, after the connection's own timeout.
const LOCKED: Duration = Duration::from_mins(2);
/// The same for a full disk, of which somebody may remove something.
const FULL: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(100);
/// How long a server may take for a transaction.
const ANSWER: Duration = Duration::from_secs(30);

/// The most states of cases in one transaction.
const STATES: usize = 256;

/// Owns the connection that writes, and knows the numbers of what it has written.
pub(crate) struct Writer {
    pub(super) database: Location,
    /// `None`: the database is away.
    pub(super) connection: Option<Connection>,
    statements: Statements,
    pub(super) sessions: Sessions,
    ids: Ids,
    /// What is written with the next transaction.
    states: Arc<States>,
    pub(super) outage: Option<Outage>,
    /// How long a lock is waited for.
    pub(super) patience: Duration,
    night: NightWriter,
    pub(super) line: Arc<Line>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, database: Location, states: Arc<States>) -> Self {
        Self {
            outage: Outage::of(&database),
            patience: LOCKED,
            database,
            statements: Statements::new(connection.dialect()),
            night: NightWriter::new(connection.dialect()),
            connection: Some(connection),
            sessions: Sessions::new(),
            ids: Ids::default(),
            line: Arc::default(),
            states,
        }
    }

    /// Commits and answers all of `envelopes`, and leaves none of them. Says whether there are states for another transaction.
    pub(crate) async fn commit(&mut self, envelopes: &mut Vec<Envelope>) -> bool {
        self.refuse_unknown_sessions(envelopes);
        if self.connection.is_none() {
            self.keep(envelopes, None);
            return false;
        }
        let all: Vec<&Message> = envelopes.iter().map(|envelope| &envelope.message).collect();
        let outcome = self.retry_while_locked(&all).await;
        match outcome {
            Err(error) if self.is_lost(&error) => {
                self.lose(&error, envelopes);
                false
            }
            // One bad row must not take the others with it.
            Err(error) if envelopes.len() > 1 && error.is_about_a_row() => {
                for envelope in envelopes.drain(..) {
                    self.commit_alone(envelope).await;
                }
                false
            }
            outcome => {
                envelopes.drain(..).for_each(|envelope| self.answer(envelope, outcome.clone()));
                // What failed is tried again with the next message.
                outcome.is_ok() && !self.states.is_empty()
            }
        }
    }

    async fn commit_alone(&mut self, envelope: Envelope) {
        let mut alone = vec![envelope];
        // Its session may have ended in one of the transactions before.
        self.refuse_unknown_sessions(&mut alone);
        let Some(envelope) = alone.pop() else { return };
        if self.connection.is_none() {
            return self.keep(&mut vec![envelope], None);
        }
        match self.retry_while_locked(&[&envelope.message]).await {
            Err(error) if self.is_lost(&error) => self.lose(&error, &mut vec![envelope]),
            outcome => self.answer(envelope, outcome),
        }
    }

    /// Answers the messages of sessions that this writer has not started.
    fn refuse_unknown_sessions(&self, envelopes: &mut Vec<Envelope>) {
        let unknown = envelopes.extract_if(.., |envelope| {
            let session = envelope.message.session();
            session.is_some_and(|session| !self.sessions.contains_key(session))
        });
        for Envelope { message, ack } in unknown {
            if let (Some(ack), Some(session)) = (ack, message.session()) {
                let _ = ack.send(Err(StoreError::NotStarted { session: SessionId(session.to_string()) }));
            }
        }
    }

    pub(super) fn answer(&self, envelope: Envelope, outcome: Result<(), SqlError>) {
        let outcome = outcome.map_err(|cause| StoreError::Write { database: self.database.clone(), cause });
        match (envelope.ack, outcome) {
            // If the waiter was dropped, the answer is lost. The row is stored.
            (Some(ack), outcome) => drop(ack.send(outcome)),
            (None, Ok(())) => {}
            (None, Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "not stored"),
        }
    }

    /// Writes all of `messages` or nothing. While a session runs, a lock (a backup, for instance) and a full disk are waited for; what a
    /// lock still keeps out then goes to the spool. A session that is about to start fails at once, and one that must end waits no more.
    async fn retry_while_locked(&mut self, messages: &[&Message]) -> Result<(), SqlError> {
        let (started, mut is_reported) = (Instant::now(), false);
        loop {
            let outcome = self.transaction(messages).await;
            let Err(error) = &outcome else { return outcome };
            let limit = match error {
                error if error.is_busy() => self.patience,
                error if error.is_full() => FULL,
                _ => return outcome,
            };
            if self.sessions.is_empty() || self.line.is_hurried() || started.elapsed() >= limit {
                return outcome;
            }
            if !std::mem::replace(&mut is_reported, true) {
                let database = self.database.display();
                self.line.warn(if error.is_full() {
                    format!("the results database {database} has no room on its disk; waiting, at most {limit:?}")
                } else {
                    format!("the results database {database} is locked by another process; waiting, at most {limit:?}")
                });
            }
            // Not every lock is waited for by the connection.
            sleep(LOCK_POLL).await;
        }
    }

    /// Writes all of `messages` and the states that wait, or nothing.
    pub(super) async fn transaction(&mut self, messages: &[&Message]) -> Result<(), SqlError> {
        let states = self.states.take(STATES);
        if states.is_empty() && messages.iter().all(|message| matches!(message, Message::States)) {
            return Ok(());
        }
        let written = match &self.database {
            Location::File(_) => self.write(messages, &states).await,
            // A server that is cut off says nothing, for a quarter of an hour.
            Location::Server(_) => timeout(ANSWER, self.write(messages, &states)).await.unwrap_or_else(|_| Err(outage::away())),
        };
        if written.is_err() {
            self.states.put_back(states);
        }
        written
    }

    async fn write(&mut self, messages: &[&Message], states: &[(CaseKey, NewState)]) -> Result<(), SqlError> {
        let Self { connection, outage, night, .. } = self;
        let connection = connection.as_mut().ok_or_else(outage::away)?;
        if let Some(outage) = outage {
            outage.begins(None);
            outage.begins(connection.begin().await?);
        } else {
            connection.begin().await?;
        }
        let written = async {
            let started = insert_sessions(connection, messages).await?;
            let taken = take_over_sessions(connection, messages).await?;
            hand_over_sessions(connection, messages).await?;
            beat(connection, messages).await?;
            let last = self.ids.next(connection, messages, states, &self.sessions).await?;
            let rows = Rows::sort(messages, states, &self.sessions, last);
            rows.write(connection, &self.statements).await?;
            night.write(connection, &self.sessions, messages, &rows.attempts).await?;
            outage.as_mut().map_or(Ok(()), Outage::commits).map_err(sqlx::Error::Io)?;
            connection.commit().await?;
            Ok((started, taken, rows.learned, rows.last))
        };
        match written.await {
            Ok((started, taken, cases, last)) => {
                self.ids = last;
                self.sessions.extend(taken);
                self.add_known(started, cases);
                self.remove_ended(messages);
                Ok(())
            }
            Err(error) => {
                // Fails only if SQLite has rolled back already.
                let _ = connection.rollback().await;
                self.night.forget();
                Err(error)
            }
        }
    }

    fn add_known(&mut self, started: Vec<(Text, SessionCases)>, cases: HashMap<CaseKey, KnownCase>) {
        self.sessions.extend(started);
        for (key, case) in cases {
            if let Some(known) = self.sessions.get_mut(&key.session) {
                known.cases.insert(key.case, case);
            }
        }
    }

    fn remove_ended(&mut self, messages: &[&Message]) {
        for message in messages {
            if let Message::End { session, .. } = message {
                self.sessions.remove(session);
            }
        }
    }
}

async fn insert_sessions(connection: &mut Connection, messages: &[&Message]) -> Result<Vec<(Text, SessionCases)>, sqlx::Error> {
    let mut started = Vec::new();
    for message in messages {
        if let Message::Begin(entry) = message {
            let row = session::insert(entry).build().fetch_one(connection).await?;
            let (number, session) = (row.try_get("number")?, &entry.session);
            let (system, night, counting) = (session.system.clone(), session.night, session.counting);
            let cases = HashMap::new();
            started.push((session.id.0.as_str().into(), SessionCases { number, cases, system, night, counting }));
        }
    }
    Ok(started)
}

/// The sessions that this transaction takes over, with the cases that they have already.
async fn take_over_sessions(
    connection: &mut Connection,
    messages: &[&Message],
) -> Result<Vec<(Text, SessionCases)>, sqlx::Error> {
    let mut taken = Vec::new();
    for message in messages {
        let Message::TakeOver(session, owners) = message else { continue };
        let row = session::take_over(connection.dialect(), session, &owners.0, &owners.1).build().fetch_one(connection).await?;
        let number: i64 = row.try_get("number")?;
        for statement in REOPEN {
            query(statement).bind(number).execute(connection).await?;
        }
        taken.push((Arc::clone(session), SessionCases::of(connection, number).await?));
    }
    Ok(taken)
}

async fn hand_over_sessions(connection: &mut Connection, messages: &[&Message]) -> Result<(), sqlx::Error> {
    for message in messages {
        let Message::HandOver(session, handover) = message else { continue };
        session::hand_over(connection.dialect(), session, handover).build().fetch_one(connection).await?;
    }
    Ok(())
}

/// Counts up the heartbeats of sessions.
async fn beat(connection: &mut Connection, messages: &[&Message]) -> Result<(), sqlx::Error> {
    for message in messages {
        let Message::Beat(session, owner) = message else { continue };
        session::beat(connection.dialect(), session, owner).build().fetch_one(connection).await?;
    }
    Ok(())
}
