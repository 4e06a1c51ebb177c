//! The ids of subjects, metrics, bases and nodes: those that this writer knows, and how it learns the others.
//!
//! What it knows is read once a session, so that a case of which it wrote before costs no question. After a transaction that failed
//! it forgets all: ids that were given out in it are not there.

use crate::{
    alias::{self, Aliases},
    read::decode,
    sql::{Connection, Row, query},
};
use muster_core::{case::CaseName, night::Night, result::About, rules::perf::Direction};
use muster_text::time::Timestamp;
use sqlx::Error;
use std::collections::{HashMap, HashSet};

/// What is known of a database.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) aliases: Aliases,
    /// By system, partition, environ and name.
    subjects: HashMap<[String; 4], i64>,
    /// By subject, variable and key.
    metrics: HashMap<(i64, String, String), KnownMetric>,
    /// By unit, check and manifest.
    bases: HashMap<[String; 3], i64>,
    /// By system and name: the node of this name that was seen last.
    nodes: HashMap<(String, String), i64>,
    /// The systems whose rows were read.
    systems: HashSet<String>,
}

#[derive(Debug)]
struct KnownMetric {
    id: i64,
    described: Described,
    /// The last night in which it was measured.
    last: Night,
}

/// What is known of a metric beside its name: as it was seen in its last night.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described {
    pub(crate) unit: String,
    pub(crate) direction: Option<&'static str>,
    pub(crate) min_effect: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) is_ignored: bool,
}

impl Described {
    /// As a run has measured it.
    pub(crate) fn of(variable: &str, (unit, direction): (&str, Option<Direction>), about: &About) -> Self {
        Self {
            unit: unit.to_owned(),
            direction: direction.map(Direction::as_str),
            min_effect: about.night.min_effect,
            limit: about.night.limit,
            is_ignored: about.night.ignore.iter().any(|name| name == variable),
        }
    }
}

impl Known {
    /// Reads what a session of this system will need.
    pub(crate) async fn load(&mut self, connection: &mut Connection, system: &str) -> Result<(), Error> {
        self.load_aliases(connection).await?;
        self.load_system(connection, system).await
    }

    /// Reads the aliases again: others may have added some.
    pub(crate) async fn load_aliases(&mut self, connection: &mut Connection) -> Result<(), Error> {
        self.aliases = alias::read(connection).await?;
        Ok(())
    }

    /// Reads what a session of this system will need beside the aliases.
    pub(crate) async fn load_system(&mut self, connection: &mut Connection, system: &str) -> Result<(), Error> {
        if !self.systems.insert(system.to_owned()) {
            return Ok(());
        }
        let subjects = query("SELECT id, partition, environ, name FROM subject WHERE system = $1").bind(system.to_owned());
        for row in subjects.fetch_all(connection).await? {
            let key = [system.to_owned(), row.try_get(1)?, row.try_get(2)?, row.try_get(3)?];
            self.subjects.insert(key, row.try_get(0)?);
        }
        let metrics = "SELECT m.*, (SELECT coalesce(max(night), 0) FROM night_figure f WHERE f.metric = m.id) AS last
            FROM metric m JOIN subject s ON s.id = m.subject WHERE s.system = $1";
        for row in query(metrics).bind(system.to_owned()).fetch_all(connection).await? {
            let key = (row.try_get("subject")?, row.try_get("variable")?, row.try_get("key")?);
            let known = KnownMetric { id: row.try_get("id")?, described: described(&row)?, last: row.try_get("last")? };
            self.metrics.insert(key, known);
        }
        for row in query("SELECT id, unit, check_hash, manifest_hash FROM basis").fetch_all(connection).await? {
            self.bases.insert([row.try_get(1)?, row.try_get(2)?, row.try_get(3)?], row.try_get(0)?);
        }
        Ok(())
    }

    /// The subject of a case.
    pub(crate) async fn subject(&mut self, connection: &mut Connection, name: &CaseName) -> Result<i64, Error> {
        let key = [&name.system, &name.partition, &name.environ, &self.aliases.canonical(&name.display)].map(Clone::clone);
        if let Some(id) = self.subjects.get(&key) {
            return Ok(*id);
        }
        // Changes nothing in a row that is there, but answers with its id.
        let insert = query(
            "INSERT INTO subject (system, partition, environ, name) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (system, partition, environ, name) DO UPDATE SET name = excluded.name RETURNING id",
        );
        let insert = key.iter().fold(insert, |insert, part| insert.bind(part.clone()));
        let id: i64 = insert.fetch_scalar(connection).await?;
        self.subjects.insert(key, id);
        Ok(id)
    }

    /// A metric of a subject, which is described like this from a night on. What is imported of an earlier night changes nothing.
    pub(crate) async fn metric(
        &mut self,
        connection: &mut Connection,
        subject: i64,
        (variable, key): (&str, &str),
        (now, night): (Described, Night),
    ) -> Result<i64, Error> {
        let name = (subject, variable.to_owned(), key.to_owned());
        if let Some(known) = self.metrics.get_mut(&name) {
            let is_earlier = night < known.last;
            known.last = known.last.max(night);
            if is_earlier || known.described == now {
                return Ok(known.id);
            }
        }
        let id = describe(connection, subject, (variable, key), &now).await?;
        self.metrics.insert(name, KnownMetric { id, described: now, last: night });
        Ok(id)
    }

