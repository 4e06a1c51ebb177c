//! Recorded facts that differ between the nights before and after a change.

use crate::Unanswered;
use muster_core::{
    case::CaseName,
    query::causes::{self, FactChange},
};
use muster_judge::night::{Change, MetricName};
use muster_store::Reader;

/// Runs of the case are looked for in this many nights before and after those in which the change may have begun.
const AROUND: i32 = 60;

/// Returns the facts that differ between the runs of the case in a night before a change and in a night after it. Without such runs,
/// the facts of the sessions are compared.
pub async fn why(reader: &Reader, system: &str, name: &MetricName, change: &Change) -> Result<Vec<FactChange>, Unanswered> {
    let (low, high) = change.since_interval;
    let case = CaseName {
        display: name.case.clone(),
        system: system.to_owned(),
        partition: name.partition.clone(),
        environ: name.environ.clone(),
        ..CaseName::default()
    };
    let runs = reader.occurrences(&case, (low.before(AROUND), high.before(-AROUND))).await?;
    let before = runs.iter().map(|run| run.night).filter(|night| *night < low).max();
    let after = runs.iter().map(|run| run.night).filter(|night| *night >= high).min();
    if let Some((before, after)) = before.zip(after) {
        let [before, after] = [before, after].map(|night| runs.iter().filter(|run| run.night == night).collect::<Vec<_>>());
        return Ok(causes::changed(&reader.facts(&before, &after).await?, &reader.facts(&after, &after).await?));
    }
    let before = reader.night_facts(system, low.before(1)).await?;
    Ok(if before.is_empty() { Vec::new() } else { causes::changed(&before, &reader.night_facts(system, high).await?) })
}
