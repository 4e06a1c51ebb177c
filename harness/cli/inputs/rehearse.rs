//! `--rehearse`: what runs in the place of every workload, so that an author sees the outcome without a cluster.
//!
//! A file that ends in `.yaml` or `.yml` is a scenario of the scheduler that follows one (docs/fake.md), whose logs may be in files beside it.
//! Anything else is a log; one that Muster wrote comes apart into the sections it was put together from.

use crate::inputs::files;
use anyhow::{Context, bail};
use muster_check::selection::adjust::Rehearsal;
use muster_core::job::{
    descriptor::{CheckScenario, Rehearses, Schedulers},
    stdout,
};
use muster_text::{
    Value,
    diagnostic::{self, Sources},
    yaml,
};
use serde_json::json;
use std::path::Path;

/// Reads the scenario that runs in the place of every workload.
pub fn rehearsal(path: &Path, schedulers: &Schedulers) -> anyhow::Result<Rehearsal> {
    let (scheduler, Rehearses { key, check }) = schedulers.rehearsing().context("no scheduler follows a scenario")?;
    Ok(Rehearsal { scheduler, key, scenario: scenario(path, check)? })
}

/// Reads the scenario, or the log that becomes one.
fn scenario(path: &Path, check: CheckScenario) -> anyhow::Result<Value> {
    let text = read(path)?;
    let is_play = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_play {
        return Ok(json!({ "logs": sections(&text) }));
    }
    let mut sources = Sources::default();
    let file = sources.add(path.display().to_string(), text.as_str());
    let parsed = yaml::parse(file, &text);
    let mut diagnostics = parsed.diagnostics;
    let scenario = parsed.documents.first().map_or(Ok(Value::Null), yaml::to_value);
    let mut scenario = scenario.unwrap_or_else(|mut mistakes| {
        diagnostics.append(&mut mistakes);
        Value::Null
    });
    if diagnostics.is_empty() {
        logs_from_files(&mut scenario, path)?;
        diagnostics = check(&scenario).err().unwrap_or_default();
    }
    if diagnostics.is_empty() {
        return Ok(scenario);
    }
    bail!("{}", diagnostic::render(&diagnostics, &sources, false).trim_end().to_owned());
}

/// Puts the text of files in the place of their names: `logs: [{ file: pod-0.log }]`.
fn logs_from_files(scenario: &mut Value, path: &Path) -> anyhow::Result<()> {
    let logs = scenario.get_mut("logs").and_then(Value::as_array_mut);
    for log in logs.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(file) = log.remove("file") else { continue };
        let Some(name) = file.as_str() else { bail!("{}: `file` of a log is the path of a text", path.display()) };
        log.insert("text".to_owned(), read(&path.with_file_name(name))?.into());
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = files::bytes_or_stdin(path).with_context(|| format!("--rehearse {} cannot be read", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A log as one section, or the sections that `-------NAME-------` divides a stdout of Muster's into.
fn sections(text: &str) -> Vec<Value> {
    let name =
        |line: &str| Some(line.strip_prefix("-------")?.strip_suffix("-------")?.to_owned()).filter(|name| !name.is_empty());
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (name(line.trim_end()), sections.last_mut()) {
            (Some(name), last) => {
                // The blank line above the next section's name is not the log's.
                if let Some((_, text)) = last
                    && text.ends_with("\n\n")
                {
                    text.pop();
                }
                sections.push((name, String::new()));
            }
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => {}
        }
    }
    sections.retain(|(title, _)| !stdout::is_not_judged(title));
    if sections.is_empty() {
        sections.push(("rehearsal".to_owned(), text.to_owned()));
    }
    sections.into_iter().map(|(section, text)| json!({ "section": section, "text": text })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stdout_of_musters_comes_apart_into_its_sections() {
        let text = "kqzvwxyz\n\n-------pod-0-------\nhello\n\nagain\n\n-------pod-1-------\nworld\n";
        assert_eq!(
            sections(text),
            [json!({ "section": "pod-0", "text": "hello\n\nagain\n" }), json!({ "section": "pod-1", "text": "world\n" })]
        );
        let replaced =
            "kqzvwxyz\n\n-------pod-0-------\nhello\n\n-------pod-0#2-------\nearlier\n\n-------pod-9#not-judged-------\nfirst\n";
        assert_eq!(sections(replaced), [json!({ "section": "pod-0", "text": "hello\n" })]);
        assert_eq!(sections("a\n-------\nb"), [json!({ "section": "rehearsal", "text": "a\n-------\nb" })]);
    }
}
