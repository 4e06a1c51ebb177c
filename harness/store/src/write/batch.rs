//! The writer: one transaction of everything that has queued, and what it knows of the sessions that it writes.

use crate::{
    Location, StoreError,
    error::SqlError,
    read::decode,
    sql::{Connection, Row, query},
    write::{
        live::{CaseKey, NewState, States},
        message::{Envelope, Message, Text},
        rows::{Ids, KnownCase, Rows, SessionCases, Sessions, digest},
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
use tokio::time::sleep;

/// How long a running session waits for the lock of another process, after the connection's own timeout.
const LOCKED: Duration = Duration::from_mins(2);
const LOCK_POLL: Duration = Duration::from_millis(100);

/// The most states of cases in one transaction.
const STATES: usize = 256;

/// Owns the connection that writes, and knows the numbers of what it has written.
pub(crate) struct Writer {
    database: Location,
    connection: Connection,
    statements: Statements,
    sessions: Sessions,
    ids: Ids,
    /// What is written with the next transaction.
    states: Arc<States>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, database: Location, states: Arc<States>) -> Self {
        Self {
            database,
            statements: Statements::new(connection.dialect()),
            connection,
            sessions: Sessions::new(),
            ids: Ids::default(),
            states,
        }
    }

    /// Commits and answers all of `envelopes`, and leaves none of them. Says whether there are states for another transaction.
    pub(crate) async fn commit(&mut self, envelopes: &mut Vec<Envelope>) -> bool {
        self.refuse_unknown_sessions(envelopes);
        let all: Vec<&Message> = envelopes.iter().map(|envelope| &envelope.message).collect();
        let outcome = self.retry_while_locked(&all).await;
        match outcome {
            // One bad row must not take the others with it.
            Err(error) if envelopes.len() > 1 && error.is_about_a_row() => {
                for envelope in envelopes.drain(..) {
                    let mut alone = vec![envelope];
                    // Its session may have ended in one of the transactions before.
                    self.refuse_unknown_sessions(&mut alone);
                    for envelope in alone {
                        let outcome = self.transaction(&[&envelope.message]).await;
                        self.answer(envelope, outcome);
                    }
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

    pub(crate) async fn close(self) -> Result<(), StoreError> {
        let Self { database, connection, .. } = self;
        connection.close().await.map_err(|cause| StoreError::Write { database, cause: cause.into() })
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

    fn answer(&self, envelope: Envelope, outcome: Result<(), SqlError>) {
        let outcome = outcome.map_err(|cause| StoreError::Write { database: self.database.clone(), cause });
        match (envelope.ack, outcome) {
            // If the waiter was dropped, the answer is lost. The row is stored.
            (Some(ack), outcome) => drop(ack.send(outcome)),
            (None, Ok(())) => {}
            (None, Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "not stored"),
        }
    }

    /// Writes all of `messages` or nothing. While a session runs, a lock (a backup, for instance) is waited for, so that no result
    /// is lost. A session that is about to start fails at once.
    async fn retry_while_locked(&mut self, messages: &[&Message]) -> Result<(), SqlError> {
        let (started, mut is_reported) = (Instant::now(), false);
        loop {
            match self.transaction(messages).await {
                Err(error) if error.is_busy() && !self.sessions.is_empty() && started.elapsed() < LOCKED => {
                    if !std::mem::replace(&mut is_reported, true) {
                        let database = self.database.display();
                        tracing::warn!(
                            "the results database {database} is locked by another process; waiting, at most {LOCKED:?}"
                        );
                    }
                    // Not every lock is waited for by the connection.
                    sleep(LOCK_POLL).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Writes all of `messages` and the states that wait, or nothing.
    async fn transaction(&mut self, messages: &[&Message]) -> Result<(), SqlError> {
        let states = self.states.take(STATES);
        if states.is_empty() && messages.iter().all(|message| matches!(message, Message::States)) {
            return Ok(());
        }
        let written = self.write(messages, &states).await;
        if written.is_err() {
            self.states.put_back(states);
        }
        written
    }

    async fn write(&mut self, messages: &[&Message], states: &[(CaseKey, NewState)]) -> Result<(), SqlError> {
        self.connection.begin().await?;
        let written = async {
            let started = insert_sessions(&mut self.connection, messages).await?;
            let taken = take_over_sessions(&mut self.connection, messages).await?;
            hand_over_sessions(&mut self.connection, messages).await?;
            beat(&mut self.connection, messages).await?;
            let last = self.ids.next(&mut self.connection, messages, states, &self.sessions).await?;
            let rows = Rows::sort(messages, states, &self.sessions, last);
            rows.write(&mut self.connection, &self.statements).await?;
            self.connection.commit().await?;
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
                let _ = self.connection.rollback().await;
                Err(error)
            }
        }
    }

    fn add_known(&mut self, started: Vec<(Text, i64)>, cases: HashMap<CaseKey, KnownCase>) {
        for (session, number) in started {
            self.sessions.insert(session, SessionCases { number, cases: HashMap::new() });
        }
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

async fn insert_sessions(connection: &mut Connection, messages: &[&Message]) -> Result<Vec<(Text, i64)>, sqlx::Error> {
    let mut started = Vec::new();
    for message in messages {
        if let Message::Begin(entry) = message {
            let row = session::insert(entry).build().fetch_one(connection).await?;
            started.push((entry.session.id.0.as_str().into(), row.try_get("number")?));
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
        let row = session::take_over(session, &owners.0, &owners.1).build().fetch_one(connection).await?;
        let number: i64 = row.try_get("number")?;
        for statement in REOPEN {
            query(statement).bind(number).execute(connection).await?;
        }
        let cases = query(r#"SELECT * FROM "case" WHERE session = $1"#).bind(number).fetch_all(connection).await?;
        let known = |row: &Row| Ok::<_, sqlx::Error>(KnownCase { id: row.try_get("id")?, about: digest(row.try_get("about")?) });
        let case = |row| Ok((Text::from(decode::name(row)?.to_string()), known(row)?));
        let cases = cases.iter().map(case).collect::<Result<_, sqlx::Error>>()?;
        taken.push((Arc::clone(session), SessionCases { number, cases }));
    }
    Ok(taken)
}

async fn hand_over_sessions(connection: &mut Connection, messages: &[&Message]) -> Result<(), sqlx::Error> {
    for message in messages {
        let Message::HandOver(session, handover) = message else { continue };
        session::hand_over(session, handover).build().fetch_one(connection).await?;
    }
    Ok(())
}

/// Counts up the heartbeats of sessions.
async fn beat(connection: &mut Connection, messages: &[&Message]) -> Result<(), sqlx::Error> {
    for message in messages {
        let Message::Beat(session, owner) = message else { continue };
        session::beat(session, owner).build().fetch_one(connection).await?;
    }
    Ok(())
}
