//! References as a check writes them: what is wrong with them before there are cases.

use crate::{
    files::check_file::{Band, CheckFile, PerfEntry, ReferenceBlock, ReferenceEntry},
    site::facts::KnownSystems,
};
use muster_core::rules::reference::{Reference, ReferenceRow};
use muster_text::{
    decode::{Ordered, Spanned},
    diagnostic::Diagnostic,
};
use std::collections::BTreeSet;

/// The names of all performance variables that a check or an entry of its `when` declares.
pub fn variables(all: &[&CheckFile]) -> BTreeSet<String> {
    all.iter()
        .flat_map(|file| file.perf_variables.iter())
        .flat_map(|names| names.iter())
        .map(|(name, _)| name.value.clone())
        .collect()
}

/// Reports the mistakes that need no case: scopes and systems that mean nothing, thresholds out of their range. The
/// variables may be declared elsewhere: an entry of `when` may refer to the check's, and the check to an entry's.
pub fn check(file: &CheckFile, all: &[&CheckFile], known: &KnownSystems, diagnostics: &mut Vec<Diagnostic>) {
    // What waits for a case is checked there.
    let is_open = |text: &Spanned<String>| text.contains("${{");
    let values: Vec<&Ordered<ReferenceEntry>> = match &file.reference {
        None => return,
        Some(ReferenceBlock::Scopes(scopes)) => {
            for (name, _) in scopes.iter().filter(|(name, _)| !is_open(name)) {
                known.check_name(name, name.span, diagnostics);
            }
            scopes.iter().map(|(_, values)| values).collect()
        }
        Some(ReferenceBlock::Rules(rules)) => {
            for name in rules.iter().flat_map(|rule| &rule.system).flat_map(|names| names.iter()).filter(|name| !is_open(name)) {
                known.check_name(name, name.span, diagnostics);
            }
            rules.iter().filter_map(|rule| rule.values.as_ref()).collect()
        }
    };
    let near_first: Vec<&CheckFile> = std::iter::once(file).chain(all.iter().copied()).collect();
    let has_open_names =
        all.iter().flat_map(|file| file.perf_variables.iter()).flat_map(|names| names.iter()).any(|(name, _)| is_open(name));
    for (label, entry) in values.into_iter().flat_map(|values| values.iter()).filter(|(label, _)| !is_open(label)) {
        if !has_open_names || near_first.iter().any(|file| declared(file, split(label).0).is_some()) {
            row(label, entry, &near_first, &BTreeSet::new(), diagnostics);
        }
    }
}

/// A performance variable of a check.
fn declared<'f>(file: &'f CheckFile, name: &str) -> Option<&'f PerfEntry> {
    file.perf_variables
        .iter()
        .flat_map(|variables| variables.iter())
        .find(|(known, _)| known.value == name)
        .map(|(_, entry)| entry)
}

/// One reference, validated against its variable in the first of these that declares it. `None` for one that only
/// `elsewhere` has: it is not measured here.
pub(crate) fn row(
    label: &Spanned<String>,
    entry: &ReferenceEntry,
    files: &[&CheckFile],
    elsewhere: &BTreeSet<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ReferenceRow> {
    let (name, key) = split(label);
    let Some(variable) = files.iter().find_map(|file| declared(file, name)) else {
        if elsewhere.contains(name) {
            return None;
        }
        let message = format!("a reference for `{name}`, which is not a performance variable");
        let diagnostic = Diagnostic::error(label.span, message);
        let known = variables(files);
        let known = known.iter().map(String::as_str);
        diagnostics.push(diagnostic.did_you_mean(name, known, Some("declare it under `perf_variables`")));
        return None;
    };
    if let (Some(key), true) = (key, is_plain(variable)) {
        let message = format!("`{name}` is not a table: its pattern has no group `key`");
        diagnostics.push(Diagnostic::error(label.span, message).hint(format!("leave `[{key}]` out")));
    }
    let reference = Reference {
        value: entry.value.as_ref()?.value,
        lower: entry.lower.as_ref().map(|lower| lower.value),
        upper: entry.upper.as_ref().map(|upper| upper.value),
        unit: entry.unit.as_ref().map(|unit| unit.value.clone()),
        warn: entry.warn.as_ref().map(|Spanned { value: Band(lower, upper), .. }| (*lower, *upper)),
        xfail: entry.xfail.clone(),
    };
    // A unit that waits for a case is compared then.
    let unit = variable.unit.as_ref().map(|unit| unit.value.as_str()).or(reference.unit.as_deref());
    if let Err(why) = reference.validate(unit.unwrap_or_default()) {
        diagnostics.push(Diagnostic::error(entry.span, why));
    }
    Some(ReferenceRow { variable: name.to_owned(), key: key.map(str::to_owned), reference })
}

/// Whether a variable is one figure for certain: a table comes from a pattern with a group `key`.
fn is_plain(variable: &PerfEntry) -> bool {
    match &variable.pattern {
        Some(pattern) => !pattern.contains("<key>"),
        None => variable.value.is_some(),
    }
}

/// `latency[8]` is the row `8` of `latency`.
fn split(label: &str) -> (&str, Option<&str>) {
    match label.strip_suffix(']').and_then(|label| label.split_once('[')) {
        Some((name, key)) => (name, Some(key)),
        None => (label, None),
    }
}
