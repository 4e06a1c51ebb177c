//! Writes the results of a session: failures, retries, figures and a summary on stdout, reports in files.

use crate::{
    args::{self, Cli, PerformanceReport},
    reports::{
        files::{ReportFiles, annotations},
        stored,
    },
    terminal::{Terminal, unwritten::EXIT_UNWRITTEN},
};
use muster_core::{
    decisions::{attempts::Attempts, pipeline::EXIT_LOST},
    result::Session,
};
use muster_report::{Results, failure, performance, progress, retries, statistics, summary};

/// Prints and writes everything about a session that is over. The exit code is that of its cases.
/// As a test binary, a session in which nothing ran has only ignored tests, and ends well.
pub fn report(cli: &Cli, files: &ReportFiles, session: &Session, attempts: &Attempts, terminal: Terminal) -> u8 {
    let results = Results::of(session, attempts);
    let counts = results.counts();
    let is_ignored = cli.output.libtest.is_some() && !session.fail_on_skip && counts.skipped == counts.total;
    let code = match results.exit_code() {
        EXIT_LOST if is_ignored => 0,
        code => code,
    };
    let mut errors = files.write(&results);
    errors.extend(files.append_to_step_summary(&results).err());
    // With libtest's lines on stdout nothing else belongs there.
    let has_format = cli.output.format.is_some();
    if !has_format {
        terminal.print(&text(cli, files, &results, terminal));
    }
    if errors.is_empty() && terminal.level > -1 && !has_format {
        terminal.print(&format!("{}\n", files.places()));
    }
    for error in &errors {
        terminal.error(error);
    }
    let annotations = annotations(&results);
    if has_format {
        terminal.note(annotations.trim_end());
    } else {
        terminal.print(&annotations);
    }
    if code == 0 && !errors.is_empty() { EXIT_UNWRITTEN } else { code }
}

fn text(cli: &Cli, files: &ReportFiles, results: &Results<'_>, terminal: Terminal) -> String {
    let (screen, ended) = (terminal.screen(), results.session.ended.unwrap_or_default());
    let mut text = String::new();
    if terminal.level > -1 {
        text += &progress::ended(results, ended, &screen);
    }
    let mut parts = vec![failure::report(results, files.rerun_options(), &screen), retries::report(results, &screen)];
    if cli.reports.failure_stats {
        parts.push(statistics::report(results, &screen));
    }
    let figures = cli.output.performance_report.as_ref().map(|report| match report {
        PerformanceReport::Table(format) => Ok(performance::report(results, table_format(*format), &screen)?),
        PerformanceReport::Compared(with) => stored::report(cli, with, results.session, results.attempts(), terminal),
    });
    match figures {
        Some(Ok(table)) => parts.push(table),
        // How the session ended is shown all the same, and says how the command ends.
        Some(Err(error)) => terminal.error(&error),
        None => {}
    }
    for part in parts.iter().filter(|part| !part.is_empty()) {
        // Nothing comes before a table that is all there is: a tool reads it.
        if !text.is_empty() {
            text += "\n";
        }
        text += part;
    }
    text += &summary::kept(results, &screen);
    text += &summary::leftovers(results, &screen);
    if terminal.level > -2 {
        text += "\n";
        text += &summary::summary(results, ended);
    }
    text
}

fn table_format(format: args::TableFormat) -> performance::Format {
    match format {
        args::TableFormat::Pretty => performance::Format::Pretty,
        args::TableFormat::Plain => performance::Format::Plain,
        args::TableFormat::Csv => performance::Format::Csv,
    }
}
