//! What was said of nights, and which changes of a metric were found.

use crate::{
    Reader, StoreError,
    read::{decode, figures::KnownMetric},
    sql::{Row, query},
};
use muster_core::{
    query::{
        answers::{Mark, MarkKind},
        remarks::Remark,
    },
    rules::perf::format_digits,
};
use std::fmt::Write;

/// Of one session or node nothing can be said of a night.
const REMARKS: &str = "SELECT kind, system, partition, environ, name, variable, from_night, until, author, reason FROM annotation
    WHERE node IS NULL AND session IS NULL ORDER BY from_night, id";

/// The last revision of each change.
pub(super) const CHANGES: &str = "SELECT since, word, before, after, effect FROM change c WHERE metric = $1
    AND revision = (SELECT max(revision) FROM change WHERE metric = c.metric AND opened = c.opened) ORDER BY since";

impl Reader {
    pub async fn remarks(&self) -> Result<Vec<Remark>, StoreError> {
        self.all("annotations", || query(REMARKS), remark).await
    }

    /// The changes that the night verdicts have found in a metric.
    pub async fn change_marks(&self, metric: &KnownMetric) -> Result<Vec<Mark>, StoreError> {
        self.all("changes", || query(CHANGES).bind(metric.id), change).await
    }
}

fn remark(row: &Row) -> Result<Remark, sqlx::Error> {
    Ok(Remark {
        kind: decode::word(row, "kind")?,
        system: row.try_get("system")?,
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        name: row.try_get("name")?,
        variable: row.try_get("variable")?,
        from: row.try_get("from_night")?,
        until: row.try_get("until")?,
        author: row.try_get("author")?,
        reason: row.try_get("reason")?,
    })
}

/// `regressed: 1912 -> 1815 (-5.1 %)`
fn change(row: &Row) -> Result<Mark, sqlx::Error> {
    let number = |column: &str| row.try_get::<Option<f64>>(column).map(|value| value.map(|value| format_digits(value, 4)));
    let mut text: String = row.try_get("word")?;
    if let (Some(before), Some(after)) = (number("before")?, number("after")?) {
        let _ = write!(text, ": {before} -> {after}");
    }
    if let Some(effect) = row.try_get::<Option<f64>>("effect")? {
        let _ = write!(text, " ({:+.1} %)", (effect - 1.0) * 100.0);
    }
    Ok(Mark { night: row.try_get("since")?, kind: MarkKind::Change, text })
}
