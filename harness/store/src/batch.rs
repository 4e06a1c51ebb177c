//! One transaction: everything that has queued, sorted by kind so that rows of a kind go in one statement. The order
//! of kinds is the order of a job's life, so no sender's order is lost.

use crate::{
    StoreError, connect,
    message::{AttemptEntry, CaseEntry, Envelope, IntentEntry, JobKey, Message, SessionEntry, Text},
    schema::{Statement, Statements},
};
use muster_core::{
    case::SessionId,
    perf::{Bounds, Direction, Measurement, Verdict},
    time::Timestamp,
};
use sqlx::{Row, SqliteConnection};
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

/// Owns the connection that writes, and knows the numbers of what it has written.
pub(crate) struct Writer {
    path: PathBuf,
    connection: SqliteConnection,
    statements: Statements,
    sessions: Sessions,
}

/// The sessions that were begun here and have not ended.
type Sessions = HashMap<Text, SessionCases>;

struct SessionCases {
    number: i64,
    /// The ids of its cases.
    cases: HashMap<Text, i64>,
}

impl Writer {
    pub(crate) fn new(connection: SqliteConnection, path: PathBuf) -> Self {
        Self { path, connection, statements: Statements::new(), sessions: Sessions::new() }
    }

    /// Commits and answers all of `envelopes`, and leaves none of them.
    pub(crate) async fn commit(&mut self, envelopes: &mut Vec<Envelope>) {
        self.refuse_strangers(envelopes);
        let all: Vec<&Message> = envelopes.iter().map(|envelope| &envelope.message).collect();
        let outcome = self.transaction(&all).await;
        match outcome {
            // One bad row must not take the others with it.
            Err(error) if envelopes.len() > 1 && connect::is_about_a_row(&error) => {
                for envelope in envelopes.drain(..) {
                    let outcome = self.transaction(&[&envelope.message]).await;
                    self.answer(envelope, outcome.map_err(Arc::new));
                }
            }
            outcome => {
                let outcome = outcome.map_err(Arc::new);
                envelopes.drain(..).for_each(|envelope| self.answer(envelope, outcome.clone()));
            }
        }
    }

    pub(crate) async fn close(self) -> Result<(), StoreError> {
        let Self { path, connection, .. } = self;
        connect::close(connection).await.map_err(|cause| StoreError::Write { path, cause: Arc::new(cause) })
    }

    /// Answers what belongs to sessions that were not begun here.
    fn refuse_strangers(&self, envelopes: &mut Vec<Envelope>) {
        let stranger = |message: &Message| message.session().filter(|id| !self.sessions.contains_key(*id)).cloned();
        for envelope in envelopes.extract_if(.., |envelope| stranger(&envelope.message).is_some()) {
            if let (Some(ack), Some(session)) = (envelope.ack, stranger(&envelope.message)) {
                let _ = ack.send(Err(StoreError::NotBegun { session: SessionId(session.to_string()) }));
            }
        }
    }

    fn answer(&self, envelope: Envelope, outcome: Result<(), Arc<sqlx::Error>>) {
        let outcome = outcome.map_err(|cause| StoreError::Write { path: self.path.clone(), cause });
        match (envelope.ack, outcome) {
            // Nobody listens any more if the waiter was dropped; its row is in.
            (Some(ack), outcome) => drop(ack.send(outcome)),
            (None, Ok(())) => {}
            (None, Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "not stored"),
        }
    }

    /// Writes all of `messages` or nothing.
    ///
    /// In plain statements: sqlx counts transactions by itself, and miscounts when SQLite rolls back on its own,
    /// as it does on a full disk.
    async fn transaction(&mut self, messages: &[&Message]) -> Result<(), sqlx::Error> {
        if messages.is_empty() {
            return Ok(());
        }
        execute(&mut self.connection, "BEGIN IMMEDIATE").await?;
        let written = async {
            let begun = insert_sessions(&mut self.connection, messages).await?;
            let last = Ids::last(&mut self.connection, messages).await?;
            let rows = Rows::sort(messages, &self.sessions, last);
            rows.write(&mut self.connection, &self.statements).await?;
            execute(&mut self.connection, "COMMIT").await?;
            Ok((begun, rows.new_cases))
        };
        match written.await {
            Ok((begun, cases)) => {
                self.learn(begun, cases);
                self.forget(messages);
                Ok(())
            }
            Err(error) => {
                // Fails only if SQLite has rolled back already.
                let _ = execute(&mut self.connection, "ROLLBACK").await;
                Err(error)
            }
        }
    }

    fn learn(&mut self, begun: Vec<(Text, i64)>, cases: HashMap<(Text, Text), i64>) {
        for (session, number) in begun {
            self.sessions.insert(session, SessionCases { number, cases: HashMap::new() });
        }
        for ((session, key), id) in cases {
            if let Some(known) = self.sessions.get_mut(&session) {
                known.cases.insert(key, id);
            }
        }
    }

