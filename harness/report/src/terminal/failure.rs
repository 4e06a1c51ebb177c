//! The failure report: for each case that is not fine everything that a person needs to go on, in one block.

use crate::{
    counts::Results,
    text::{
        command,
        secret::masked,
        style::{Screen, Tone, heading, one_line, sanitize, wrapped},
        words::{Origins, counted, failed_exits, figure, shortened, what_happened},
    },
};
use muster_core::result::{CaseResult, Outcome, Phase, Session};
use muster_text::time::format_duration;
use std::fmt::Write;

/// So many lines of a log are shown; progress bars with carriage returns can make one line into thousands.
const TAIL_LINES: usize = 20;
/// Where the values of a block begin.
const INDENT: usize = 21;

/// All blocks under a heading; empty if every case is fine. `rerun_options` are the options that the rerun commands
/// need to find the same site and checks, see [`command::rerun`].
pub fn report(results: &Results<'_>, rerun_options: &[String], screen: &Screen) -> String {
    let failures = results.counting().iter().copied().filter(|case| !case.outcome.is_fine());
    // After an interrupt most cases are of no interest: they never began, or nothing runs any more.
    let (failures, aborted): (Vec<_>, Vec<_>) =
        failures.partition(|case| case.outcome != Outcome::Abort || has_left_something(case));
    if failures.is_empty() && aborted.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", screen.paint.apply(Tone::Strong, heading("SUMMARY OF FAILURES", screen.width)));
    for (number, case) in failures.iter().enumerate() {
        if number > 0 {
            let _ = writeln!(text, "{}", "-".repeat(screen.width.min(80)));
        }
        let name = format!("{} /{}", one_line(&case.name.title()), one_line(&case.name.hash));
        let title = format!("FAILURE INFO for {name} ({}/{})", number + 1, failures.len());
        let _ = writeln!(text, "{}", screen.paint.apply(case.outcome.row().grade.into(), title));
        text += &block(case, results.session, rerun_options, screen);
    }
    if !aborted.is_empty() {
        let started = aborted.iter().filter(|case| !case.delete.is_empty()).count();
        let _ = match started {
            0 => writeln!(text, "{} aborted, nothing is left of them", counted(aborted.len(), "case")),
            1 => writeln!(text, "{} aborted; 1 had started, and its stage folder is kept", counted(aborted.len(), "case")),
            _ => writeln!(
                text,
                "{} aborted; {started} had started, and their stage folders are kept",
                counted(aborted.len(), "case")
            ),
        };
    }
    text + &"=".repeat(screen.width.min(80)) + "\n"
}

fn has_left_something(case: &CaseResult) -> bool {
    !case.leftovers.is_empty()
}

/// One case's block, without its title.
pub fn block(case: &CaseResult, session: &Session, rerun_options: &[String], screen: &Screen) -> String {
    let mut block = Block { text: String::new(), width: screen.width };
    let about = &case.about;
    block.prose("Description", &about.descr);
    block.line("Place", &format!("{} ({})", case.name.place(), about.scheduler));
    block.line("File", &about.file);
    block.line("Maintainers", &about.maintainers.join(", "));
    if let Some(identifier) = &case.identifier {
        block.line("Identifier", &format!("{identifier} (attempt {})", case.attempt));
    }
    block.prose("Nodes", &case.nodes.join(", "));
    if let Some(folder) = &case.folder {
        block.line("Stage folder", &folder.to_string_lossy());
    }
    if let Some(session) = &case.restored_from {
        block.line("Restored from", &session.0);
    }
    if let Some(quarantine) = &case.quarantine {
        block.prose("Quarantine", &format!("until {}: {}", quarantine.until, quarantine.reason));
    }
    block.line("Duration", &format_duration(case.times.total()));
    if !case.usage.is_empty() {
        block.prose("Usage", &case.usage.to_string());
    }
    block.line("Failing phase", case.phase.as_str());
    block.line("Outcome", &case.outcome.to_string());
    let reason = case.cause.as_deref().map_or("no cause was given".into(), masked);
    block.prose("Reason", &format!("{}: {reason}", what_happened(case)));
    block.list("Exits", &failed_exits(case));
    block.figures(case, screen);
    for warning in &case.warnings {
        block.prose("Warning", &masked(warning));
    }
    let log = case.log_tail.as_deref().unwrap_or_default();
    // Reports of ReFrame have no logs.
    if log.is_empty() && case.phase == Phase::Sanity && !session.is_of_reframe() {
        block.line("Log", "empty: the job printed nothing");
    }
    block.tail(log, screen);
    block.list("Look further", &case.look);
    block.list("Delete what was kept", &case.delete);
    block.list("Left behind", &case.leftovers);
    block.list("Rerun with", &[command::rerun_in(session, case, rerun_options)]);
    block.text
}

struct Block {
    text: String,
    width: usize,
}

impl Block {
    /// `  * Label:   value`, unless there is no value.
    fn line(&mut self, label: &str, value: &str) {
        if !value.trim().is_empty() {
            let _ = writeln!(self.text, "{:<INDENT$}{}", format!("  * {label}:"), one_line(value));
        }
    }

    /// The same with words that may go on in the next line.
    fn prose(&mut self, label: &str, value: &str) {
        let lines = wrapped(&one_line(value), self.width.saturating_sub(INDENT).max(20));
        self.line(label, lines.first().map_or("", String::as_str));
        for line in lines.iter().skip(1) {
            let _ = writeln!(self.text, "{:INDENT$}{line}", "");
        }
    }

    /// Lines of their own, never wrapped: they are there to be pasted.
    fn list(&mut self, label: &str, lines: &[String]) {
        if !lines.is_empty() {
            let _ = writeln!(self.text, "  * {label}:");
        }
        for line in lines {
            let _ = writeln!(self.text, "      {}", one_line(line));
        }
    }

    /// The figures that decided it.
    fn figures(&mut self, case: &CaseResult, screen: &Screen) {
        let bad = case.measurements.iter().filter(|figure| figure.verdict.is_bad());
        let origins = Origins::of(&case.measurements);
        let lines = shortened(bad.map(|one| figure(one, origins.text(one), screen.paint)).collect());
        if !lines.is_empty() {
            let _ = writeln!(self.text, "  * Figures out of bounds:");
        }
        for line in lines {
            // Made here and clean already: the colours must stay.
            let _ = writeln!(self.text, "      {}", line.trim_start_matches("P: ").trim_end());
        }
    }

    /// The last lines of the log.
    fn tail(&mut self, log: &str, screen: &Screen) {
        let log = masked(&sanitize(log)).into_owned();
        let lines: Vec<_> = log.trim_end().lines().collect();
        if lines.is_empty() {
            return;
        }
        let shown = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        let _ = writeln!(self.text, "  * Last lines of the log:");
        for line in shown {
            let line = format!("{} {line}", screen.paint.apply(Tone::Faint, "|"));
            let _ = writeln!(self.text, "      {}", line.trim_end());
        }
    }
}
