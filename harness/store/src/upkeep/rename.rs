//! A check, a parameter or a case that has another name keeps its history.

use super::{Upkeep, ended, rebuild::summaries};
use crate::{
    StoreError,
    sql::{Connection, Row, query},
    write::history::{Aliases, Known},
};
use muster_core::case::CaseName;
use muster_text::time::Timestamp;
use sqlx::Error;

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
