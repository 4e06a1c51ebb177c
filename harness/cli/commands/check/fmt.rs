//! `muster check fmt`: one layout for all check and site files.

use crate::{
    args::{Cli, FmtArgs},
    inputs::files,
    terminal::{Terminal, unwritten::Written},
};
use anyhow::Context;
use muster_core::decisions::pipeline::EXIT_USAGE;
use muster_text::{
    diagnostic::{FileId, Sources},
    format::{FormatError, format},
};
use std::{
    fs,
    io::{self, Read},
    path::Path,
};

#[derive(Default)]
struct Tally {
    sources: Sources,
    changed: Vec<String>,
    diagnostics: Vec<muster_text::diagnostic::Diagnostic>,
    not_understood: Vec<String>,
}

/// Formats files. With `--check` it only lists those that are not formatted.
pub fn fmt(cli: &Cli, args: &FmtArgs, terminal: Terminal) -> anyhow::Result<u8> {
    if args.paths == [Path::new("-")] {
        return filter(args.check, terminal);
    }
    let mut tally = Tally::default();
    for path in super::paths(&args.paths, cli) {
        for file in files::check_and_site_files("check fmt", &path)? {
            let text = files::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            if let Some(formatted) = tally.take(&files::shown(&file), &text)
                && !args.check
            {
                fs::write(&file, formatted).or_unwritten("the file", &file)?;
            }
        }
    }
    let verb = if args.check { "not formatted" } else { "formatted" };
    let lines = tally.changed.iter().map(|path| format!("{verb}: {path}\n"));
    terminal.print(&lines.collect::<String>());
    Ok(tally.end(args.check, terminal))
}

/// From standard input to standard output, for editors.
fn filter(check: bool, terminal: Terminal) -> anyhow::Result<u8> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
    let mut tally = Tally::default();
    let formatted = tally.take("standard input", &text);
    if !check && tally.diagnostics.is_empty() {
        terminal.print(formatted.as_deref().unwrap_or(&text));
    }
    Ok(tally.end(check, terminal))
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

    fn end(&self, check: bool, terminal: Terminal) -> u8 {
        terminal.diagnostics(&self.diagnostics, &self.sources);
        for path in &self.not_understood {
            terminal.note(&format!("error: {path}: {}", FormatError::NotUnderstood));
        }
        match (self.diagnostics.is_empty() && self.not_understood.is_empty(), check && !self.changed.is_empty()) {
            (false, _) => EXIT_USAGE,
            (true, is_untidy) => u8::from(is_untidy),
        }
    }
}
