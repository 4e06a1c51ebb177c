//! Writes the other rows of a transaction: nights, nodes, planned cases, and the part of finished attempts in history.

use crate::{
    sql::{Connection, Dialect, query},
    write::{
        history::{self, HistoryStatements, Known, Measured},
        message::{AttemptEntry, Message, Seen, Text},
        places::Places,
        rows::{SessionCases, Sessions},
        statements::Row,
    },
};
use muster_core::{
    case::CaseName,
    job::workload::Clock,
    night::{Night, NightSpan},
    result::{CaseResult, Outcome},
};
use sqlx::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Writes it, and knows the numbers of what it has written.
pub(crate) struct NightWriter {
    history: HistoryStatements,
    places: Places,
    known: Known,
}

impl NightWriter {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { history: HistoryStatements::new(dialect), places: Places::new(dialect), known: Known::default() }
    }

    /// A transaction has failed: numbers that it gave out are not there.
    pub(crate) fn forget(&mut self) {
        self.known = Known::default();
    }

    pub(crate) async fn write(
        &mut self,
        connection: &mut Connection,
        sessions: &Sessions,
        messages: &[&Message],
        attempts: &[Row<'_, AttemptEntry>],
    ) -> Result<(), Error> {
        let is_plan = |message: &&Message| matches!(message, Message::Plan(..));
        if messages.iter().any(is_plan) {
            // Others may have added cases, and aliases, since. Once: many sessions may begin in one transaction.
            self.forget();
        }
        if !attempts.is_empty() || messages.iter().any(is_plan) {
            self.known.load_aliases(connection).await?;
        }
        for message in messages {
            match message {
                Message::Plan(session, plan) => self.plan(connection, sessions.get(session), plan).await?,
                Message::Seen(session, seen) => self.seen(connection, sessions.get(session), session, seen).await?,
                Message::End { session, .. } => end(connection, session, sessions.get(session)).await?,
                Message::Begin(_)
                | Message::Intent(_)
                | Message::Launched(..)
                | Message::Finished(_)
                | Message::Cleaned(_)
                | Message::Swept(_)
                | Message::TakeOver(..)
                | Message::HandOver(..)
                | Message::Beat(..)
                | Message::States
                | Message::Close => {}
            }
        }
        if attempts.is_empty() {
            return Ok(());
        }
        self.finished(connection, sessions, attempts).await
    }

    async fn plan(
        &mut self,
        connection: &mut Connection,
        session: Option<&SessionCases>,
        (night, cases): &(NightSpan, Vec<CaseName>),
    ) -> Result<(), Error> {
        let Some(SessionCases { system, .. }) = session else { return Ok(()) };
        self.known.load_system(connection, system).await?;
        insert_night(connection, system, night).await?;
        history::forget(connection, system, night.date).await?;
        self.history.plan(connection, &mut self.known, night.date, cases.iter()).await
    }

    async fn seen(
        &mut self,
        connection: &mut Connection,
        session: Option<&SessionCases>,
        id: &Text,
        seen: &Seen,
    ) -> Result<(), Error> {
        let Some(SessionCases { system, .. }) = session else { return Ok(()) };
        history::write_nodes(connection, &mut self.known, (system, &seen.nodes), seen.at).await?;
        if seen.facts.is_empty() {
            return Ok(());
        }
        let row = query("SELECT facts FROM session WHERE id = $1").bind(Text::clone(id)).fetch_one(connection).await?;
        let mut facts: BTreeMap<String, String> =
            serde_json::from_str(row.try_get("facts")?).map_err(|cause| Error::Decode(cause.into()))?;
        facts.extend(seen.facts.clone());
        let facts = serde_json::to_string(&facts).map_err(|cause| Error::Encode(cause.into()))?;
        let update = query("UPDATE session SET facts = $2 WHERE id = $1").bind(Text::clone(id)).bind(facts);
        update.execute(connection).await.map(drop)
    }

    async fn finished(
        &mut self,
        connection: &mut Connection,
        sessions: &Sessions,
        attempts: &[Row<'_, AttemptEntry>],
    ) -> Result<(), Error> {
        for SessionCases { system, .. } in sessions.values() {
            self.known.load_system(connection, system).await?;
        }
        for (_, _, entry) in attempts {
            let CaseResult { name, described, times, .. } = &entry.result;
            let at = times.started.unwrap_or(times.begun);
            history::write_nodes(connection, &mut self.known, (&name.system, described), at).await?;
        }
        let entries: Vec<_> = attempts.iter().map(|(id, _, entry)| (*id, *entry)).collect();
        self.places.write(connection, &mut self.known, &entries).await?;
        let (mut measured, mut states) = (Vec::new(), Vec::new());
        for (_, case, entry) in attempts {
            let result = &entry.result;
            let Some(SessionCases { number, night: Some(night), counting, .. }) = sessions.get(&entry.session) else { continue };
            if result.restored_from.is_some() {
                continue;
            }
            states.extend(state(&result.outcome).map(|state| (*night, &result.name, state)));
            if result.outcome.is_measured() {
                let CaseResult { name, about, purpose, measurements, attempt, times, .. } = result;
                measured.push(Measured {
                    session: *number,
                    night: *night,
                    case: *case,
                    name,
                    about,
                    number: *attempt,
                    counting: *counting,
                    purpose: *purpose,
                    finished: times.finished,
                    measurements,
                });
            }
        }
        self.history.states(connection, &mut self.known, &states).await?;
        self.history.write(connection, &mut self.known, &measured).await?;
        // A session that another process continues, or a spool, may write figures of a night that was judged.
        let nights: BTreeSet<(&str, Night)> = measured.iter().map(|one| (one.name.system.as_str(), one.night)).collect();
        for (system, night) in nights {
            history::forget(connection, system, night).await?;
        }
        Ok(())
    }
}

/// What came of a planned case. `None`: nothing, it is as absent as before.
pub(crate) fn state(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Abort => None,
        Outcome::Skip => Some("skipped"),
        Outcome::Timeout(Clock::Pending) => Some("busy"),
        Outcome::Pass
        | Outcome::Xfail
        | Outcome::Xpass
        | Outcome::Fail(_)
        | Outcome::Invalid(_)
        | Outcome::Timeout(Clock::Run)
        | Outcome::Disrupted(_)
        | Outcome::Error(_)
        | Outcome::Stopped(_) => Some("run"),
    }
}

