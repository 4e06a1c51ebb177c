//! The cases in quarantine: those of the site file, and those of `--quarantine`.

use crate::{
    args::is_dash,
    inputs::{files, selection::Selection},
};
use anyhow::{Context, bail};
use muster_check::site::quarantine::{self, Entry, List};
use muster_text::{
    decode::{Context as Decoding, Placeholders},
    diagnostic::{self, Sources},
    time::{Date, Timestamp},
    yaml,
};
use std::path::Path;

/// All entries, as they stand on the day of a session.
pub fn list(files: &[impl AsRef<Path>], selection: &Selection, started: Timestamp) -> anyhow::Result<List> {
    let mut entries = selection.system.quarantine.clone();
    for file in files {
        entries.extend(entries_of(file.as_ref())?);
    }
    Ok(List::new(entries, Date::of(started)))
}

/// The entries of one file.
pub fn entries_of(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let text = files::text_or_stdin(path).with_context(|| format!("--quarantine {} cannot be read", path.display()))?;
    let mut sources = Sources::default();
    let name = if is_dash(path) { files::STDIN_NAME.to_owned() } else { path.display().to_string() };
    let parsed = yaml::parse(sources.add(name, text.as_str()), &text);
    let mut context = Decoding::new(Placeholders::Refuse);
    context.diagnostics = parsed.diagnostics;
    let entries = parsed.documents.iter().flat_map(|document| quarantine::read(document, &mut context)).collect();
    if context.diagnostics.is_empty() {
        return Ok(entries);
    }
    bail!("{}", diagnostic::render(&context.diagnostics, &sources, false).trim_end().to_owned());
}