    fn forget(&mut self, messages: &[&Message]) {
        for message in messages {
            if let Message::End { session, .. } = message {
                self.sessions.remove(session);
            }
        }
    }
}

async fn execute(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(connection).await.map(drop)
}

async fn insert_sessions(connection: &mut SqliteConnection, messages: &[&Message]) -> Result<Vec<(Text, i64)>, sqlx::Error> {
    let mut begun = Vec::new();
    for message in messages {
        if let Message::Begin(entry) = message {
            let SessionEntry { session, command, owner } = &**entry;
            let insert = sqlx::query(
                "INSERT INTO session (id, started, ended, command, system, user_name, host, workdir, version, num_cases, \
                 interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING number",
            );
            let row = insert
                .bind(session.id.0.clone())
                .bind(session.started.0)
                .bind(session.ended.map(|at| at.0))
                .bind(Arc::clone(command))
                .bind(session.system.clone())
                .bind(session.user.clone())
                .bind(session.host.clone())
                .bind(session.workdir.to_string_lossy().into_owned())
                .bind(session.version.clone())
                .bind(session.num_cases)
                .bind(i64::from(session.interrupted))
                .bind(owner.host.clone())
                .bind(owner.pid)
                .bind(i64::try_from(owner.start_time).unwrap_or(i64::MAX))
                .bind(owner.boot_id.clone())
                .fetch_one(&mut *connection)
                .await?;
            begun.push((session.id.0.as_str().into(), row.try_get("number")?));
        }
    }
    Ok(begun)
}

/// The highest ids given out. Nobody else gives out any while this transaction holds the write lock.
#[derive(Clone, Copy, Default)]
struct Ids {
    case: i64,
    attempt: i64,
}

impl Ids {
    async fn last(connection: &mut SqliteConnection, messages: &[&Message]) -> Result<Self, sqlx::Error> {
        if messages.iter().all(|message| message.session().is_none()) {
            return Ok(Self::default());
        }
        let last = r#"SELECT coalesce((SELECT max(id) FROM "case"), 0), coalesce((SELECT max(id) FROM attempt), 0)"#;
        let row = sqlx::query(last).fetch_one(connection).await?;
        Ok(Self { case: row.try_get(0)?, attempt: row.try_get(1)? })
    }
}

