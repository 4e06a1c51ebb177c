//! Reads the input of a night's verdict: metrics with their figures by night, the plan of the night, annotations.

use crate::{
    Reader, StoreError,
    alias::{self, ALIASES, Aliases},
    looked::{Known, Looked, WINDOW, unpack},
    read::{changes::Judged, decode},
    series::AllSeries,
    sql::{Row, Statement, query},
};
use muster_core::query::{causes, figures::Basis};
use muster_judge::night::{Change, Metric, MetricName, Night, Plan, Remark, System};
use muster_text::time::Timestamp;
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// The nights of a system that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNights {
    pub system: String,
    pub first: Night,
    /// The last one that has begun.
    pub last: Night,
    /// One that has not: a session was dated in the future.
    pub future: Option<Night>,
}

/// Clocks of machines differ by so much, in microseconds.
pub(super) const CLOCKS_DIFFER: i64 = 5 * 60 * 1_000_000;

/// The progress of a night.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NightProgress {
    pub is_running: bool,
    /// Cases with a result, and all of its sessions.
    pub ended: usize,
    pub cases: usize,
}

impl Reader {
    /// The systems that have nights which have begun, by name.
    pub async fn nights(&self, now: Timestamp) -> Result<Vec<StoredNights>, StoreError> {
        const NIGHTS: &str = "SELECT system, min(night) AS first, max(CASE WHEN begins <= $1 THEN night END) AS last,
            max(CASE WHEN begins > $1 THEN night END) AS future FROM night GROUP BY system
            HAVING min(begins) <= $1 ORDER BY system";
        let decode = |row: &Row| {
            let (first, last, future) = (row.try_get("first")?, row.try_get("last")?, row.try_get("future")?);
            Ok(StoredNights { system: row.try_get("system")?, first, last, future })
        };
        self.all("nights", || query(NIGHTS).bind(now.0.saturating_add(CLOCKS_DIFFER)), decode).await
    }

