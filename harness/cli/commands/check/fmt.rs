//! `muster check fmt`: one layout for all check and site files.

use crate::{
    args::{Cli, FmtArgs},
    inputs::files,
    terminal::{Terminal, unwritten::Written},
};
use anyhow::Context;
use muster_core::decisions::pipeline::EXIT_USAGE;
use muster_host::replace::replace;
use muster_report::{Paint, style::Tone};
use muster_text::{
    diagnostic::{FileId, Sources},
    format::{FormatError, format},
};
use similar::TextDiff;
use std::{
    io::{self, Read},
    path::Path,
};

/// Lines around a change, as in other diffs.
const AROUND: usize = 3;

/// What becomes of a file that is not in order.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Write,
    List,
    Diff,
}

#[derive(Default)]
struct Tally {
    sources: Sources,
    changed: Vec<String>,
    diagnostics: Vec<muster_text::diagnostic::Diagnostic>,
    not_understood: Vec<String>,
}

/// Formats files. With `--check` it only lists those that are not formatted, with `--diff` it shows how they would change.
pub fn fmt(cli: &Cli, args: &FmtArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let how = match (args.diff, args.check) {
        (true, _) => How::Diff,
        (false, true) => How::List,
        (false, false) => How::Write,
    };
    if args.paths == [Path::new("-")] {
        return filter(how, terminal);
    }
    let mut tally = Tally::default();
    for path in super::paths(&args.paths, cli) {
        for file in files::check_and_site_files("check fmt", &path)? {
            let text = files::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            let shown = files::shown(&file);
            match (tally.take(&shown, &text), how) {
                (Some(formatted), How::Write) => replace(&file, "fmt", formatted).or_unwritten("the file", &file)?,
                (Some(formatted), How::Diff) => terminal.print(&diff(&shown, &text, &formatted, terminal)),
                _ => {}
            }
        }
    }
    let verb = if how == How::Write { "formatted" } else { "not formatted" };
    let lines: Vec<String> = tally.changed.iter().map(|path| format!("{verb}: {path}\n")).collect();
    if how != How::Diff {
        terminal.print(&lines.concat());
    }
    Ok(tally.end(how, terminal))
}

/// A diff that `patch` takes.
fn diff(path: &str, before: &str, after: &str, terminal: Terminal) -> String {
    let paint = Paint { color: terminal.color };
    let diff = TextDiff::from_lines(before, after).unified_diff().context_radius(AROUND).header(path, path).to_string();
    let painted = |line: &str| match line.chars().next() {
        Some('+') => paint.apply(Tone::Good, line),
        Some('-') => paint.apply(Tone::Bad, line),
        _ => line.to_owned(),
    };
    diff.lines().map(|line| painted(line) + "\n").collect()
}

/// From standard input to standard output, for editors.
fn filter(how: How, terminal: Terminal) -> anyhow::Result<u8> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
    let mut tally = Tally::default();
    let formatted = tally.take(files::STDIN_NAME, &text);
    match (&formatted, how) {
        (_, How::Write) if tally.diagnostics.is_empty() => terminal.print(formatted.as_deref().unwrap_or(&text)),
        (Some(formatted), How::Diff) => terminal.print(&diff(files::STDIN_NAME, &text, formatted, terminal)),
        _ => {}
    }
    Ok(tally.end(how, terminal))
}

impl Tally {
    /// The file in order, if it was not.
    fn take(&mut self, path: &str, text: &str) -> Option<String> {
        let file: FileId = self.sources.add(path, text);
        match format(file, text) {
            Ok(formatted) if formatted == text => None,
            Ok(formatted) => {
                self.changed.push(path.to_owned());
                Some(formatted)
            }
            Err(FormatError::Mistakes(mut mistakes)) => {
                self.diagnostics.append(&mut mistakes);
                None
            }
            Err(FormatError::NotUnderstood) => {
                self.not_understood.push(path.to_owned());
                None
            }
        }
    }

    fn end(&self, how: How, terminal: Terminal) -> u8 {
        terminal.diagnostics(&self.diagnostics, &self.sources);
        for path in &self.not_understood {
            terminal.note(&format!("error: {path}: {}", FormatError::NotUnderstood));
        }
        let is_untidy = how != How::Write && !self.changed.is_empty();
        match (self.diagnostics.is_empty() && self.not_understood.is_empty(), is_untidy) {
            (false, _) => EXIT_USAGE,
            (true, is_untidy) => u8::from(is_untidy),
        }
    }
}
