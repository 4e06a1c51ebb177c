//! A check, a parameter or a case that has another name keeps its history.

use super::{Upkeep, ended, rebuild::summaries};
use crate::{
    Reader, StoreError,
    alias::Aliases,
    read::decode,
    sql::{Connection, Row, query},
    write::history::Known,
};
use muster_core::case::CaseName;
use muster_text::time::Timestamp;
use sqlx::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Another name, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub old: String,
    pub new: String,
    pub author: String,
    pub created: Timestamp,
}

impl Reader {
    /// The aliases, by their old names.
    pub async fn aliases(&self) -> Result<Vec<Alias>, StoreError> {
        let alias = |row: &Row| {
            let (old, new) = (row.try_get("old_name")?, row.try_get("new_name")?);
            Ok(Alias { old, new, author: row.try_get("author")?, created: Timestamp(row.try_get("created")?) })
        };
        self.all("aliases", || query("SELECT * FROM alias ORDER BY old_name"), alias).await
    }
}

impl Upkeep {
    /// Gives what had the old name the new one, in all nights. Returns how many cases it is about.
    ///
    /// # Errors
    /// [`StoreError::NoName`] if no case has the old name, [`StoreError::Alias`] if it has an alias, or the new one leads back to it.
    pub async fn rename(&mut self, (old, new): (&str, &str), author: &str, at: Timestamp) -> Result<usize, StoreError> {
        let aliases = self.aliases().await?;
        if let Some(known) = aliases.new_name(old) {
            return Err(StoreError::Alias { old: old.to_owned(), why: format!("has an alias already: `{known}`") });
        }
        let subjects = self.names("SELECT DISTINCT name FROM subject").await?;
        if aliases.is_circle(old, new, &subjects) {
            return Err(StoreError::Alias {
                old: old.to_owned(),
                why: format!("cannot become `{new}`, which is another name of it"),
            });
        }
        let alone = Aliases::of(vec![(old.to_owned(), new.to_owned())]);
        let renamed = subjects.iter().filter(|name| alone.canonical(name) != **name).count();
        if renamed == 0 {
            let checks = subjects.iter().filter_map(|name| name.split(' ').next()).map(str::to_owned).collect();
            self.is_known("check, parameter or case", old, &[subjects, checks].concat())?;
        }
        let done = async {
            self.connection.begin().await?;
            let done = rename(&mut self.connection, (old, new), author, at).await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))?;
        Ok(renamed)
    }

    /// Takes an alias back: what ran under the old name has its own history again. What was planned under it and never ran keeps the
    /// new name. Returns the new name.
    ///
    /// # Errors
    /// [`StoreError::NoName`] if there is no such alias.
    pub async fn unrename(&mut self, old: &str) -> Result<String, StoreError> {
        let aliases = self.aliases().await?;
        let known = self.names("SELECT old_name FROM alias ORDER BY old_name").await?;
        self.is_known("alias", old, &known)?;
        let new = aliases.new_name(old).unwrap_or_default().to_owned();
        let done = async {
            self.connection.begin().await?;
            let done = unrename(&mut self.connection, old, &aliases).await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))?;
        Ok(new)
    }

    async fn aliases(&mut self) -> Result<Aliases, StoreError> {
        let rows = query("SELECT old_name, new_name FROM alias ORDER BY old_name").fetch_all(&mut self.connection).await;
        let alias = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let aliases = rows.and_then(|rows| rows.iter().map(alias).collect());
        aliases.map(Aliases::of).map_err(|cause| self.unread("aliases", cause))
    }
}

