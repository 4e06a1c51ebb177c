//! What the verdict of a night is made of: metrics with their figures by night, the plan of the night, annotations.

use crate::{
    Reader, StoreError,
    read::decode,
    sql::{Row, Statement, query},
};
use muster_judge::night::{
    Annotation, AnnotationKind, Change, LOOKED_AT, Metric, MetricName, Night, Plan, Scope, SegmentKey, System, Value,
};
use muster_text::decode::Words;
use sqlx::AssertSqlSafe;
use std::collections::{BTreeMap, HashMap};

/// The nights of a system that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNights {
    pub system: String,
    pub first: Night,
    pub last: Night,
}

/// How far a night has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NightProgress {
    pub is_running: bool,
    /// Cases with a result, and all of its sessions.
    pub ended: usize,
    pub cases: usize,
}

impl Reader {
    /// The systems that have nights, by name.
    pub async fn nights(&self) -> Result<Vec<StoredNights>, StoreError> {
        const NIGHTS: &str = "SELECT system, min(night) AS first, max(night) AS last FROM night GROUP BY system ORDER BY system";
        let decode = |row: &Row| {
            Ok(StoredNights { system: row.try_get("system")?, first: night(row, "first")?, last: night(row, "last")? })
        };
        self.all("nights", || query(NIGHTS), decode).await
    }

    /// How far a night of a system has come.
    pub async fn night_progress(&self, system: &str, at: Night) -> Result<NightProgress, StoreError> {
        const STATE: &str = "SELECT state FROM night WHERE system = $1 AND night = $2";
        const CASES: &str = r#"SELECT count(*) AS cases, count(a."case") AS ended FROM session s JOIN "case" c ON c.session = s.number
            LEFT JOIN (SELECT DISTINCT "case" FROM attempt) a ON a."case" = c.id WHERE c.system = $1 AND s.night = $2"#;
        let bound = |text: &'static str| query(text).bind(system.to_owned()).bind(i64::from(at.0));
        let states = self.all("the state of a night", || bound(STATE), |row| row.try_get::<String>("state")).await?;
        if !states.iter().any(|state| state == "running") {
            return Ok(NightProgress::default());
        }
        let count = |row: &Row, name: &str| Ok::<_, sqlx::Error>(usize::try_from(row.try_get::<i64>(name)?).unwrap_or_default());
        let counts = |row: &Row| Ok((count(row, "ended")?, count(row, "cases")?));
        let counted = self.all("the cases of a night", || bound(CASES), counts).await?;
        let (ended, cases) = counted.first().copied().unwrap_or_default();
        Ok(NightProgress { is_running: true, ended, cases })
    }

    /// What is recorded of the sessions of the last night up to one in which there were some: versions, hashes, facts of nodes.
    pub async fn night_facts(&self, system: &str, at: Night) -> Result<BTreeMap<String, String>, StoreError> {
        const SESSIONS: &str = "SELECT version, facts FROM session WHERE system = $1 AND night =
            (SELECT max(night) FROM session WHERE system = $1 AND night <= $2) ORDER BY started";
        let statement = || query(SESSIONS).bind(system.to_owned()).bind(i64::from(at.0));
        let session = |row: &Row| {
            let facts: BTreeMap<String, String> = decode::json(row, "facts")?;
            Ok((row.try_get::<String>("version")?, facts))
        };
        let mut all = BTreeMap::new();
        for (version, facts) in self.all("facts of a night", statement, session).await? {
            all.extend(facts);
            all.insert("muster".to_owned(), version);
        }
        Ok(all)
    }

