//! The reading side: connections of its own, that work while another process writes and after a writer was killed.
//! It needs no right to write, and no writer waits for it.

pub(crate) mod changes;
pub(crate) mod decode;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod nights;
#[cfg(test)]
mod plans;
pub(crate) mod remarks;
pub(crate) mod selected;

use crate::{
    Location, Owner, StoreError, connect,
    connect::{Connections, Lent, Opened},
    sql::{Row, Statement, query},
};
use muster_core::{
    case::{CaseName, SessionId},
    job::{scheduler::Job, workload::Limits},
    live::LiveCase,
    result::{About, CaseResult, Purpose, Session, SessionState},
    rules::{Rules, perf::Measurement},
    secret::Secrets,
};
use muster_text::{time::Timestamp, words};
use selected::IN_LIST;
use sqlx::AssertSqlSafe;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// The owner and the heartbeat of a session, as last read: a takeover compares with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub owner: Owner,
    /// The number of times that the owner has reported that it lives.
    pub heartbeat: i64,
}

/// A session as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// The values that were written when it began and ended.
    pub session: Session,
    pub held: Held,
    pub state: SessionState,
}

words! {
    /// The progress of a job.
    pub enum JobState {
        /// It was to be launched: it may or may not exist.
        Intent = "intent",
        Launched = "launched",
        /// Its result is stored; something of it may have been kept.
        Ended = "ended",
        /// Nothing of it is left.
        Cleaned = "cleaned",
    }
}

/// An attempt without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub name: CaseName,
    /// The check's description of itself.
    pub about: About,
    /// 1, 2, ... within the session.
    pub attempt: u32,
    pub purpose: Purpose,
    /// The job, as launched if that is known, else as planned.
    pub job: Job,
    pub state: JobState,
    /// The rules by which it would be judged, or the name of a secret in them that the reader does not know with this value.
    pub rules: Result<Rules, String>,
    /// The limits of its times; `None`: an older muster did not write that down.
    pub limits: Option<Limits>,
    /// The time when the attempt began; `None`: an older muster did not write that down.
    pub begun: Option<Timestamp>,
    /// The time of its launch, if that is known.
    pub launched_at: Option<Timestamp>,
    /// `muster sweep` has removed it, or was about to.
    pub swept: bool,
}

/// The results database, open for reading. Questions that are asked at once are answered one after the other, but for
/// [`Reader::answering`].
#[derive(Debug)]
pub struct Reader {
    database: Location,
    connections: Connections,
    /// What was sealed is read with them.
    secrets: Secrets,
}

/// The changes in a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The cases that have another state than before, in the order of their last change.
    pub cases: Vec<LiveCase>,
    /// The number for the next question: changes since this one.
    pub last: i64,
}

/// How often a query is repeated because a writer came in between.
const TRIES: u32 = 5;

/// Says whether the process that holds a session still lives; `None`: that is not known at once.
pub type Alive<'a> = &'a (dyn Fn(&Owner) -> Option<bool> + Sync);

impl Reader {
    /// Opens the database for reading only. Nothing is written to its folder.
    ///
    /// # Errors
    /// [`StoreError::OlderSchema`] if an earlier version has written it.
    pub async fn open(database: impl Into<Location>) -> Result<Self, StoreError> {
        let database = database.into();
        let connections = Connections::of(connect::for_reading(&database).await?);
        Ok(Self { database, connections, secrets: Secrets::default() })
    }

    /// Opens the database for a process that will write to it. A file of an earlier version is brought up to date first.
    pub async fn of_writer(database: impl Into<Location>) -> Result<Self, StoreError> {
        let database = database.into();
        let connections = Connections::of(connect::for_reading_of_writer(&database).await?);
        Ok(Self { database, connections, secrets: Secrets::default() })
    }

    /// Answers this many questions to a server at once, each on a connection of its own, which is opened when it is needed. A file has one
    /// connection: to open another one closes a descriptor of the file, and then this process loses its locks on it (POSIX).
    #[must_use]
    pub fn answering(self, at_once: usize) -> Self {
        match self.database {
            Location::File(_) => self,
            Location::Server(_) => Self { connections: self.connections.up_to(at_once), ..self },
        }
    }