async fn rename(connection: &mut Connection, (old, new): (&str, &str), author: &str, at: Timestamp) -> Result<(), Error> {
    let insert = query("INSERT INTO alias (old_name, new_name, author, created) VALUES ($1, $2, $3, $4)");
    let insert = insert.bind(old.to_owned()).bind(new.to_owned()).bind(author.to_owned()).bind(at.0);
    insert.execute(connection).await?;
    let subjects = query("SELECT id, system, partition, environ, name FROM subject").fetch_all(connection).await?;
    let mut known = Known::default();
    for row in &subjects {
        let id: i64 = row.try_get(0)?;
        let name = CaseName {
            system: row.try_get(1)?,
            partition: row.try_get(2)?,
            environ: row.try_get(3)?,
            display: row.try_get(4)?,
            ..CaseName::default()
        };
        known.load(connection, &name.system).await?;
        let now = known.subject(connection, &name).await?;
        if now != id {
            move_planned(connection, id, now).await?;
        }
    }
    summaries(connection).await.map(drop)
}

/// What was planned under both names in one night keeps what came of the new one.
async fn move_planned(connection: &mut Connection, old: i64, new: i64) -> Result<(), Error> {
    let insert = query(
        "INSERT INTO planned (night, subject, node, state) SELECT night, $2, node, state FROM planned WHERE subject = $1
        ON CONFLICT DO NOTHING",
    );
    insert.bind(old).bind(new).execute(connection).await?;
    query("DELETE FROM planned WHERE subject = $1").bind(old).execute(connection).await.map(drop)
}

async fn unrename(connection: &mut Connection, old: &str, before: &Aliases) -> Result<(), Error> {
    query("DELETE FROM alias WHERE old_name = $1").bind(old.to_owned()).execute(connection).await?;
    let cases = query(r#"SELECT DISTINCT display, check_name, '' AS hash, system, partition, environ, '' AS hidden FROM "case""#);
    let cases = cases.fetch_all(connection).await?.iter().map(decode::name).collect::<Result<Vec<_>, _>>()?;
    let mut known = Known::default();
    for system in cases.iter().map(|case| &case.system).collect::<BTreeSet<_>>() {
        known.load(connection, system).await?;
    }
    // Of each subject that has lost cases: the nights in which one of them ran, and those in which one of the others did.
    let mut nights: BTreeMap<i64, [BTreeSet<i64>; 2]> = BTreeMap::new();
    for case in &cases {
        let was = before.canonical(&case.display);
        let is_freed = was != known.aliases.canonical(&case.display);
        let was = known.subject(connection, &CaseName { display: was, ..case.clone() }).await?;
        let ran = nights_of(connection, case).await?;
        if is_freed {
            let now = known.subject(connection, case).await?;
            for night in &ran {
                copy_planned(connection, *night, (was, now)).await?;
            }
        }
        nights.entry(was).or_default()[usize::from(!is_freed)].extend(ran);
    }
    for (subject, [freed, of_others]) in nights {
        for night in freed.difference(&of_others) {
            let delete = query("DELETE FROM planned WHERE subject = $1 AND night = $2");
            delete.bind(subject).bind(*night).execute(connection).await?;
        }
    }
    summaries(connection).await.map(drop)
}

/// The nights in which a case ran.
async fn nights_of(connection: &mut Connection, case: &CaseName) -> Result<BTreeSet<i64>, Error> {
    let nights = query(
        r#"SELECT DISTINCT s.night FROM "case" c JOIN session s ON s.number = c.session
        WHERE c.display = $1 AND c.system = $2 AND c.partition = $3 AND c.environ = $4 AND s.night IS NOT NULL"#,
    );
    let names = [&case.display, &case.system, &case.partition, &case.environ];
    let nights = names.into_iter().fold(nights, |nights, name| nights.bind(name.clone()));
    nights.fetch_all(connection).await?.iter().map(|row| row.try_get(0)).collect()
}

async fn copy_planned(connection: &mut Connection, night: i64, (from, to): (i64, i64)) -> Result<(), Error> {
    let insert = query(
        "INSERT INTO planned (night, subject, node, state) SELECT night, $3, node, state FROM planned
        WHERE night = $1 AND subject = $2 ON CONFLICT DO NOTHING",
    );
    insert.bind(night).bind(from).bind(to).execute(connection).await.map(drop)
}
