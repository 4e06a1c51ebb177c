//! The table of all figures. Every measured variable of every attempt has a row, new or old, passed or failed; what
//! has no figure is counted below.
//!
//! `pretty` is for eyes: one wide table where it fits, else one heading a case with its figures below. `plain` is for
//! `grep`: every cell in every line, never wrapped. `csv` is for programs: all digits, a fixed set of columns.

use crate::{
    RenderError,
    counts::Results,
    text::{
        csv_cells::{record, text_cell},
        number::{difference_of, exact, limits_of, number, percent},
        style::{Paint, Screen, Tone, folded, heading, one_line},
        table::{Column, Layout, left, right},
        words::{Origins, counted, verdict_tone, verdict_word},
    },
};
use muster_core::{
    result::{CaseResult, Session},
    rules::perf::Measurement,
};
use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table with lines, fitted to the screen.
    Pretty,
    Plain,
    /// RFC 4180.
    Csv,
}

/// The table of a session's figures, with a heading unless it is CSV.
pub fn report(results: &Results<'_>, format: Format, screen: &Screen) -> Result<String, RenderError> {
    let table = match format {
        Format::Csv => return csv(results),
        Format::Pretty => pretty(results, screen),
        Format::Plain => plain(results),
    };
    let title = screen.paint.apply(Tone::Strong, heading("PERFORMANCE REPORT", screen.width));
    Ok(format!("{title}\n\n{table}{}", last_lines(results, screen.width)))
}

const COLUMNS: [Column; 11] = [
    left("name"),
    left("sysenv"),
    left("node(s)"),
    left("pvar"),
    left("punit"),
    right("pval"),
    right("reference"),
    right("lower"),
    right("upper"),
    right("diff %"),
    left("result"),
];

/// A figure, whose it is, and where it comes from if that is a single section.
struct Figure<'a> {
    case: &'a CaseResult,
    measurement: &'a Measurement,
    origin: Option<String>,
}

fn figures<'a>(results: &Results<'a>) -> Vec<Figure<'a>> {
    let of_case = |case: &'a CaseResult| {
        let origins = Origins::of(&case.measurements);
        let figure = move |measurement| Figure { case, measurement, origin: origins.text(measurement) };
        case.measurements.iter().map(figure)
    };
    results.sorted().iter().copied().flat_map(of_case).collect()
}

impl Figure<'_> {
    /// A row of all eleven columns.
    fn row(&self) -> Vec<String> {
        let Self { case, measurement, origin } = self;
        let mut cells = vec![titled(case), one_line(&case.name.place()).into_owned()];
        cells.push(origin.clone().unwrap_or_else(|| nodes(case, ",")));
        cells.push(one_line(&measurement.label()).into_owned());
        cells.push(one_line(&measurement.unit).into_owned());
        cells.extend(numbers(measurement));
        cells
    }

    /// A row below its case's heading.
    fn short_row(&self) -> Vec<String> {
        let label = one_line(&self.measurement.label()).into_owned();
        let label = self.origin.as_ref().map_or(format!("  {label}"), |origin| format!("  {label} {origin}"));
        let [value, numbers @ ..] = numbers(self.measurement);
        [label, value, one_line(&self.measurement.unit).into_owned()].into_iter().chain(numbers).collect()
    }

    fn tone(&self) -> Tone {
        verdict_tone(&self.measurement.verdict)
    }
}

/// Value to result: the last six columns.
fn numbers(measurement: &Measurement) -> [String; 6] {
    let [reference, lower, upper] = limits_of(measurement).map(|limit| limit.map_or_else(String::new, number));
    [
        number(measurement.value),
        reference,
        lower,
        upper,
        difference_of(measurement).map_or_else(String::new, percent),
        verdict_word(&measurement.verdict).to_owned(),
    ]
}

fn titled(case: &CaseResult) -> String {
    let title = case.name.title();
    let name = one_line(&title);
    if case.attempt > 1 { format!("{name} (attempt {})", case.attempt) } else { name.into_owned() }
}

/// A case's nodes; many are only counted.
fn nodes(case: &CaseResult, between: &str) -> String {
    match case.nodes.len() {
        0..=2 => one_line(&case.nodes.join(between)).into_owned(),
        many => format!("{many} nodes"),
    }
}

