//! Summaries, again from attempts and measurements.

use super::{Upkeep, ended};
use crate::{
    StoreError,
    read::decode::{self, Detail},
    sql::{Connection, Row, query},
    write::{
        history::{self, HistoryStatements, Known, Measured},
        night,
    },
};
use muster_core::{
    case::CaseName,
    night::{Night, NightRules},
    result::{About, Counting, Outcome, Purpose},
    rules::perf::Measurement,
};
use muster_text::time::Timestamp;
use sqlx::Error;
use std::collections::{BTreeSet, HashMap};

/// How many attempts are in memory at once.
const AT_ONCE: i64 = 2_000;

/// The result of a rebuild.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Sessions of earlier versions that are in a night now.
    pub placed: u64,
    /// Attempts whose figures count.
    pub attempts: u64,
}

/// An attempt as it is stored.
struct Stored {
    id: i64,
    case: i64,
    session: i64,
    name: CaseName,
    about: About,
    number: u32,
    outcome: Outcome,
    purpose: Purpose,
    counting: Counting,
    night: Night,
    finished: Timestamp,
    /// Of those that an earlier version has stored.
    nodes: Vec<String>,
}

impl Upkeep {
    /// Places sessions of earlier versions in the nights of their systems, and writes all summaries again. All of it or nothing.
    pub async fn rebuild(&mut self, rules: impl Fn(&str) -> NightRules) -> Result<Rebuilt, StoreError> {
        let done = async {
            self.connection.begin().await?;
            let done = rebuilt(&mut self.connection, &rules).await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))
    }
}

async fn rebuilt(connection: &mut Connection, rules: &impl Fn(&str) -> NightRules) -> Result<Rebuilt, Error> {
    let placed = place(connection, rules).await?;
    let attempts = summaries(connection).await?;
    Ok(Rebuilt { placed, attempts })
}

/// Places sessions that are in no night.
async fn place(connection: &mut Connection, rules: &impl Fn(&str) -> NightRules) -> Result<u64, Error> {
    let sessions = query("SELECT number, system, started, version, extras FROM session WHERE night IS NULL ORDER BY number");
    let sessions = sessions.fetch_all(connection).await?;
    let mut nights: BTreeSet<(String, Night)> = BTreeSet::new();
    let (mut known, history) = (Known::default(), HistoryStatements::new(connection.dialect()));
    for row in &sessions {
        let (number, system, started): (i64, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let night = rules(&system).night_of(Timestamp(started));
        known.load(connection, &system).await?;
        if nights.insert((system.clone(), night.date)) {
            night::insert_night(connection, &system, &night).await?;
        }
        query("UPDATE session SET night = $2 WHERE number = $1").bind(number).bind(night.date).execute(connection).await?;
        plan(connection, &mut known, &history, number, night.date).await?;
    }
    for (system, night) in nights {
        let states = night::night_states("system = $1 AND night = $2");
        query(sqlx::AssertSqlSafe(states)).bind(system).bind(night).execute(connection).await?;
    }
    Ok(sessions.len() as u64)
}

/// What the cases of a session were planned as, and what came of them. Results of another session were not planned.
pub(super) async fn plan(
    connection: &mut Connection,
    known: &mut Known,
    history: &HistoryStatements,
    session: i64,
    night: Night,
) -> Result<(), Error> {
    let cases = query(
        r#"SELECT * FROM "case" WHERE session = $1 AND NOT EXISTS
        (SELECT 1 FROM attempt a WHERE a."case" = "case".id AND a.restored_from IS NOT NULL) ORDER BY id"#,
    );
    let cases = cases.bind(session).fetch_all(connection).await?;
    let cases = cases.iter().map(decode::name).collect::<Result<Vec<_>, _>>()?;
    history.plan(connection, known, night, cases.iter()).await?;
    let attempts = query(
        r#"SELECT c.*, a.outcome, a.reason FROM attempt a JOIN "case" c ON c.id = a."case"
        WHERE c.session = $1 AND a.restored_from IS NULL ORDER BY a.id"#,
    );
    let attempts = attempts.bind(session).fetch_all(connection).await?;
    let mut states = Vec::new();
    for row in &attempts {
        let (name, outcome) = (decode::name(row)?, decode::outcome(row)?);
        states.extend(night::state(&outcome).map(|state| (name, state)));
    }
    let states: Vec<_> = states.iter().map(|(name, state)| (night, name, *state)).collect();
    history.states(connection, known, &states).await
}

/// Writes all summaries again. Returns how many attempts have figures that count.
pub(super) async fn summaries(connection: &mut Connection) -> Result<u64, Error> {
    history::forget_all(connection).await?;
    for table in ["run_figure", "night_figure"] {
        query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}"))).execute(connection).await?;
    }
    let systems = query("SELECT DISTINCT system FROM session").fetch_all(connection).await?;
    let (mut known, history) = (Known::default(), HistoryStatements::new(connection.dialect()));
    for row in &systems {
        known.load(connection, row.try_get(0)?).await?;
    }
    let (mut count, mut after) = (0, 0);
    loop {
        let attempts = attempts_after(connection, after).await?;
        let Some(last) = attempts.last() else { return Ok(count) };
        let range = (after, last.id);
        after = last.id;
        let measurements = measurements(connection, range).await?;
        add_members(connection, &mut known, range, &attempts).await?;
        let mut measured = Vec::new();
        for attempt in attempts.iter().filter(|attempt| attempt.outcome.is_measured()) {
            let Some(measurements) = measurements.get(&attempt.id) else { continue };
            let Stored { case, session, name, about, number, purpose, counting, night, finished, .. } = attempt;
            measured.push(Measured {
                session: *session,
                night: *night,
                case: *case,
                name,
                about,
                number: *number,
                counting: *counting,
                purpose: *purpose,
                finished: *finished,
                measurements,
            });
        }
        count += measured.len() as u64;
        history.write(connection, &mut known, &measured).await?;
    }
}

