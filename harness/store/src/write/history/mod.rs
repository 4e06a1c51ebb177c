//! Writes an attempt to history: the figure of its run for each metric, and the figure of the night.
//!
//! ```text
//! CaseResult, measured -of_run-> Figure -Known: ids-> run_figure -of_runs-> night_figure      the first run_figure stays
//! ```
//! `results rebuild` goes the same way with what is stored, so it comes to the same rows.

mod described;
mod figure;
mod known;
mod night;
mod verdicts;

pub(crate) use described::write_nodes;
pub(crate) use known::{Described, Known, describe};
pub(crate) use verdicts::{forget, forget_all, forget_series};

use crate::{
    sql::{Connection, Dialect, Statement, query},
    write::statements::ForRows,
};
use muster_core::{
    case::CaseName,
    night::Night,
    result::{About, Counting, Purpose},
    rules::perf::{Bounds, Measurement},
};
use muster_text::time::Timestamp;
use night::{NightFigure, Run};
use sqlx::{AssertSqlSafe, Error};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A measured attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'m> {
    /// The number of its session.
    pub(crate) session: i64,
    pub(crate) night: Night,
    /// The number of its case.
    pub(crate) case: i64,
    pub(crate) name: &'m CaseName,
    pub(crate) about: &'m About,
    /// Of the attempt.
    pub(crate) number: u32,
    pub(crate) counting: Counting,
    pub(crate) purpose: Purpose,
    pub(crate) finished: Timestamp,
    pub(crate) measurements: &'m [Measurement],
}

impl Measured<'_> {
    /// 0 if later attempts at its case are only for people.
    fn repeat(&self) -> i64 {
        match self.counting {
            Counting::Last => 0,
            Counting::Every => self.number.into(),
        }
    }
}

/// A row of `run_figure`.
#[derive(Debug, Clone, Copy)]
struct FigureRow {
    metric: i64,
    night: Night,
    case: i64,
    repeat: i64,
    value: Option<f64>,
    basis: i64,
    session: i64,
    finished: Timestamp,
    bounds: Option<Bounds>,
}

/// The statements that write history.
pub(crate) struct HistoryStatements {
    run_figure: ForRows,
    new_night_figure: ForRows,
    night_figure: ForRows,
    planned: ForRows,
    state: ForRows,
}

/// How the runs of a night (`r`) follow one another, with their sessions (`s`). Numbers of cases are those of their writing: what is
/// imported later may have run earlier.
pub(crate) const IN_ORDER: &str = r#"s.started, s.id, r."case", r.repeat"#;

/// The figure of the first measured attempt stays.
const FIRST: &str = "ON CONFLICT DO NOTHING";

impl HistoryStatements {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let night = ["metric", "night", "value", "n", "spread", "flags", "basis"];
        let instead = "ON CONFLICT (metric, night) DO UPDATE SET value = excluded.value, n = excluded.n, spread = excluded.spread, \
                       flags = excluded.flags, basis = excluded.basis";
        let state = ") AS row WHERE planned.night = row.column1 AND planned.subject = row.column2 AND planned.node = 0 \
                     AND (planned.state = 'absent' OR row.column3 = 'run')";
        let run =
            ["metric", "night", r#""case""#, "repeat", "value", "basis", "session", "finished", "reference", "lower", "upper"];
        Self {
            run_figure: ForRows::insert(dialect, "run_figure", &run, FIRST),
            new_night_figure: ForRows::insert(dialect, "night_figure", &night, "ON CONFLICT DO NOTHING RETURNING metric, night"),
            night_figure: ForRows::insert(dialect, "night_figure", &night, instead),
            planned: ForRows::insert(dialect, "planned", &["night", "subject", "state"], FIRST),
            state: ForRows::new(dialect, "UPDATE planned SET state = row.column3 FROM (VALUES", 3, state),
        }
    }

