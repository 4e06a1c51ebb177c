//! A check, a parameter or a case that has another name keeps its history.

use super::{Upkeep, ended, rebuild::summaries};
use crate::{
    Reader, StoreError,
    alias::{self, Aliases, Names},
    read::decode,
    sql::{Connection, Row, query},
    write::history::Known,
};
use muster_core::case::{CaseName, check_of};
use muster_text::time::Timestamp;
use sqlx::{AssertSqlSafe, Error};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many subjects or nights are in one statement.
const AT_ONCE: usize = 500;

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

    /// The names of cases in history: those after their aliases.
    pub async fn names(&self) -> Result<Names, StoreError> {
        Ok(Names(self.new_names().await?))
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
        self.meet_in_no_session(&aliases, (old, new)).await?;
        let alone = Aliases::of(vec![(old.to_owned(), new.to_owned())]);
        let renamed = subjects.iter().filter(|name| alone.canonical(name) != **name).count();
        if renamed == 0 {
            let checks = subjects.iter().map(|name| check_of(name).to_owned()).collect();
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

    /// Two cases that ran in one session are not one.
    async fn meet_in_no_session(&mut self, aliases: &Aliases, (old, new): (&str, &str)) -> Result<(), StoreError> {
        let with = aliases.and(old, new);
        let mut merged: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for display in self.names(r#"SELECT DISTINCT display FROM "case""#).await? {
            merged.entry(with.canonical(&display)).or_default().insert(aliases.canonical(&display));
        }
        merged.retain(|_, names| names.len() > 1);
        if merged.is_empty() {
            return Ok(());
        }
        let cases = query(
            r#"SELECT DISTINCT s.id, c.system, c.partition, c.environ, c.display FROM "case" c JOIN session s ON s.number = c.session"#,
        );
        // Of each session and name that there would be, the name that there is.
        let mut named: HashMap<[String; 5], String> = HashMap::new();
        let mut met = None;
        let each = |row: &Row| {
            let display: String = row.try_get(4)?;
            let (before, after) = (aliases.canonical(&display), with.canonical(&display));
            if !merged.contains_key(&after) {
                return Ok(());
            }
            let key = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, after];
            if let Some(other) = named.insert(key.clone(), before.clone()).filter(|other| *other != before) {
                met.get_or_insert(format!("cannot become `{new}`: session {} has both `{other}` and `{before}`", key[0]));
            }
            Ok(())
        };
        cases.for_each(&mut self.connection, each).await.map_err(|cause| self.unread("cases", cause))?;
        met.map_or(Ok(()), |why| Err(StoreError::Alias { old: old.to_owned(), why }))
    }

    async fn aliases(&mut self) -> Result<Aliases, StoreError> {
        alias::read(&mut self.connection).await.map_err(|cause| self.unread("aliases", cause))
    }
}

async fn rename(connection: &mut Connection, (old, new): (&str, &str), author: &str, at: Timestamp) -> Result<(), Error> {
    let insert = query("INSERT INTO alias (old_name, new_name, author, created) VALUES ($1, $2, $3, $4)");
    let insert = insert.bind(old.to_owned()).bind(new.to_owned()).bind(author.to_owned()).bind(at.0);
    insert.execute(connection).await?;
    let subjects = query("SELECT id, system, partition, environ, name FROM subject").fetch_all(connection).await?;
    let mut known = Known::default();
    let (mut systems, mut moved) = (BTreeSet::new(), Vec::new());
    for row in &subjects {
        let id: i64 = row.try_get(0)?;
        let name = CaseName {
            system: row.try_get(1)?,
            partition: row.try_get(2)?,
            environ: row.try_get(3)?,
            display: row.try_get(4)?,
            ..CaseName::default()
        };
        if systems.insert(name.system.clone()) {
            known.load(connection, &name.system).await?;
        }
        let now = known.subject(connection, &name).await?;
        if now != id {
            moved.push((id, now));
        }
    }
    for moved in moved.chunks(AT_ONCE) {
        move_planned(connection, moved).await?;
    }
    summaries(connection).await.map(drop)
}

/// What was planned under both names in one night keeps what came of the new one. Of each subject the old and the new one.
async fn move_planned(connection: &mut Connection, subjects: &[(i64, i64)]) -> Result<(), Error> {
    let pairs = listed(subjects.iter().map(|(old, new)| format!("({old}, {new})")));
    let old = listed(subjects.iter().map(|(old, _)| old.to_string()));
    let insert = format!(
        "INSERT INTO planned (night, subject, node, state) SELECT p.night, s.column2, p.node, p.state
        FROM planned p JOIN (VALUES {pairs}) AS s ON s.column1 = p.subject WHERE p.subject IN ({old}) ON CONFLICT DO NOTHING"
    );
    for text in [insert, format!("DELETE FROM planned WHERE subject IN ({old})")] {
        query(AssertSqlSafe(text)).execute(connection).await?;
    }
    Ok(())
}

