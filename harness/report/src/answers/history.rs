//! `muster results history`: a metric over time, as a chart of characters. The same with and without colours, and in a pipe.

use super::{
    compared::case_of,
    scale::{Rows, column},
};
use crate::{
    RenderError,
    files::json,
    text::{
        number::number,
        style::{Paint, Screen, Tone, one_line},
        table::{Layout, left, right},
        time::utc,
        words::counted,
    },
};
use muster_core::{
    night::Night,
    query::{
        answers::{History, Mark, MarkKind},
        figures::Point,
    },
    rules::perf::format_digits,
    stats::median,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write};

/// The rows of a chart.
const ROWS: usize = 12;
/// The most columns of the axis of values.
const AXIS: usize = 10;
/// More histories than this are a line each.
pub const CHARTS: usize = 3;

/// The characters of a chart.
struct Signs {
    value: char,
    median: char,
    left_out: char,
    reference: char,
    bound: char,
    change: char,
    axis: char,
    corner: char,
    floor: char,
    /// From low to high.
    heights: &'static [char],
}

const UNICODE: Signs = Signs {
    value: '·',
    median: '●',
    left_out: '×',
    reference: '─',
    bound: '┄',
    change: '│',
    axis: '┤',
    corner: '└',
    floor: '─',
    heights: &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
};

const ASCII: Signs = Signs {
    value: '.',
    median: 'o',
    left_out: 'x',
    reference: '-',
    bound: '~',
    change: '|',
    axis: '|',
    corner: '+',
    floor: '-',
    heights: &['_', '.', '-', '=', '*', '#'],
};

/// Up to three charts, or a line for each history.
pub fn report(histories: &[History], is_unicode: bool, screen: &Screen) -> String {
    let signs = if is_unicode { &UNICODE } else { &ASCII };
    if histories.len() > CHARTS {
        return lines(histories, signs, screen);
    }
    let charts: Vec<String> = histories.iter().map(|history| chart(history, signs, screen)).collect();
    charts.join("\n")
}

/// What lies in one cell, the most important last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Cell {
    #[default]
    Blank,
    Bound,
    Reference,
    Change,
    LeftOut,
    Value,
    Median,
}

impl Cell {
    fn sign(self, signs: &Signs) -> char {
        match self {
            Self::Blank => ' ',
            Self::Bound => signs.bound,
            Self::Reference => signs.reference,
            Self::Change => signs.change,
            Self::LeftOut => signs.left_out,
            Self::Value => signs.value,
            Self::Median => signs.median,
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Blank | Self::Value => Tone::Plain,
            Self::Bound | Self::Reference | Self::LeftOut => Tone::Faint,
            Self::Change => Tone::Odd,
            Self::Median => Tone::Strong,
        }
    }
}

fn chart(history: &History, signs: &Signs, screen: &Screen) -> String {
    let unit = one_line(&history.unit);
    let mut text =
        screen.paint.apply(Tone::Strong, format!("{}  {}", case_of(&history.metric), one_line(&history.metric.label())));
    let _ = writeln!(text, "{}", if unit.is_empty() { String::new() } else { format!(" in {unit}") });
    let limits = |point: &Point| {
        let bounds = point.bounds;
        [point.value, bounds.map(|b| b.reference), bounds.and_then(|b| b.lower), bounds.and_then(|b| b.upper)]
            .into_iter()
            .flatten()
    };
    let rows = Rows::over(history.points.iter().flat_map(limits), ROWS);
    let (Some(rows), Some(first), Some(last)) = (rows, history.points.first(), history.points.last()) else {
        return text + "no figure is a number\n";
    };
    let nights = (first.night, last.night);
    let columns = screen.width.saturating_sub(AXIS + 2).clamp(20, 120);
    let labels: Vec<String> = (0..ROWS).map(|row| number_of_width(rows.value(row))).collect();
    let grid = grid(history, rows, nights, columns);
    for (row, (label, cells)) in labels.iter().zip(&grid).enumerate() {
        let label = if row % 3 == 0 || row + 1 == ROWS { label.as_str() } else { "" };
        let _ = writeln!(text, "{label:>AXIS$} {}{}", signs.axis, painted(cells, signs, screen.paint));
    }
    let _ = writeln!(text, "{:>AXIS$} {}{}", "", signs.corner, signs.floor.to_string().repeat(columns));
    text += &marks_line(&history.marks, nights, columns);
    let (from, until) = (nights.0.to_string(), nights.1.to_string());
    let gap = (columns + 1).saturating_sub(from.len() + until.len());
    let _ = writeln!(text, "{:>AXIS$} {from}{}{until}", "", " ".repeat(gap));
    text += &legend(history, signs);
    text + &marks(&history.marks)
}