    /// Writes what these attempts leave, in the order in which they ended.
    pub(crate) async fn write(
        &self,
        connection: &mut Connection,
        known: &mut Known,
        attempts: &[Measured<'_>],
    ) -> Result<(), Error> {
        let mut runs = Vec::new();
        for attempt in attempts.iter().filter(|attempt| attempt.purpose == Purpose::Run) {
            figures(connection, known, attempt, &mut runs).await?;
        }
        self.run_figure.execute(connection, &runs, bind_run).await?;
        self.nights(connection, &runs).await
    }

    /// The nights in which there are new runs. Most have one run of a metric: of those nothing is read.
    async fn nights(&self, connection: &mut Connection, runs: &[FigureRow]) -> Result<(), Error> {
        let mut firsts: BTreeMap<(i64, Night), NightFigure> = BTreeMap::new();
        for row in runs {
            let run = Run { value: row.value, basis: row.basis };
            if let Some(figure) = night::of_runs(&[run]) {
                firsts.entry((row.metric, row.night)).or_insert(figure);
            }
        }
        let rows: Vec<_> = firsts.into_iter().collect();
        let new = self.new_night_figure.fetch(connection, &rows, bind_night).await?;
        let new: BTreeSet<(i64, Night)> =
            new.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, Error>>()?;
        let several: BTreeSet<_> = several(runs);
        let again = rows.iter().map(|(key, _)| *key).filter(|key| !new.contains(key) || several.contains(key)).collect();
        self.nights_again(connection, &again).await
    }

    /// The figures of these metrics in these nights, from all of their runs.
    pub(crate) async fn nights_again(&self, connection: &mut Connection, nights: &BTreeSet<(i64, Night)>) -> Result<(), Error> {
        let mut rows = Vec::new();
        for (metric, night) in nights {
            let runs = format!(
                "SELECT r.value, r.basis FROM run_figure r LEFT JOIN session s ON s.number = r.session
                WHERE r.metric = $1 AND r.night = $2 ORDER BY {IN_ORDER}"
            );
            let runs = query(AssertSqlSafe(runs)).bind(metric).bind(*night).fetch_all(connection).await?;
            let run = |row: &crate::sql::Row| Ok::<_, Error>(Run { value: row.try_get(0)?, basis: row.try_get(1)? });
            let runs = runs.iter().map(run).collect::<Result<Vec<_>, _>>()?;
            rows.extend(night::of_runs(&runs).map(|figure| ((*metric, *night), figure)));
        }
        self.night_figure.execute(connection, &rows, bind_night).await
    }

    /// Writes down what a night is to run. What was planned before stays.
    pub(crate) async fn plan(
        &self,
        connection: &mut Connection,
        known: &mut Known,
        night: Night,
        cases: impl Iterator<Item = &CaseName>,
    ) -> Result<(), Error> {
        let mut subjects = BTreeSet::new();
        for name in cases {
            subjects.insert(known.subject(connection, name).await?);
        }
        let rows: Vec<_> = subjects.into_iter().map(|subject| (night, subject, "absent")).collect();
        self.planned.execute(connection, &rows, bind_state).await
    }

    /// Writes down what came of planned cases.
    pub(crate) async fn states(
        &self,
        connection: &mut Connection,
        known: &mut Known,
        states: &[(Night, &CaseName, &'static str)],
    ) -> Result<(), Error> {
        // An update from a list with a subject twice would take either.
        let mut last: HashMap<(Night, i64), &'static str> = HashMap::new();
        for (night, name, state) in states {
            let key = (*night, known.subject(connection, name).await?);
            let before = last.entry(key).or_insert(state);
            if *before != "run" {
                *before = state;
            }
        }
        let rows: Vec<_> = last.into_iter().map(|((night, subject), state)| (night, subject, state)).collect();
        self.state.execute(connection, &rows, bind_state).await
    }
}

/// The metrics and nights that have several of these runs.
fn several(runs: &[FigureRow]) -> BTreeSet<(i64, Night)> {
    let mut seen = BTreeSet::new();
    runs.iter().map(|row| (row.metric, row.night)).filter(|key| !seen.insert(*key)).collect()
}

async fn figures(
    connection: &mut Connection,
    known: &mut Known,
    attempt: &Measured<'_>,
    runs: &mut Vec<FigureRow>,
) -> Result<(), Error> {
    if attempt.measurements.is_empty() {
        return Ok(());
    }
    let Measured { session, night, case, about, finished, .. } = *attempt;
    let subject = known.subject(connection, attempt.name).await?;
    for figure in figure::of_run(attempt.measurements) {
        let now = Described::of(figure.variable, (figure.unit, figure.direction), about);
        let metric = known.metric(connection, subject, (figure.variable, figure.key), (now, night)).await?;
        let basis = known.basis(connection, [figure.unit, &about.check_hash, &about.manifest_hash]).await?;
        runs.push(FigureRow {
            metric,
            night,
            case,
            repeat: attempt.repeat(),
            value: figure.value,
            basis,
            session,
            finished,
            bounds: figure.bounds,
        });
    }
    Ok(())
}

/// The numbers of the nodes of a case.
pub(crate) async fn nodes<'n>(
    connection: &mut Connection,
    known: &mut Known,
    system: &str,
    names: impl Iterator<Item = &'n str>,
    at: Timestamp,
) -> Result<Vec<(&'n str, i64)>, Error> {
    let mut nodes = Vec::new();
    for name in names {
        nodes.push((name, known.node(connection, (system, name), at).await?));
    }
    Ok(nodes)
}

fn bind_run(statement: Statement, row: &FigureRow) -> Statement {
    let statement = statement.bind(row.metric).bind(row.night).bind(row.case).bind(row.repeat);
    let statement = statement.bind(row.value).bind(row.basis).bind(row.session).bind(row.finished.0);
    let (lower, upper) = (row.bounds.and_then(|bounds| bounds.lower), row.bounds.and_then(|bounds| bounds.upper));
    statement.bind(row.bounds.map(|bounds| bounds.reference)).bind(lower).bind(upper)
}

fn bind_night(statement: Statement, ((metric, night), figure): &((i64, Night), NightFigure)) -> Statement {
    let statement = statement.bind(*metric).bind(*night).bind(figure.value).bind(figure.n);
    statement.bind(figure.spread).bind(figure.flags).bind(figure.basis)
}

fn bind_state(statement: Statement, (night, subject, state): &(Night, i64, &'static str)) -> Statement {
    statement.bind(*night).bind(*subject).bind(*state)
}
