//! The figures of one metric over time, with how each was judged.

use super::figures::KnownMetric;
use crate::{
    Reader, StoreError,
    sql::{Row, query},
};
use muster_core::{
    night::Night,
    query::figures::{Basis, Point},
    rules::perf::Bounds,
};
use muster_text::time::Timestamp;

/// The runs of the metric `$1` between the nights `$2` and `$3`.
pub(super) const HISTORY: &str = r#"SELECT f.night, f.value, f.finished, f.reference, f.lower, f.upper, b.unit, b.check_hash,
    b.manifest_hash, s.id AS session FROM run_figure f JOIN basis b ON b.id = f.basis JOIN session s ON s.number = f.session
    WHERE f.metric = $1 AND f.night BETWEEN $2 AND $3 ORDER BY f.finished, f."case", f.repeat"#;

impl Reader {
    /// The runs of a metric in a range of nights, both ends included, in order of time.
    pub async fn history(&self, metric: &KnownMetric, (first, last): (Night, Night)) -> Result<Vec<Point>, StoreError> {
        let statement = || query(HISTORY).bind(metric.id).bind(first).bind(last);
        self.all("a history", statement, point).await
    }
}

fn point(row: &Row) -> Result<Point, sqlx::Error> {
    let bounds = match row.try_get("reference")? {
        Some(reference) => Some(Bounds { reference, lower: row.try_get("lower")?, upper: row.try_get("upper")? }),
        None => None,
    };
    Ok(Point {
        at: Timestamp(row.try_get("finished")?),
        night: row.try_get("night")?,
        session: row.try_get("session")?,
        value: row.try_get("value")?,
        bounds,
        basis: Basis {
            unit: row.try_get("unit")?,
            check_hash: row.try_get("check_hash")?,
            manifest_hash: row.try_get("manifest_hash")?,
        },
        is_left_out: false,
    })
}