    /// A reader that reads what was stored with these secrets as it was before.
    #[must_use]
    pub fn knowing(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    pub fn database(&self) -> &Location {
        &self.database
    }

    pub async fn sessions(&self, limit: u32, alive: Alive<'_>) -> Result<Vec<SessionRow>, StoreError> {
        let statement = || query("SELECT * FROM session ORDER BY started DESC, number DESC LIMIT $1").bind(limit);
        self.session_rows(statement, alive).await
    }

    /// The session whose id is, or alone begins with, `prefix`.
    pub async fn session(&self, prefix: &str, alive: Alive<'_>) -> Result<SessionRow, StoreError> {
        // The whole id comes first, should another begin with it. A view that asks again and again has the whole one.
        if let Some(row) = self.session_of(&SessionId(prefix.to_owned()), alive).await? {
            return Ok(row);
        }
        let text = "SELECT * FROM session WHERE substr(id, 1, length($1)) = $1 ORDER BY started DESC LIMIT 6";
        let mut rows = self.session_rows(|| query(text).bind(prefix.to_owned()), alive).await?;
        match rows.first() {
            None => Err(StoreError::NoSession { prefix: prefix.to_owned() }),
            Some(_) if rows.len() == 1 => Ok(rows.swap_remove(0)),
            Some(_) => Err(StoreError::ManySessions {
                prefix: prefix.to_owned(),
                matches: rows.into_iter().map(|row| row.session.id).collect(),
            }),
        }
    }

    /// The sessions of these whole ids that the database knows, in the order of the ids.
    pub async fn sessions_of(&self, ids: &[SessionId], alive: Alive<'_>) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows = HashMap::new();
        for part in ids.chunks(IN_LIST) {
            let text: Arc<str> = format!("SELECT * FROM session WHERE id IN ({})", places(part.len())).into();
            let statement = || with_ids(query(AssertSqlSafe(Arc::clone(&text))), part);
            rows.extend(self.session_rows(statement, alive).await?.into_iter().map(|row| (row.session.id.clone(), row)));
        }
        Ok(ids.iter().filter_map(|id| rows.remove(id)).collect())
    }

    /// Every finished attempt of these sessions, without its figures: for counts. With a few questions, however many there are.
    pub async fn outcomes_of(&self, ids: &[SessionId]) -> Result<HashMap<SessionId, Vec<CaseResult>>, StoreError> {
        let mut all: HashMap<SessionId, Vec<CaseResult>> = HashMap::new();
        for part in ids.chunks(IN_LIST) {
            let text: Arc<str> = format!(
                r#"SELECT s.id AS of_session, a.*, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden,
                c.about FROM session s JOIN "case" c ON c.session = s.number JOIN attempt a ON a."case" = c.id
                WHERE s.id IN ({}) ORDER BY a.id"#,
                places(part.len())
            )
            .into();
            let statement = || with_ids(query(AssertSqlSafe(Arc::clone(&text))), part);
            let decode = |row: &Row| Ok((SessionId(row.try_get("of_session")?), decode::attempt(row, &self.secrets)?.1));
            for (session, result) in self.all("results", statement, decode).await? {
                all.entry(session).or_default().push(result);
            }
        }
        Ok(all)
    }

    /// The session of this whole id; `None`: the database does not know it.
    pub async fn session_of(&self, id: &SessionId, alive: Alive<'_>) -> Result<Option<SessionRow>, StoreError> {
        let statement = || query("SELECT * FROM session WHERE id = $1").bind(id.0.clone());
        Ok(self.session_rows(statement, alive).await?.pop())
    }

    /// Returns the holder of a session, as it is now; `None`: the session has ended.
    pub async fn held(&self, session: &SessionId) -> Result<Option<Held>, StoreError> {
        let statement = || query("SELECT * FROM session WHERE id = $1 AND ended IS NULL").bind(session.0.clone());
        let rows = self.all("the owner of a session", statement, decode::session).await?;
        Ok(rows.into_iter().next().map(|(_, held)| held))
    }

    /// Returns how long the owner of a session has shown no sign of life, by the clock of the server; `None`: a file has none.
    pub async fn silence(&self, session: &SessionId) -> Result<Option<Duration>, StoreError> {
        let Some(text) = self.connection().await?.connection().dialect().silence() else { return Ok(None) };
        let statement = || query(text).bind(session.0.clone());
        let rows = self.all("the age of a heartbeat", statement, |row| row.try_get::<Option<i64>>(0)).await?;
        let age = rows.into_iter().next().flatten();
        Ok(age.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or(0))))
    }

    /// Every finished attempt of a session in the order they finished; of a case that was retried, the last counts.
    pub async fn results(&self, session: &SessionId) -> Result<Vec<CaseResult>, StoreError> {
        Ok(self.attempts(session, "", "ORDER BY a.id").await?.0)
    }

    /// Returns the next finished attempts of a session after that of this number, and the number of the last; 0: before the first.
    pub async fn results_after(&self, session: &SessionId, after: i64, limit: u32) -> Result<(Vec<CaseResult>, i64), StoreError> {
        let (results, last) =
            self.attempts(session, &format!("AND a.id > {after}"), &format!("ORDER BY a.id LIMIT {limit}")).await?;
        Ok((results, last.unwrap_or(after)))
    }

    /// The attempts of a session for which a condition holds, and the number of the last.
    async fn attempts(
        &self,
        session: &SessionId,
        condition: &str,
        order: &str,
    ) -> Result<(Vec<CaseResult>, Option<i64>), StoreError> {
        let attempts = format!(
            r#"SELECT a.*, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden, c.about
            FROM attempt a JOIN "case" c ON c.id = a."case"
            WHERE c.session = (SELECT number FROM session WHERE id = $1) {condition} {order}"#
        );
        let attempts = || query(AssertSqlSafe(attempts.clone())).bind(session.0.clone());
        let attempts = self.all("results", attempts, |row| decode::attempt(row, &self.secrets)).await?;
        let last = attempts.last().map(|(id, _)| *id);
        // Asked for later, so that no result that comes in between lacks its measurements.
        let measurements = format!(
            r#"SELECT m.* FROM measurement m JOIN attempt a ON a.id = m.attempt JOIN "case" c ON c.id = a."case"
            WHERE c.session = (SELECT number FROM session WHERE id = $1) {condition} AND +a.id <= $2
            ORDER BY m.attempt, m.position"#
        );
        let last_of = last.unwrap_or_default();
        let measurements = || query(AssertSqlSafe(measurements.clone())).bind(session.0.clone()).bind(last_of);
        let mut of_attempt: HashMap<i64, Vec<Measurement>> = HashMap::new();
        for (attempt, measurement) in self.all("measurements", measurements, decode::measurement).await? {
            of_attempt.entry(attempt).or_default().push(measurement);
        }
        let whole = |(id, result)| CaseResult { measurements: of_attempt.remove(&id).unwrap_or_default(), ..result };
        Ok((attempts.into_iter().map(whole).collect(), last))
    }

    /// The attempts of a session that were to be launched and have no result, in the order they began.
    pub async fn unfinished(&self, session: &SessionId) -> Result<Vec<JobRow>, StoreError> {
        self.jobs("unfinished cases", session, "a.id IS NULL").await
    }

    /// The teardowns of a session that have started and of which something may be left: jobs of cases that have their results.
    pub async fn teardowns(&self, session: &SessionId) -> Result<Vec<JobRow>, StoreError> {
        self.jobs("teardowns", session, "a.id IS NOT NULL AND j.state IN ('intent', 'launched')").await
    }

    /// The jobs of a session for which a condition on the job `j` and on the result `a` of its attempt holds.
    async fn jobs(&self, what: &'static str, session: &SessionId, condition: &str) -> Result<Vec<JobRow>, StoreError> {
        let text: Arc<str> = format!(
            r#"SELECT j.*, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden, c.about
            FROM job j JOIN "case" c ON c.id = j."case" LEFT JOIN attempt a ON a."case" = j."case" AND a.number = j.attempt
            WHERE j.session = (SELECT number FROM session WHERE id = $1) AND {condition} ORDER BY c.id, j.attempt"#
        )
        .into();
        let statement = || query(AssertSqlSafe(Arc::clone(&text))).bind(session.0.clone());
        self.all(what, statement, |row| decode::job(row, &self.secrets)).await
    }

    /// Every job, of all sessions, of which something may be left: as launched if that is known, else as planned.
    pub async fn open_jobs(&self) -> Result<Vec<Job>, StoreError> {
        let statement = || query(r#"SELECT plan, launched FROM job WHERE state <> 'cleaned' ORDER BY session, "case", attempt"#);
        self.all("open jobs", statement, decode::launched_or_planned).await
    }

    /// The states of cases that were written after `since`: 0 is before all of them.
    pub async fn changes(&self, session: &SessionId, since: i64) -> Result<Changes, StoreError> {
        let statement = || query(CHANGES).bind(session.0.clone()).bind(since);
        let rows = self.all("states", statement, decode::live).await?;
        let last = rows.last().map_or(since, |(change, _)| *change);
        Ok(Changes { cases: rows.into_iter().map(|(_, case)| case).collect(), last })
    }

    async fn session_rows(&self, statement: impl Fn() -> Statement, alive: Alive<'_>) -> Result<Vec<SessionRow>, StoreError> {
        let sessions = self.all("sessions", statement, decode::session).await?;
        let row = |(session, held): (Session, Held)| {
            let state = match session.ended {
                Some(_) => SessionState::Ended,
                None => match alive(&held.owner) {
                    Some(true) => SessionState::Running,
                    Some(false) => SessionState::Interrupted,
                    None => SessionState::Unknown,
                },
            };
            SessionRow { session, held, state }
        };
        Ok(sessions.into_iter().map(row).collect())
    }

    /// For several questions whose answers belong together: they are asked until [`Reader::stands`] says that they stand.
    pub(crate) async fn connection(&self) -> Result<Lent<'_>, StoreError> {
        self.connections.free(&self.database).await
    }

    /// An answer, if what was read is what is there, or after many tries. `None`: the database is open again, and is asked again.
    pub(crate) async fn stands<T>(
        &self,
        connection: &mut Opened,
        answer: Result<T, StoreError>,
        tries: &mut u32,
    ) -> Result<Option<T>, StoreError> {
        *tries += 1;
        match answer {
            Ok(answer) if connection.is_current(&self.database) || *tries >= TRIES => return Ok(Some(answer)),
            Err(StoreError::Read { cause, .. }) if *tries < TRIES && cause.may_pass() => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        connection.reopen(&self.database).await.map(|()| None)
    }

    /// Every row that a statement finds, decoded.
    pub(crate) async fn all<T>(
        &self,
        what: &'static str,
        statement: impl Fn() -> Statement,
        decode: impl Fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let failed = |cause: sqlx::Error| StoreError::Read { database: self.database.clone(), what, cause: cause.into() };
        let mut connection = self.connection().await?;
        let mut tries = 0;
        loop {
            let mut decoded = Vec::new();
            let each = |row: &Row| {
                decoded.push(decode(row)?);
                Ok(())
            };
            let answer = statement().for_each(connection.connection(), each).await.map_err(failed);
            if let Some(()) = self.stands(&mut connection, answer, &mut tries).await? {
                return Ok(decoded);
            }
        }
    }
}

/// `$1, $2`
fn places(count: usize) -> String {
    (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

fn with_ids(statement: Statement, ids: &[SessionId]) -> Statement {
    ids.iter().fold(statement, |statement, id| statement.bind(id.0.clone()))
}

/// The states of the cases of a session since a change.
pub(crate) const CHANGES: &str = r#"SELECT l.*, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden,
    a.outcome, a.reason, a.cause, a.quarantine
    FROM live l JOIN "case" c ON c.id = l."case" LEFT JOIN attempt a ON a."case" = l."case" AND a.number = l.attempt
    WHERE l.session = (SELECT number FROM session WHERE id = $1) AND l.change > $2 ORDER BY l.change"#;