async fn unrename(connection: &mut Connection, old: &str, before: &Aliases) -> Result<(), Error> {
    query("DELETE FROM alias WHERE old_name = $1").bind(old.to_owned()).execute(connection).await?;
    let cases = query(r#"SELECT DISTINCT display, check_name, '' AS hash, system, partition, environ, '' AS hidden FROM "case""#);
    let cases = cases.fetch_all(connection).await?.iter().map(decode::name).collect::<Result<Vec<_>, _>>()?;
    let mut known = Known::default();
    for system in cases.iter().map(|case| &case.system).collect::<BTreeSet<_>>() {
        known.load(connection, system).await?;
    }
    // Of each case the subject that it was, and the one that it is.
    let mut subjects: HashMap<[String; 4], (i64, i64)> = HashMap::new();
    for case in &cases {
        let was = CaseName { display: before.canonical(&case.display), ..case.clone() };
        let (was, now) = (known.subject(connection, &was).await?, known.subject(connection, case).await?);
        subjects.insert([&case.system, &case.partition, &case.environ, &case.display].map(Clone::clone), (was, now));
    }
    let shared: BTreeSet<i64> = subjects.values().filter(|(was, now)| was != now).map(|(was, _)| *was).collect();
    subjects.retain(|_, (was, _)| shared.contains(was));
    let Ran { freed, kept } = Ran::of(connection, &subjects).await?;
    let freed: Vec<_> = freed.into_iter().collect();
    for freed in freed.chunks(AT_ONCE) {
        copy_planned(connection, freed).await?;
    }
    let gone: BTreeSet<(i64, i64)> =
        freed.into_iter().map(|(night, was, _)| (night, was)).filter(|ran| !kept.contains(ran)).collect();
    for gone in Vec::from_iter(gone).chunks(AT_ONCE) {
        let gone = listed(gone.iter().map(|(night, subject)| format!("({night}, {subject})")));
        let delete = format!("DELETE FROM planned WHERE (night, subject) IN (VALUES {gone})");
        query(AssertSqlSafe(delete)).execute(connection).await?;
    }
    summaries(connection).await.map(drop)
}

/// In which nights cases of subjects ran.
#[derive(Default)]
struct Ran {
    /// Cases that are of another subject now: the night, the subject that it was, the one that it is.
    freed: BTreeSet<(i64, i64, i64)>,
    /// The others: the night and the subject.
    kept: BTreeSet<(i64, i64)>,
}

impl Ran {
    /// Of these cases (system, partition, environ, name), each with the subject that it was and the one that it is.
    async fn of(connection: &mut Connection, subjects: &HashMap<[String; 4], (i64, i64)>) -> Result<Self, Error> {
        let mut ran = Self::default();
        let nights = query(
            r#"SELECT DISTINCT c.system, c.partition, c.environ, c.display, s.night FROM "case" c JOIN session s ON s.number = c.session
            WHERE s.night IS NOT NULL"#,
        );
        let each = |row: &Row| {
            let case = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?];
            match (subjects.get(&case), row.try_get(4)?) {
                (Some((was, now)), night) if was != now => _ = ran.freed.insert((night, *was, *now)),
                (Some((was, _)), night) => _ = ran.kept.insert((night, *was)),
                (None, _) => {}
            }
            Ok(())
        };
        nights.for_each(connection, each).await?;
        Ok(ran)
    }
}

/// Plans a subject for a night as another one was: the night, the other one, the subject.
async fn copy_planned(connection: &mut Connection, freed: &[(i64, i64, i64)]) -> Result<(), Error> {
    let freed = listed(freed.iter().map(|(night, was, now)| format!("({night}, {was}, {now})")));
    let insert = format!(
        "INSERT INTO planned (night, subject, node, state) SELECT p.night, f.column3, p.node, p.state
        FROM (VALUES {freed}) AS f CROSS JOIN planned p WHERE p.night = f.column1 AND p.subject = f.column2 ON CONFLICT DO NOTHING"
    );
    query(AssertSqlSafe(insert)).execute(connection).await.map(drop)
}

fn listed(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}
