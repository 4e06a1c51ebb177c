//! Reads the annotations of nights.

use crate::{
    Reader, StoreError,
    read::decode,
    sql::{Row, Statement, query},
};
use muster_core::query::remarks::Remark;

/// Of one session or node nothing can be said of a night.
const REMARKS: &str = "SELECT *, CAST(NULL AS BIGINT) AS said FROM annotation
    WHERE node IS NULL AND session IS NULL ORDER BY from_night, id";

impl Reader {
    pub async fn remarks(&self) -> Result<Vec<Remark>, StoreError> {
        self.renamed(|| query(REMARKS)).await
    }

    /// The annotations that a statement finds, with the names that their checks and cases have now.
    pub(super) async fn renamed(&self, statement: impl Fn() -> Statement) -> Result<Vec<Remark>, StoreError> {
        let mut remarks = self.all("annotations", statement, remark).await?;
        self.rename(remarks.iter_mut().filter_map(|remark| remark.name.as_mut())).await?;
        Ok(remarks)
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
        said: row.try_get("said")?,
        author: row.try_get("author")?,
        reason: row.try_get("reason")?,
    })
}
