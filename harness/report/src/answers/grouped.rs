//! ReFrame's tables over stored figures: grouped by columns, aggregated, of one set or of two next to each other.
//!
//! Figures are added one by one and only values are kept, so a table over many sessions needs the memory of its columns.

use crate::{
    RenderError,
    counts::is_excused,
    terminal::performance::Format,
    text::{
        csv_cells::{record, text_cell},
        number::{difference, difference_of, exact, limits_of, number, percent},
        style::{Screen, Tone, one_line},
        table::Layout,
    },
};
use muster_core::{
    query::spec::{Aggregation, Call, Columns, Function},
    result::{CaseResult, Session},
    rules::perf::Measurement,
    stats::{median, nearest_percentile},
};
use std::collections::{BTreeMap, BTreeSet};

/// What groups figures unless something else is said.
const GROUP_BY: [&str; 4] = ["name", "sysenv", "pvar", "punit"];

/// Columns that every figure has. A parameter or a session extra is a column by its name, too.
pub const COLUMNS: [&str; 36] = [
    "name",
    "basename",
    "unique_name",
    "sysenv",
    "system",
    "partition",
    "environ",
    "pvar",
    "pval",
    "punit",
    "pref",
    "plower",
    "pupper",
    "pdiff",
    "presult",
    "psamples",
    "job_nodelist",
    "num_nodes",
    "result",
    "hashcode",
    "num_tasks",
    "scheduler",
    "descr",
    "tags",
    "maintainers",
    "filename",
    "attempt",
    "section",
    "job_completion_time_unix",
    "session_uuid",
    "hostname",
    "user",
    "version",
    "workdir",
    "fail_phase",
    "fail_reason",
];

/// A figure and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    pub session: &'a Session,
    pub case: &'a CaseResult,
    pub measurement: &'a Measurement,
}

/// The columns and functions of a table.
#[derive(Debug, Clone)]
pub struct Question {
    group_by: Vec<String>,
    calls: Vec<Call>,
    /// Beside those: each with the side that it is shown for, if it is one.
    others: Vec<(String, Option<Side>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The groups of one set.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<Vec<String>, Group>,
    /// Every column that a figure has had.
    known: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Group {
    /// The values of each call's column, in order of time.
    values: Vec<Vec<String>>,
    /// The different values of each other column.
    others: Vec<BTreeSet<String>>,
    count: usize,
}

impl Question {
    pub fn new(aggregation: &Aggregation, columns: &Columns) -> Self {
        let group_by = aggregation.group_by.over(&GROUP_BY);
        let side = |name: String| match (name.strip_suffix("_L"), name.strip_suffix("_R")) {
            (Some(name), _) => (name.to_owned(), Some(Side::Left)),
            (_, Some(name)) => (name.to_owned(), Some(Side::Right)),
            (None, None) => (name, None),
        };
        let is_shown = |(name, _): &(String, _)| !group_by.contains(name) && name != "pval" && name != "pdiff";
        let others = columns.over(&[]).into_iter().map(side).filter(is_shown).collect();
        Self { calls: aggregation.calls.clone(), others, group_by }
    }

    /// # Errors
    /// A column that is neither every figure's nor one of `own`: names of parameters and of extras.
    pub fn is_known(&self, own: &BTreeSet<String>) -> Result<(), RenderError> {
        let Some(name) = self.unknown(own) else { return Ok(()) };
        let known = || COLUMNS.into_iter().chain(own.iter().map(String::as_str));
        let near = muster_text::diagnostic::nearest(name, known());
        let near = near.map_or_else(|| ".".to_owned(), |near| format!(": did you mean `{near}`?"));
        Err(RenderError::Column { name: name.to_owned(), near, known: known().collect::<Vec<_>>().join(", ") })
    }

    /// The columns that no figure has.
    fn unknown<'q>(&'q self, own: &BTreeSet<String>) -> Option<&'q str> {
        let named = self
            .group_by
            .iter()
            .chain(self.calls.iter().map(|call| &call.column))
            .chain(self.others.iter().map(|(name, _)| name));
        let is_known = |name: &str| COLUMNS.contains(&name) || own.contains(name);
        named.map(String::as_str).find(|name| !is_known(name))
    }
}

impl Groups {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The names of the parameters and extras that its figures have.
    pub fn own_columns(&self) -> &BTreeSet<String> {
        &self.known
    }

    /// Adds a figure. Those of a set come in order of time.
    pub fn add(&mut self, question: &Question, figure: Figure<'_>) {
        let own = figure.case.about.parameters.iter().chain(&figure.session.extras).map(|(name, _)| name);
        for name in own {
            if !self.known.contains(name) {
                self.known.insert(name.clone());
            }
        }
        let value = |name: &str| value(figure, name);
        let key = question.group_by.iter().map(|name| value(name)).collect();
        let group = self.groups.entry(key).or_insert_with(|| Group {
            values: vec![Vec::new(); question.calls.len()],
            others: vec![BTreeSet::new(); question.others.len()],
            count: 0,
        });
        group.count += 1;
        for (values, call) in group.values.iter_mut().zip(&question.calls) {
            values.push(value(&call.column));
        }
        for (values, (name, _)) in group.others.iter_mut().zip(&question.others) {
            values.insert(value(name));
        }
    }
}

