//! The figures of one metric over time, with how each was judged.

use super::figures::KnownMetric;
use crate::{
    Reader, StoreError,
    sql::{Row, query},
};
use muster_core::{
    query::figures::{Basis, NightNumber, Point},
    rules::perf::Bounds,
};
use muster_text::time::Timestamp;

/// The figure of a run with its bounds: those of the first measurement of that variable in the attempt that counts.
pub(super) const HISTORY: &str = r#"SELECT f.night, f."case", f.repeat, f.value, b.unit, b.check_hash, b.manifest_hash, s.id AS session,
    s.started, a.finished, m.reference, m.lower, m.upper
    FROM run_figure f JOIN basis b ON b.id = f.basis JOIN "case" c ON c.id = f."case" JOIN session s ON s.number = c.session
    LEFT JOIN attempt a ON a."case" = f."case" AND a.number = CASE WHEN f.repeat > 0 THEN f.repeat ELSE
        (SELECT min(number) FROM attempt WHERE "case" = f."case" AND outcome IN ('pass', 'xfail', 'xpass', 'fail')
        AND coalesce(reason, '') NOT IN ('sanity', 'workload')) END
    LEFT JOIN measurement m ON m.attempt = a.id AND m.position =
        (SELECT min(position) FROM measurement WHERE attempt = a.id AND variable = $4 AND coalesce(key, '') = $5)
    WHERE f.metric = $1 AND f.night BETWEEN $2 AND $3 ORDER BY f.night, f."case", f.repeat"#;

impl Reader {
    /// The runs of a metric in a range of nights, both ends included, in order of time.
    pub async fn history(
        &self,
        metric: &KnownMetric,
        (first, last): (NightNumber, NightNumber),
    ) -> Result<Vec<Point>, StoreError> {
        let (variable, key) = (&metric.metric.variable, metric.metric.key.clone().unwrap_or_default());
        let statement = || {
            let statement = query(HISTORY).bind(metric.id).bind(first).bind(last);
            statement.bind(variable.clone()).bind(key.clone())
        };
        let mut points = self.all("a history", statement, point).await?;
        points.sort_by_key(|point| point.at);
        Ok(points)
    }
}

fn point(row: &Row) -> Result<Point, sqlx::Error> {
    let bounds = match row.try_get("reference")? {
        Some(reference) => Some(Bounds { reference, lower: row.try_get("lower")?, upper: row.try_get("upper")? }),
        None => None,
    };
    let at = row.try_get::<Option<i64>>("finished")?.map_or_else(|| row.try_get("started"), Ok)?;
    Ok(Point {
        at: Timestamp(at),
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
