//! The figures of selected sessions, by metric: of each case the first measured attempt.

use super::selected::{IN_LIST, Selected, list};
use crate::{
    Reader, StoreError,
    read::decode,
    sql::{Row, query},
};
use muster_core::{
    case::{CaseName, check_of},
    night::Night,
    query::{
        figures::{Basis, FigureSet, Metric, Run, Series},
        spec::{Filter, Filters},
    },
    result::About,
    rules::perf::Direction,
};
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// The figures of the sessions that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The figures that were measured, whatever their verdict.
    Measured,
    /// The figures of cases that passed at once.
    Passed,
}

/// The check of a case and its parameters.
pub type Parameters = (String, Vec<(String, String)>);

/// The numbers of the sessions all of whose runs are meant, or of the cases.
pub(super) enum Meant {
    Sessions(HashSet<i64>),
    Cases(HashSet<i64>),
}

/// A metric and what is last known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownMetric {
    pub id: i64,
    pub metric: Metric,
    pub unit: String,
    pub direction: Option<Direction>,
    pub min_effect: Option<f64>,
}

impl Reader {
    /// The figures of these sessions that filters admit.
    pub async fn figures(&self, sessions: &[Selected], filters: &Filters, which: Which) -> Result<FigureSet, StoreError> {
        let mut set = FigureSet { sessions: sessions.len(), ..FigureSet::default() };
        let nights = sessions.iter().filter_map(|session| session.night);
        let Some((first, last)) = nights.clone().min().zip(nights.max()) else { return Ok(set) };
        let meant = match which {
            Which::Measured if filters.tags.is_empty() => {
                Meant::Sessions(sessions.iter().map(|session| session.number).collect())
            }
            _ => Meant::Cases(self.case_ids(sessions, filters, which).await?),
        };
        let metrics: BTreeMap<i64, KnownMetric> =
            self.metrics(&filters.without_tags()).await?.into_iter().map(|metric| (metric.id, metric)).collect();
        let mut places = HashMap::new();
        let mut runs: Vec<(i64, Run)> = Vec::new();
        let ids: Vec<i64> = metrics.keys().copied().collect();
        for part in ids.chunks(IN_LIST) {
            runs.extend(self.runs(part, (first, last), &meant).await?);
        }
        for (metric, mut run) in runs {
            let next = places.len();
            // As yet the number that the store has for the basis.
            run.basis = *places.entry(run.basis).or_insert(next);
            let Some(known) = metrics.get(&metric) else { continue };
            let series = set.series.entry(metric).or_insert_with(|| Series {
                metric: known.metric.clone(),
                direction: known.direction,
                min_effect: known.min_effect,
                runs: Vec::new(),
            });
            series.runs.push(run);
        }
        set.bases = self.bases(&places).await?;
        Ok(set)
    }

    /// The metrics whose cases filters admit. The tags of a metric are those that one of its cases has had.
    pub async fn metrics(&self, filters: &Filters) -> Result<Vec<KnownMetric>, StoreError> {
        const METRICS: &str =
            "SELECT m.id, m.variable, m.key, m.unit, m.direction, m.min_effect, u.system, u.partition, u.environ, u.name
            FROM metric m JOIN subject u ON u.id = m.subject ORDER BY m.id";
        let mut known = self.all("metrics", || query(METRICS), known_metric).await?;
        let without_tags = filters.without_tags();
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

    /// The check and the parameters of the cases of these sessions, by the names that they have in history.
    pub async fn parameters(&self, sessions: &[Selected]) -> Result<BTreeMap<String, Parameters>, StoreError> {
        let names = self.new_names().await?;
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
                Ok((row.try_get::<String>("display")?, (row.try_get("check_name")?, about.parameters)))
            };
            for (display, known) in self.all("parameters", statement, row).await? {
                let name = names.canonical(&display);
                if name == display {
                    all.insert(name, known);
                } else {
                    all.entry(name).or_insert_with_key(|name| parts(name));
                }
            }
        }
        Ok(all)
    }

    /// The runs of metrics in a range of nights that are meant, each with its metric, and with the store's number of its basis.
    async fn runs(&self, metrics: &[i64], (first, last): (Night, Night), meant: &Meant) -> Result<Vec<(i64, Run)>, StoreError> {
        let text: Arc<str> = runs_text(metrics, meant).into();
        let statement = || query(AssertSqlSafe(Arc::clone(&text))).bind(first).bind(last);
        let rows = self.all("figures", statement, |row| run(row, meant)).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The cases of these sessions that count.
    async fn case_ids(&self, sessions: &[Selected], filters: &Filters, which: Which) -> Result<HashSet<i64>, StoreError> {
        let mut ids = HashSet::new();
        for part in sessions.chunks(IN_LIST) {
            let text: Arc<str> = cases_text(part, !filters.tags.is_empty(), which).into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            let rows = self.all("cases", statement, |row| Ok((row.try_get::<i64>("id")?, tagged(row, &filters.tags)?))).await?;
            ids.extend(rows.into_iter().filter(|(_, is_meant)| *is_meant).map(|(id, _)| id));
        }
        Ok(ids)
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

/// The check and the parameters that the name of a case says.
fn parts(name: &str) -> Parameters {
    let mut parts = name.split(" %");
    let check = parts.next().unwrap_or_default().to_owned();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    (check, parts.filter_map(|part| part.split_once('=').map(owned)).collect())
}

/// The runs of metrics between the nights `$1` and `$2`, each with what says whether it is meant.
pub(super) fn runs_text(metrics: &[i64], meant: &Meant) -> String {
    let metrics = list(metrics.iter().copied());
    let of = match meant {
        Meant::Sessions(_) => "session",
        Meant::Cases(_) => r#""case""#,
    };
    format!(
        r"SELECT metric, {of}, night, value, basis FROM run_figure
        WHERE metric IN ({metrics}) AND night BETWEEN $1 AND $2 ORDER BY metric, night"
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

/// `None`: it is not meant, or its value is no number.
fn run(row: &Row, meant: &Meant) -> Result<Option<(i64, Run)>, sqlx::Error> {
    let (Meant::Sessions(meant) | Meant::Cases(meant)) = meant;
    let is_meant = row.try_get::<Option<i64>>(1)?.is_some_and(|number| meant.contains(&number));
    let Some(value) = row.try_get::<Option<f64>>(3)?.filter(|_| is_meant) else { return Ok(None) };
    let basis = usize::try_from(row.try_get::<i64>(4)?).unwrap_or_default();
    Ok(Some((row.try_get(0)?, Run { night: row.try_get(2)?, value, basis })))
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
    let (id, unit, min_effect) = (row.try_get("id")?, row.try_get("unit")?, row.try_get("min_effect")?);
    Ok(KnownMetric { id, metric, unit, direction, min_effect })
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
        check: check_of(&metric.case).to_owned(),
        system: metric.system.clone(),
        partition: metric.partition.clone(),
        environ: metric.environ.clone(),
        ..CaseName::default()
    }
}
