//! Reads the failures of selected sessions, the earlier results of these cases, and the facts of their runs.

use super::selected::{IN_LIST, Selected, list};
use crate::{
    Reader, StoreError,
    read::{
        decode::{self, Detail},
        nights::parameters,
    },
    sql::{Row, query},
};
use muster_core::{
    case::{CaseName, SessionId},
    night::Night,
    query::{
        causes::{self, Failure},
        spec::Filters,
    },
    result::{About, Outcome},
};
use muster_text::{Value, time::Timestamp};
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The failures of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failures {
    /// One for each case that failed in one of the sessions: the last.
    pub failures: Vec<Failure>,
    /// The number of cases with a result; `systems` and `sessions` are those that have them.
    pub cases: usize,
    pub systems: BTreeSet<String>,
    pub sessions: usize,
}

/// A case in a night of the past.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    pub night: Night,
    pub is_fine: bool,
    attempt: i64,
    session: i64,
    finished: Timestamp,
}

impl Reader {
    /// The failures of these sessions that filters admit.
    pub async fn failures(&self, sessions: &[Selected], filters: &Filters) -> Result<Failures, StoreError> {
        let ids: BTreeMap<i64, &SessionId> = sessions.iter().map(|session| (session.number, &session.session.id)).collect();
        let in_history = self.names().await?;
        let (mut names, mut failed, mut of_sessions) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        for part in sessions.chunks(IN_LIST) {
            let text: Arc<str> = failures_text(part).into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            for (session, name, tags, failure) in self.all("failures", statement, |row| failure(row, &ids)).await? {
                if !in_history.are_admitted(filters, &name, &tags) {
                    continue;
                }
                if let Some(failure) = failure {
                    failed.insert(name.clone(), failure);
                }
                names.insert(name);
                of_sessions.insert(session);
            }
        }
        let systems = names.iter().map(|name| name.system.clone()).collect();
        Ok(Failures { failures: failed.into_values().collect(), cases: names.len(), systems, sessions: of_sessions.len() })
    }

    /// The results of a case, by all names that it had, in a range of nights, both ends included, the newest first.
    pub async fn occurrences(&self, name: &CaseName, nights: (Night, Night)) -> Result<Vec<Occurrence>, StoreError> {
        let names = self.new_names().await?.earlier(&name.display);
        let text: Arc<str> = occurrences_text(names.len()).into();
        let statement = || {
            let statement = query(AssertSqlSafe(Arc::clone(&text))).bind(name.system.clone()).bind(name.partition.clone());
            let statement = statement.bind(name.environ.clone()).bind(nights.0).bind(nights.1);
            names.iter().fold(statement, |statement, name| statement.bind(name.clone()))
        };
        self.all("earlier nights", statement, occurrence).await
    }

    /// Returns the facts of the newest runs of a night: where they differ, all of them. Facts of nodes are those of `nodes_of`, so
    /// that two nights are compared by the same nodes.
    pub async fn facts(&self, runs: &[&Occurrence], nodes_of: &[&Occurrence]) -> Result<BTreeMap<String, String>, StoreError> {
        let text: Arc<str> = node_facts_text(newest(nodes_of).iter().map(|run| run.attempt)).into();
        let mut facts = Vec::new();
        for run in newest(runs) {
            facts.extend(self.facts_of(run).await?);
            let of_nodes = || query(AssertSqlSafe(Arc::clone(&text))).bind(run.finished.0);
            facts.extend(self.all("facts of nodes", of_nodes, node_fact).await?);
        }
        Ok(causes::together(facts))
    }