    /// Returns the progress of a night of a system.
    pub async fn night_progress(&self, system: &str, at: Night) -> Result<NightProgress, StoreError> {
        const STATE: &str = "SELECT state FROM night WHERE system = $1 AND night = $2";
        const CASES: &str = r#"SELECT count(*) AS cases, count(a."case") AS ended FROM session s JOIN "case" c ON c.session = s.number
            LEFT JOIN (SELECT DISTINCT "case" FROM attempt) a ON a."case" = c.id WHERE c.system = $1 AND s.night = $2"#;
        let bound = |text: &'static str| query(text).bind(system.to_owned()).bind(at);
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

    /// Returns the facts of the sessions of the last night with some, up to this one: versions, hashes. Where they differ, all.
    pub async fn night_facts(&self, system: &str, at: Night) -> Result<BTreeMap<String, String>, StoreError> {
        const SESSIONS: &str = "SELECT version, facts FROM session WHERE system = $1 AND night =
            (SELECT max(night) FROM session WHERE system = $1 AND night <= $2)";
        let statement = || query(SESSIONS).bind(system.to_owned()).bind(at);
        let session = |row: &Row| {
            let facts: BTreeMap<String, String> = decode::json(row, "facts")?;
            Ok((row.try_get::<String>("version")?, facts))
        };
        let mut all = Vec::new();
        for (version, facts) in self.all("facts of a night", statement, session).await? {
            all.extend(facts);
            all.push(("muster".to_owned(), version));
        }
        Ok(causes::together(all))
    }

    /// Returns the input of the verdicts on a system's nights from `first` to `last`, both included, with the plan of the last:
    /// `changes` are those that were found before, and each metric has the values that these nights look at.
    pub async fn judged_system(
        &self,
        system: &str,
        (first, last): (Night, Night),
        changes: &HashMap<i64, Vec<Change>>,
        judged: Judged,
    ) -> Result<Looked, StoreError> {
        let start = first.before(WINDOW);
        let packed = match judged.until {
            Some(until) if until <= last => {
                let packed = self.packed(system, judged).await?.filter(|packed| packed.since <= start);
                packed.map(|packed| (packed.by_metric, until))
            }
            _ => None,
        };
        let keys = self.segment_keys().await?;
        let mut read = self.planned_metrics(system, last).await?;
        let mut known = vec![Known { since: start, bases: Vec::new() }; read.metrics.len()];
        for metric in &mut read.metrics {
            metric.changes = changes.get(&metric.id).cloned().unwrap_or_default();
        }
        let mut from = start;
        if let Some((by_metric, until)) = packed {
            let others = unpack(by_metric, (&mut read.metrics, &mut known), &keys);
            if !others.is_empty() {
                // Nobody looked at these: they were not measured for long, or had no verdicts.
                let text = figures_of(others.into_iter());
                let statement = || query(AssertSqlSafe(text.clone())).bind(start).bind(until);
                self.add_figures((&mut read.metrics, &mut known), &keys, statement, |_| Night::MAX).await?;
            }
            from = until.plus_days(1);
        }
        let statement = || query(FIGURES).bind(system.to_owned()).bind(from).bind(last);
        self.add_figures((&mut read.metrics, &mut known), &keys, statement, |_| Night::MAX).await?;
        let mut looked = Looked { system: read, known, start };
        looked.drop_unmeasured();
        self.add_older(&mut looked, &keys, first).await?;
        Ok(looked)
    }

    /// Leaves each metric the values that are needed of it, and reads those that are missing: of metrics that are not measured in most
    /// nights, or whose changes began earlier.
    async fn add_older(&self, looked: &mut Looked, keys: &HashMap<i64, Basis>, first: Night) -> Result<(), StoreError> {
        let oldest = Night::MIN;
        let latest = looked.known.iter().map(|known| known.since).max().unwrap_or(oldest);
        if latest == oldest || self.nights_between(&looked.system.name, oldest, latest.before(1)).await?.is_empty() {
            looked.known.iter_mut().for_each(|known| known.since = oldest);
        }
        let needed = looked.needed(first);
        let Looked { system, known, .. } = &mut *looked;
        let missing: Vec<usize> = (0..needed.len()).filter(|place| needed[*place] < known[*place].since).collect();
        if let Some(from) = missing.iter().map(|place| needed[*place]).min() {
            let text = figures_of(missing.iter().map(|place| system.metrics[*place].id));
            let statement = || query(AssertSqlSafe(text.clone())).bind(from).bind(latest.before(1));
            self.add_figures((&mut system.metrics, known), keys, statement, |known| known.since).await?;
            for place in missing {
                known[place].since = from;
            }
        }
        looked.drop_unneeded(first);
        Ok(())
    }

    /// What the last judged night has looked at, if history is still as it was.
    async fn packed(&self, system: &str, judged: Judged) -> Result<Option<AllSeries>, StoreError> {
        const PACKED: &str = "SELECT p.data FROM judged j JOIN judged_series p ON p.system = j.system AND p.night = j.night
            WHERE j.system = $1 AND j.revision = $2";
        let statement = || query(PACKED).bind(system.to_owned()).bind(judged.revision);
        let unpacked = |row: &Row| {
            let mut part = AllSeries::default();
            Ok(part.add(row.try_get(0)?).map(|()| part))
        };
        let parts = self.all("figures of judged nights", statement, unpacked).await?;
        let parts: Option<Vec<AllSeries>> = parts.into_iter().collect();
        Ok(parts.and_then(|parts| parts.into_iter().reduce(AllSeries::and)))
    }

    /// The metrics of a system with their figures from night to night, both included, and the plan of the last.
    pub async fn night_system(&self, system: &str, first: Night, last: Night) -> Result<System, StoreError> {
        let mut read = self.planned_metrics(system, last).await?;
        let keys = self.segment_keys().await?;
        let mut known = vec![Known::default(); read.metrics.len()];
        let statement = || query(FIGURES).bind(system.to_owned()).bind(first).bind(last);
        self.add_figures((&mut read.metrics, &mut known), &keys, statement, |_| Night::MAX).await?;
        read.metrics.retain(|metric| !metric.values.is_empty());
        Ok(read)
    }

    /// The metrics of a system, without figures, with the plan of a night.
    async fn planned_metrics(&self, system: &str, night: Night) -> Result<System, StoreError> {
        let found = self.all("metrics", || query(METRICS).bind(system.to_owned()), metric).await?;
        let plans = self.plans(system, night).await?;
        let is_planned = !plans.is_empty();
        let planned = |(subject, metric): (i64, Metric)| {
            let plan = plans.get(&subject).copied().unwrap_or(if is_planned { Plan::Unplanned } else { Plan::Unknown });
            Metric { plan, ..metric }
        };
        let mut metrics: Vec<Metric> = found.into_iter().map(planned).collect();
        let quarantined = self.quarantined(system, night).await?;
        for metric in metrics.iter_mut().filter(|_| !quarantined.is_empty()) {
            let MetricName { partition, environ, case, .. } = &metric.name;
            metric.is_quarantined = quarantined.contains(&[partition, environ, case].map(Clone::clone));
        }
        Ok(System { name: system.to_owned(), metrics, annotations: self.annotations_of(system).await? })
    }

    /// Adds the values of nights before the one that `before` has for what is known of their metric.
    async fn add_figures(
        &self,
        (metrics, known): (&mut [Metric], &mut [Known]),
        keys: &HashMap<i64, Basis>,
        statement: impl Fn() -> Statement,
        before: impl Fn(&Known) -> Night,
    ) -> Result<(), StoreError> {
        let places: HashMap<i64, usize> = metrics.iter().enumerate().map(|(place, metric)| (metric.id, place)).collect();
        for (id, night, value, basis) in self.all("figures of nights", statement, figure).await? {
            let Some(place) = places.get(&id) else { continue };
            if night < before(&known[*place]) {
                known[*place].add(&mut metrics[*place], keys, (night, value, basis));
            }
        }
        Ok(())
    }

    /// The plan of a system for a night, by subject.
    async fn plans(&self, system: &str, night: Night) -> Result<HashMap<i64, Plan>, StoreError> {
        const PLANNED: &str = "SELECT p.subject, p.state FROM planned p JOIN subject u ON u.id = p.subject
            WHERE p.night = $1 AND u.system = $2";
        let decode = |row: &Row| Ok((row.try_get("subject")?, decode::word::<Plan>(row, "state")?));
        let statement = || query(PLANNED).bind(night).bind(system.to_owned());
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

    /// The cases that were in quarantine in the last night, up to one, in which they ran: partition, environ, and name after aliases.
    async fn quarantined(&self, system: &str, at: Night) -> Result<HashSet<[String; 3]>, StoreError> {
        // Few attempts are in quarantine, and they have an index: the order of the join begins with them.
        const QUARANTINED: &str = r#"SELECT DISTINCT c.partition, c.environ, c.display, s.night FROM attempt a
            CROSS JOIN "case" c CROSS JOIN session s WHERE c.id = a."case" AND s.number = c.session AND s.system = $1 AND s.night BETWEEN $3 AND $2 AND a.quarantine IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM session t JOIN "case" d ON d.session = t.number JOIN attempt b ON b."case" = d.id
            WHERE d.display = c.display AND d.system = c.system AND d.partition = c.partition AND d.environ = c.environ
            AND t.night > s.night AND t.night <= $2)"#;
        let statement = || query(QUARANTINED).bind(system.to_owned()).bind(at).bind(at.before(WINDOW));
        let case = |row: &Row| Ok(([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?], row.try_get(3)?));
        let cases: Vec<([String; 3], Night)> = self.all("cases in quarantine", statement, case).await?;
        let mut quarantined = HashSet::new();
        let aliases = if cases.is_empty() { Aliases::default() } else { self.new_names().await? };
        for ([partition, environ, name], night) in cases {
            let names = aliases.earlier(&name);
            let place = [system, &partition, &environ];
            if names.len() == 1 || !self.ran_between(&names, place, (night.plus_days(1), at)).await? {
                quarantined.insert([partition, environ, aliases.canonical(&name)]);
            }
        }
        Ok(quarantined)
    }

    /// Whether a case ran under one of these names, on a system, partition and environment, in nights of a range.
    async fn ran_between(&self, names: &[String], place: [&str; 3], nights: (Night, Night)) -> Result<bool, StoreError> {
        let text: Arc<str> = format!(
            r#"SELECT 1 FROM "case" c JOIN session s ON s.number = c.session JOIN attempt a ON a."case" = c.id
            WHERE c.display IN ({}) AND c.system = $1 AND c.partition = $2 AND c.environ = $3 AND s.night BETWEEN $4 AND $5 LIMIT 1"#,
            parameters(6, names.len())
        )
        .into();
        let statement = || {
            let statement =
                place.iter().fold(query(AssertSqlSafe(Arc::clone(&text))), |statement, text| statement.bind((*text).to_owned()));
            names.iter().fold(statement.bind(nights.0).bind(nights.1), |statement, name| statement.bind(name.clone()))
        };
        Ok(!self.all("later nights of a case", statement, |_| Ok(())).await?.is_empty())
    }

    pub(crate) async fn new_names(&self) -> Result<Aliases, StoreError> {
        Ok(Aliases::of(self.all("aliases", || query(ALIASES), alias::pair).await?))
    }

    /// Gives checks and cases that people have named the names that they have now.
    pub(super) async fn rename(&self, names: impl Iterator<Item = &mut String>) -> Result<(), StoreError> {
        let aliases = self.new_names().await?;
        names.for_each(|name| *name = aliases.canonical(name));
        Ok(())
    }

    async fn segment_keys(&self) -> Result<HashMap<i64, Basis>, StoreError> {
        let key = |row: &Row| {
            let (unit, check_hash, manifest_hash) =
                (row.try_get("unit")?, row.try_get("check_hash")?, row.try_get("manifest_hash")?);
            Ok((row.try_get("id")?, Basis { unit, check_hash, manifest_hash }))
        };
        let rows = self.all("units of figures", || query("SELECT id, unit, check_hash, manifest_hash FROM basis"), key).await?;
        Ok(rows.into_iter().collect())
    }

    /// What people have said of a system and of all. Notes say nothing to a verdict; a node or a session is no metric.
    async fn annotations_of(&self, system: &str) -> Result<Vec<Remark>, StoreError> {
        const ANNOTATIONS: &str = "SELECT a.*,
            coalesce((SELECT max(s.night) FROM session s WHERE s.system = $1 AND s.started <= a.created), from_night) AS said
            FROM annotation a WHERE (system IS NULL OR system = $1) AND node IS NULL AND session IS NULL AND kind <> 'note' ORDER BY id";
        self.renamed(|| query(ANNOTATIONS).bind(system.to_owned())).await
    }
}

/// `$6, $7`: so many parameters from a first one on.
pub(super) fn parameters(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// The statement for the figures of these metrics between two nights.
fn figures_of(metrics: impl Iterator<Item = i64>) -> String {
    let list = metrics.map(|metric| metric.to_string()).collect::<Vec<_>>().join(", ");
    format!("SELECT metric, night, value, basis FROM night_figure WHERE metric IN ({list}) AND night BETWEEN $1 AND $2")
}

/// Those that have verdicts.
const METRICS: &str = "SELECT m.*, u.system, u.partition, u.environ, u.name FROM subject u JOIN metric m ON m.subject = u.id
    WHERE u.system = $1 AND m.is_ignored = 0 ORDER BY u.partition, u.environ, u.name, m.id";

/// By the primary key of `night_figure`, for each metric of the system.
const FIGURES: &str = "SELECT f.metric, f.night, f.value, f.basis FROM subject u JOIN metric m ON m.subject = u.id
    JOIN night_figure f ON f.metric = m.id WHERE u.system = $1 AND f.night BETWEEN $2 AND $3";

fn metric(row: &Row) -> Result<(i64, Metric), sqlx::Error> {
    let (case, key): (String, String) = (row.try_get("name")?, row.try_get("key")?);
    let name = MetricName {
        system: row.try_get("system")?,
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        case,
        variable: row.try_get("variable")?,
        key: (!key.is_empty()).then_some(key),
    };
    let direction = row.try_get::<Option<String>>("direction")?.map(|_| decode::word(row, "direction")).transpose()?;
    let metric = Metric {
        id: row.try_get("id")?,
        name,
        unit: row.try_get("unit")?,
        direction,
        min_effect: row.try_get("min_effect")?,
        limit: row.try_get("step_limit")?,
        ..Metric::default()
    };
    Ok((row.try_get("subject")?, metric))
}

/// A night whose value is no number has none.
fn figure(row: &Row) -> Result<(i64, Night, f64, i64), sqlx::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get::<Option<f64>>(2)?.unwrap_or(f64::NAN), row.try_get(3)?))
}
