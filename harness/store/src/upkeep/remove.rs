//! Removing sessions and logs, and giving their space back.

use super::{
    Upkeep, ended,
    going::{self, Going},
    rebuild::plan,
};
use crate::{
    Owner, StoreError,
    error::SqlError,
    read::decode,
    sql::{Connection, query},
    write::{
        history::{self, Described, HistoryStatements, IN_ORDER, Known, describe},
        night::night_states,
    },
};
use muster_core::{case::SessionId, night::Night, result::About, rules::perf::Direction};
use muster_text::time::Timestamp;
use sqlx::{AssertSqlSafe, Error};
use std::{collections::BTreeSet, time::Duration};

/// How many sessions are removed in one transaction: those that write meanwhile wait for one at most.
const AT_ONCE: usize = 50;

/// The limits of what stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub now: Timestamp,
    /// Sessions that are younger.
    pub sessions: Duration,
    /// The newest of each system, however old they are.
    pub last: usize,
    /// Logs that are younger; `None`: as long as their sessions.
    pub logs: Option<Duration>,
}

/// What becomes of the verdicts of nights whose sessions are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdicts {
    Kept,
    ReachedAgain,
}

/// The tables of a server that take most of its space, the logs first.
const LARGE: [&str; 8] = ["attempt_log", "measurement", "attempt", r#""case""#, "section", "member", "job", "run_figure"];
/// A table of more bytes, with its indexes, is not written again: nobody else could use it meanwhile.
const TOO_LARGE: i64 = 1 << 30;
/// A server is made to write its tables again for a tenth of its size: what is less is soon used by other rows.
const WORTH: u64 = 10;

/// The space of what was removed. Space that a server keeps is used by the next rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Space {
    /// The file system has it again.
    GivenBack,
    /// A server keeps it, because it is little.
    KeptAsLittle,
    /// A server keeps that of these tables.
    Kept(Vec<(&'static str, WhyKept)>),
}

/// The reason why a server does not write a table again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyKept {
    /// Others used it, or it took too long while others waited.
    InUse,
    /// It would take too long while others wait.
    TooLarge,
    /// The user is not its owner.
    NotOwner,
    /// There is no room for a copy.
    NoRoom,
}

impl Upkeep {
    /// Removes sessions that are old, and logs. What runs, and what may have left something, stays. `alive`: whether an owner lives,
    /// `None`: that is not known. Returns what was removed.
    pub async fn prune(&mut self, keep: &Keep, alive: impl Fn(&Owner) -> Option<bool>) -> Result<Going, StoreError> {
        let going = going::to_prune(&mut self.connection, &self.database, keep, &alive).await?;
        // What was found when their figures were there stays found.
        self.remove(&going.numbers, Verdicts::Kept).await?;
        if let Some(before) = going.logs_before {
            let delete =
                query("DELETE FROM attempt_log WHERE attempt IN (SELECT id FROM attempt WHERE finished < $1)").bind(before.0);
            delete.execute(&mut self.connection).await.map_err(|cause| self.unwritten(cause))?;
        }
        Ok(going)
    }

    /// Removes sessions by their whole ids. Returns what was removed.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], [`StoreError::Running`] and [`StoreError::Unswept`], and nothing is removed.
    pub async fn delete(
        &mut self,
        sessions: &[SessionId],
        now: Timestamp,
        alive: impl Fn(&Owner) -> Option<bool>,
    ) -> Result<Going, StoreError> {
        let going = going::to_delete(&mut self.connection, &self.database, sessions, now, &alive).await?;
        self.remove(&going.numbers, Verdicts::ReachedAgain).await?;
        Ok(going)
    }

    async fn remove(&mut self, sessions: &[i64], verdicts: Verdicts) -> Result<(), StoreError> {
        if sessions.is_empty() {
            return Ok(());
        }
        let done = async {
            self.connection.check_references(false).await?;
            for sessions in sessions.chunks(AT_ONCE) {
                self.connection.begin().await?;
                let done = remove(&mut self.connection, sessions, verdicts).await;
                ended(&mut self.connection, done).await?;
            }
            self.connection.check_references(true).await
        };
        done.await.map_err(|cause| self.unwritten(cause))
    }

    /// Returns the size of the database in bytes, with its journal.
    pub async fn size(&mut self) -> Result<u64, StoreError> {
        going::size(&mut self.connection, &self.database).await
    }

    /// Gives back the space of what was removed from a database of this size.
    pub async fn shrink(&mut self, removed: &Going, before: u64) -> Result<Space, StoreError> {
        self.connection.vacuum().await.map_err(|cause| self.unwritten(cause))?;
        if matches!(self.connection, Connection::Sqlite(_)) {
            return Ok(Space::GivenBack);
        }
        if removed.bytes < before / WORTH {
            return Ok(Space::KeptAsLittle);
        }
        let mut kept = Vec::new();
        for table in LARGE {
            kept.extend(self.rewrite(table).await?.map(|why| (table, why)));
        }
        Ok(if kept.is_empty() { Space::GivenBack } else { Space::Kept(kept) })
    }

    /// Has a server write a table again. Returns why it has not.
    async fn rewrite(&mut self, table: &'static str) -> Result<Option<WhyKept>, StoreError> {
        let size = query("SELECT pg_total_relation_size(CAST($1 AS text)::regclass)").bind(table);
        let size =
            size.fetch_scalar::<i64>(&mut self.connection).await.map_err(|cause| self.unread("the size of a table", cause))?;
        if size > TOO_LARGE {
            return Ok(Some(WhyKept::TooLarge));
        }
        match self.connection.rewrite(table).await.map_err(SqlError::from) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(WhyKept::NotOwner)),
            Err(error) if error.is_out_of_time() => Ok(Some(WhyKept::InUse)),
            Err(error) if error.is_full() => Ok(Some(WhyKept::NoRoom)),
            Err(error) => Err(self.unwritten(error)),
        }
    }
}

