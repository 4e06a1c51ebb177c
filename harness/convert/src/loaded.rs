//! Reads the written files with Muster's own loader: what it refuses is left out, and reported at its line of the source.
//!
//! ```text
//! keys -emit-> YAML -loader-> mistakes -path, unit-> Misfit -take_out-> fewer keys          until there is no mistake
//! ```

use crate::{interp::Manifests, value::Value};
use muster_check::{
    cases::{check::Check, when},
    files::load::Loader,
    site::{facts::KnownSystems, file as site_file},
};
use muster_core::job::descriptor::Schedulers;
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::{Diagnostic, FileId, Severity, Span},
    yaml::{Node, parse},
};
use std::collections::BTreeMap;

/// The keys by which an entry of `when` or `reference` is chosen: alone they say nothing.
pub(crate) const SELECTORS: [&str; 4] = ["system", "environ", "with", "if"];

/// A step from a value to what is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Key(String),
    At(usize),
}

impl Step {
    /// The key of a mapping, if it is one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::At(_) => None,
        }
    }

    /// What is one step into a value.
    pub(crate) fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match (value, self) {
            (Value::Dict(entries), Self::Key(key)) => {
                entries.iter().find(|(known, _)| known.shown().as_ref() == Some(key)).map(|(_, value)| value)
            }
            (Value::List(items) | Value::Tuple(items), Self::At(at)) => items.get(*at),
            _ => None,
        }
    }
}

/// What the loader refuses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Misfit {
    /// The index of the document in the file.
    pub document: usize,
    /// The part that is left out; nothing: the document.
    pub unit: Vec<Step>,
    /// The path of the mistake in it.
    pub path: Vec<Step>,
    /// The reason why it is left out.
    pub why: String,
    /// A suggestion of what to write instead.
    pub instead: Option<String>,
}

/// What the loader refuses in a file of checks. `written` are all files of checks by path: one may extend checks of another.
pub(crate) fn in_checks(
    (path, text): (&str, &str),
    written: &BTreeMap<String, String>,
    manifests: &dyn Manifests,
    schedulers: &Schedulers,
) -> Vec<Misfit> {
    let mut loader = Loader::new(schedulers.clone());
    loader.add(path, text);
    while let Some(wanted) = loader.wanted().into_iter().next() {
        let text = written.get(&wanted).cloned().or_else(|| manifests.read("", &wanted));
        loader.provide(&wanted, text.ok_or_else(|| "it is not there".to_owned()));
    }
    for folder in loader.wanted_folders() {
        loader.provide_folder(&folder, manifests.folder(&folder));
    }
    let files = loader.finish();
    let (mut mistakes, known) = (files.diagnostics, KnownSystems::default());
    for check in &files.checks {
        Check::new(check, None, files.manifests.clone(), &known, &mut mistakes);
        // Else they are read with the first system.
        let branches = check.tree.get("when").into_iter().flat_map(Node::items);
        let trees: Vec<&Node> = std::iter::once(&check.tree).chain(branches).collect();
        let of_places = |key| trees.iter().filter_map(move |tree| tree.get(key));
        for places in ["valid_systems", "valid_prog_environs"].into_iter().flat_map(of_places) {
            if !places.has_placeholder_within() {
                when::selector(places, &mut mistakes);
            }
        }
    }
    misfits(text, mistakes)
}

/// What the loader refuses in a site file.
pub(crate) fn in_site(text: &str, schedulers: &Schedulers) -> Vec<Misfit> {
    let mut context = Context::new(Placeholders::Refuse);
    for document in &parse(FileId::default(), text).documents {
        site_file::read(document, schedulers, &mut context);
    }
    misfits(text, context.diagnostics)
}

