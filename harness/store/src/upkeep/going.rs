//! Chooses and counts what is to be removed. Nothing is changed here: a preview reports what a removal then does.

use super::Keep;
use crate::{
    Location, Owner, Reader, StoreError,
    read::decode,
    sql::{Connection, Row, query},
};
use muster_core::case::SessionId;
use muster_text::time::Timestamp;
use sqlx::Error;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::Duration,
};

/// A session without an end whose owner is not visible is over after this.
const SURELY_OVER: Duration = Duration::from_hours(30 * 24);

/// Whether an owner lives; `None`: that is not known.
type Alive<'a> = &'a dyn Fn(&Owner) -> Option<bool>;

/// The sessions that are to be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Going {
    pub(super) numbers: Vec<i64>,
    /// Logs of attempts that finished before go, too.
    pub(super) logs_before: Option<Timestamp>,
    /// The times when the first and the last of the sessions started.
    pub started: Option<(Timestamp, Timestamp)>,
    pub cases: i64,
    /// Logs of sessions that stay.
    pub logs: i64,
    /// About so much the database has less then.
    pub bytes: u64,
    /// Old sessions that stay, because something of their jobs may be left: `muster sweep` removes it.
    pub unswept: usize,
}

/// A session that may go.
struct Candidate {
    number: i64,
    id: SessionId,
    system: String,
    started: Timestamp,
    is_over: bool,
    has_open_jobs: bool,
}

impl Going {
    pub fn sessions(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_nothing(&self) -> bool {
        self.numbers.is_empty() && self.logs == 0
    }
}

impl Reader {
    /// Returns what [`Upkeep::prune`](crate::Upkeep::prune) would remove.
    pub async fn would_prune(&self, keep: &Keep, alive: impl Fn(&Owner) -> Option<bool>) -> Result<Going, StoreError> {
        let (mut opened, mut tries) = (self.connection().await?, 0);
        loop {
            let going = to_prune(opened.connection(), self.database(), keep, &alive).await;
            if let Some(going) = self.stands(&mut opened, going, &mut tries).await? {
                return Ok(going);
            }
        }
    }

    /// Returns what [`Upkeep::delete`](crate::Upkeep::delete) would remove.
    ///
    /// # Errors
    /// Those of the deletion.
    pub async fn would_delete(
        &self,
        sessions: &[SessionId],
        now: Timestamp,
        alive: impl Fn(&Owner) -> Option<bool>,
    ) -> Result<Going, StoreError> {
        let (mut opened, mut tries) = (self.connection().await?, 0);
        loop {
            let going = to_delete(opened.connection(), self.database(), sessions, now, &alive).await;
            if let Some(going) = self.stands(&mut opened, going, &mut tries).await? {
                return Ok(going);
            }
        }
    }
}

/// Sessions and logs that are old. What runs, and what may have left something, stays.
pub(super) async fn to_prune(
    connection: &mut Connection,
    database: &Location,
    keep: &Keep,
    alive: Alive<'_>,
) -> Result<Going, StoreError> {
    let mut of_system: BTreeMap<String, usize> = BTreeMap::new();
    let (mut old, mut unswept) = (Vec::new(), 0);
    // The newest first.
    for candidate in candidates(connection, database, keep.now, alive).await? {
        let newer = of_system.entry(candidate.system.clone()).or_default();
        *newer += 1;
        let is_old = candidate.started.plus(keep.sessions) <= keep.now && *newer > keep.last && candidate.is_over;
        match (is_old, candidate.has_open_jobs) {
            (true, false) => old.push(candidate),
            (true, true) => unswept += 1,
            (false, _) => {}
        }
    }
    let before = |age: Duration| Timestamp(keep.now.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)));
    let going = Going { unswept, logs_before: keep.logs.map(before), ..of(&old) };
    counted(connection, database, going).await
}

/// Sessions by their whole ids.
///
/// # Errors
/// [`StoreError::NoSession`], [`StoreError::Running`] and [`StoreError::Unswept`].
pub(super) async fn to_delete(
    connection: &mut Connection,
    database: &Location,
    sessions: &[SessionId],
    now: Timestamp,
    alive: Alive<'_>,
) -> Result<Going, StoreError> {
    let mut candidates: BTreeMap<SessionId, Candidate> =
        candidates(connection, database, now, alive).await?.into_iter().map(|one| (one.id.clone(), one)).collect();
    let mut chosen = Vec::new();
    for session in sessions {
        let found = candidates.remove(session).ok_or_else(|| StoreError::NoSession { prefix: session.0.clone() })?;
        if !found.is_over {
            return Err(StoreError::Running { session: session.clone() });
        }
        if found.has_open_jobs {
            return Err(StoreError::Unswept { session: session.clone() });
        }
        chosen.push(found);
    }
    counted(connection, database, of(&chosen)).await
}

