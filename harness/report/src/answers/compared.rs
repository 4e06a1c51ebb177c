//! `muster results compare`: what differs between two sets of figures, the worst first.

use crate::{
    RenderError,
    files::json,
    text::{
        number::{exact, number, percent},
        style::{Screen, Tone, folded, one_line, wrapped},
        table::{Column, Layout, left, right},
        words::counted,
    },
};
use muster_core::{
    query::{
        answers::{Compared, ComparedMetric, Difference, Method, SampleUnit, Sides, Summary},
        figures::Metric,
    },
    rules::perf::format_digits,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// So many variables without a claimed difference are shown unless all are asked for.
const OTHERS: usize = 10;

const COLUMNS: [Column; 6] = [left("variable"), right("old"), right("new"), left("unit"), right("diff %"), left("verdict")];

/// A table, and below it how the verdicts were reached. `all`: also every variable without a difference.
pub fn report(compared: &Compared, sides: &Sides, all: bool, screen: &Screen) -> String {
    let mut text = heading(sides, screen);
    let others = compared.rows.iter().filter(|row| !is_always_shown(row)).count();
    let hidden = if all { 0 } else { others.saturating_sub(OTHERS) };
    let mut left_of_others = others - hidden;
    let shown = compared.rows.iter().filter(|row| {
        let is_shown = is_always_shown(row) || left_of_others > 0;
        left_of_others -= usize::from(is_shown && !is_always_shown(row));
        is_shown
    });
    text += &table(&shown.collect::<Vec<_>>(), compared.method.sample, screen);
    if hidden > 0 {
        let _ = writeln!(text, "... and {hidden} more without a difference: --all shows them");
    }
    text.push('\n');
    text += &counts(&compared.rows);
    text + &method(&compared.method, screen)
}

fn heading(sides: &Sides, screen: &Screen) -> String {
    let side = |text: &str, sessions| format!("{} ({})", one_line(text), counted(sessions, "session"));
    let (old, new) = (side(&sides.old, sides.sessions.0), side(&sides.new, sides.sessions.1));
    format!("{} {old}\n{} {new}\n\n", screen.paint.apply(Tone::Strong, "old:"), screen.paint.apply(Tone::Strong, "new:"))
}

/// Whether a row says more than that nothing was found.
fn is_always_shown(row: &ComparedMetric) -> bool {
    match row.difference {
        Difference::Regressed | Difference::Changed | Difference::Vanished | Difference::New | Difference::Improved => true,
        Difference::TooFew | Difference::Steady => false,
    }
}

/// The case as a heading, its variables below, each with a line about its samples.
fn table(rows: &[&ComparedMetric], sample: SampleUnit, screen: &Screen) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let mut layout = Layout::new(&COLUMNS, &cells);
    layout.fit(screen.width);
    let mut text = layout.head(screen.paint);
    let mut before: Option<&Metric> = None;
    for (row, cells) in rows.iter().zip(&cells) {
        if !before.is_some_and(|before| is_same_case(before, &row.metric)) {
            let _ = writeln!(text, "{}", screen.paint.apply(Tone::Strong, case_of(&row.metric)));
        }
        text += &layout.row(cells, screen.paint, tone(row.difference));
        text += &screen.paint.apply(Tone::Faint, about_samples(row, sample));
        text.push('\n');
        before = Some(&row.metric);
    }
    text + &layout.rule()
}

fn is_same_case(a: &Metric, b: &Metric) -> bool {
    a.case == b.case && a.place() == b.place()
}

/// `triad %size=2G @eidf:gpu+default`
pub(super) fn case_of(metric: &Metric) -> String {
    format!("{} @{}", one_line(&metric.case), one_line(&metric.place()))
}

fn cells(row: &ComparedMetric) -> Vec<String> {
    let median = |side: Option<Summary>| side.map_or_else(|| "-".to_owned(), |summary| number(summary.median));
    vec![
        format!("  {}", one_line(&row.metric.label())),
        median(row.old),
        median(row.new),
        one_line(&row.unit).into_owned(),
        row.effect.map_or_else(String::new, |effect| percent(effect * 100.0)),
        row.difference.as_str().to_owned(),
    ]
}

/// `14 and 14 nights, spread 0.8 % and 0.9 %, p = 2.4e-6`
fn about_samples(row: &ComparedMetric, sample: SampleUnit) -> String {
    let sides: Vec<&Summary> = row.old.iter().chain(&row.new).collect();
    let join = |parts: Vec<String>| parts.join(" and ");
    let mut text = match &sides[..] {
        [Summary { count: 1, .. }] => format!("    1 {sample}"),
        [Summary { count: 1, .. }, Summary { count: 1, .. }] => format!("    1 {sample} on each side"),
        _ => {
            let spread = |summary: &&Summary| format!("{} %", format_digits(summary.spread * 100.0, 2));
            let counts = join(sides.iter().map(|summary| summary.count.to_string()).collect());
            format!("    {counts} {sample}s, spread {}", join(sides.iter().map(spread).collect()))
        }
    };
    if let Some(p) = row.p {
        let _ = write!(text, ", p = {}", format_digits(p, 2));
    }
    text += if row.is_redefined { ", another check" } else { "" };
    text
}

