//! `check: build.yaml#build`: a fixture from a file that was not named. That check is taken from there, and the fixtures
//! that it uses itself, but nothing else, and it runs for its users only.

use super::Document;
use crate::files::{extends, needs};
use muster_text::{
    diagnostic::{Diagnostic, FileId, Span},
    yaml::Node,
};
use std::{collections::BTreeSet, sync::Arc};

/// The files in which a check's fixtures are, as written.
pub(super) fn paths(check: &Node) -> impl Iterator<Item = (&str, Span)> {
    let named = needs::fixture_names(check).filter_map(|node| Some((needs::written(node.text()?).0?, node.span)));
    named.filter(|(path, _)| !path.is_empty())
}

/// What is known of the files.
pub(super) struct Catalog<'a> {
    pub(super) library: extends::Library<'a>,
    /// The files whose checks run by themselves.
    pub(super) roots: BTreeSet<FileId>,
    /// A file's path, as the user would type it.
    pub(super) path: &'a dyn Fn(FileId) -> Arc<str>,
}

/// A check by its file and its name.
type Place = (FileId, String);

impl<'a> Catalog<'a> {
    /// The check that a fixture is, unless it is among those that run by themselves. An error without a diagnostic has been
    /// reported already.
    fn find(&self, fixture: &Node) -> Result<Option<(Place, &'a Node)>, Option<Diagnostic>> {
        let Some((path, name)) = fixture.text().map(needs::written) else { return Ok(None) };
        let here = fixture.span.file;
        let file = match path {
            Some("") => here,
            Some(path) => (self.library.files)(here, path).ok_or(None)?,
            // In a file that was not named, a name alone is one of the same file first.
            None if self.library.documents.contains_key(&(here, name.to_owned())) => here,
            None => return Ok(None),
        };
        let place = (file, name.to_owned());
        let document = self.library.document(&place, fixture.place())?;
        Ok((!self.roots.contains(&file)).then_some((place, document)))
    }
}

/// Adds the checks that fixtures of `checks` are, and those of theirs.
pub(super) fn fetch(checks: &mut Vec<Document>, catalog: &Catalog<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let (mut fetched, mut next) = (BTreeSet::new(), 0);
    while let Some(user) = checks.get(next).map(|check| check.tree.clone()) {
        for fixture in needs::fixture_names(&user) {
            match catalog.find(fixture) {
                Ok(Some((place, document))) if fetched.insert(place.clone()) => {
                    let (tree, is_whole) = extends::resolve(document, &catalog.library, diagnostics);
                    let (file, name) = place;
                    let span = tree.get("name").map_or(tree.span, |name| name.span);
                    checks.push(Document {
                        name: name.into(),
                        span,
                        path: (catalog.path)(file),
                        tree,
                        is_whole,
                        is_imported: true,
                    });
                }
                Ok(_) => {}
                Err(missing) => {
                    checks[next].is_whole = false;
                    diagnostics.extend(missing);
                }
            }
        }
        next += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::files::load::{
        Loaded, Loader,
        testing::{load, messages},
    };

    fn names(loaded: &Loaded) -> Vec<(&str, bool)> {
        loaded.checks.iter().map(|check| (&*check.name, check.is_imported)).collect()
    }

    const USER: &str = "name: app\nfixtures: { bin: { check: ../build.yaml#build } }\n";

    #[test]
    fn a_fixture_is_fetched_from_its_file_with_its_own_fixtures_and_bases_and_nothing_else() {
        let build =
            "name: sources\n---\nname: other\n---\nname: build\nextends: base.yaml#make\nfixtures: { src: { check: sources } }\n";
        let base = "name: make\nabstract: true\nexecutable: make\n";
        let loaded = load(&[("a/app.yaml", USER), ("build.yaml", build), ("base.yaml", base)]);
        assert_eq!(messages(&loaded), [""; 0]);
        assert_eq!(names(&loaded), [("app", false), ("build", true), ("sources", true)]);
        assert_eq!(&*loaded.checks[1].path, "build.yaml");
        assert!(loaded.checks[1].tree.get("executable").is_some());
    }

    #[test]
    fn a_file_that_was_named_is_not_imported_from() {
        let mut loader = Loader::new(crate::testing::schedulers());
        loader.add("a/app.yaml", USER);
        loader.add("build.yaml", "name: build\n");
        assert_eq!(loader.wanted(), [""; 0]);
        assert_eq!(names(&loader.finish()), [("app", false), ("build", false)]);
    }

    #[test]
    fn two_that_use_each_other_are_fetched_once() {
        let build = "name: build\nfixtures: { x: { check: '#more' } }\n---\nname: more\nfixtures: { x: { check: build } }\n";
        let loaded = load(&[("a/app.yaml", USER), ("build.yaml", build)]);
        assert_eq!(names(&loaded), [("app", false), ("build", true), ("more", true)]);
    }

    #[test]
    fn a_missing_check_is_reported_with_the_nearest_one() {
        let missing = load(&[("a/app.yaml", USER)]);
        assert_eq!(messages(&missing), ["the check file build.yaml could not be read: no such file"]);
        assert!(!missing.checks[0].is_whole, "nothing more is reported of it");
        let typo = load(&[("a/app.yaml", USER), ("build.yaml", "name: buidl\n")]);
        assert_eq!(messages(&typo), ["there is no check `build` in that file"]);
        assert_eq!(typo.diagnostics[0].hint.as_deref(), Some("did you mean `buidl`?"));
        assert!(!typo.checks[0].is_whole);
    }
}