    /// What the nights of a system from `first` to `last`, both included, are judged by, with the plan of the last: `changes` are
    /// those that were found before, and each metric has the values that these nights look at.
    pub async fn judged_system(
        &self,
        system: &str,
        (first, last): (Night, Night),
        changes: &HashMap<i64, Vec<Change>>,
    ) -> Result<System, StoreError> {
        let start = first.before(WINDOW);
        let mut read = self.night_system(system, start, last).await?;
        for metric in &mut read.metrics {
            metric.changes = changes.get(&metric.id).cloned().unwrap_or_default();
        }
        if self.nights_between(system, Night(i32::MIN), start.before(1)).await?.is_empty() {
            return Ok(read);
        }
        let (mut all, mut some, mut some_from) = (Vec::new(), Vec::new(), start);
        for metric in &read.metrics {
            let looks_back = metric.changes.iter().filter(|change| change.holds_back(start)).map(|change| change.since).min();
            if num_usable(metric, &read.annotations, first) < LOOKED_AT {
                all.push(metric.id);
            } else if let Some(since) = looks_back {
                some.push(metric.id);
                some_from = some_from.min(since.before(WINDOW));
            }
        }
        for (ids, from) in [(all, Night(i32::MIN)), (some, some_from)] {
            if !ids.is_empty() {
                let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let text = format!(
                    "SELECT metric, night, value, basis FROM night_figure WHERE metric IN ({ids}) AND night BETWEEN $1 AND $2"
                );
                let (from, until) = (i64::from(from.0), i64::from(start.before(1).0));
                self.add_figures(&mut read.metrics, || query(AssertSqlSafe(text.clone())).bind(from).bind(until)).await?;
            }
        }
        Ok(read)
    }

    /// The metrics of a system with their figures from night to night, both included, and the plan of the last.
    pub async fn night_system(&self, system: &str, first: Night, last: Night) -> Result<System, StoreError> {
        let named = |text: &'static str| query(text).bind(system.to_owned());
        let found = self.all("metrics", || named(METRICS), metric).await?;
        let plans = self.plans(system, last).await?;
        let is_planned = !plans.is_empty();
        let planned = |(subject, metric): (i64, Metric)| {
            let plan = plans.get(&subject).copied().unwrap_or(if is_planned { Plan::Unplanned } else { Plan::Unknown });
            Metric { plan, ..metric }
        };
        let mut metrics: Vec<Metric> = found.into_iter().map(planned).collect();
        self.add_figures(&mut metrics, || named(FIGURES).bind(i64::from(first.0)).bind(i64::from(last.0))).await?;
        metrics.retain(|metric| !metric.values.is_empty());
        Ok(System { name: system.to_owned(), metrics, annotations: self.annotations_of(system).await? })
    }

    async fn add_figures(&self, metrics: &mut [Metric], statement: impl Fn() -> Statement) -> Result<(), StoreError> {
        let places: HashMap<i64, usize> = metrics.iter().enumerate().map(|(place, metric)| (metric.id, place)).collect();
        let bases = self.segment_keys().await?;
        for (id, night, value, basis) in self.all("figures of nights", statement, figure).await? {
            let Some(metric) = places.get(&id).and_then(|place| metrics.get_mut(*place)) else { continue };
            let key = bases.get(&basis).cloned().unwrap_or_default();
            let known = metric.segments.iter().position(|known| *known == key);
            let segment = known.unwrap_or_else(|| {
                metric.segments.push(key);
                metric.segments.len() - 1
            });
            metric.values.push(Value { night, value, segment: u32::try_from(segment).unwrap_or_default() });
        }
        Ok(())
    }

    /// The plan of a system for a night, by subject.
    async fn plans(&self, system: &str, night: Night) -> Result<HashMap<i64, Plan>, StoreError> {
        const PLANNED: &str = "SELECT p.subject, p.state FROM planned p JOIN subject u ON u.id = p.subject
            WHERE p.night = $1 AND u.system = $2";
        let decode = |row: &Row| Ok((row.try_get("subject")?, decode::word::<Plan>(row, "state")?));
        let statement = || query(PLANNED).bind(i64::from(night.0)).bind(system.to_owned());
        let rows = self.all("the plan of a night", statement, decode).await?;
        let mut plans = HashMap::new();
        for (subject, plan) in rows {
            // Of several nodes one that ran has measured.
            let known = plans.entry(subject).or_insert(plan);
            if plan == Plan::Run {
                *known = plan;
            }
        }
        Ok(plans)
    }