fn tone(difference: Difference) -> Tone {
    match difference {
        Difference::Regressed => Tone::Bad,
        Difference::Changed | Difference::Vanished | Difference::New => Tone::Odd,
        Difference::Improved => Tone::Good,
        Difference::TooFew | Difference::Steady => Tone::Plain,
    }
}

const WORDS: [Difference; 7] = [
    Difference::Regressed,
    Difference::Changed,
    Difference::Vanished,
    Difference::New,
    Difference::Improved,
    Difference::TooFew,
    Difference::Steady,
];

/// `212 variables: 3 regressed, 2 new, ...`
fn counts(rows: &[ComparedMetric]) -> String {
    let count = |word: Difference| rows.iter().filter(|row| row.difference == word).count();
    let parts: Vec<String> =
        WORDS.into_iter().filter(|word| count(*word) > 0).map(|word| format!("{} {word}", count(word))).collect();
    folded(&counted(rows.len(), "variable"), &parts, 80)
}

/// What the verdicts rest on.
fn method(method: &Method, screen: &Screen) -> String {
    let sample = match method.sample {
        SampleUnit::Run => "a sample is the figure of a run",
        SampleUnit::Night => "a sample is the median of a night",
    };
    let spread = "spread is the standard deviation over the median, from the median absolute deviation";
    wrapped(&format!("Method: {}. Here {sample}; {spread}.", method.text), screen.width.min(80)).join("\n") + "\n"
}

/// Renders the comparison for programs, every variable.
///
/// # Errors
/// A value that JSON has no form for.
pub fn json(compared: &Compared, sides: &Sides) -> Result<String, RenderError> {
    let Method { text, error_rate, min_effect, sample } = &compared.method;
    let summary = |side: Option<Summary>| {
        side.map(|side| json!({ "count": side.count, "median": side.median, "low": side.low, "high": side.high, "spread": side.spread }))
    };
    let rows: Vec<Value> = compared
        .rows
        .iter()
        .map(|row| {
            let metric = &row.metric;
            json!({
                "name": metric.case, "system": metric.system, "partition": metric.partition, "environ": metric.environ,
                "variable": metric.variable, "key": metric.key, "unit": row.unit, "direction": row.direction,
                "old": summary(row.old), "new": summary(row.new), "effect": row.effect, "p": row.p,
                "redefined": row.is_redefined, "verdict": row.difference, "method": text, "error_rate": error_rate,
            })
        })
        .collect();
    json::written(&json!({
        "old": sides.old, "old_sessions": sides.sessions.0, "new": sides.new, "new_sessions": sides.sessions.1,
        "sample": sample, "min_effect": min_effect, "variables": rows,
    }))
}

/// Renders the comparison as CSV (RFC 4180).
///
/// # Errors
/// A table that cannot be written.
pub fn csv(compared: &Compared) -> Result<String, RenderError> {
    use crate::text::csv_cells::{record, text_cell};
    const HEAD: [&str; 16] = [
        "name",
        "system",
        "partition",
        "environ",
        "pvar",
        "punit",
        "old_median",
        "new_median",
        "old_count",
        "new_count",
        "old_spread",
        "new_spread",
        "effect",
        "p",
        "verdict",
        "error_rate",
    ];
    let row = |row: &ComparedMetric| {
        let (metric, optional) = (&row.metric, |value: Option<f64>| value.map_or_else(String::new, exact));
        let count = |side: Option<Summary>| side.map_or(0, |side| side.count).to_string();
        [
            text_cell(&metric.case),
            text_cell(&metric.system),
            text_cell(&metric.partition),
            text_cell(&metric.environ),
            text_cell(&metric.label()),
            text_cell(&row.unit),
            optional(row.old.map(|side| side.median)),
            optional(row.new.map(|side| side.median)),
            count(row.old),
            count(row.new),
            optional(row.old.map(|side| side.spread)),
            optional(row.new.map(|side| side.spread)),
            optional(row.effect),
            optional(row.p),
            row.difference.as_str().to_owned(),
            exact(compared.method.error_rate),
        ]
    };
    record(std::iter::once(HEAD.map(str::to_owned)).chain(compared.rows.iter().map(row)))
}