/// The mistakes of a text, one for each unit; the last unit first, so that those before it stay where they are.
fn misfits(text: &str, mistakes: Vec<Diagnostic>) -> Vec<Misfit> {
    let documents = parse(FileId::default(), text).documents;
    let misfit = |mistake: Diagnostic| {
        let span = mistake.span.filter(|span| span.file == FileId::default() && mistake.severity == Severity::Error)?;
        let document = documents.iter().rposition(|document| document.span.start <= span.start)?;
        let path = path(&documents[document], span);
        let unit = unit(&path);
        let keys: Vec<&str> = unit.iter().filter_map(Step::key).collect();
        let what = match keys[..] {
            [] => "all of it".to_owned(),
            ["when"] => "what this branch sets".to_owned(),
            ["when", key] => format!("`{}`", key.trim_end_matches('+')),
            ["reference", .., name] => format!("each `reference` of `{name}`"),
            _ => format!("`{}`", keys.join(".")),
        };
        let why = format!("{}, so {what} is left out", mistake.message);
        Some(Misfit { document, unit, path, why, instead: mistake.hint })
    };
    let mut misfits: Vec<Misfit> = mistakes.into_iter().filter_map(misfit).collect();
    misfits.sort_by(|one, other| (other.document, &other.unit).cmp(&(one.document, &one.unit)));
    misfits.dedup_by(|next, first| (next.document, &next.unit) == (first.document, &first.unit));
    misfits
}

/// The way to the value that a span is in; to a mapping, if it is the whole of it.
fn path(mut node: &Node, span: Span) -> Vec<Step> {
    let mut path = Vec::new();
    while span.start > node.span.start || (span.start < span.end && span.end < node.span.end) {
        let entry = node.entries().iter().rfind(|(key, _)| key.span.start <= span.start);
        let item = node.items().iter().rposition(|item| item.span.start <= span.start);
        let step = entry.map(|(key, value)| (Step::Key(key.text().unwrap_or_default().to_owned()), value));
        let Some((step, next)) = step.or_else(|| item.map(|at| (Step::At(at), &node.items()[at]))) else { break };
        path.push(step);
        node = next;
    }
    path
}

/// What is left out with a mistake: what stands by itself; nothing: all of it. A list of texts is written whole or not at all.
fn unit(path: &[Step]) -> Vec<Step> {
    let key = |at: usize| path.get(at).and_then(Step::key).unwrap_or_default();
    let length = match (key(0).trim_end_matches('+'), key(2)) {
        // A check runs nowhere without the one, and is another one without the other.
        ("valid_systems" | "extends", _) | ("when", "valid_systems") => 0,
        ("perf_variables" | "variables" | "parameters" | "fixtures" | "env_vars" | "extras", _)
        | ("when" | "reference", "system" | "environ" | "with" | "if" | "skip") => 2,
        ("reference", "values")
        | ("partitions", "resources" | "sched_options" | "extras" | "env_vars" | "container_platforms" | "devices") => 4,
        ("when" | "reference" | "partitions" | "environments", _) => 3,
        _ => 1,
    };
    let mut unit = path[..length.min(path.len())].to_vec();
    // Nothing is left of what has no name.
    if unit.last().and_then(Step::key) == Some("name") {
        unit.pop();
    }
    unit
}

/// Takes units out of keys, the last first, and all other values of what they set: none may take the place of the one that is lost.
/// Whether any are left.
pub(crate) fn take_out(entries: &mut Vec<(String, Value)>, units: &[&[Step]]) -> bool {
    let before = entries.clone();
    let all = std::mem::take(entries).into_iter().map(|(key, value)| (Value::Str(key), value)).collect();
    let mut all = Value::Dict(all);
    let mut lost = settings(&mut all);
    // A part of what is taken out whole is gone with it.
    let is_part = |unit: &[Step]| units.iter().any(|other| other.len() < unit.len() && unit.starts_with(other));
    let is_left = units.iter().filter(|unit| !is_part(unit)).all(|unit| cut(&mut all, unit));
    for kept in settings(&mut all) {
        if let Some(at) = lost.iter().position(|known| *known == kept) {
            lost.swap_remove(at);
        }
    }
    retain("", &mut all, &mut |key, name, value| {
        let is_lost = lost.iter().any(|(of, known)| of == key && known == name);
        if is_lost && key == "sanity" {
            *value = Value::failing();
        }
        !is_lost || key == "sanity"
    });
    if let Value::Dict(kept) = all {
        entries.extend(kept.into_iter().map(|(key, value)| (key.shown().unwrap_or_default(), value)));
    }
    // Else the same mistake would come back without end.
    is_left && *entries != before
}