/// The rows of one transaction, by kind.
#[derive(Default)]
struct Rows<'m> {
    cases: Vec<(i64, i64, &'m CaseEntry)>,
    intents: Vec<(i64, i64, &'m IntentEntry)>,
    launched: Vec<(&'m JobKey, &'m Text)>,
    marks: Vec<(&'m JobKey, &'m Text)>,
    attempts: Vec<(i64, i64, &'m AttemptEntry)>,
    measurements: Vec<(i64, i64, &'m Measurement)>,
    ended: Vec<&'m JobKey>,
    cleaned: Vec<&'m JobKey>,
    ends: Vec<(&'m Text, Timestamp, bool)>,
    /// The ids of cases that no earlier transaction wrote.
    new_cases: HashMap<(Text, Text), i64>,
}

impl<'m> Rows<'m> {
    fn sort(messages: &[&'m Message], sessions: &Sessions, mut last: Ids) -> Self {
        let mut rows = Self::default();
        for message in messages {
            match message {
                Message::Intent(entry) => {
                    if let Some((session, case)) = rows.case(&entry.key.session, &entry.case, sessions, &mut last) {
                        rows.intents.push((session, case, entry));
                    }
                }
                Message::Launched(key, job) => rows.launched.push((key, job)),
                Message::Marks(key, marks) => rows.marks.push((key, marks)),
                Message::Finished(entry) => {
                    if let Some((_, case)) = rows.case(&entry.session, &entry.case, sessions, &mut last) {
                        last.attempt += 1;
                        rows.attempts.push((last.attempt, case, entry));
                        rows.measurements.extend((0..).zip(&entry.measurements).map(|(at, m)| (last.attempt, at, m)));
                        rows.ended.extend(&entry.job);
                    }
                }
                Message::Cleaned(key) => rows.cleaned.push(key),
                Message::End { session, ended, interrupted } => rows.ends.push((session, *ended, *interrupted)),
                Message::Begin(_) | Message::Close => {}
            }
        }
        rows.drop_outdated();
        rows
    }

    /// Leaves out what a later message of the same transaction makes useless: most cases are over soon.
    fn drop_outdated(&mut self) {
        let cleaned: HashSet<_> = self.cleaned.iter().copied().collect();
        let ended: HashSet<_> = self.ended.iter().copied().collect();
        self.launched.retain(|(key, _)| !cleaned.contains(key));
        self.marks.retain(|(key, _)| !cleaned.contains(key) && !ended.contains(key));
        self.ended.retain(|key| !cleaned.contains(key));
        // An update from a list in which a job stands twice would take either.
        keep_last(&mut self.launched);
        keep_last(&mut self.marks);
    }

    /// The numbers of a case's session and of itself.
    fn case(&mut self, session: &Text, entry: &'m CaseEntry, sessions: &Sessions, last: &mut Ids) -> Option<(i64, i64)> {
        let SessionCases { number, cases } = sessions.get(session)?;
        if let Some(id) = cases.get(&entry.key) {
            return Some((*number, *id));
        }
        let id = *self.new_cases.entry((Arc::clone(session), Arc::clone(&entry.key))).or_insert_with(|| {
            last.case += 1;
            self.cases.push((last.case, *number, entry));
            last.case
        });
        Some((*number, id))
    }

    async fn write(&self, connection: &mut SqliteConnection, statements: &Statements) -> Result<(), sqlx::Error> {
        statements.case.execute(connection, &self.cases, bind_case).await?;
        statements.intent.execute(connection, &self.intents, bind_intent).await?;
        statements.launched.execute(connection, &self.launched, bind_job_text).await?;
        statements.marks.execute(connection, &self.marks, bind_job_text).await?;
        statements.attempt.execute(connection, &self.attempts, bind_attempt).await?;
        statements.measurement.execute(connection, &self.measurements, bind_measurement).await?;
        statements.ended.execute(connection, &self.ended, |statement, key| bind_job(statement, key)).await?;
        statements.cleaned.execute(connection, &self.cleaned, |statement, key| bind_job(statement, key)).await?;
        for (session, ended, interrupted) in &self.ends {
            let update = sqlx::query("UPDATE session SET ended = $2, interrupted = $3 WHERE id = $1");
            let update = update.bind(Arc::clone(session)).bind(ended.0).bind(i64::from(*interrupted));
            update.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

fn keep_last(rows: &mut Vec<(&JobKey, &Text)>) {
    let mut seen = HashSet::new();
    rows.reverse();
    rows.retain(|(key, _)| seen.insert(*key));
}

fn bind_case(statement: Statement, (id, session, entry): &(i64, i64, &CaseEntry)) -> Statement {
    let name = &entry.name;
    statement
        .bind(*id)
        .bind(*session)
        .bind(name.display.clone())
        .bind(name.check.clone())
        .bind(name.hash.clone())
        .bind(name.system.clone())
        .bind(name.partition.clone())
        .bind(name.environ.clone())
        .bind(Arc::clone(&entry.about))
}

fn bind_intent(statement: Statement, (session, case, entry): &(i64, i64, &IntentEntry)) -> Statement {
    statement
        .bind(*session)
        .bind(Arc::clone(&entry.key.identifier))
        .bind(*case)
        .bind(entry.attempt)
        .bind("intent")
        .bind(Arc::clone(&entry.stage))
        .bind(Arc::clone(&entry.plan))
        .bind(Arc::clone(&entry.rules))
}

fn bind_job(statement: Statement, key: &JobKey) -> Statement {
    statement.bind(Arc::clone(&key.session)).bind(Arc::clone(&key.identifier))
}

fn bind_job_text(statement: Statement, (key, text): &(&JobKey, &Text)) -> Statement {
    bind_job(statement, key).bind(Arc::clone(text))
}

fn bind_attempt(statement: Statement, (id, case, entry): &(i64, i64, &AttemptEntry)) -> Statement {
    let time = |at: Option<Timestamp>| at.map(|at| at.0);
    let times = &entry.times;
    statement
        .bind(*id)
        .bind(*case)
        .bind(entry.number)
        .bind(entry.job.as_ref().map(|job| Arc::clone(&job.identifier)))
        .bind(entry.outcome)
        .bind(entry.reason.clone())
        .bind(entry.phase)
        .bind(entry.cause.clone())
        .bind(times.begun.0)
        .bind(time(times.launched))
        .bind(time(times.started))
        .bind(time(times.ended))
        .bind(times.finished.0)
        .bind(entry.folder.clone())
        .bind(Arc::clone(&entry.detail))
}

fn bind_measurement(statement: Statement, (attempt, position, m): &(i64, i64, &Measurement)) -> Statement {
    let bounds = m.bounds.as_ref();
    let (verdict, reason) = match &m.verdict {
        Verdict::None => ("none", None),
        Verdict::Pass => ("pass", None),
        Verdict::Warn => ("warn", None),
        Verdict::Fail => ("fail", None),
        Verdict::Xfail(why) => ("xfail", Some(why.clone())),
        Verdict::Xpass(why) => ("xpass", Some(why.clone())),
    };
    let direction = m.direction.map(|direction| match direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
    });
    statement
        .bind(*attempt)
        .bind(*position)
        .bind(m.variable.clone())
        .bind(m.key.clone())
        .bind(m.section.clone())
        .bind(m.node.clone())
        // SQLite would do the same without being asked; PostgreSQL would store NaN.
        .bind((!m.value.is_nan()).then_some(m.value))
        .bind(m.unit.clone())
        .bind(bounds.map(|bounds: &Bounds| bounds.reference))
        .bind(bounds.and_then(|bounds| bounds.lower))
        .bind(bounds.and_then(|bounds| bounds.upper))
        .bind(verdict)
        .bind(reason)
        .bind(direction)
}