/// A night begins, or goes on.
pub(crate) async fn insert_night(connection: &mut Connection, system: &str, night: &NightSpan) -> Result<(), Error> {
    let insert = query(
        "INSERT INTO night (system, night, begins, ends, time_zone, state) VALUES ($1, $2, $3, $4, $5, 'running') \
         ON CONFLICT (system, night) DO UPDATE SET state = excluded.state",
    );
    let insert = insert.bind(system.to_owned()).bind(night.date).bind(night.begins.0).bind(night.ends.0);
    insert.bind(night.time_zone.clone()).execute(connection).await.map(drop)
}

/// The state of nights, by their sessions. The values of `only` are bound by the caller.
pub(crate) fn night_states(only: &str) -> String {
    format!(
        "UPDATE night SET state = CASE \
         WHEN EXISTS (SELECT 1 FROM session s WHERE s.system = night.system AND s.night = night.night AND s.ended IS NULL) \
         THEN 'running' \
         WHEN EXISTS (SELECT 1 FROM session s WHERE s.system = night.system AND s.night = night.night AND s.interrupted = 1) \
         THEN 'interrupted' ELSE 'ended' END WHERE {only}"
    )
}

/// The session has ended, and perhaps its night.
async fn end(connection: &mut Connection, session: &Text, cases: Option<&SessionCases>) -> Result<(), Error> {
    if let Some(SessionCases { system, night: Some(night), .. }) = cases {
        // It may have been judged while the session ran.
        history::forget(connection, system, *night).await?;
    }
    let only = "(system, night) IN (SELECT system, night FROM session WHERE id = $1)";
    let update = query(sqlx::AssertSqlSafe(night_states(only))).bind(Text::clone(session));
    update.execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::result::{Failure, Fault};

    #[test]
    fn what_was_planned_is_run_skipped_busy_or_still_absent() {
        let rows = [
            (Outcome::Pass, Some("run")),
            (Outcome::Fail(Failure::Performance), Some("run")),
            (Outcome::Error(Fault::Infra), Some("run")),
            (Outcome::Timeout(Clock::Run), Some("run")),
            (Outcome::Timeout(Clock::Pending), Some("busy")),
            (Outcome::Skip, Some("skipped")),
            (Outcome::Abort, None),
        ];
        for (outcome, expected) in rows {
            assert_eq!(state(&outcome), expected, "{outcome}");
        }
    }
}
