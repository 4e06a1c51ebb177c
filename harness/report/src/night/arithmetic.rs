//! `muster night explain` and `muster night why`: how a verdict was reached.

use super::{SystemNight, case, effect, levels, long_date, odds, since};
use crate::text::{
    style::{Screen, Tone, one_line, wrapped},
    table::{Layout, left, right},
    words::counted,
};
use muster_core::{query::causes::FactChange, rules::perf::format_digits};
use muster_judge::{
    night::{Began, Change, ChangeState, Explanation, Side, Step, Verdict},
    stats::trend::Shape,
};
use std::fmt::Write;

/// The arithmetic of one metric. `explanation`: `None` if it has too few values.
pub fn explain(night: &SystemNight<'_>, place: usize, explanation: Option<&Explanation>, screen: &Screen) -> String {
    let mut text = heading(night, place, screen);
    let verdict = &night.verdicts.verdicts[place];
    let Some(explanation) = explanation else {
        let why = match verdict.changes.last().filter(|change| change.is_open()) {
            Some(change) => {
                format!("Too few of the values that showed {} are still stored: their sessions were pruned", change.id)
            }
            None => {
                format!("{} to compare: a verdict needs six, and ten to say what it would see", counted(verdict.nights, "value"))
            }
        };
        return text + &paragraph(&why, screen);
    };
    text += &paragraph(&segment(night, place, explanation), screen);
    text += &steps(&explanation.steps, &night.system.metrics[place].unit, screen);
    text + &paragraph(&sum(night, place, explanation), screen)
}

/// A change: what is known of it, and what moved with it.
pub fn why(night: &SystemNight<'_>, place: usize, change: &Change, facts: &[FactChange], screen: &Screen) -> String {
    let metric = &night.system.metrics[place];
    let mut text = heading(night, place, screen);
    let state = match change.state {
        ChangeState::Open => "open".to_owned(),
        ChangeState::Recovered { since, found } => format!("recovered since {since}, which was found on {found}"),
        ChangeState::Accepted { .. } => "accepted: its level is the new baseline".to_owned(),
        ChangeState::Dismissed { until, .. } => format!("dismissed: the values until {until} are left out"),
        ChangeState::Superseded { found } => format!("superseded on {found}: its level is not what is measured any more"),
    };
    let shape = match change.shape {
        None => "too early to say whether it is a step or a drift".to_owned(),
        Some(Shape::Step) => "a step: two levels describe it better than a line".to_owned(),
        Some(Shape::Drift) => "a drift: a line describes it better than two levels".to_owned(),
    };
    let rows = [
        ("level", levels(change, &metric.unit)),
        ("change", format!("{}, in brackets the 90 % interval", effect(change))),
        ("since", format!("{}, in brackets the nights that may be it", since(change))),
        ("evidence", format!("{} when it was found, on {}", odds(change.evidence), change.id.opened)),
        ("shape", shape),
        ("state", state),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<9} {}", one_line(&value));
    }
    let event = night.verdicts.events.iter().find(|event| event.metrics.contains(&place));
    if let Some(event) = event.filter(|event| event.metrics.len() > 1) {
        let _ =
            writeln!(text, "\n{} of {} moved together:", counted(event.metrics.len(), "metric"), counted(event.checks, "check"));
        for other in &event.metrics {
            let metric = &night.system.metrics[*other];
            let change = night.verdicts.verdicts[*other].change().map(effect).unwrap_or_default();
            let _ = writeln!(text, "  {}  {}  {change}", one_line(&case(night.system, metric)), one_line(&metric.name.label()));
        }
    }
    let _ = writeln!(text, "\nWhat else changed since then:");
    if facts.is_empty() {
        let _ = writeln!(text, "  nothing that is recorded");
    }
    for FactChange { fact, before, after } in facts {
        let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or("not recorded"));
        let _ = writeln!(text, "  {}", one_line(&format!("{fact}: {before} -> {after}")));
    }
    text
}

fn heading(night: &SystemNight<'_>, place: usize, screen: &Screen) -> String {
    let (metric, verdict) = (&night.system.metrics[place], &night.verdicts.verdicts[place]);
    let title = format!("{}  {}", one_line(&case(night.system, metric)), one_line(&metric.name.label()));
    let said = if metric.direction.is_none() { ", the variable says no direction: changed, never regressed" } else { "" };
    format!(
        "{} (metric {})\n{} on {}{said}\n\n",
        screen.paint.apply(Tone::Strong, title),
        metric.id,
        verdict.word,
        long_date(night.verdicts.night),
    )
}