/// All that a check sets, in its branches too, once for each place: the key, and the name of an entry.
fn settings(all: &mut Value) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    retain("", all, &mut |key, name, _| {
        settings.push((key.to_owned(), name.to_owned()));
        true
    });
    settings
}

/// Keeps what is wanted of a mapping below a key, and of an entry of `when` as of a check. Whether anything is left.
fn retain(key: &str, value: &mut Value, is_kept: &mut dyn FnMut(&str, &str, &mut Value) -> bool) -> bool {
    match value {
        Value::List(items) => {
            items.retain_mut(|item| retain(key, item, is_kept));
            !items.is_empty()
        }
        Value::Dict(entries) => {
            entries.retain_mut(|(name, value)| {
                let name = name.shown().unwrap_or_default();
                let is_selector = SELECTORS.contains(&&*name);
                match (key, name.trim_end_matches('+'), &*value) {
                    // One case to be skipped says nothing of others.
                    ("", "skip", _) => true,
                    ("" | "reference", ..) if is_selector => true,
                    ("", "when", _) => retain("", value, is_kept),
                    ("", "reference", _) | ("reference", _, Value::Dict(_)) => retain("reference", value, is_kept),
                    ("", name, Value::Dict(_)) => retain(name, value, is_kept),
                    ("", name, _) => is_kept(name, "", value),
                    _ => is_kept(key, &name, value),
                }
            });
            entries.iter().any(|(key, _)| key.as_str().is_none_or(|key| !SELECTORS.contains(&key)))
        }
        _ => true,
    }
}

/// Takes one unit out. What is not found leaves nothing.
fn cut(value: &mut Value, unit: &[Step]) -> bool {
    match (unit.split_first(), value) {
        (Some((Step::Key(key), rest)), Value::Dict(entries)) => {
            let Some(at) = entries.iter().position(|(known, _)| known.shown().as_ref() == Some(key)) else { return false };
            if rest.is_empty() && key.trim_end_matches('+') == "sanity" {
                // A check must not pass for want of a question.
                entries[at].1 = Value::failing();
            } else if !cut(&mut entries[at].1, rest) {
                entries.remove(at);
            }
            entries.iter().any(|(key, _)| key.as_str().is_none_or(|key| !SELECTORS.contains(&key)))
        }
        (Some((Step::At(at), rest)), Value::List(items)) => {
            if items.get_mut(*at).is_some_and(|item| !cut(item, rest)) {
                items.remove(*at);
            }
            !items.is_empty()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_in_the_innermost_value_that_stands_by_itself() {
        let text = "name: a\ntags: [b]\n---\nname: c\nwhen:\n  - system: [s]\n    tags: [d]\nreference:\n  s:\n    f: [1]\n";
        let rows = [
            ("b", "0 tags / tags 0"),
            ("tags", "0 tags / tags"),
            ("a\nt", "0  / name"),
            ("d", "1 when 0 tags / when 0 tags 0"),
            ("[s]", "1 when 0 / when 0 system"),
            ("[1]", "1 reference s f / reference s f"),
        ];
        for (part, expected) in rows {
            let [start, end] = [0, part.len()].map(|more| u32::try_from(text.find(part).unwrap() + more).unwrap());
            let mistake = Diagnostic::error(Span { file: FileId::default(), start, end }, "");
            let found = misfits(text, vec![mistake.clone(), mistake]);
            let [misfit] = &found[..] else { panic!("{found:?}") };
            let shown = |path: &[Step]| path.iter().map(|step| step.key().unwrap_or("0")).collect::<Vec<_>>().join(" ");
            assert_eq!(format!("{} {} / {}", misfit.document, shown(&misfit.unit), shown(&misfit.path)), expected);
        }
    }
}
