//! Perflogs: one CSV file a check that grows with every session, for spreadsheets and for programs that collect figures from
//! files. Every figure is a row of its own, so that a check with other figures tomorrow needs no other columns.
//!
//! The columns keep their meaning for ever: new ones are only added at the end, and a file is continued in the columns of its
//! own header ([`continued`]). This module says what the rows are; the command line appends them under a lock.

use crate::{
    RenderError,
    counts::Results,
    text::{
        csv_cells::{record, text_cell},
        number::{difference_of, exact, limits_of},
        time::utc,
        words::verdict_word,
    },
};
use muster_core::{
    result::{CaseResult, Session},
    rules::perf::Measurement,
};
use std::collections::BTreeMap;

/// The input of a row.
pub struct PerflogRow<'a> {
    session: &'a Session,
    case: &'a CaseResult,
    /// `None`: the case has no figures.
    figure: Option<&'a Measurement>,
}

impl<'a> PerflogRow<'a> {
    fn text(&self, of: impl Fn(&'a Measurement) -> Option<&'a str>) -> String {
        text_cell(self.figure.and_then(of).unwrap_or_default())
    }

    fn number(&self, of: impl Fn(&Measurement) -> Option<f64>) -> String {
        self.figure.and_then(of).map_or_else(String::new, exact)
    }
}

/// Writes the cell of one column.
type Cell = fn(&PerflogRow<'_>) -> String;

/// The columns, each with the text of its cell. New ones are only ever added at the end.
pub const COLUMNS: [(&str, Cell); 24] = [
    ("finished", |row| utc(row.case.times.finished)),
    ("session", |row| text_cell(&row.session.id.0)),
    ("name", |row| text_cell(&row.case.name.display)),
    ("hash", |row| text_cell(&row.case.name.hash)),
    ("system", |row| text_cell(&row.case.name.system)),
    ("partition", |row| text_cell(&row.case.name.partition)),
    ("environ", |row| text_cell(&row.case.name.environ)),
    ("nodes", |row| text_cell(&row.case.nodes.join(" "))),
    ("num_tasks", |row| row.case.about.num_tasks.to_string()),
    ("attempt", |row| row.case.attempt.to_string()),
    ("outcome", |row| text_cell(&row.case.outcome.to_string())),
    ("cause", |row| text_cell(row.case.cause.as_deref().unwrap_or_default())),
    ("pvar", |row| row.text(|figure| Some(&figure.variable))),
    ("key", |row| row.text(|figure| figure.key.as_deref())),
    ("section", |row| row.text(|figure| figure.section.as_deref())),
    ("node", |row| row.text(|figure| figure.node.as_deref())),
    ("pval", |row| row.number(|figure| Some(figure.value))),
    ("punit", |row| row.text(|figure| Some(&figure.unit))),
    ("reference", |row| row.number(|figure| limits_of(figure)[0])),
    ("lower", |row| row.number(|figure| limits_of(figure)[1])),
    ("upper", |row| row.number(|figure| limits_of(figure)[2])),
    ("diff_percent", |row| row.number(difference_of)),
    ("result", |row| row.figure.map_or("", |figure| verdict_word(&figure.verdict)).trim_matches('-').to_owned()),
    ("duration_s", |row| exact(row.case.times.total().as_secs_f64())),
];

/// The text that is to be appended to one file.
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
    for case in results.sorted().iter().copied().filter(|case| crate::counts::ran_here(case)) {
        let name = &case.name;
        let file = vec![folder(&name.system), folder(&name.partition), format!("{}.csv", folder(&name.check))];
        let rows = files.entry(file).or_default();
        let row = |figure| {
            let row = PerflogRow { session: results.session, case, figure };
            COLUMNS.map(|(_, cell)| cell(&row)).to_vec()
        };
        if case.measurements.is_empty() {
            rows.push(row(None));
        }
        rows.extend(case.measurements.iter().map(|figure| row(Some(figure))));
    }
    files.into_iter().map(|(file, rows)| Addition { file, rows }).collect()
}

/// A name that is one component of a path, on any file system.
fn folder(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "_-+=@.".contains(c) { c } else { '_' }).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

/// The way in which a file is continued, from its first line (without the line end; empty for a new file).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continued {
    /// It is new: a header first.
    New,
    /// Rows of so many cells: the columns that file began with. More than ours are left empty.
    With(usize),
    /// Another program wrote it.
    Foreign,
}

/// Looks at a file's first line.
pub fn continued(first_line: &str) -> Continued {
    let header = first_line.trim_start_matches('\u{feff}').trim_end();
    if header.is_empty() {
        return Continued::New;
    }
    let theirs: Vec<_> = header.split(',').map(|name| name.trim_matches('"')).collect();
    let agree = theirs.iter().zip(COLUMNS).all(|(theirs, (ours, _))| *theirs == ours);
    // A handful of equal names is a coincidence.
    if agree && theirs.len() >= 12 { Continued::With(theirs.len()) } else { Continued::Foreign }
}

/// The bytes to append: RFC 4180, with a header for a new file. `None` if another program wrote the file.
///
/// # Errors
/// A row that cannot be written.
pub fn appended(addition: &Addition, how: Continued) -> Result<Option<String>, RenderError> {
    let width = match how {
        Continued::New => COLUMNS.len(),
        Continued::With(width) => width,
        Continued::Foreign => return Ok(None),
    };
    let head = (how == Continued::New).then(|| COLUMNS.map(|(name, _)| name.to_owned()).to_vec());
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
        let names = COLUMNS.map(|(name, _)| name);
        let (header, older) = (names.join(","), names[..20].join(","));
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
