//! Names that are declared and never read.

use super::{Report, Subject};
use crate::files::load;
use muster_text::{template, yaml::Node};
use std::collections::BTreeSet;

/// Every name that the check or one of its manifests reads.
fn read(subject: &Subject<'_>) -> BTreeSet<String> {
    let paths = load::manifest_paths(subject.tree());
    let files = paths.iter().filter_map(|(path, span)| subject.manifests.get(span.file, path)).flatten();
    let mut names: BTreeSet<String> = files.flat_map(template::names).collect();
    names.extend(template::names(subject.tree()));
    names.extend(template::names_in_expressions(subject.tree()));
    let selectors = ["when", "reference"].into_iter().filter_map(|key| subject.tree().get(key)).flat_map(Node::items);
    for (name, _) in selectors.filter_map(|entry| entry.get("with")).flat_map(Node::entries) {
        names.extend(name.text().map(str::to_owned));
    }
    // The job gets it even if no placeholder reads it.
    names.insert("num_tasks".to_owned());
    names
}

pub(super) fn parameter(subject: &Subject<'_>, report: &mut Report) {
    let hint = "read it with ${{ }}; to repeat a check, use `--repeat`";
    unused(subject, "parameters", "unused-parameter", hint, report);
}

pub(super) fn variable(subject: &Subject<'_>, report: &mut Report) {
    unused(subject, "variables", "unused-variable", "read it with ${{ }}, or leave it out", report);
}

fn unused(subject: &Subject<'_>, key: &str, lint: &'static str, hint: &str, report: &mut Report) {
    // Cases of checks that depend on each other are paired by their parameters.
    let is_paired = subject.is_relied_on || subject.tree().get("depends_on").is_some();
    let read = read(subject);
    for (name, value) in subject.all(key).flat_map(Node::entries).filter(|(_, value)| !value.is_null()) {
        let Some(text) = name.text() else { continue };
        if read.contains(text) || is_paired || value.is_bad() {
            report.fine(lint, name.span);
        } else {
            report.found(lint, name.span, format!("`{text}` is never read"), hint);
        }
    }
}
