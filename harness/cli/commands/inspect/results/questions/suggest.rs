//! `muster results suggest-references`: references from stored figures.

use super::filters;
use crate::{
    args::{Cli, SuggestArgs, is_dash},
    inputs,
    terminal::{Terminal, unwritten::Written},
    wiring::database::Question,
};
use anyhow::{Context, ensure};
use muster_answers::references::{Suggested, references};
use muster_core::{case::matcher::Matcher, query::spec::Selection};
use muster_host::replace::{regular, replace_shared};
use muster_judge::suggest::SuggestSettings;
use muster_report::suggested::{self, Basis, HEAD};
use muster_session::runtime;
use std::path::Path;

pub fn suggest(cli: &Cli, args: &SuggestArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let write = args.write.as_deref().filter(|path| !is_dash(path));
    if let Some(path) = write {
        may_write(path)?;
    }
    let mut filters = filters(cli, &args.filters)?;
    for name in &args.cases {
        filters.cases.push(Matcher::parse(name, false).map_err(anyhow::Error::msg)?);
    }
    let selection = Selection::parse(&args.period)?.and(&filters);
    let settings = SuggestSettings { lower: args.lower, upper: args.upper, min_runs: args.min_runs };
    let Suggested { suggestions, notes } = runtime::of_question()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        anyhow::Ok(references(&question.asked(), &selection, &args.var, settings).await?)
    })?;
    let yaml = suggested::yaml(&suggestions, &Basis { period: selection.to_string(), lower: args.lower, upper: args.upper });
    for note in notes {
        terminal.note(&format!("note: {note}"));
    }
    terminal.note(suggested::refused(&suggestions, &terminal.screen()).trim_end());
    let others = if args.lower.or(args.upper).is_some() { ", or leave out --lower and --upper" } else { "" };
    ensure!(!yaml.is_empty(), "there is no reference to suggest: run more, or choose a longer --period{others}");
    match write {
        None => terminal.print(&yaml),
        Some(path) => {
            let text = yaml + &suggested::comments(&suggestions);
            replace_shared(path, ".part", text).or_unwritten("the file", path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let keys = suggested::keys(&suggestions, &name).join("\n");
            terminal.note(&format!("wrote {}: a check file in the same folder reads its part with\n{keys}", path.display()));
        }
    }
    Ok(0)
}

/// A file of suggestions may be written again, no other one.
fn may_write(path: &Path) -> anyhow::Result<()> {
    let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().contains('#'));
    ensure!(!is_named, "{}: a check reads `#` as the end of a file name: choose another name", path.display());
    regular(path).with_context(|| format!("{} cannot be written", path.display()))?;
    match inputs::files::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        Ok(text) => {
            ensure!(
                text.starts_with(HEAD),
                "{} is there already, and was not written by this command: choose another file",
                path.display()
            );
            Ok(())
        }
    }
}
