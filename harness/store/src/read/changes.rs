//! Reads up to which night a system was judged, and the changes that were found: the next night continues with them.

use crate::{
    Reader, StoreError,
    read::{decode, figures::KnownMetric},
    sql::{Row, query},
};
use muster_core::{
    case::CaseName,
    query::{
        answers::{Mark, MarkKind},
        figures::Point,
    },
    rules::perf::format_digits,
};
use muster_judge::{
    night::{Change, ChangeId, ChangeState, Night, Turn},
    stats::{shift::Shift, trend::Shape},
};
use std::{collections::HashMap, fmt::Write};

/// The nights of a system that have been judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judged {
    /// The last night whose changes are stored.
    pub until: Option<Night>,
    /// The number of changes of history since the first.
    pub revision: i64,
}

const OF_SYSTEM: &str = "SELECT c.* FROM subject u JOIN metric m ON m.subject = u.id JOIN change c ON c.metric = m.id
    WHERE u.system = $1 AND c.opened < $2 ORDER BY c.metric, c.since, c.opened";

const OF_CASE: &str = "SELECT c.* FROM subject u JOIN metric m ON m.subject = u.id JOIN change c ON c.metric = m.id
    WHERE u.system = $1 AND u.partition = $2 AND u.environ = $3 AND u.name = $4 AND m.is_ignored = 0 AND c.turn = 'worse' AND c.since <= $5
    AND (c.closed IS NULL OR c.closed > $5) ORDER BY c.since DESC, c.evidence DESC";

/// Of one metric.
pub(super) const OF_METRIC: &str = "SELECT * FROM change WHERE metric = $1 ORDER BY since, opened";

impl Reader {
    pub async fn judged(&self, system: &str) -> Result<Judged, StoreError> {
        let statement = || query("SELECT night, revision FROM judged WHERE system = $1").bind(system.to_owned());
        let decode = |row: &Row| Ok(Judged { until: row.try_get("night")?, revision: row.try_get("revision")? });
        Ok(self.all("how far a system was judged", statement, decode).await?.first().copied().unwrap_or_default())
    }

    /// The nights of a system from one to another, both included, in which there were sessions.
    pub async fn nights_between(&self, system: &str, first: Night, last: Night) -> Result<Vec<Night>, StoreError> {
        let text = "SELECT night FROM night WHERE system = $1 AND night BETWEEN $2 AND $3 ORDER BY night";
        let statement = || query(text).bind(system.to_owned()).bind(first).bind(last);
        self.all("nights", statement, |row| row.try_get("night")).await
    }

    /// The changes that were found before a night, as they were known then, by metric and in the order of their nights.
    pub async fn changes_before(&self, system: &str, at: Night) -> Result<HashMap<i64, Vec<Change>>, StoreError> {
        let statement = || query(OF_SYSTEM).bind(system.to_owned()).bind(at);
        let mut by_metric: HashMap<i64, Vec<Change>> = HashMap::new();
        for mut change in self.all("changes", statement, change).await? {
            if change.state.closed().is_some_and(|closed| closed >= at) {
                change.state = ChangeState::Open;
            }
            by_metric.entry(change.id.metric).or_default().push(change);
        }
        Ok(by_metric)
    }

    /// The changes to worse of the figures of a case that are open in a night, the latest first.
    pub async fn worse_levels(&self, case: &CaseName, at: Night) -> Result<Vec<Change>, StoreError> {
        let name = self.new_names().await?.canonical(&case.display);
        let statement = || {
            let statement = query(OF_CASE).bind(case.system.clone()).bind(case.partition.clone());
            statement.bind(case.environ.clone()).bind(name.clone()).bind(at)
        };
        self.all("changes", statement, change).await
    }

    /// The changes of a metric, as marks of its history, in the units that these points of it had at that time.
    pub async fn change_marks(&self, metric: &KnownMetric, points: &[Point]) -> Result<Vec<Mark>, StoreError> {
        let changes = self.all("changes", || query(OF_METRIC).bind(metric.id), change).await?;
        let unit = |since: Night| {
            let measured = points.iter().find(|point| point.night >= since);
            measured.map_or(metric.unit.as_str(), |point| point.basis.unit.as_str())
        };
        Ok(changes.iter().map(|change| mark(change, unit(change.since))).collect())
    }
}

fn change(row: &Row) -> Result<Change, sqlx::Error> {
    let number = |column: &str| row.try_get::<Option<f64>>(column);
    let effect = match (number("effect")?, number("effect_lo")?, number("effect_hi")?) {
        (Some(estimate), Some(low), Some(high)) => Some(Shift { estimate, low, high }),
        _ => None,
    };
    Ok(Change {
        id: ChangeId { metric: row.try_get("metric")?, opened: row.try_get("opened")? },
        since: row.try_get("since")?,
        since_interval: (row.try_get("since_lo")?, row.try_get("since_hi")?),
        turn: decode::word::<Turn>(row, "turn")?,
        before: row.try_get("before")?,
        after: row.try_get("after")?,
        effect,
        evidence: row.try_get("evidence")?,
        tempering: row.try_get("tempering")?,
        needed_alone: row.try_get("needed")?,
        shape: row.try_get::<Option<String>>("shape")?.map(|_| decode::word::<Shape>(row, "shape")).transpose()?,
        state: state(row)?,
    })
}

fn state(row: &Row) -> Result<ChangeState, sqlx::Error> {
    let found = row.try_get::<Option<Night>>("closed")?.unwrap_or_default();
    let level_until = row.try_get::<Option<Night>>("level_until")?.unwrap_or_default();
    Ok(match row.try_get::<&str>("state")? {
        "recovered" => ChangeState::Recovered { since: level_until, found },
        "accepted" => ChangeState::Accepted { found },
        "dismissed" => ChangeState::Dismissed { until: level_until, found },
        "superseded" => ChangeState::Superseded { found },
        // The table has no other word.
        _ => ChangeState::Open,
    })
}

/// The word of a state, and the night up to which its level held: what [`state`] reads back.
pub(crate) fn words_of(state: ChangeState) -> (&'static str, Option<Night>) {
    match state {
        ChangeState::Open => ("open", None),
        ChangeState::Recovered { since, .. } => ("recovered", Some(since)),
        ChangeState::Accepted { .. } => ("accepted", None),
        ChangeState::Dismissed { until, .. } => ("dismissed", Some(until)),
        ChangeState::Superseded { .. } => ("superseded", None),
    }
}

/// `regressed: 1912 -> 1815 GB/s (-5.1 %), recovered`
fn mark(change: &Change, unit: &str) -> Mark {
    let word = change.word();
    let (before, after) = (format_digits(change.before, 4), format_digits(change.after, 4));
    let mut text = format!("{word}: {before} -> {after}");
    if !unit.is_empty() {
        let _ = write!(text, " {unit}");
    }
    if let Some(effect) = change.effect {
        let _ = write!(text, " ({:+.1} %)", 100.0 * effect.estimate);
    }
    if !change.is_open() {
        let _ = write!(text, ", {}", words_of(change.state).0);
    }
    Mark { night: change.since, kind: MarkKind::Change, text }
}