fn number_of_width(value: f64) -> String {
    format_digits(value, 4)
}

fn grid(history: &History, rows: Rows, (first, last): (Night, Night), columns: usize) -> Vec<Vec<Cell>> {
    let mut grid = vec![vec![Cell::Blank; columns]; ROWS];
    let mut put = |row: Option<usize>, column: usize, cell: Cell| {
        if let Some(old) = row.and_then(|row| grid.get_mut(row)).and_then(|row| row.get_mut(column)) {
            *old = cell.max(*old);
        }
    };
    let mut of_column: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for mark in history.marks.iter().filter(|mark| mark.kind == MarkKind::Change) {
        (0..ROWS).for_each(|row| put(Some(row), column(mark.night, first, last, columns), Cell::Change));
    }
    let mut band = vec![None; columns];
    for point in &history.points {
        let column = column(point.night, first, last, columns);
        if let Some(value) = point.value {
            put(rows.of(value), column, if point.is_left_out { Cell::LeftOut } else { Cell::Value });
            if !point.is_left_out {
                of_column.entry(column).or_default().push(value);
            }
        }
        if let Some(place) = band.get_mut(column) {
            *place = Some(point.bounds);
        }
    }
    // A reference holds until the next figure has another.
    let mut now = None;
    for (column, bounds) in band.into_iter().enumerate() {
        now = bounds.unwrap_or(now);
        if let Some(bounds) = now {
            put(rows.of(bounds.reference), column, Cell::Reference);
            for bound in [bounds.lower, bounds.upper].into_iter().flatten() {
                put(rows.of(bound), column, Cell::Bound);
            }
        }
    }
    for (column, values) in of_column {
        if let Some(median) = median(&values).filter(|_| values.len() > 1) {
            put(rows.of(median), column, Cell::Median);
        }
    }
    grid
}

/// A row of cells, those of one tone together.
fn painted(cells: &[Cell], signs: &Signs, paint: Paint) -> String {
    let end = cells.iter().rposition(|cell| *cell != Cell::Blank).map_or(0, |last| last + 1);
    let mut text = String::new();
    for run in cells[..end].chunk_by(|a, b| a.tone() == b.tone()) {
        let signs: String = run.iter().map(|cell| cell.sign(signs)).collect();
        text += &paint.apply(run.first().map_or(Tone::Plain, |cell| cell.tone()), signs);
    }
    text
}

/// The numbers of the marks below the columns in which they happened.
fn marks_line(marks: &[Mark], (first, last): (Night, Night), columns: usize) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let mut line = vec![' '; columns + 1];
    for (number, mark) in marks.iter().enumerate() {
        let place = column(mark.night, first, last, columns);
        // The first of several keeps the place; all are listed below.
        if let Some(cell) = line.get_mut(place + 1).filter(|cell| **cell == ' ') {
            *cell = letter(number);
        }
    }
    let line: String = line.into_iter().collect();
    format!("{:>AXIS$} {}\n", "", line.trim_end())
}

/// 1 to 9, then a to z, then `*`.
fn letter(number: usize) -> char {
    u32::try_from(number + 1).ok().and_then(|number| char::from_digit(number, 36)).unwrap_or('*')
}

