//! Tests that SQLite finds the rows of questions with an index, never by looking at every row of a table that grows.

use super::{changes, failures, figures, history, selected};
use crate::{Location, migrate};
use muster_core::night::Night;
use muster_text::time::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};
use std::collections::HashSet;

#[tokio::test]
async fn questions_find_their_rows_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    std::fs::write(&path, "").unwrap();
    migrate(&Location::from(path.as_path())).await.unwrap();
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let period = (Timestamp(1), Timestamp(2));
    let texts = [
        selected::sessions_text(Some((Night(1), Night(2))), None, 10),
        selected::sessions_text(None, Some(period), 10),
        selected::sessions_text(None, None, 10),
        selected::LAST_NIGHT.to_owned(),
        selected::outcomes_text(&[]).replace("()", "(1, 2)"),
        figures::runs_text(&[1, 2], &figures::Meant::Sessions(HashSet::new())),
        figures::cases_text(&[], true, figures::Which::Passed).replace("()", "(1, 2)"),
        history::HISTORY.to_owned(),
        failures::failures_text(&[]).replace("()", "(1, 2)"),
        failures::occurrences_text(1),
        failures::node_facts_text([1, 2].into_iter()),
        changes::OF_METRIC.to_owned(),
    ];
    for text in texts {
        let plan = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"))).fetch_all(&mut connection).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
        // In the order of an index only as many rows are looked at as are asked for.
        let is_scan = |step: &&String| step.starts_with("SCAN") && !step.contains("USING INDEX");
        assert_eq!(steps.iter().find(is_scan), None, "{text}\n{steps:#?}");
        assert!(!steps.is_empty(), "{text}");
    }
}
