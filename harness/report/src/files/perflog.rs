//! Perflogs: one CSV file a check that grows with every session, for spreadsheets and for whoever collects figures from
//! files. Every figure is a row of its own, so that a check with other figures tomorrow needs no other columns.
//!
//! The columns keep their meaning for ever: new ones are only added at the end, and a file goes on in the columns of its
//! own header ([`continued`]). This module says what the rows are; the command line appends them under a lock.

use crate::{
    RenderError,
    counts::Results,
    text::{
        csv_cells::{record, text_cell},
        number::{difference_of, exact},
        time::utc,
        words::verdict_word,
    },
};
use muster_core::{result::CaseResult, rules::perf::Measurement};
use std::collections::BTreeMap;

/// The columns. New ones are only ever added at the end.
pub const COLUMNS: [&str; 24] = [
    "finished",
    "session",
    "name",
    "hash",
    "system",
    "partition",
    "environ",
    "nodes",
    "num_tasks",
    "attempt",
    "outcome",
    "cause",
    "pvar",
    "key",
    "section",
    "node",
    "pval",
    "punit",
    "reference",
    "lower",
    "upper",
    "diff_percent",
    "result",
    "duration_s",
];

/// What is to be appended to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The file, under the folder of perflogs: `SYSTEM/PARTITION/CHECK.csv`.
    pub file: Vec<String>,
    /// Its rows, a cell a column of [`COLUMNS`].
    pub rows: Vec<Vec<String>>,
}

/// The rows of a session, by file. A case without figures has one row all the same: that it failed is part of the
/// history. What was restored from another session is in the files already, and what was skipped never ran.
pub fn additions(results: &Results<'_>) -> Vec<Addition> {
    let mut files: BTreeMap<Vec<String>, Vec<Vec<String>>> = BTreeMap::new();
    for case in results.sorted().into_iter().filter(|case| crate::counts::ran_here(case)) {
        let name = &case.name;
        let file = vec![folder(&name.system), folder(&name.partition), format!("{}.csv", folder(&name.check))];
        let rows = files.entry(file).or_default();
        if case.measurements.is_empty() {
            rows.push(row(results, case, None));
        }
        rows.extend(case.measurements.iter().map(|figure| row(results, case, Some(figure))));
    }
    files.into_iter().map(|(file, rows)| Addition { file, rows }).collect()
}

/// A name that is one component of a path, on any file system.
fn folder(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "_-+=@.".contains(c) { c } else { '_' }).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

fn row(results: &Results<'_>, case: &CaseResult, figure: Option<&Measurement>) -> Vec<String> {
    let name = &case.name;
    let mut cells = vec![
        utc(case.times.finished),
        text_cell(&results.session.id.0),
        text_cell(&name.display),
        text_cell(&name.hash),
        text_cell(&name.system),
        text_cell(&name.partition),
        text_cell(&name.environ),
        text_cell(&case.nodes.join(" ")),
        case.about.num_tasks.to_string(),
        case.attempt.to_string(),
        text_cell(&case.outcome.to_string()),
        text_cell(case.cause.as_deref().unwrap_or_default()),
    ];
    cells.extend(figure.map_or_else(|| vec![String::new(); 11], figure_cells));
    cells.push(exact(case.times.total().as_secs_f64()));
    cells
}

fn figure_cells(figure: &Measurement) -> Vec<String> {
    let bound = |bound: Option<f64>| bound.map_or_else(String::new, exact);
    let text = |text: Option<&str>| text_cell(text.unwrap_or_default());
    vec![
        text_cell(&figure.variable),
        text(figure.key.as_deref()),
        text(figure.section.as_deref()),
        text(figure.node.as_deref()),
        exact(figure.value),
        text_cell(&figure.unit),
        bound(figure.bounds.map(|bounds| bounds.reference)),
        bound(figure.bounds.and_then(|bounds| bounds.lower)),
        bound(figure.bounds.and_then(|bounds| bounds.upper)),
        difference_of(figure).map_or_else(String::new, exact),
        verdict_word(&figure.verdict).trim_matches('-').to_owned(),
    ]
}

/// How a file is gone on with, from its first line (without the line end; empty for a new file).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continued {
    /// It is new: a header first.
    New,
    /// Rows of so many cells: the columns that file began with. More than ours are left empty.
    With(usize),
    /// It is somebody else's.
    Foreign,
}

/// Looks at a file's first line.
pub fn continued(first_line: &str) -> Continued {
    let header = first_line.trim_start_matches('\u{feff}').trim_end();
    if header.is_empty() {
        return Continued::New;
    }
    let theirs: Vec<_> = header.split(',').map(|name| name.trim_matches('"')).collect();
    let agree = theirs.iter().zip(COLUMNS).all(|(theirs, ours)| *theirs == ours);
    // A handful of equal names is a coincidence.
    if agree && theirs.len() >= 12 { Continued::With(theirs.len()) } else { Continued::Foreign }
}

/// The bytes to append: RFC 4180, with a header for a new file. `None` if the file is somebody else's.
///
/// # Errors
/// A row that cannot be written.
pub fn appended(addition: &Addition, how: Continued) -> Result<Option<String>, RenderError> {
    let width = match how {
        Continued::New => COLUMNS.len(),
        Continued::With(width) => width,
        Continued::Foreign => return Ok(None),
    };
    let head = (how == Continued::New).then(|| COLUMNS.map(String::from).to_vec());
    let rows = addition.rows.iter().map(|row| {
        let mut row = row.clone();
        row.resize(width, String::new());
        row
    });
    record(head.into_iter().chain(rows)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_on_in_the_columns_it_began_with() {
        let header = COLUMNS.join(",");
        let older = COLUMNS[..20].join(",");
        let newer = format!("{header},colour");
        let swapped = header.replace("name,hash", "hash,name");
        for (first, how) in [
            ("", Continued::New),
            (header.as_str(), Continued::With(24)),
            (older.as_str(), Continued::With(20)),
            (newer.as_str(), Continued::With(25)),
            (swapped.as_str(), Continued::Foreign),
            ("finished,session", Continued::Foreign),
            ("result|job_completion_time|", Continued::Foreign),
        ] {
            assert_eq!(continued(first), how, "{first}");
        }
    }

    #[test]
    fn a_name_never_leaves_its_folder() {
        for (name, safe) in
            [("stream", "stream"), ("../x", "_.._x"), ("a/b", "a_b"), ("", "_"), (".hidden", "_.hidden"), ("a b", "a_b")]
        {
            assert_eq!(folder(name), safe);
        }
    }
}