fn segment(night: &SystemNight<'_>, place: usize, explanation: &Explanation) -> String {
    let began = match explanation.began {
        Began::First => "since the first night".to_owned(),
        Began::Anew(what) => format!("a new baseline, for {what} changed"),
        Began::With(id) => format!("since the change {id}"),
    };
    let first = explanation.first.map(|first| format!(" from {first} on")).unwrap_or_default();
    let left_out = match explanation.left_out.len() {
        0 => String::new(),
        count => format!("; {} left out by annotations", counted(count, "night")),
    };
    format!(
        "Evidence of {}. Values compared: {}{first}, {began}{left_out}. Baseline: {} before the most likely start, median {} {}.",
        long_date(explanation.night),
        counted(explanation.nights, "night"),
        counted(explanation.baseline.len(), "value"),
        format_digits(explanation.baseline_median, 4),
        night.system.metrics[place].unit
    )
}

fn steps(steps: &[Step], unit: &str, screen: &Screen) -> String {
    let rows: Vec<Vec<String>> = steps
        .iter()
        .map(|step| {
            vec![
                step.night.to_string(),
                format!("{} {}", format_digits(step.value, 4), one_line(unit)).trim_end().to_owned(),
                step.worse.to_string(),
                step.same.to_string(),
                format!("x {}", format_digits(step.factor, 3)),
            ]
        })
        .collect();
    let columns = [left("night"), right("value"), right("worse in the baseline"), right("earlier there"), right("says")];
    let layout = Layout::new(&columns, &rows);
    let lines: String = rows.iter().map(|row| layout.row(row, screen.paint, Tone::Plain)).collect();
    format!("\n{}{lines}\n", layout.head(screen.paint))
}

/// The part of the evidence for a constant metric that comes from others.
#[allow(clippy::float_cmp, reason = "a constant is exactly equal")]
fn of_constants(verdict: &Verdict, explanation: &Explanation) -> Option<f64> {
    let found = verdict.changes.iter().find(|change| change.id.opened == explanation.night);
    let said = found.map_or(verdict.evidence, |change| change.evidence) - explanation.evidence;
    let is_constant = explanation.baseline.iter().all(|(_, value)| *value == explanation.baseline_median);
    (is_constant && said > 0.001 * explanation.evidence).then_some(said)
}

fn sum(night: &SystemNight<'_>, place: usize, explanation: &Explanation) -> String {
    let (family, verdict) = (&night.verdicts.family, &night.verdicts.verdicts[place]);
    let side = match explanation.alternative.side {
        Side::Worse => "worse",
        Side::Better => "better",
    };
    let dips = match explanation.alternative.dips {
        0 => "no dip".to_owned(),
        count => counted(count, "dip"),
    };
    let is_tonight = explanation.night == night.verdicts.night;
    let how_much = if is_tonight { format!(" ({:.2})", family.autocorrelation) } else { String::new() };
    let tempered = if explanation.tempering < 1.0 {
        format!(", to the power {:.2} because nights resemble each other{how_much}", explanation.tempering)
    } else {
        String::new()
    };
    let needed = format_digits(explanation.needed_alone, 4);
    let needed = if is_tonight {
        format!("Alone, one of {} metrics needs {needed} ({} x {0})", family.metrics, format_digits(family.threshold, 3))
    } else {
        format!("Alone, a metric needed {needed} in that night")
    };
    let of_constants = of_constants(verdict, explanation)
        .map(|said| format!(" Other constant metrics of the system add {}.", format_digits(said, 4)))
        .unwrap_or_default();
    let smallest =
        verdict.smallest_step.map(|step| format!(" The smallest step that is seen within a week: {:.1} %.", 100.0 * step));
    format!(
        "Best explained by {} standard deviations {side} with {dips} in the baseline: the product is {}{tempered}. Over all starts and \
         alternatives M = {}.{of_constants} {needed}; with k metrics at least as likely, a k-th of it.{}",
        explanation.alternative.sigmas,
        format_digits(explanation.logarithm.exp(), 3),
        format_digits(explanation.evidence, 4),
        smallest.unwrap_or_default()
    )
}

fn paragraph(text: &str, screen: &Screen) -> String {
    wrapped(&one_line(text), screen.width.min(100)).into_iter().fold(String::new(), |text, line| text + &line + "\n")
}