fn of(sessions: &[Candidate]) -> Going {
    let started = sessions.iter().map(|session| session.started);
    Going {
        numbers: sessions.iter().map(|session| session.number).collect(),
        started: started.clone().min().zip(started.max()),
        ..Going::default()
    }
}

/// All sessions, the newest first.
async fn candidates(
    connection: &mut Connection,
    database: &Location,
    now: Timestamp,
    alive: Alive<'_>,
) -> Result<Vec<Candidate>, StoreError> {
    let sessions = "SELECT s.*, CAST(CASE WHEN EXISTS
        (SELECT 1 FROM job j WHERE j.session = s.number AND j.state <> 'cleaned') THEN 1 ELSE 0 END AS BIGINT) AS open_jobs FROM session s ORDER BY started DESC, number DESC";
    let rows = query(sessions).fetch_all(connection).await;
    let candidate = |row: &Row| {
        let (session, held) = decode::session(row)?;
        let is_over = session.ended.is_some()
            || match alive(&held.owner) {
                Some(alive) => !alive,
                None => session.started.plus(SURELY_OVER) <= now,
            };
        Ok(Candidate {
            number: row.try_get("number")?,
            id: session.id,
            system: session.system,
            started: session.started,
            is_over,
            has_open_jobs: row.try_get("open_jobs")?,
        })
    };
    let candidates = rows.and_then(|rows| rows.iter().map(candidate).collect());
    candidates.map_err(|cause| unread(database, cause))
}

/// The same with what belongs to it.
async fn counted(connection: &mut Connection, database: &Location, going: Going) -> Result<Going, StoreError> {
    let size = size(connection, database).await?;
    count(connection, going, size).await.map_err(|cause| unread(database, cause))
}

/// What belongs to a session. `$1`: logs of attempts that finished before are old.
const BELONGS: &str = r#"SELECT c.session, count(DISTINCT c.id) AS cases, count(a.id) AS attempts,
    CAST(coalesce(sum(octet_length(l.tail)), 0) AS BIGINT) AS bytes,
    CAST(count(CASE WHEN a.finished < $1 THEN l.attempt END) AS BIGINT) AS old_logs,
    CAST(coalesce(sum(CASE WHEN a.finished < $1 THEN octet_length(l.tail) END), 0) AS BIGINT) AS old_bytes
    FROM "case" c LEFT JOIN attempt a ON a."case" = c.id LEFT JOIN attempt_log l ON l.attempt = a.id GROUP BY c.session"#;

/// Apart from its log, an attempt takes as much as any other.
async fn count(connection: &mut Connection, mut going: Going, size: u64) -> Result<Going, Error> {
    let numbers: BTreeSet<i64> = going.numbers.iter().copied().collect();
    let before = going.logs_before.map_or(i64::MIN, |before| before.0);
    let (mut attempts, mut bytes_of_logs, mut all_attempts, mut all_logs) = (0, 0, 0, 0);
    for row in query(BELONGS).bind(before).fetch_all(connection).await? {
        let number = |column: &str| row.try_get::<i64>(column);
        let (of_session, bytes) = (number("attempts")?, number("bytes")?);
        all_attempts += of_session;
        all_logs += bytes;
        if numbers.contains(&number("session")?) {
            attempts += of_session;
            going.cases += number("cases")?;
            bytes_of_logs += bytes;
        } else {
            going.logs += number("old_logs")?;
            bytes_of_logs += number("old_bytes")?;
        }
    }
    let rest = (i64::try_from(size).unwrap_or(i64::MAX) - all_logs).max(0);
    let share = i128::from(rest) * i128::from(attempts) / i128::from(all_attempts.max(1));
    going.bytes = u64::try_from(i64::try_from(share).unwrap_or(rest) + bytes_of_logs).unwrap_or(0);
    Ok(going)
}

/// How many bytes the database takes, with its journal.
pub(super) async fn size(connection: &mut Connection, database: &Location) -> Result<u64, StoreError> {
    match database {
        Location::File(path) => {
            let journal = PathBuf::from(format!("{}-wal", path.display()));
            Ok([path, &journal].iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum())
        }
        Location::Server(_) => {
            let size = query("SELECT pg_database_size(current_database())").fetch_scalar::<i64>(connection).await;
            let failed = |cause: Error| StoreError::Read { database: database.clone(), what: "its size", cause: cause.into() };
            size.map(|size| u64::try_from(size).unwrap_or(0)).map_err(failed)
        }
    }
}

fn unread(database: &Location, cause: Error) -> StoreError {
    StoreError::Read { database: database.clone(), what: "sessions", cause: cause.into() }
}
