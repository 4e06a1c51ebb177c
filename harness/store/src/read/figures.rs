//! The figures of selected sessions, by metric: of each case the first measured attempt.

use super::selected::{IN_LIST, Selected, list};
use crate::{
    Reader, StoreError,
    read::decode,
    sql::{Row, query},
};
use muster_core::{
    case::CaseName,
    query::{
        figures::{Basis, FigureSet, Metric, NightNumber, Run, Series},
        spec::{Filter, Filters},
    },
    result::About,
    rules::perf::Direction,
};
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Which figures of the sessions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What was measured, whatever its verdict.
    Measured,
    /// Only of cases that passed at once.
    Passed,
}

/// The check of a case and its parameters.
pub type Parameters = (String, Vec<(String, String)>);

/// The metric, session and case of a run, and the run.
type OfRun = (i64, i64, i64, Run);

/// A metric and what is last known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownMetric {
    pub id: i64,
    pub metric: Metric,
    pub unit: String,
    pub direction: Option<Direction>,
}

impl Reader {
    /// The figures of these sessions that filters admit.
    pub async fn figures(&self, sessions: &[Selected], filters: &Filters, which: Which) -> Result<FigureSet, StoreError> {
        let mut set = FigureSet { sessions: sessions.len(), ..FigureSet::default() };
        let nights = sessions.iter().filter_map(|session| session.night);
        let Some((first, last)) = nights.clone().min().zip(nights.max()) else { return Ok(set) };
        let numbers: BTreeSet<i64> = sessions.iter().map(|session| session.number).collect();
        let cases = self.case_ids(sessions, filters, which).await?;
        let is_meant = |session: &i64, case: &i64| match &cases {
            Some(cases) => cases.binary_search(case).is_ok(),
            None => numbers.contains(session),
        };
        let without_tags = Filters { tags: Vec::new(), ..filters.clone() };
        let metrics: BTreeMap<i64, KnownMetric> =
            self.metrics(&without_tags).await?.into_iter().map(|metric| (metric.id, metric)).collect();
        let mut places = HashMap::new();
        let mut runs: Vec<(i64, Run)> = Vec::new();
        let ids: Vec<i64> = metrics.keys().copied().collect();
        for part in ids.chunks(IN_LIST) {
            let of_part = self.runs(part, (first, last)).await?;
            let meant = of_part.into_iter().filter(|(_, session, case, _)| is_meant(session, case));
            runs.extend(meant.map(|(metric, .., run)| (metric, run)));
        }
        for (metric, mut run) in runs {
            let next = places.len();
            // As yet the number that the store has for the basis.
            run.basis = *places.entry(run.basis).or_insert(next);
            let Some(known) = metrics.get(&metric) else { continue };
            let series = set.series.entry(metric).or_insert_with(|| Series {
                metric: known.metric.clone(),
                direction: known.direction,
                runs: Vec::new(),
            });
            series.runs.push(run);
        }
        set.bases = self.bases(&places).await?;
        Ok(set)
    }

    /// The metrics whose cases filters admit. The tags of a metric are those that one of its cases has had.
    pub async fn metrics(&self, filters: &Filters) -> Result<Vec<KnownMetric>, StoreError> {
        const METRICS: &str = "SELECT m.id, m.variable, m.key, m.unit, m.direction, u.system, u.partition, u.environ, u.name
            FROM metric m JOIN subject u ON u.id = m.subject ORDER BY m.id";
        let mut known = self.all("metrics", || query(METRICS), known_metric).await?;
        let without_tags = Filters { tags: Vec::new(), ..filters.clone() };
        known.retain(|known| without_tags.admit(&name_of(&known.metric), &[]));
        if !filters.tags.is_empty() && !known.is_empty() {
            let key = |name: &CaseName| [&name.system, &name.partition, &name.environ, &name.display].map(Clone::clone);
            let cases = self.known_cases().await?;
            let meant: BTreeSet<_> =
                cases.iter().filter(|(name, tags)| filters.admit(name, tags)).map(|(name, _)| key(name)).collect();
            known.retain(|known| meant.contains(&key(&name_of(&known.metric))));
        }
        Ok(known)
    }

    /// The check and the parameters of the cases of these sessions, by name.
    pub async fn parameters(&self, sessions: &[Selected]) -> Result<BTreeMap<String, Parameters>, StoreError> {
        let mut all = BTreeMap::new();
        for part in sessions.chunks(IN_LIST) {
            let text: Arc<str> = format!(
                r#"SELECT display, check_name, max(about) AS about FROM "case" WHERE session IN ({}) GROUP BY display, check_name"#,
                list(part.iter().map(|session| session.number))
            )
            .into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            let row = |row: &Row| {
                let about: About = decode::json(row, "about")?;
                Ok((row.try_get("display")?, (row.try_get("check_name")?, about.parameters)))
            };
            all.extend(self.all("parameters", statement, row).await?);
        }
        Ok(all)
    }

