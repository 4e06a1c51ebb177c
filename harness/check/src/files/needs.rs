//! The checks that a check needs: `fixtures` and `depends_on` as written, checked as far as that is possible without cases.
//!
//! `cases::dependencies` applies them to cases.

use crate::files::check_file::{CheckFile, Dependency, FixtureAction, FixtureScope};
use muster_text::{
    decode::Spanned,
    diagnostic::{Diagnostic, Span},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A fixture of a check.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// The check's name for it.
    pub name: Arc<str>,
    pub check: Spanned<String>,
    pub scope: FixtureScope,
    /// The treatment of its variants, if it has several.
    pub action: FixtureAction,
    /// Values of its parameters and variables.
    pub with: Vec<(Spanned<String>, Node)>,
}

/// All that a check needs.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// `fixtures`
    pub fixtures: Vec<Fixture>,
    /// `depends_on`
    pub depends_on: Vec<Dependency>,
    /// Where the folder of another case is read, and whose: `fixtures.build`, `deps.write`.
    pub(crate) stagedirs: Vec<(Span, String)>,
}

impl Needs {
    /// Reads what a check needs.
    pub(crate) fn of(file: &CheckFile, tree: &Node, diagnostics: &mut Vec<Diagnostic>) -> Self {
        for node in names(tree).filter(|node| node.has_placeholder()) {
            let hint = "it is read before there are any cases: write the name, and choose among its variants under `with`";
            diagnostics.push(Diagnostic::error(node.place(), "the name of a check cannot hold a placeholder").hint(hint));
        }
        let fixture = |(name, entry): &(Spanned<String>, crate::files::check_file::FixtureEntry)| {
            diagnostics.extend(refuse_name("a fixture", name, name.span));
            Some(Fixture {
                name: name.value.as_str().into(),
                check: entry.check.clone().map(|check| Spanned { value: written(&check.value).1.to_owned(), ..check })?,
                scope: entry.scope.unwrap_or_default(),
                action: entry.action.unwrap_or_default(),
                with: entry.with.as_ref().map(|with| with.0.clone()).unwrap_or_default(),
            })
        };
        let fixtures = file.fixtures.iter().flat_map(|entries| entries.iter()).filter_map(fixture).collect();
        let depends_on = file.depends_on.as_ref().map(|entries| entries.0.clone()).unwrap_or_default();
        Self { fixtures, depends_on, stagedirs: Vec::new() }
    }

    /// Returns whether there are any.
    pub fn any(&self) -> bool {
        !self.fixtures.is_empty() || !self.depends_on.is_empty()
    }

    /// The checks it needs, and where they are named.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.fixtures.iter().map(|fixture| &fixture.check).chain(self.depends_on.iter().map(|dependency| &dependency.check))
    }

    /// Notes where a text reads the folder of another case.
    pub(crate) fn note_stagedirs(&mut self, tree: &Node) {
        match &*tree.kind {
            yaml::Kind::Scalar { text, .. } => {
                let read = stagedirs(text).into_iter().filter(|whose| !self.stagedirs.contains(&(tree.span, whose.clone())));
                let read: Vec<_> = read.map(|whose| (tree.span, whose)).collect();
                self.stagedirs.extend(read);
            }
            yaml::Kind::Seq(items) => items.iter().for_each(|item| self.note_stagedirs(item)),
            yaml::Kind::Map(entries) => {
                for (key, value) in entries {
                    self.note_stagedirs(key);
                    self.note_stagedirs(value);
                }
            }
            yaml::Kind::Bad => {}
        }
    }
}

/// The nodes that name a check's fixtures: `build`, `build.yaml#build`, or `#build` for the same file.
pub(crate) fn fixture_names(tree: &Node) -> impl Iterator<Item = &Node> {
    let fixtures = tree.get("fixtures").map(Node::entries).unwrap_or_default();
    fixtures.iter().filter_map(|(_, entry)| entry.get("check"))
}

/// The path and the name of a check, as written; without `#` there is no path.
pub(crate) fn written(check: &str) -> (Option<&str>, &str) {
    check.rsplit_once('#').map_or((None, check), |(path, name)| (Some(path), name))
}

/// The nodes that name other checks.
fn names(tree: &Node) -> impl Iterator<Item = &Node> {
    let depends_on = tree.get("depends_on").into_iter();
    let depends_on = depends_on.flat_map(|node| if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() });
    fixture_names(tree).chain(depends_on.map(|node| node.get("check").unwrap_or(node)))
}

/// The mistake of a name that no expression can read. `what` has it.
pub(crate) fn refuse_name(what: &str, name: &str, span: Span) -> Option<Diagnostic> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let hint = "expressions read it: use ASCII letters, digits and `_`, no digit first";
    Some(Diagnostic::error(span, format!("`{name}` cannot be the name of {what}")).hint(hint))
}