/// Removes sessions with all that belongs to them. The order is that of references.
async fn remove(connection: &mut Connection, sessions: &[i64], verdicts: Verdicts) -> Result<(), Error> {
    let list = sessions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let nights = query(AssertSqlSafe(format!(
        "SELECT DISTINCT system, night FROM session WHERE number IN ({list}) AND night IS NOT NULL"
    )));
    let nights = nights.fetch_all(connection).await?;
    let nights: Vec<(String, Night)> =
        nights.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, Error>>()?;
    let cases = format!(r#"(SELECT id FROM "case" WHERE session IN ({list}))"#);
    let attempts = format!(r#"(SELECT id FROM attempt WHERE "case" IN {cases})"#);
    for table in ["measurement", "section", "member", "attempt_log"] {
        execute(connection, format!("DELETE FROM {table} WHERE attempt IN {attempts}")).await?;
    }
    execute(connection, format!(r#"DELETE FROM live WHERE "case" IN {cases}"#)).await?;
    execute(connection, format!("DELETE FROM job WHERE session IN ({list})")).await?;
    execute(connection, format!(r#"DELETE FROM attempt WHERE "case" IN {cases}"#)).await?;
    for (system, night) in &nights {
        remove_figures(connection, system, *night, &cases).await?;
        match verdicts {
            Verdicts::Kept => history::forget_series(connection, system).await?,
            Verdicts::ReachedAgain => history::forget(connection, system, *night).await?,
        }
    }
    execute(connection, format!(r#"DELETE FROM "case" WHERE session IN ({list})"#)).await?;
    execute(connection, format!("DELETE FROM session WHERE number IN ({list})")).await?;
    for (system, night) in nights {
        plan_again(connection, system, night).await?;
    }
    Ok(())
}

/// Removes the figures of cases from a night, and writes its own again.
async fn remove_figures(connection: &mut Connection, system: &str, night: Night, cases: &str) -> Result<(), Error> {
    let metrics = query("SELECT m.id FROM metric m JOIN subject s ON s.id = m.subject WHERE s.system = $1");
    let metrics = metrics.bind(system.to_owned()).fetch_all(connection).await?;
    let mut changed = BTreeSet::new();
    for row in &metrics {
        let metric: i64 = row.try_get(0)?;
        // The plus keeps the database from looking for each case first.
        let delete = format!(r#"DELETE FROM run_figure WHERE metric = $1 AND night = $2 AND +"case" IN {cases}"#);
        let deleted = query(AssertSqlSafe(delete)).bind(metric).bind(night).execute(connection).await?;
        if deleted > 0 {
            query("DELETE FROM night_figure WHERE metric = $1 AND night = $2")
                .bind(metric)
                .bind(night)
                .execute(connection)
                .await?;
            describe_again(connection, metric, night).await?;
            changed.insert((metric, night));
        }
    }
    HistoryStatements::new(connection.dialect()).nights_again(connection, &changed).await
}

/// A metric is what its last measured run says of it. Runs of later nights have said it already.
async fn describe_again(connection: &mut Connection, metric: i64, night: Night) -> Result<(), Error> {
    let runs = query(AssertSqlSafe(format!(
        r#"SELECT m.subject, m.variable, m.key, f.unit, f.direction, c.about, a.outcome, a.reason FROM metric m
        JOIN run_figure r ON r.metric = m.id AND r.night = (SELECT max(night) FROM run_figure WHERE metric = m.id)
        JOIN "case" c ON c.id = r."case" JOIN session s ON s.number = c.session
        JOIN attempt a ON a."case" = c.id AND a.restored_from IS NULL
        JOIN measurement f ON f.attempt = a.id AND f.variable = m.variable AND coalesce(f.key, '') = m.key
        WHERE m.id = $1 AND r.night <= $2 ORDER BY {IN_ORDER}, a.id, f.position DESC"#
    )));
    for row in runs.bind(metric).bind(night).fetch_all(connection).await?.iter().rev() {
        if !decode::outcome(row)?.is_measured() {
            continue;
        }
        let (variable, key, unit): (String, String, String) =
            (row.try_get("variable")?, row.try_get("key")?, row.try_get("unit")?);
        let direction =
            row.try_get::<Option<&str>>("direction")?.map(|_| decode::word::<Direction>(row, "direction")).transpose()?;
        let about: About = decode::json(row, "about")?;
        let now = Described::of(&variable, (&unit, direction), &about);
        return describe(connection, row.try_get("subject")?, (&variable, &key), &now).await.map(drop);
    }
    Ok(())
}

/// The plan of a night and its state are those of the sessions that are there. A night without sessions was none.
async fn plan_again(connection: &mut Connection, system: String, night: Night) -> Result<(), Error> {
    const OF_NIGHT: &str = "night = $2 AND subject IN (SELECT id FROM subject WHERE system = $1)";
    let sessions = r#"SELECT number, num_cases, (SELECT count(*) FROM "case" c WHERE c.session = session.number) AS begun
        FROM session WHERE system = $1 AND night = $2 ORDER BY number"#;
    let sessions = query(sessions).bind(system.clone()).bind(night).fetch_all(connection).await?;
    let mut is_whole = true;
    for row in &sessions {
        is_whole &= row.try_get::<i64>("begun")? >= row.try_get::<i64>("num_cases")?;
    }
    // What a session has planned and not begun is known of the night alone: it stays, as absent.
    let planned = if is_whole {
        format!("DELETE FROM planned WHERE {OF_NIGHT}")
    } else {
        format!("UPDATE planned SET state = 'absent' WHERE {OF_NIGHT}")
    };
    let state = if sessions.is_empty() {
        "DELETE FROM night WHERE system = $1 AND night = $2".to_owned()
    } else {
        night_states("system = $1 AND night = $2")
    };
    for text in [planned, state] {
        query(AssertSqlSafe(text)).bind(system.clone()).bind(night).execute(connection).await?;
    }
    let (mut known, history) = (Known::default(), HistoryStatements::new(connection.dialect()));
    if !sessions.is_empty() {
        known.load(connection, &system).await?;
    }
    for row in &sessions {
        plan(connection, &mut known, &history, row.try_get("number")?, night).await?;
    }
    Ok(())
}

async fn execute(connection: &mut Connection, text: String) -> Result<(), Error> {
    query(AssertSqlSafe(text)).execute(connection).await.map(drop)
}
