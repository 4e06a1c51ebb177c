//! The verdicts that are stored, when history changes below them.

use crate::sql::{Connection, query};
use muster_core::night::Night;
use sqlx::Error;

const METRICS: &str = "metric IN (SELECT m.id FROM metric m JOIN subject u ON u.id = m.subject WHERE u.system = $1)";

/// History of a system is another from a night on: what was found since is found again by who judges next.
pub(crate) async fn forget(connection: &mut Connection, system: &str, from: Night) -> Result<(), Error> {
    let count = "INSERT INTO judged (system, night, revision) VALUES ($1, NULL, 1)
        ON CONFLICT (system) DO UPDATE SET revision = judged.revision + 1 RETURNING night";
    let judged: Option<Night> = query(count).bind(system.to_owned()).fetch_scalar(connection).await?;
    if judged.is_none_or(|judged| judged < from) {
        return Ok(());
    }
    let statements = [
        "UPDATE judged SET night = $2 - 1 WHERE system = $1".to_owned(),
        "DELETE FROM judged_series WHERE system = $1 AND night >= $2".to_owned(),
        format!("DELETE FROM change WHERE {METRICS} AND opened >= $2"),
        format!("UPDATE change SET state = 'open', closed = NULL, level_until = NULL WHERE {METRICS} AND closed >= $2"),
    ];
    for text in statements {
        query(sqlx::AssertSqlSafe(text)).bind(system.to_owned()).bind(from).execute(connection).await?;
    }
    Ok(())
}

/// Figures of a system were removed, and what was found in them stays.
pub(crate) async fn forget_series(connection: &mut Connection, system: &str) -> Result<(), Error> {
    for text in ["UPDATE judged SET revision = revision + 1 WHERE system = $1", "DELETE FROM judged_series WHERE system = $1"] {
        query(text).bind(system.to_owned()).execute(connection).await?;
    }
    Ok(())
}

/// All of history is written again.
pub(crate) async fn forget_all(connection: &mut Connection) -> Result<(), Error> {
    query("DELETE FROM change").execute(connection).await?;
    query("DELETE FROM judged_series").execute(connection).await?;
    query("UPDATE judged SET night = NULL, revision = revision + 1").execute(connection).await.map(drop)
}