/// Whose folders a text reads: `fixtures.build.stagedir`, `deps["ior-write"].stagedir`, of a list `deps.write[0].stagedir`.
fn stagedirs(text: &str) -> Vec<String> {
    let mut whose = Vec::new();
    for root in ["fixtures", "deps"] {
        for (at, _) in text.match_indices(root) {
            let path = &text[at..];
            let end = path.find(|c: char| !(c.is_ascii_alphanumeric() || "_.[]'\"-".contains(c))).unwrap_or(path.len());
            let words: Vec<&str> = path[..end].split(['.', '[', ']', '\'', '"']).filter(|word| !word.is_empty()).collect();
            if let [first, name, rest @ ..] = words.as_slice()
                && *first == root
                && rest.contains(&"stagedir")
            {
                whose.push(format!("{root}.{name}"));
            }
        }
    }
    whose
}

/// Reports needed checks that do not exist, and cycles.
pub fn check<'c>(checks: impl Iterator<Item = (&'c str, &'c Needs)>, diagnostics: &mut Vec<Diagnostic>) {
    let checks: BTreeMap<&str, &Needs> = checks.collect();
    let before = diagnostics.len();
    for need in checks.values().flat_map(|needs| needs.checks()).filter(|need| !checks.contains_key(need.as_str())) {
        let message = format!("there is no check `{}` in the files that were read", need.value);
        let diagnostic = Diagnostic::error(need.span, message);
        let otherwise = "name its file, or a folder that holds both, with -c; a fixture may use `check: file.yaml#name`";
        diagnostics.push(diagnostic.did_you_mean(need, checks.keys().copied(), Some(otherwise)));
    }
    if diagnostics.len() > before {
        return;
    }
    let needed = |name: &str| {
        let needs = checks.get(name).into_iter().flat_map(|needs| needs.checks());
        needs.map(|need| (need.as_str(), need.span)).collect()
    };
    dependency_order(checks.keys().copied(), &needed, &mut |trail, name, span| {
        let cycle: Vec<&str> = trail.iter().copied().skip_while(|before| *before != name).chain([name]).collect();
        let message = format!("a check cannot depend on itself: {}", cycle.join(" -> "));
        diagnostics.push(Diagnostic::error(span, message).hint("leave one of these dependencies out"));
    });
}

/// Each name once, after those it depends on. `needs` gives what a name depends on and where that is written. `on_cycle`
/// gets every cycle: the names on the way to it, the one that comes again, and where that is written.
pub(crate) fn dependency_order<'a>(
    names: impl Iterator<Item = &'a str>,
    needs: &dyn Fn(&'a str) -> Vec<(&'a str, Span)>,
    on_cycle: &mut dyn FnMut(&[&'a str], &'a str, Span),
) -> Vec<&'a str> {
    let mut walk = Walk { needs, on_cycle, trail: Vec::new(), done: BTreeSet::new(), order: Vec::new() };
    for name in names {
        walk.visit(name, Span::default());
    }
    walk.order
}

struct Walk<'a, 'f> {
    needs: &'f dyn Fn(&'a str) -> Vec<(&'a str, Span)>,
    on_cycle: &'f mut dyn FnMut(&[&'a str], &'a str, Span),
    trail: Vec<&'a str>,
    done: BTreeSet<&'a str>,
    order: Vec<&'a str>,
}

impl<'a> Walk<'a, '_> {
    fn visit(&mut self, name: &'a str, by: Span) {
        if self.trail.contains(&name) {
            return (self.on_cycle)(&self.trail, name, by);
        }
        if !self.done.contains(name) {
            self.trail.push(name);
            for (needed, span) in (self.needs)(name) {
                self.visit(needed, span);
            }
            self.trail.pop();
            self.done.insert(name);
            self.order.push(name);
        }
    }
}

/// The checks that others use as a fixture.
pub fn used_as_fixtures<'c>(all: impl Iterator<Item = &'c Needs>) -> BTreeSet<&'c str> {
    all.flat_map(|needs| &needs.fixtures).map(|fixture| fixture.check.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_folder_a_text_reads() {
        let rows = [
            ("cp ${{ fixtures.build.stagedir }}/a .", vec!["fixtures.build"]),
            ("${{ deps[\"ior-write\"].stagedir + deps.w[0].stagedir }}", vec!["deps.ior-write", "deps.w"]),
            ("${{ fixtures.build.outputs.dir }} stagedir", vec![]),
            ("${{ stagedir }}/fixtures", vec![]),
        ];
        for (text, expected) in rows {
            assert_eq!(stagedirs(text), expected, "{text}");
        }
    }
}