fn legend(history: &History, signs: &Signs) -> String {
    let left_out = history.points.iter().filter(|point| point.is_left_out).count();
    let no_number = history.points.iter().filter(|point| !point.is_left_out && point.value.is_none()).count();
    let used = history.points.len() - left_out - no_number;
    let mut text = format!("{} value  {} median", signs.value, signs.median);
    if history.points.iter().any(|point| point.bounds.is_some()) {
        let _ = write!(text, "  {0}{0} reference  {1}{1} bounds", signs.reference, signs.bound);
    }
    let _ = write!(text, "\n{}", counted(used, "run"));
    if left_out > 0 {
        let _ = write!(text, ", {left_out} left out ({})", signs.left_out);
    }
    if no_number > 0 {
        let _ = write!(text, ", {no_number} without a number");
    }
    text + "\n"
}

fn marks(marks: &[Mark]) -> String {
    let mut text = String::new();
    for (number, mark) in marks.iter().enumerate() {
        let _ = writeln!(text, "{} {}  {:<10} {}", letter(number), mark.night, mark.kind.as_str(), one_line(&mark.text));
    }
    text
}

/// One line a history: how many runs, the median, the last value and its course.
fn lines(histories: &[History], signs: &Signs, screen: &Screen) -> String {
    let row = |history: &History| {
        let values: Vec<(Night, f64)> = history
            .points
            .iter()
            .filter(|point| !point.is_left_out)
            .filter_map(|point| Some((point.night, point.value?)))
            .collect();
        let all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        vec![
            format!("{}  {}", case_of(&history.metric), one_line(&history.metric.label())),
            all.len().to_string(),
            shown(median(&all)),
            shown(all.last().copied()),
            one_line(&history.unit).into_owned(),
            course(&values, signs),
        ]
    };
    let rows: Vec<Vec<String>> = histories.iter().map(row).collect();
    let mut layout =
        Layout::new(&[left("variable"), right("runs"), right("median"), right("last"), left("unit"), left("course")], &rows);
    layout.fit(screen.width);
    let mut text = layout.head(screen.paint);
    for row in &rows {
        text += &layout.row(row, screen.paint, Tone::Plain);
    }
    text += &layout.rule();
    let _ = writeln!(text, "{}: charts are drawn of at most {CHARTS} (--var, --system)", counted(rows.len(), "variable"));
    text
}

/// The medians of sixteen parts of the time, as heights.
fn course(values: &[(Night, f64)], signs: &Signs) -> String {
    const PARTS: usize = 16;
    let rows = Rows::over(values.iter().map(|(_, value)| *value), signs.heights.len());
    let (Some(rows), Some((first, _)), Some((last, _))) = (rows, values.first(), values.last()) else { return String::new() };
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); PARTS];
    for (night, value) in values {
        if let Some(part) = parts.get_mut(column(*night, *first, *last, PARTS)) {
            part.push(*value);
        }
    }
    let sign = |part: Vec<f64>| {
        let row = median(&part).and_then(|median| rows.of(median));
        row.and_then(|row| signs.heights.get(signs.heights.len() - 1 - row)).copied().unwrap_or(' ')
    };
    let text: String = parts.into_iter().map(sign).collect();
    text.trim_end().to_owned()
}

/// Renders the histories for programs.
///
/// # Errors
/// A value that JSON has no form for.
pub fn json(histories: &[History]) -> Result<String, RenderError> {
    let point = |point: &Point| {
        json!({
            "at": utc(point.at), "night": point.night, "session": point.session, "value": point.value,
            "reference": point.bounds.map(|b| b.reference), "lower": point.bounds.and_then(|b| b.lower),
            "upper": point.bounds.and_then(|b| b.upper), "unit": point.basis.unit, "left_out": point.is_left_out,
        })
    };
    let mark = |mark: &Mark| json!({ "night": mark.night, "kind": mark.kind, "text": mark.text });
    let all: Vec<Value> = histories
        .iter()
        .map(|history| {
            let metric = &history.metric;
            json!({
                "name": metric.case, "system": metric.system, "partition": metric.partition, "environ": metric.environ,
                "variable": metric.variable, "key": metric.key, "unit": history.unit, "direction": history.direction,
                "points": history.points.iter().map(point).collect::<Vec<_>>(),
                "marks": history.marks.iter().map(mark).collect::<Vec<_>>(),
            })
        })
        .collect();
    json::written(&all)
}
