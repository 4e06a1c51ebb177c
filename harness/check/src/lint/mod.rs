//! Lints find checks that load, run, and prove less than their author thinks.
//!
//! Mistakes are reported when a file is read, with exit code 2. A finding may be intended, so that each has a
//! name to silence it by ([`Silence`]). A lint that is wrong more often than right has no place in the table.

mod silence;
mod table;

pub use silence::Silence;
pub use table::LINTS;

use crate::{
    cases::{check::Check, test_case::TestCase},
    files::{
        check_file::layers,
        load::{Document, Manifests},
        named_as_keys, needs,
    },
    site::facts::KnownSystems,
};
use muster_text::{
    diagnostic::{Diagnostic, Span},
    yaml::Node,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// One kind of finding.
#[derive(Debug, Clone, Copy)]
pub struct Lint {
    /// Its name, to silence it by.
    pub name: &'static str,
    /// A sentence on what it finds, and why that is worth a look.
    pub summary: &'static str,
    /// Looks at one check.
    look: fn(&Subject<'_>, &mut Report),
}

/// A check that was read, and its cases on all known systems.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The check as a tree, merged over its bases.
    pub document: &'a Document,
    /// The check, valid.
    pub check: Arc<Check>,
    /// Its cases, before any filter.
    pub cases: Vec<TestCase>,
}

/// One check, and what is known of it.
struct Subject<'a> {
    document: &'a Document,
    check: &'a Check,
    cases: &'a [TestCase],
    manifests: &'a Manifests,
    /// The systems of the site files. Without any, it is unknown where a check runs.
    sites: Option<&'a KnownSystems>,
    /// Whether another check names this one, and so may read what it declares.
    is_relied_on: bool,
}

impl Subject<'_> {
    fn tree(&self) -> &Node {
        &self.document.tree
    }

    /// A key's values, in the check and in entries of `when`.
    fn all(&self, key: &str) -> impl Iterator<Item = &Node> {
        let appended = format!("{key}+");
        layers(self.tree())
            .flat_map(move |layer| [layer.get(key), layer.get(&appended)].into_iter().flatten().collect::<Vec<_>>())
    }

    /// Whether a parameter of this name sets a key.
    fn sets_key(&self, name: &str) -> bool {
        named_as_keys::is_key(name, self.manifests.schedulers.own_keys()) && self.all(name).next().is_none()
    }
}

/// Something that is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub lint: &'static str,
    /// A warning with its place.
    pub diagnostic: Diagnostic,
}

/// What was looked at. A base is looked at once for each check that extends it, and what is fine for one of them is fine.
#[derive(Debug, Default)]
struct Report(BTreeMap<(Span, &'static str), Option<Diagnostic>>);

impl Report {
    fn fine(&mut self, lint: &'static str, span: Span) {
        self.0.insert((span, lint), None);
    }

    fn found(&mut self, lint: &'static str, span: Span, message: impl Into<String>, hint: &str) {
        self.0.entry((span, lint)).or_insert_with(|| Some(Diagnostic::warning(span, message).hint(hint)));
    }
}

/// Looks at checks. Without site files, where they run is not checked. The findings are in the order of files and
/// places.
pub fn lint(checks: &[Loaded<'_>], manifests: &Manifests, sites: Option<&KnownSystems>) -> Vec<Finding> {
    let relied_on: BTreeSet<&str> = checks.iter().flat_map(|check| relies_on(check.document)).collect();
    let mut report = Report::default();
    for Loaded { document, check, cases } in checks {
        let is_relied_on = relied_on.contains(&*document.name);
        let subject = Subject { document, check, cases, manifests, sites, is_relied_on };
        for lint in LINTS {
            (lint.look)(&subject, &mut report);
        }
    }
    let findings = report.0.into_iter();
    findings.filter_map(|((_, lint), diagnostic)| diagnostic.map(|diagnostic| Finding { lint, diagnostic })).collect()
}

/// The names of the checks that a check mentions as fixtures or as what it depends on.
fn relies_on(document: &Document) -> impl Iterator<Item = &str> {
    let fixtures = needs::fixture_names(&document.tree).filter_map(|node| Some(needs::written(node.text()?).1));
    let before = document.tree.get("depends_on");
    let before = before.into_iter().flat_map(|node| node.items().iter().chain(node.text().map(|_| node)));
    fixtures.chain(before.filter_map(|item| item.get("check").or(Some(item)).and_then(Node::text)))
}

#[cfg(test)]
mod tests;