    /// The runs of metrics in a range of nights, each with its metric, session and case, and with the store's number of its basis.
    async fn runs(&self, metrics: &[i64], (first, last): (NightNumber, NightNumber)) -> Result<Vec<OfRun>, StoreError> {
        let text: Arc<str> = runs_text(metrics).into();
        let statement = || query(AssertSqlSafe(Arc::clone(&text))).bind(first).bind(last);
        let rows = self.all("figures", statement, run).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The cases of these sessions that count, in order; `None`: all do.
    async fn case_ids(&self, sessions: &[Selected], filters: &Filters, which: Which) -> Result<Option<Vec<i64>>, StoreError> {
        if which == Which::Measured && filters.tags.is_empty() {
            return Ok(None);
        }
        let mut ids = Vec::new();
        for part in sessions.chunks(IN_LIST) {
            let text: Arc<str> = cases_text(part, !filters.tags.is_empty(), which).into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            let rows = self.all("cases", statement, |row| Ok((row.try_get::<i64>("id")?, tagged(row, &filters.tags)?))).await?;
            ids.extend(rows.into_iter().filter(|(_, is_meant)| *is_meant).map(|(id, _)| id));
        }
        ids.sort_unstable();
        Ok(Some(ids))
    }

    /// The bases by their places.
    async fn bases(&self, places: &HashMap<usize, usize>) -> Result<Vec<Basis>, StoreError> {
        let mut bases = vec![Basis::default(); places.len()];
        let numbers: Vec<i64> = places.keys().filter_map(|number| i64::try_from(*number).ok()).collect();
        for part in numbers.chunks(IN_LIST) {
            let text: Arc<str> =
                format!("SELECT id, unit, check_hash, manifest_hash FROM basis WHERE id IN ({})", list(part.iter().copied()))
                    .into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            for (number, basis) in self.all("units of figures", statement, numbered_basis).await? {
                if let Some(place) = places.get(&number).and_then(|place| bases.get_mut(*place)) {
                    *place = basis;
                }
            }
        }
        Ok(bases)
    }
}

/// The runs of metrics between the nights `$1` and `$2`.
pub(super) fn runs_text(metrics: &[i64]) -> String {
    let metrics = list(metrics.iter().copied());
    format!(
        r#"SELECT metric, session, "case", night, value, basis FROM run_figure
        WHERE metric IN ({metrics}) AND night BETWEEN $1 AND $2 ORDER BY metric, night"#
    )
}

/// The cases of sessions.
pub(super) fn cases_text(sessions: &[Selected], with_about: bool, which: Which) -> String {
    let sessions = list(sessions.iter().map(|session| session.number));
    let about = if with_about { "c.about" } else { "''" };
    let condition = match which {
        Which::Measured => "",
        Which::Passed => NONE_FAILED,
    };
    format!(r#"SELECT c.id, {about} AS about FROM "case" c WHERE c.session IN ({sessions}) {condition}"#)
}

/// A case all of whose attempts passed.
const NONE_FAILED: &str = r#"AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a."case" = c.id AND a.outcome <> 'pass')"#;

/// `None`: its value is no number, or its case is gone.
fn run(row: &Row) -> Result<Option<OfRun>, sqlx::Error> {
    let (Some(session), Some(value)) = (row.try_get::<Option<i64>>(1)?, row.try_get::<Option<f64>>(4)?) else { return Ok(None) };
    let basis = usize::try_from(row.try_get::<i64>(5)?).unwrap_or_default();
    Ok(Some((row.try_get(0)?, session, row.try_get(2)?, Run { night: row.try_get(3)?, value, basis })))
}

fn known_metric(row: &Row) -> Result<KnownMetric, sqlx::Error> {
    let key: String = row.try_get("key")?;
    let metric = Metric {
        case: row.try_get("name")?,
        system: row.try_get("system")?,
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        variable: row.try_get("variable")?,
        key: (!key.is_empty()).then_some(key),
    };
    let direction = row.try_get::<Option<&str>>("direction")?.map(|_| decode::word(row, "direction")).transpose()?;
    Ok(KnownMetric { id: row.try_get("id")?, metric, unit: row.try_get("unit")?, direction })
}

fn numbered_basis(row: &Row) -> Result<(usize, Basis), sqlx::Error> {
    let number = usize::try_from(row.try_get::<i64>("id")?).unwrap_or_default();
    let basis = Basis {
        unit: row.try_get("unit")?,
        check_hash: row.try_get("check_hash")?,
        manifest_hash: row.try_get("manifest_hash")?,
    };
    Ok((number, basis))
}

/// Whether a case has one of these tags, or none is asked for.
fn tagged(row: &Row, tags: &[Filter]) -> Result<bool, sqlx::Error> {
    if tags.is_empty() {
        return Ok(true);
    }
    let about: About = decode::json(row, "about")?;
    Ok(about.tags.iter().any(|tag| tags.iter().any(|filter| filter.admits(tag))))
}

/// A metric's case, as filters see it.
fn name_of(metric: &Metric) -> CaseName {
    CaseName {
        display: metric.case.clone(),
        check: metric.case.split(' ').next().unwrap_or_default().to_owned(),
        system: metric.system.clone(),
        partition: metric.partition.clone(),
        environ: metric.environ.clone(),
        ..CaseName::default()
    }
}