/// The attempts after one of this number, that ran in their session.
async fn attempts_after(connection: &mut Connection, after: i64) -> Result<Vec<Stored>, Error> {
    let attempts = query(
        r#"SELECT a.id, a."case", a.number, a.outcome, a.reason, a.purpose, a.finished, a.detail, c.display, c.check_name, c.hash,
        c.system, c.partition, c.environ, c.hidden, c.about, c.session, s.night, s.counting
        FROM attempt a JOIN "case" c ON c.id = a."case" JOIN session s ON s.number = c.session
        WHERE a.id > $1 AND a.restored_from IS NULL AND s.night IS NOT NULL ORDER BY a.id LIMIT $2"#,
    );
    let rows = attempts.bind(after).bind(AT_ONCE).fetch_all(connection).await?;
    rows.iter().map(stored).collect()
}

fn stored(row: &Row) -> Result<Stored, Error> {
    let detail: Detail<'static> = decode::json(row, "detail")?;
    Ok(Stored {
        id: row.try_get("id")?,
        case: row.try_get("case")?,
        session: row.try_get("session")?,
        name: decode::name(row)?,
        about: decode::json(row, "about")?,
        number: row.try_get("number")?,
        outcome: decode::outcome(row)?,
        purpose: decode::word(row, "purpose")?,
        counting: decode::word(row, "counting")?,
        night: row.try_get("night")?,
        finished: Timestamp(row.try_get("finished")?),
        nodes: detail.nodes.into_owned(),
    })
}

/// The measurements of attempts whose numbers are after the first and up to the second.
async fn measurements(connection: &mut Connection, (after, last): (i64, i64)) -> Result<HashMap<i64, Vec<Measurement>>, Error> {
    let rows = query("SELECT * FROM measurement WHERE attempt > $1 AND attempt <= $2 ORDER BY attempt, position");
    let rows = rows.bind(after).bind(last).fetch_all(connection).await?;
    let mut all: HashMap<i64, Vec<Measurement>> = HashMap::new();
    for row in &rows {
        let (attempt, measurement) = decode::measurement(row)?;
        all.entry(attempt).or_default().push(measurement);
    }
    Ok(all)
}

/// Adds the nodes of attempts of which earlier versions have stored the names alone.
async fn add_members(
    connection: &mut Connection,
    known: &mut Known,
    (after, last): (i64, i64),
    attempts: &[Stored],
) -> Result<(), Error> {
    let rows = query("SELECT DISTINCT attempt FROM member WHERE attempt > $1 AND attempt <= $2");
    let rows = rows.bind(after).bind(last).fetch_all(connection).await?;
    let have_members: BTreeSet<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    for attempt in attempts.iter().filter(|attempt| !have_members.contains(&attempt.id)) {
        let names = attempt.nodes.iter().map(String::as_str);
        let nodes = history::nodes(connection, known, &attempt.name.system, names, attempt.finished).await?;
        for (rank, (_, node)) in (0_i64..).zip(&nodes) {
            let insert = query("INSERT INTO member (attempt, rank, node) VALUES ($1, $2, $3)");
            insert.bind(attempt.id).bind(rank).bind(*node).execute(connection).await?;
        }
    }
    Ok(())
}