/// The value of a column, as a file has it.
fn value(Figure { session, case, measurement }: Figure<'_>, name: &str) -> String {
    let [reference, lower, upper] = limits_of(measurement);
    let optional = |value: Option<f64>| value.map_or_else(String::new, exact);
    match name {
        "name" => case.name.title().into_owned(),
        "basename" | "unique_name" => case.name.check.clone(),
        "sysenv" => case.name.place(),
        "system" => case.name.system.clone(),
        "partition" => case.name.partition.clone(),
        "environ" => case.name.environ.clone(),
        "pvar" => measurement.label(),
        "pval" => exact(measurement.value),
        "punit" => measurement.unit.clone(),
        "pref" => optional(reference),
        "plower" => optional(lower),
        "pupper" => optional(upper),
        "pdiff" => optional(difference_of(measurement)),
        "presult" => measurement.verdict.word().to_owned(),
        "psamples" => "1".to_owned(),
        "job_nodelist" => measurement.node.clone().unwrap_or_else(|| case.nodes.join(",")),
        "num_nodes" => case.nodes.len().to_string(),
        "result" => {
            if is_excused(case) {
                "quarantine".to_owned()
            } else {
                case.outcome.row().word.to_owned()
            }
        }
        "hashcode" => case.name.hash.clone(),
        "num_tasks" => case.about.num_tasks.to_string(),
        "scheduler" => case.about.scheduler.to_string(),
        "descr" => case.about.descr.clone(),
        "tags" => case.about.tags.join(","),
        "maintainers" => case.about.maintainers.join(","),
        "filename" => case.about.file.clone(),
        "attempt" => case.attempt.to_string(),
        "section" => measurement.section.clone().unwrap_or_default(),
        "job_completion_time_unix" => case.times.finished.seconds().to_string(),
        "session_uuid" => session.id.0.clone(),
        "hostname" => session.host.clone(),
        "user" => session.user.clone(),
        "version" => session.version.clone(),
        "workdir" => session.workdir.to_string_lossy().into_owned(),
        "fail_phase" => {
            if case.outcome.is_fine() {
                String::new()
            } else {
                case.phase.to_string()
            }
        }
        "fail_reason" => case.cause.clone().unwrap_or_default(),
        name => {
            let mut own = case.about.parameters.iter().chain(&session.extras);
            own.find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
        }
    }
}

/// What a function makes of the values of a column; `None`: of these nothing.
fn applied(function: Function, values: &[String]) -> Option<String> {
    if function == Function::Count {
        return Some(values.len().to_string());
    }
    let numbers: Vec<f64> =
        values.iter().filter_map(|value| value.parse().ok()).filter(|number: &f64| !number.is_nan()).collect();
    if numbers.len() < values.len() && !values.iter().any(|value| value == "NaN") {
        return match function {
            Function::First => values.first().cloned(),
            Function::Last => values.last().cloned(),
            Function::Min => values.iter().min().cloned(),
            Function::Max => values.iter().max().cloned(),
            Function::Mean | Function::Median | Function::Std | Function::Sum | Function::Count | Function::Percentile(_) => None,
        };
    }
    number_of(function, &numbers).map(exact)
}

fn number_of(function: Function, values: &[f64]) -> Option<f64> {
    let count = f64::from(u32::try_from(values.len()).ok()?);
    let sum = values.iter().sum::<f64>();
    match function {
        Function::First => values.first().copied(),
        Function::Last => values.last().copied(),
        Function::Min => values.iter().copied().reduce(f64::min),
        Function::Max => values.iter().copied().reduce(f64::max),
        Function::Mean => (count > 0.0).then(|| sum / count),
        Function::Median => median(values),
        Function::Std => {
            let square = |value: &f64| (value - sum / count) * (value - sum / count);
            (count > 1.0).then(|| (values.iter().map(square).sum::<f64>() / (count - 1.0)).sqrt())
        }
        Function::Sum => Some(sum),
        Function::Count => Some(count),
        Function::Percentile(percent) => nearest_percentile(values, f64::from(percent) / 100.0),
    }
}

/// Two sets, or one, and what they are called.
#[derive(Debug, Clone, Copy)]
pub struct Sets<'a> {
    pub lhs: &'a Groups,
    pub rhs: Option<&'a Groups>,
    /// `lhs` and `rhs`
    pub terms: [&'a str; 2],
}

