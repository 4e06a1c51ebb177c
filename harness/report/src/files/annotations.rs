//! GitHub's workflow commands: a note at the line of the check for every case that is not fine. They are shown beside
//! the change that a pull request makes, and above the log.

use crate::{
    counts::{Results, is_excused, is_flaky},
    text::{secret::masked, style::one_line, words::what_happened},
};
use muster_core::{decisions::rounds::is_failure, result::CaseResult};
use std::fmt::Write;

/// GitHub shows so many of a kind for a step, and drops the rest without a word.
const SHOWN: usize = 10;

/// The place of a check, for GitHub: a path from the root of its repository, and a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub file: String,
    /// The line, from 1; `None` if it is not known.
    pub line: Option<u32>,
}

/// The commands for a session, a line each; empty if all is well. `position` says where a case's check is.
pub fn github(results: &Results<'_>, position: impl Fn(&CaseResult) -> Position) -> String {
    let mut text = String::new();
    let bad: Vec<_> = results.counting().iter().copied().filter(|case| is_failure(case)).collect();
    for (number, case) in bad.iter().enumerate() {
        if number + 1 == SHOWN && bad.len() > SHOWN {
            let _ = writeln!(text, "::error title=Muster::{}", data(&format!("... and {} more", bad.len() - number)));
            break;
        }
        let cause = case.cause.as_deref().unwrap_or("no cause was given");
        let message = format!("{}\n{}: {cause}", case.name, what_happened(case));
        command(&mut text, "error", &position(case), &title(case), &message);
    }
    let odd = results.counting().iter().copied().filter(|case| is_excused(case) || is_flaky(results, case));
    for case in odd.take(SHOWN) {
        let (word, why) = match &case.quarantine {
            Some(quarantine) if is_excused(case) => {
                let why = case.cause.as_deref().unwrap_or("no cause was given");
                ("QUARANTINE", format!("in quarantine until {}, {}: {why}", quarantine.until, quarantine.reason))
            }
            _ => ("FLAKY", format!("passed in attempt {} only", case.attempt)),
        };
        let message = format!("{}\n{why}", case.name);
        command(&mut text, "warning", &position(case), &format!("{word} {}", case.name.title()), &message);
    }
    text
}

fn title(case: &CaseResult) -> String {
    format!("{} {}", case.outcome.row().bracket, case.name.title())
}

fn command(text: &mut String, level: &str, at: &Position, title: &str, message: &str) {
    let line = at.line.map_or_else(String::new, |line| format!(",line={line}"));
    let (file, title) = (property(&at.file), property(title));
    let _ = writeln!(text, "::{level} file={file}{line},title={title}::{}", data(message));
}

/// What may follow the second `::`. A line end would end the command, and start another.
fn data(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(one_line).collect();
    masked(&lines.join("\n")).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What a property may contain: its separators are escaped too.
fn property(text: &str) -> String {
    data(&one_line(text)).replace(':', "%3A").replace(',', "%2C")
}