fn plain(results: &Results<'_>) -> String {
    let rows: Vec<_> = figures(results).iter().map(Figure::row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let layout = Layout::new(&COLUMNS, &rows);
    let lines: String = rows.iter().map(|row| layout.row(row, Paint::OFF, Tone::Plain)).collect();
    layout.plain_head() + &lines + "\n"
}

fn pretty(results: &Results<'_>, screen: &Screen) -> String {
    let figures = figures(results);
    if figures.is_empty() {
        return String::new();
    }
    let mut rows: Vec<_> = figures.iter().map(Figure::row).collect();
    let layout = Layout::new(&COLUMNS, &rows);
    if layout.width() > screen.width {
        return grouped(&figures, screen);
    }
    blank_repetitions(&mut rows);
    let lines: String = rows.iter().zip(&figures).map(|(row, figure)| layout.row(row, screen.paint, figure.tone())).collect();
    layout.head(screen.paint) + &lines + &layout.rule() + "\n"
}

/// Says name, place and nodes only where they change.
fn blank_repetitions(rows: &mut [Vec<String>]) {
    for index in (1..rows.len()).rev() {
        let (before, row) = rows.split_at_mut(index);
        let (Some(before), Some(row)) = (before.last(), row.first_mut()) else { continue };
        for column in 0..3 {
            if before.get(column) != row.get(column) {
                break;
            }
            if let Some(cell) = row.get_mut(column) {
                cell.clear();
            }
        }
    }
}

/// For narrow screens: the case and its nodes as a heading, its figures below.
fn grouped(figures: &[Figure<'_>], screen: &Screen) -> String {
    let head = [left("pvar"), right("pval"), left("punit"), right("ref")];
    let columns: Vec<_> = head.into_iter().chain(COLUMNS.into_iter().skip(7)).collect();
    let rows: Vec<_> = figures.iter().map(Figure::short_row).collect();
    let mut layout = Layout::new(&columns, &rows);
    layout.fit(screen.width);
    let mut text = layout.head(screen.paint);
    let mut case_before = None;
    for (row, figure) in rows.iter().zip(figures) {
        if !case_before.is_some_and(|before| std::ptr::eq(before, figure.case)) {
            text += &group_heading(figure.case, screen);
        }
        text += &layout.row(row, screen.paint, figure.tone());
        case_before = Some(figure.case);
    }
    text + &layout.rule() + "\n"
}

fn group_heading(case: &CaseResult, screen: &Screen) -> String {
    let (name, mut place) = (titled(case), format!("@{}", one_line(&case.name.place())));
    if !case.nodes.is_empty() {
        let _ = write!(place, " on {}", nodes(case, ", "));
    }
    let fits = name.chars().count() + place.chars().count() < screen.width;
    format!("{}{}{place}\n", screen.paint.apply(Tone::Strong, name), if fits { " " } else { "\n  " })
}

/// How many figures there are, which cases have none, and what all have used.
fn last_lines(results: &Results<'_>, width: usize) -> String {
    let figures = results.attempts().iter().map(|case| case.measurements.len()).sum();
    let measured = results.attempts().iter().filter(|case| !case.measurements.is_empty());
    let measured: HashSet<_> = measured.map(|case| &case.name).collect();
    let mut without: BTreeMap<String, usize> = BTreeMap::new();
    for case in results.counting().iter().copied().filter(|case| !measured.contains(&case.name)) {
        *without.entry(one_line(&case.outcome.to_string()).into_owned()).or_default() += 1;
    }
    let mut text = format!("{} of {}\n", counted(figures, "figure"), counted(measured.len(), "case"));
    if !without.is_empty() {
        let words: Vec<_> = without.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let lead = format!("{} without figures", counted(without.values().sum(), "case"));
        text += &folded(&lead, &words, width.min(80));
    }
    let usage = results.usage();
    if !usage.is_empty() {
        let _ = writeln!(text, "{usage}");
    }
    text
}

/// The input of a row of the CSV table.
pub struct CsvRow<'a> {
    session: &'a Session,
    case: &'a CaseResult,
    figure: &'a Measurement,
}

impl CsvRow<'_> {
    /// The reference, the lower and the upper bound.
    fn limit(&self, which: usize) -> String {
        limits_of(self.figure)[which].map_or_else(String::new, exact)
    }
}

/// Writes the cell of one column.
type Cell = fn(&CsvRow<'_>) -> String;

/// The columns of the CSV table, each with the text of its cell: the eleven of the other formats, then what tells two
/// equal rows apart. New ones are only ever added at the end.
pub const CSV_COLUMNS: [(&str, Cell); 16] = [
    ("name", |row| text_cell(&row.case.name.display)),
    ("sysenv", |row| text_cell(&row.case.name.place())),
    ("nodes", |row| text_cell(&row.figure.node.clone().unwrap_or_else(|| row.case.nodes.join(",")))),
    ("pvar", |row| text_cell(&row.figure.label())),
    ("punit", |row| text_cell(&row.figure.unit)),
    ("pval", |row| exact(row.figure.value)),
    ("reference", |row| row.limit(0)),
    ("lower", |row| row.limit(1)),
    ("upper", |row| row.limit(2)),
    ("diff_percent", |row| difference_of(row.figure).map_or_else(String::new, exact)),
    ("result", |row| verdict_word(&row.figure.verdict).trim_matches('-').to_owned()),
    ("section", |row| text_cell(row.figure.section.as_deref().unwrap_or_default())),
    ("outcome", |row| text_cell(&row.case.outcome.to_string())),
    ("hash", |row| text_cell(&row.case.name.hash)),
    ("attempt", |row| row.case.attempt.to_string()),
    ("session", |row| text_cell(&row.session.id.0)),
];

fn csv(results: &Results<'_>) -> Result<String, RenderError> {
    let cells = |Figure { case, measurement, .. }: Figure<'_>| {
        let row = CsvRow { session: results.session, case, figure: measurement };
        CSV_COLUMNS.map(|(_, cell)| cell(&row))
    };
    let head = CSV_COLUMNS.map(|(name, _)| name.to_owned());
    record(std::iter::once(head).chain(figures(results).into_iter().map(cells)))
}
