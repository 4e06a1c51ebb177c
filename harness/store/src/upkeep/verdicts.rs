//! The changes that were found in a night, for the next one.

use super::{Upkeep, ended};
use crate::{
    Looked, StoreError,
    read::changes::{Judged, words_of},
    sql::{Connection, Dialect, Statement, query},
    write::statements::ForRows,
};
use muster_judge::{
    METHOD,
    night::{Change, Night},
    stats::trend::Shape,
};
use sqlx::Error;

const COLUMNS: [&str; 19] = [
    "metric",
    "opened",
    "since",
    "since_lo",
    "since_hi",
    "turn",
    "before",
    "after",
    "effect",
    "effect_lo",
    "effect_hi",
    "evidence",
    "tempering",
    "needed",
    "method",
    "shape",
    "state",
    "closed",
    "level_until",
];

impl Upkeep {
    /// Stores that a system is judged until a night, with the changes that are other than before and what the next night looks at
    /// again. False, and nothing is stored, if history has changed since `judged` was read.
    pub async fn keep_changes(
        &mut self,
        judged: Judged,
        until: Night,
        changes: &[Change],
        looked: &Looked,
    ) -> Result<bool, StoreError> {
        let done = async {
            self.connection.begin().await?;
            let done = keep(&mut self.connection, (judged, until), changes, looked).await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))
    }
}

async fn keep(
    connection: &mut Connection,
    (judged, until): (Judged, Night),
    changes: &[Change],
    looked: &Looked,
) -> Result<bool, Error> {
    let system = &looked.system.name;
    let insert = query("INSERT INTO judged (system, night, revision) VALUES ($1, NULL, 0) ON CONFLICT (system) DO NOTHING");
    insert.bind(system.to_owned()).execute(connection).await?;
    let update = query("UPDATE judged SET night = $2 WHERE system = $1 AND revision = $3");
    let update = update.bind(system.to_owned()).bind(until).bind(judged.revision);
    if update.execute(connection).await? == 0 {
        return Ok(false);
    }
    statement(connection.dialect()).execute(connection, changes, bind).await?;
    query("DELETE FROM judged_series WHERE system = $1").bind(system.clone()).execute(connection).await?;
    for (part, data) in (0_i64..).zip(looked.packed(until)) {
        let insert = query("INSERT INTO judged_series (system, part, night, data) VALUES ($1, $2, $3, $4)");
        insert.bind(system.clone()).bind(part).bind(until).bind(data).execute(connection).await?;
    }
    Ok(true)
}

/// What a change was found by stays, and what became of it is new.
fn statement(dialect: Dialect) -> ForRows {
    let new = COLUMNS.iter().skip(2).map(|column| format!("{column} = excluded.{column}")).collect::<Vec<_>>().join(", ");
    ForRows::insert(dialect, "change", &COLUMNS, &format!("ON CONFLICT (metric, opened) DO UPDATE SET {new}"))
}

fn bind(statement: Statement, change: &Change) -> Statement {
    let (low, high) = change.since_interval;
    let (state, level_until) = words_of(change.state);
    let statement = statement.bind(change.id.metric).bind(change.id.opened).bind(change.since);
    let statement = statement.bind(low).bind(high).bind(change.turn.as_str()).bind(change.before).bind(change.after);
    let statement = statement.bind(change.effect.map(|effect| effect.estimate)).bind(change.effect.map(|effect| effect.low));
    let statement = statement.bind(change.effect.map(|effect| effect.high)).bind(change.evidence).bind(change.tempering);
    let statement = statement.bind(change.needed_alone).bind(METHOD).bind(change.shape.map(Shape::as_str)).bind(state);
    statement.bind(change.state.closed()).bind(level_until)
}
