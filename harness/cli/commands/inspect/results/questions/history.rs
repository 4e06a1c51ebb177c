//! `muster results history`: metrics over time.

use super::filters;
use crate::{
    args::{Cli, HistoryArgs},
    terminal::Terminal,
    wiring::asked::Asked,
};
use anyhow::{bail, ensure};
use muster_core::{
    case::matcher::Matcher,
    query::{
        answers::{History, Mark, MarkKind},
        figures::Point,
        remarks::{Remark, RemarkKind},
        spec::Selection,
    },
    rules::perf::{Bounds, format_number},
};
use muster_report::history::{self, CHARTS};
use muster_session::runtime;
use muster_store::KnownMetric;
use std::collections::BTreeSet;

/// So many histories are read at most: what is printed is a line each.
const MOST: usize = 200;

pub fn history(cli: &Cli, args: &HistoryArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let mut filters = filters(&args.filters)?;
    filters.checks.push(Matcher::parse(&args.case, false).map_err(anyhow::Error::msg)?);
    let selection = Selection::parse(args.period.as_deref().unwrap_or("now-365d:now"))?;
    let histories = runtime::build()?.block_on(async {
        let asked = Asked::open(cli).await?;
        let metrics = asked.reader.metrics(&filters).await?;
        let metrics = of_variable(metrics, args)?;
        let sessions = asked.sessions(&selection).await?;
        let nights = sessions.iter().filter_map(|session| session.night);
        let Some(nights) = nights.clone().min().zip(nights.max()) else {
            bail!("no figure of `{selection}` has a night: `muster results rebuild` places what an older muster has stored")
        };
        let ids: BTreeSet<&str> = sessions.iter().map(|session| session.session.id.0.as_str()).collect();
        let remarks = asked.reader.remarks().await?;
        let mut histories = Vec::new();
        for metric in metrics.into_iter().take(MOST) {
            let mut points = asked.reader.history(&metric, nights).await?;
            points.retain(|point| ids.contains(point.session.as_str()));
            if !points.is_empty() {
                let changes = asked.reader.change_marks(&metric).await?;
                histories.push(of_points(metric, points, changes, &remarks));
            }
        }
        ensure!(!histories.is_empty(), "`{}` has no figure in `{selection}`", args.case);
        anyhow::Ok(histories)
    })?;
    if args.json {
        terminal.print(&history::json(&histories)?);
    } else {
        terminal.print(&history::report(&histories, terminal.unicode, &terminal.screen()));
        if histories.len() > CHARTS && histories.len() == MOST {
            terminal.note(&format!("note: only the first {MOST} variables are shown: choose some by name, --var or --system"));
        }
    }
    Ok(0)
}

/// The metrics whose variable is asked for.
fn of_variable(metrics: Vec<KnownMetric>, args: &HistoryArgs) -> anyhow::Result<Vec<KnownMetric>> {
    ensure!(
        !metrics.is_empty(),
        "no stored case matches `{}`: `muster results list` shows sessions, and `show` their cases",
        args.case
    );
    let Some(variable) = &args.var else { return Ok(metrics) };
    let names: BTreeSet<String> = metrics.iter().map(|known| known.metric.variable.clone()).collect();
    let is_meant = |known: &KnownMetric| known.metric.variable == *variable || known.metric.label() == *variable;
    let meant: Vec<KnownMetric> = metrics.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        bail!("`{}` has no variable `{variable}`: it has {}", args.case, names.join(", "));
    }
    Ok(meant)
}

fn of_points(known: KnownMetric, mut points: Vec<Point>, changes: Vec<Mark>, remarks: &[Remark]) -> History {
    let KnownMetric { metric, unit, direction, .. } = known;
    let (first, last) = (points.first().map_or(0, |point| point.night), points.last().map_or(0, |point| point.night));
    let mut marks = marks(&points);
    marks.extend(changes.into_iter().filter(|mark| (first..=last).contains(&mark.night)));
    for remark in remarks.iter().filter(|remark| remark.is_about(&metric)) {
        for point in points.iter_mut().filter(|point| remark.covers(point.night)) {
            point.is_left_out |= remark.kind == RemarkKind::Maintenance;
        }
        if remark.from <= last && remark.until.is_none_or(|until| until >= first) {
            let text = format!("{}: {} ({})", remark.kind, remark.reason, remark.author);
            marks.push(Mark { night: remark.from.max(first), kind: MarkKind::Annotation, text });
        }
    }
    marks.sort_by_key(|mark| mark.night);
    History { metric, unit, direction, points, marks }
}

/// Where the reference or the check becomes another one.
fn marks(points: &[Point]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for pair in points.windows(2) {
        let [before, after] = pair else { continue };
        let mut mark = |kind, text| marks.push(Mark { night: after.night, kind, text });
        if before.bounds != after.bounds {
            mark(MarkKind::Reference, format!("{} -> {}", shown(before.bounds), shown(after.bounds)));
        }
        if before.basis != after.basis {
            let unit = if before.basis.unit == after.basis.unit {
                String::new()
            } else {
                format!(", its unit {} -> {}", before.basis.unit, after.basis.unit)
            };
            mark(MarkKind::Redefined, format!("the check has changed{unit}"));
        }
    }
    marks
}

/// `1900 (l:1805)`
fn shown(bounds: Option<Bounds>) -> String {
    let Some(Bounds { reference, lower, upper }) = bounds else { return "none".to_owned() };
    let side = |letter: char, bound: Option<f64>| bound.map(|bound| format!("{letter}:{}", format_number(bound)));
    let sides: Vec<String> = [side('l', lower), side('u', upper)].into_iter().flatten().collect();
    if sides.is_empty() { format_number(reference) } else { format!("{} ({})", format_number(reference), sides.join(", ")) }
}