    /// What is known of a run: versions, hashes, images, extras, nodes.
    async fn facts_of(&self, run: &Occurrence) -> Result<BTreeMap<String, String>, StoreError> {
        let mut facts = BTreeMap::new();
        let of_session = || query("SELECT version, extras, facts FROM session WHERE number = $1").bind(run.session);
        for (version, extras, more) in self.all("facts of a session", of_session, session_facts).await? {
            facts.insert("muster".to_owned(), version);
            facts.extend(extras.into_iter().map(|(key, value)| (format!("session extra {key}"), value)));
            facts.extend(texts(&more));
        }
        let of_case = || {
            query(r#"SELECT c.about, a.detail FROM attempt a JOIN "case" c ON c.id = a."case" WHERE a.id = $1"#).bind(run.attempt)
        };
        for (about, nodes) in self.all("facts of a case", of_case, case_facts).await? {
            facts.extend(texts(&about).filter(|(name, _)| name.ends_with("_hash")));
            facts.insert("nodes".to_owned(), nodes.join(", "));
        }
        let images = || {
            query("SELECT DISTINCT image FROM section WHERE attempt = $1 AND image IS NOT NULL ORDER BY image").bind(run.attempt)
        };
        let images: Vec<String> = self.all("images", images, |row| row.try_get("image")).await?;
        if !images.is_empty() {
            facts.insert("image".to_owned(), images.join(", "));
        }
        Ok(facts)
    }
}

/// The last result of each case of sessions, the oldest first.
pub(super) fn failures_text(sessions: &[Selected]) -> String {
    format!(
        r#"SELECT c.session, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden, c.about,
        a.outcome, a.reason, a.phase, a.cause, a.quarantine, CASE WHEN a.outcome = 'pass' THEN '' ELSE a.detail END AS detail
        FROM "case" c JOIN attempt a ON a."case" = c.id
        AND a.number = (SELECT max(number) FROM attempt WHERE "case" = c.id) AND a.restored_from IS NULL
        WHERE c.session IN ({}) ORDER BY a.finished"#,
        list(sessions.iter().map(|session| session.number))
    )
}

/// The results of a case that has so many names.
pub(super) fn occurrences_text(names: usize) -> String {
    format!(
        r#"SELECT s.night, a.outcome, a.reason, a.id, c.session, a.finished
    FROM "case" c JOIN session s ON s.number = c.session JOIN attempt a ON a."case" = c.id
    AND a.number = (SELECT max(number) FROM attempt WHERE "case" = c.id) AND a.restored_from IS NULL
    WHERE c.display IN ({}) AND c.system = $1 AND c.partition = $2 AND c.environ = $3 AND s.night BETWEEN $4 AND $5
    AND a.outcome <> 'skip' AND a.outcome <> 'abort' ORDER BY s.night DESC, a.finished DESC, s.id DESC"#,
        parameters(6, names)
    )
}

/// What was known of the nodes of these attempts at a time.
pub(super) fn node_facts_text(attempts: impl Iterator<Item = i64>) -> String {
    format!(
        "SELECT f.key, n.name, f.value FROM member m JOIN node n ON n.id = m.node JOIN node_fact f ON f.node = n.id
        WHERE m.attempt IN ({}) AND f.from_time <= $1 AND (f.until IS NULL OR f.until > $1)",
        list(attempts)
    )
}

/// Of a night with more runs, the newest are compared.
const COMPARED: usize = 5;

fn newest<'a>(runs: &[&'a Occurrence]) -> Vec<&'a Occurrence> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| std::cmp::Reverse((run.finished, run.attempt)));
    runs.truncate(COMPARED);
    runs
}

/// A case of a session, with its tags and what failed.
type CaseRow = (i64, CaseName, Vec<String>, Option<Failure>);

fn failure(row: &Row, ids: &BTreeMap<i64, &SessionId>) -> Result<CaseRow, sqlx::Error> {
    let number: i64 = row.try_get("session")?;
    let name = decode::name(row)?;
    let about: About = decode::json(row, "about")?;
    let outcome: Outcome = decode::variant(row, "outcome", "reason")?;
    if outcome.is_fine() {
        return Ok((number, name, about.tags, None));
    }
    let detail: Detail<'static> = decode::json(row, "detail")?;
    let session = ids.get(&number).copied().cloned().unwrap_or_default();
    let failure = Failure {
        name: name.clone(),
        session,
        outcome,
        phase: decode::word(row, "phase")?,
        cause: row.try_get("cause")?,
        nodes: detail.nodes.into_owned(),
        in_quarantine: row.try_get::<Option<&str>>("quarantine")?.is_some(),
    };
    Ok((number, name, about.tags, Some(failure)))
}

fn occurrence(row: &Row) -> Result<Occurrence, sqlx::Error> {
    let outcome: Outcome = decode::variant(row, "outcome", "reason")?;
    Ok(Occurrence {
        night: row.try_get("night")?,
        is_fine: outcome.is_fine(),
        attempt: row.try_get("id")?,
        session: row.try_get("session")?,
        finished: Timestamp(row.try_get("finished")?),
    })
}

fn node_fact(row: &Row) -> Result<(String, String), sqlx::Error> {
    let (key, node): (String, String) = (row.try_get("key")?, row.try_get("name")?);
    Ok((format!("{key} of {node}"), row.try_get("value")?))
}

type SessionFacts = (String, Vec<(String, String)>, Value);

fn session_facts(row: &Row) -> Result<SessionFacts, sqlx::Error> {
    Ok((row.try_get("version")?, decode::json(row, "extras")?, decode::json(row, "facts")?))
}

fn case_facts(row: &Row) -> Result<(Value, Vec<String>), sqlx::Error> {
    let detail: Detail<'static> = decode::json(row, "detail")?;
    Ok((decode::json(row, "about")?, detail.nodes.into_owned()))
}

/// The texts of an object, by name.
fn texts(value: &Value) -> impl Iterator<Item = (String, String)> + '_ {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
}