    /// What figures must have in common to be compared.
    pub(crate) async fn basis(&mut self, connection: &mut Connection, basis: [&str; 3]) -> Result<i64, Error> {
        let key = basis.map(str::to_owned);
        if let Some(id) = self.bases.get(&key) {
            return Ok(*id);
        }
        let insert = query(
            "INSERT INTO basis (unit, check_hash, manifest_hash) VALUES ($1, $2, $3) \
             ON CONFLICT (unit, check_hash, manifest_hash) DO UPDATE SET unit = excluded.unit RETURNING id",
        );
        let insert = key.iter().fold(insert, |insert, part| insert.bind(part.clone()));
        let id: i64 = insert.fetch_scalar(connection).await?;
        self.bases.insert(key, id);
        Ok(id)
    }

    /// The node of this name that was seen last. One that nobody has described is known by its name alone.
    pub(crate) async fn node(
        &mut self,
        connection: &mut Connection,
        (system, name): (&str, &str),
        at: Timestamp,
    ) -> Result<i64, Error> {
        let key = (system.to_owned(), name.to_owned());
        if let Some(id) = self.nodes.get(&key) {
            return Ok(*id);
        }
        let last = query("SELECT id FROM node WHERE system = $1 AND name = $2 ORDER BY last_seen DESC, id DESC LIMIT 1");
        let last = last.bind(key.0.clone()).bind(key.1.clone()).fetch_all(connection).await?;
        let id = match last.first() {
            Some(row) => {
                let id: i64 = row.try_get(0)?;
                let seen = query("UPDATE node SET last_seen = $2 WHERE id = $1 AND last_seen < $2").bind(id).bind(at.0);
                seen.execute(connection).await?;
                id
            }
            None => upsert_node(connection, (system, name, ""), ("", ""), at).await?,
        };
        self.nodes.insert(key, id);
        Ok(id)
    }

    /// The node that has a name from now on.
    pub(crate) fn set_node(&mut self, system: &str, name: &str, id: i64) {
        self.nodes.insert((system.to_owned(), name.to_owned()), id);
    }

    /// A node as its scheduler describes it.
    pub(crate) async fn described_node(
        &mut self,
        connection: &mut Connection,
        (system, name, uid): (&str, &str, &str),
        place: (&str, &str),
        at: Timestamp,
    ) -> Result<i64, Error> {
        let id = upsert_node(connection, (system, name, uid), place, at).await?;
        self.set_node(system, name, id);
        Ok(id)
    }
}

/// Writes what a metric is. Returns its number.
pub(crate) async fn describe(
    connection: &mut Connection,
    subject: i64,
    (variable, key): (&str, &str),
    now: &Described,
) -> Result<i64, Error> {
    let insert = query(
        "INSERT INTO metric (subject, variable, key, unit, direction, min_effect, step_limit, is_ignored) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (subject, variable, key) DO UPDATE SET unit = excluded.unit, \
         direction = excluded.direction, min_effect = excluded.min_effect, step_limit = excluded.step_limit, \
         is_ignored = excluded.is_ignored RETURNING id",
    );
    let insert = insert.bind(subject).bind(variable.to_owned()).bind(key.to_owned()).bind(now.unit.clone());
    let insert = insert.bind(now.direction).bind(now.min_effect).bind(now.limit).bind(now.is_ignored);
    insert.fetch_scalar(connection).await
}

fn described(row: &Row) -> Result<Described, Error> {
    let direction = row.try_get::<Option<&str>>("direction")?.map(|_| decode::word::<Direction>(row, "direction")).transpose()?;
    Ok(Described {
        unit: row.try_get("unit")?,
        direction: direction.map(Direction::as_str),
        min_effect: row.try_get("min_effect")?,
        limit: row.try_get("step_limit")?,
        is_ignored: row.try_get("is_ignored")?,
    })
}

async fn upsert_node(
    connection: &mut Connection,
    (system, name, uid): (&str, &str, &str),
    (class, topology): (&str, &str),
    at: Timestamp,
) -> Result<i64, Error> {
    let insert = query(
        "INSERT INTO node (system, name, uid, class, topology, first_seen, last_seen) VALUES ($1, $2, $3, $4, $5, $6, $6) \
         ON CONFLICT (system, name, uid) DO UPDATE SET \
         class = CASE WHEN node.last_seen > excluded.last_seen THEN node.class ELSE excluded.class END, \
         topology = CASE WHEN node.last_seen > excluded.last_seen THEN node.topology ELSE excluded.topology END, \
         last_seen = CASE WHEN node.last_seen > excluded.last_seen THEN node.last_seen ELSE excluded.last_seen END RETURNING id",
    );
    let insert = [system, name, uid, class, topology].into_iter().fold(insert, |insert, text| insert.bind(text.to_owned()));
    insert.bind(at.0).fetch_scalar(connection).await
}
