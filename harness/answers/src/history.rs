//! Metrics over time.

use crate::{
    Asked, Unanswered,
    variables::{are_variables, is_variable},
};
use muster_core::{
    night::Night,
    query::{
        answers::{History, Mark, MarkKind},
        figures::Point,
        remarks::{Remark, RemarkKind},
        spec::{Filters, Selection},
    },
    rules::perf::{Bounds, format_number},
};
use muster_store::KnownMetric;
use muster_text::unit::Conversion;
use std::collections::BTreeSet;

/// At most this many metrics are read.
pub const MOST: usize = 200;

/// A choice of metrics for a history.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// The case, as it is typed. `filters` has it, too.
    pub case: &'a str,
    pub filters: Filters,
    /// The variables that are shown; none: all.
    pub variables: &'a [String],
}

/// Returns the figures of cases over the nights of a selection.
///
/// # Errors
/// [`Unanswered::Unknown`] if no figure is selected.
pub async fn history(asked: &Asked<'_>, shown: Shown<'_>, selection: &Selection) -> Result<Vec<History>, Unanswered> {
    let Shown { case, filters, variables } = shown;
    let metrics = asked.reader.metrics(&filters).await?;
    if metrics.is_empty() {
        asked.are_known(&filters).await?;
        let list = asked.reader.database().command("results list");
        return Unanswered::unknown(format!(
            "no stored case that matches `{case}` and the other filters has a figure: `{list}` shows sessions, and `show` their cases"
        ));
    }
    are_variables(case, variables, metrics.iter().map(|known| &known.metric))?;
    let metrics = metrics.into_iter().filter(|known| is_variable(&known.metric, variables));
    let sessions = asked.sessions(selection).await?;
    let nights = sessions.iter().filter_map(|session| session.night);
    let Some(nights) = nights.clone().min().zip(nights.max()) else {
        let rebuild = asked.reader.database().command("results rebuild");
        return Unanswered::unknown(format!(
            "no figure of `{selection}` has a night: `{rebuild}` places what an older muster has stored"
        ));
    };
    let ids: BTreeSet<&str> = sessions.iter().map(|session| session.session.id.0.as_str()).collect();
    let remarks = asked.reader.remarks().await?;
    let mut histories = Vec::new();
    for metric in metrics.take(MOST) {
        let mut points = asked.reader.history(&metric, nights).await?;
        points.retain(|point| ids.contains(point.session.as_str()));
        if !points.is_empty() {
            let changes = asked.reader.change_marks(&metric, &points).await?;
            histories.extend(of_points(&metric, points, &changes, &remarks));
        }
    }
    if histories.is_empty() {
        return Unanswered::unknown(format!("`{case}` has no figure in `{selection}`"));
    }
    Ok(histories)
}

/// Returns a history of each kind of unit: a chart has one axis. The last unit of the metric comes first.
fn of_points(known: &KnownMetric, points: Vec<Point>, changes: &[Mark], remarks: &[Remark]) -> Vec<History> {
    let by_unit = by_unit(points, &known.unit);
    by_unit.into_iter().map(|(unit, points)| of_unit(known, (unit, points), changes, remarks)).collect()
}

/// Returns points with values in a unit, and the unit. Those that measure something else are a group of their own.
fn by_unit(points: Vec<Point>, unit: &str) -> Vec<(String, Vec<Point>)> {
    let mut groups = vec![(unit.to_owned(), Vec::new())];
    for mut point in points {
        let own = point.basis.unit.clone();
        let found = groups.iter_mut().find_map(|group| Some((Conversion::between(&own, &group.0)?, group)));
        let Some((conversion, (_, points))) = found else {
            groups.push((own, vec![point]));
            continue;
        };
        let converted = |value: f64| conversion.apply(value);
        point.value = point.value.map(converted);
        point.bounds = point.bounds.map(|Bounds { reference, lower, upper }| Bounds {
            reference: converted(reference),
            lower: lower.map(converted),
            upper: upper.map(converted),
        });
        points.push(point);
    }
    groups.retain(|(_, points)| !points.is_empty());
    groups
}

fn of_unit(known: &KnownMetric, (unit, mut points): (String, Vec<Point>), changes: &[Mark], remarks: &[Remark]) -> History {
    let metric = known.metric.clone();
    let [first, last] = [points.first(), points.last()].map(|point| point.map_or(Night::default(), |point| point.night));
    let mut marks = marks(&points);
    marks.extend(changes.iter().filter(|mark| (first..=last).contains(&mark.night)).cloned());
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
    for point in &mut points {
        point.basis.unit.clone_from(&unit);
    }
    History { metric, unit, direction: known.direction, points, marks }
}

/// Marks where the reference or the check becomes another one.
fn marks(points: &[Point]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for pair in points.windows(2) {
        let [before, after] = pair else { continue };
        let mut mark = |kind, text| marks.push(Mark { night: after.night, kind, text });
        if before.bounds != after.bounds {
            mark(MarkKind::Reference, format!("{} -> {}", shown(before.bounds), shown(after.bounds)));
        }
        if let Some(what) = before.basis.difference(&after.basis) {
            let units = [&before.basis, &after.basis].map(|basis| if basis.unit.is_empty() { "none" } else { &basis.unit });
            let how = if units[0] == units[1] { String::new() } else { format!(": {} -> {}", units[0], units[1]) };
            mark(MarkKind::Redefined, format!("{what} has changed{how}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::query::figures::Basis;

    #[test]
    fn units_that_measure_the_same_are_converted_and_others_are_charts_of_their_own() {
        let point = |value: f64, unit: &str| Point {
            at: muster_text::time::Timestamp(0),
            night: Night(1),
            session: "s".into(),
            value: Some(value),
            bounds: Some(Bounds { reference: value, lower: None, upper: None }),
            basis: Basis { unit: unit.into(), ..Basis::default() },
            is_left_out: false,
        };
        let points = vec![point(1000.0, "GB/s"), point(40_000.0, "MB/s"), point(12.0, "us"), point(0.01, "ms")];
        let groups = by_unit(points, "GB/s");
        let shown: Vec<_> = groups
            .iter()
            .map(|(unit, points)| {
                let of = |point: &Point| (point.value, point.bounds.map(|bounds| bounds.reference));
                (unit.as_str(), points.iter().map(of).collect::<Vec<_>>())
            })
            .collect();
        let both = |value| (Some(value), Some(value));
        assert_eq!(shown, [("GB/s", vec![both(1000.0), both(40.0)]), ("us", vec![both(12.0), both(10.0)])]);
        assert_eq!(by_unit(vec![point(1.0, "us")], "GB/s").len(), 1, "no empty chart");
    }

    #[test]
    fn what_keeps_figures_from_being_compared_is_said() {
        let point = |unit: &str, check_hash: &str| Point {
            at: muster_text::time::Timestamp(0),
            night: Night(1),
            session: "s".into(),
            value: Some(1.0),
            bounds: None,
            basis: Basis { unit: unit.into(), check_hash: check_hash.into(), ..Basis::default() },
            is_left_out: false,
        };
        let points = [("", "a"), ("MB/s", "a"), ("GB/s", "b"), ("GB/s", ""), ("GB/s", "b"), ("GB/s", "c")];
        let texts: Vec<String> = marks(&points.map(|(unit, hash)| point(unit, hash))).into_iter().map(|mark| mark.text).collect();
        assert_eq!(texts, ["the unit has changed: none -> MB/s", "the unit has changed: MB/s -> GB/s", "the check has changed"]);
    }
}