/// The table. A group that only one of the sets has is shown, too.
///
/// # Errors
/// A column that no figure has, and a table that cannot be written.
pub fn table(question: &Question, sets: Sets<'_>, format: Format, screen: &Screen) -> Result<String, RenderError> {
    question.is_known(&sets.lhs.known.iter().chain(sets.rhs.iter().flat_map(|rhs| &rhs.known)).cloned().collect())?;
    let (titles, rows) = (titles(question, sets), rows(question, sets, format));
    if format == Format::Csv {
        return record(std::iter::once(titles).chain(rows));
    }
    let columns = titles.into_iter().map(|title| (is_number(&title), title)).map(|(is_number, title)| (title.into(), is_number));
    let layout = Layout::titled(columns.collect(), &rows);
    let lines: String = rows.iter().map(|row| layout.row(row, screen.paint, Tone::Plain)).collect();
    Ok(match format {
        Format::Plain => layout.plain_head() + &lines,
        Format::Pretty | Format::Csv => layout.head(screen.paint) + &lines + &layout.rule(),
    })
}

fn is_number(title: &str) -> bool {
    title.starts_with('p') && title.contains('(') || title == "num_tasks"
}

fn titles(question: &Question, sets: Sets<'_>) -> Vec<String> {
    let mut titles = question.group_by.clone();
    let sided = |title: &str, titles: &mut Vec<String>, only: Option<Side>| {
        if sets.rhs.is_none() {
            return titles.push(title.to_owned());
        }
        let of = [(Side::Left, sets.terms[0]), (Side::Right, sets.terms[1])];
        let wanted = of.iter().filter(|(side, _)| only.is_none_or(|only| only == *side));
        titles.extend(wanted.map(|(_, term)| format!("{title} ({term})")));
    };
    for call in &question.calls {
        sided(&call.to_string(), &mut titles, None);
    }
    for (name, side) in &question.others {
        sided(name, &mut titles, *side);
    }
    if sets.rhs.is_some() {
        titles.push("pdiff (%)".to_owned());
    }
    titles
}

fn rows(question: &Question, sets: Sets<'_>, format: Format) -> Vec<Vec<String>> {
    let keys: BTreeSet<&Vec<String>> =
        sets.lhs.groups.keys().chain(sets.rhs.into_iter().flat_map(|rhs| rhs.groups.keys())).collect();
    let shown = |value: &str| match format {
        Format::Csv => text_or_number(value),
        Format::Pretty | Format::Plain => {
            let short = value.parse::<f64>().ok().filter(|_| value.contains('.')).map(number);
            short.unwrap_or_else(|| one_line(value).into_owned())
        }
    };
    let row = |key: &Vec<String>| {
        let groups = [sets.lhs.groups.get(key), sets.rhs.and_then(|rhs| rhs.groups.get(key))];
        let wanted = if sets.rhs.is_some() { &groups[..] } else { &groups[..1] };
        let mut cells: Vec<String> = key.iter().map(|value| shown(value)).collect();
        let mut first = Vec::new();
        for (place, call) in question.calls.iter().enumerate() {
            for group in wanted {
                let value = group.and_then(|group| applied(call.function, &group.values[place]));
                if place == 0 {
                    first.push(value.as_ref().and_then(|value| value.parse::<f64>().ok()));
                }
                cells.push(value.map_or_else(|| NO_DATA.to_owned(), |value| shown(&value)));
            }
        }
        for (place, (_, side)) in question.others.iter().enumerate() {
            let sides = [Side::Left, Side::Right].into_iter().zip(wanted);
            for (_, group) in sides.filter(|(of, _)| side.is_none_or(|only| only == *of || sets.rhs.is_none())) {
                let value = group.map(|group| group.others[place].iter().map(String::as_str).collect::<Vec<_>>().join("|"));
                cells.push(value.map_or_else(|| NO_DATA.to_owned(), |value| shown(&value)));
            }
        }
        if let [lhs, rhs] = first[..] {
            let diff = lhs.zip(rhs).and_then(|(lhs, rhs)| difference(lhs, rhs));
            cells.push(diff.map_or_else(String::new, percent));
        }
        cells
    };
    keys.into_iter().map(row).collect()
}

/// What stands for a side that a group is not in.
const NO_DATA: &str = "<no data>";

/// A number stays one; a text is safe in a spreadsheet.
fn text_or_number(value: &str) -> String {
    if value.parse::<f64>().is_ok() { value.to_owned() } else { text_cell(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ReFrame 4.10.4 shows them.
    #[test]
    fn a_percentile_is_one_of_the_values_and_the_median_may_lie_between_two() {
        let values = ["10.0", "40.0", "20.0", "30.0"].map(str::to_owned);
        let of = |function| applied(function, &values).and_then(|text| text.parse().ok());
        let functions = [Function::Median, Function::Percentile(5), Function::Percentile(50), Function::Percentile(95)];
        assert_eq!(functions.map(of), [25.0, 10.0, 30.0, 40.0].map(Some));
    }
}
