//! The nodes that schedulers describe: rows of `node` and `node_fact`, written where they differ from what is there. Of a cluster of
//! thousands of nodes few change from one session to the next.

use crate::{
    sql::{Connection, query},
    write::history::Known,
};
use muster_core::job::scheduler::NodeSeen;
use muster_text::time::Timestamp;
use sqlx::Error;
use std::collections::{BTreeMap, HashMap, HashSet};

/// So many numbers are in one statement.
const IN_LIST: usize = 500;

/// A node as it is stored.
struct Stored {
    id: i64,
    class: String,
    facts: BTreeMap<String, String>,
    /// Since when its newest fact holds.
    newest: i64,
}

/// Writes down what a scheduler has said of nodes.
pub(crate) async fn write_nodes(
    connection: &mut Connection,
    known: &mut Known,
    (system, nodes): (&str, &[NodeSeen]),
    at: Timestamp,
) -> Result<(), Error> {
    let stored = stored(connection, system, nodes).await?;
    let (mut same, mut taken) = (Vec::new(), HashSet::new());
    for NodeSeen { name, uid, class, facts } in nodes {
        let same_uid = stored.get(&(name.clone(), uid.clone()));
        // One that was known by its name alone is this machine, and of two with this name the first.
        let by_name = stored.get(&(name.clone(), String::new())).filter(|_| same_uid.is_none() && taken.insert(name));
        let before = same_uid.or(by_name);
        if let (Some(before), None) = (before, same_uid) {
            let update = query("UPDATE node SET uid = $2 WHERE id = $1").bind(before.id).bind(uid.clone());
            update.execute(connection).await?;
        }
        let id = if let Some(before) = before.filter(|before| before.class == *class) {
            same.push(before.id);
            known.set_node(system, name, before.id);
            before.id
        } else {
            known.described_node(connection, (system, name, uid), (class, ""), at).await?
        };
        if before.is_some_and(|before| before.newest > at.0) {
            // What is imported of an earlier day is no news.
            continue;
        }
        let none = BTreeMap::new();
        let before = before.map_or(&none, |before| &before.facts);
        write_facts(connection, id, (before, facts), at).await?;
    }
    for ids in same.chunks(IN_LIST) {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let text = format!("UPDATE node SET last_seen = $1 WHERE last_seen < $1 AND id IN ({})", ids.join(", "));
        query(sqlx::AssertSqlSafe(text)).bind(at.0).execute(connection).await?;
    }
    Ok(())
}

/// The nodes of a system with one of these names, by name and uid, with the facts that hold.
async fn stored(
    connection: &mut Connection,
    system: &str,
    nodes: &[NodeSeen],
) -> Result<HashMap<(String, String), Stored>, Error> {
    let mut found = HashMap::new();
    for part in nodes.chunks(IN_LIST) {
        let places = (2..part.len() + 2).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        let of_names = |select: &str| {
            let text = format!("{select} WHERE n.system = $1 AND n.name IN ({places})");
            let statement = query(sqlx::AssertSqlSafe(text)).bind(system.to_owned());
            part.iter().fold(statement, |statement, node| statement.bind(node.name.clone()))
        };
        let mut facts: HashMap<i64, (BTreeMap<String, String>, i64)> = HashMap::new();
        let holding =
            "SELECT f.node, f.key, f.value, f.from_time FROM node n JOIN node_fact f ON f.node = n.id AND f.until IS NULL";
        for row in of_names(holding).fetch_all(connection).await? {
            let (of_node, newest) = facts.entry(row.try_get(0)?).or_default();
            of_node.insert(row.try_get(1)?, row.try_get(2)?);
            *newest = row.try_get::<i64>(3)?.max(*newest);
        }
        for row in of_names("SELECT n.id, n.name, n.uid, n.class FROM node n").fetch_all(connection).await? {
            let id: i64 = row.try_get(0)?;
            let (facts, newest) = facts.remove(&id).unwrap_or_default();
            let node = Stored { id, class: row.try_get(3)?, facts, newest };
            found.insert((row.try_get(1)?, row.try_get(2)?), node);
        }
    }
    Ok(found)
}

/// Writes down what has changed of a node.
async fn write_facts(
    connection: &mut Connection,
    node: i64,
    (before, now): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    at: Timestamp,
) -> Result<(), Error> {
    for key in before.iter().filter(|(key, value)| now.get(*key) != Some(*value)).map(|(key, _)| key) {
        let end = query("UPDATE node_fact SET until = $3 WHERE node = $1 AND key = $2 AND until IS NULL");
        end.bind(node).bind(key.clone()).bind(at.0).execute(connection).await?;
    }
    for (key, value) in now.iter().filter(|(key, value)| before.get(*key) != Some(*value)) {
        let insert = query(
            "INSERT INTO node_fact (node, key, from_time, value) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (node, key, from_time) DO UPDATE SET value = excluded.value, until = NULL",
        );
        insert.bind(node).bind(key.clone()).bind(at.0).bind(value.clone()).execute(connection).await?;
    }
    Ok(())
}