    async fn segment_keys(&self) -> Result<HashMap<i64, SegmentKey>, StoreError> {
        let key = |row: &Row| {
            let (unit, check, manifest) = (row.try_get("unit")?, row.try_get("check_hash")?, row.try_get("manifest_hash")?);
            Ok((row.try_get("id")?, SegmentKey { unit, check, manifest }))
        };
        let rows = self.all("units of figures", || query("SELECT id, unit, check_hash, manifest_hash FROM basis"), key).await?;
        Ok(rows.into_iter().collect())
    }

    /// What people have said of a system and of all. Notes say nothing to a verdict; a node or a session is no metric.
    async fn annotations_of(&self, system: &str) -> Result<Vec<Annotation>, StoreError> {
        const ANNOTATIONS: &str = "SELECT kind, partition, environ, name, variable, from_night, until, reason FROM annotation
            WHERE (system IS NULL OR system = $1) AND node IS NULL AND session IS NULL ORDER BY id";
        let rows = self.all("annotations", || query(ANNOTATIONS).bind(system.to_owned()), annotation).await?;
        Ok(rows.into_iter().flatten().collect())
    }
}

/// So many nights have the values that a night looks at, of a metric that is measured in most nights.
const WINDOW: i32 = 100;

/// How many values of a metric before a night count.
fn num_usable(metric: &Metric, annotations: &[Annotation], before: Night) -> usize {
    let is_left_out = |night: Night| {
        let is_so =
            |one: &Annotation| one.kind == AnnotationKind::Maintenance && one.holds_in(night) && one.scope.covers(&metric.name);
        annotations.iter().any(is_so)
    };
    let counts = |value: &&Value| value.night < before && value.value.is_finite() && !is_left_out(value.night);
    metric.values.iter().filter(counts).count()
}

const METRICS: &str = "SELECT m.id, m.subject, m.variable, m.key, m.unit, m.direction, u.partition, u.environ, u.name
    FROM subject u JOIN metric m ON m.subject = u.id WHERE u.system = $1 ORDER BY u.partition, u.environ, u.name, m.id";

/// By the primary key of `night_figure`, for each metric of the system.
const FIGURES: &str = "SELECT f.metric, f.night, f.value, f.basis FROM subject u JOIN metric m ON m.subject = u.id
    JOIN night_figure f ON f.metric = m.id WHERE u.system = $1 AND f.night BETWEEN $2 AND $3";

fn night(row: &Row, column: &str) -> Result<Night, sqlx::Error> {
    Ok(Night(i32::try_from(row.try_get::<i64>(column)?).unwrap_or_default()))
}

fn metric(row: &Row) -> Result<(i64, Metric), sqlx::Error> {
    let (case, key): (String, String) = (row.try_get("name")?, row.try_get("key")?);
    let name = MetricName {
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        check: case.split(' ').next().unwrap_or_default().to_owned(),
        case,
        variable: row.try_get("variable")?,
        key: (!key.is_empty()).then_some(key),
    };
    let direction = row.try_get::<Option<String>>("direction")?.map(|_| decode::word(row, "direction")).transpose()?;
    let metric = Metric { id: row.try_get("id")?, name, unit: row.try_get("unit")?, direction, ..Metric::default() };
    Ok((row.try_get("subject")?, metric))
}

/// A night whose value is no number has none.
fn figure(row: &Row) -> Result<(i64, Night, f64, i64), sqlx::Error> {
    let night = Night(i32::try_from(row.try_get::<i64>(1)?).unwrap_or_default());
    Ok((row.try_get(0)?, night, row.try_get::<Option<f64>>(2)?.unwrap_or(f64::NAN), row.try_get(3)?))
}

/// `None`: a note.
fn annotation(row: &Row) -> Result<Option<Annotation>, sqlx::Error> {
    let word: String = row.try_get("kind")?;
    let Some((_, kind)) = AnnotationKind::WORDS.iter().find(|(known, _)| *known == word) else { return Ok(None) };
    let scope = Scope {
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        check: row.try_get("name")?,
        variable: row.try_get("variable")?,
    };
    let until = row.try_get::<Option<i64>>("until")?.map(|night| Night(i32::try_from(night).unwrap_or(i32::MAX)));
    Ok(Some(Annotation { kind: *kind, scope, from: night(row, "from_night")?, until, reason: row.try_get("reason")? }))
}
