//! `extends`: a check merged over its bases, in this file or in another.
//!
//! Bases are merged in the order of the list, each over the one before, and the check over them all: maps merge, lists
//! replace, `key+:` appends. `name`, `abstract` and `extends` are not inherited.

use muster_text::{
    diagnostic::{Diagnostic, FileId, Span},
    yaml::{self, Kind, Node},
};
use std::collections::HashMap;

/// How long a chain of bases may be.
const MAX_CHAIN: usize = 64;
/// How many bases a check may extend, each counted as often as it is reached.
const MAX_BASES: usize = 1_000;

/// Where a base is, `base.yaml#name`: the path as written, which is empty for the same file, and the name.
type BaseName<'n> = (&'n str, &'n str);

/// The bases that a check names, with their places.
pub fn bases(check: &Node) -> Vec<(Result<BaseName<'_>, Diagnostic>, Span)> {
    let Some(node) = check.get("extends") else { return vec![] };
    let items = if node.text().is_some() { std::slice::from_ref(node) } else { node.items() };
    items.iter().map(|item| (base_name(item), item.span)).collect()
}

fn base_name(item: &Node) -> Result<BaseName<'_>, Diagnostic> {
    let wrong = |message: &str| Diagnostic::error(item.span, message).hint("write base.yaml#name, or \"#name\" for this file");
    let text = item.text().ok_or_else(|| wrong("a base must be text"))?;
    let (path, name) = text.split_once('#').ok_or_else(|| wrong("`#` and the name of the check are missing"))?;
    if name.is_empty() { Err(wrong("the name of the check is missing after `#`")) } else { Ok((path, name)) }
}

/// All documents that a base may be in: by file and `name`.
pub struct Library<'a> {
    /// A base file's number by the file that names it and the path as written there.
    pub files: &'a dyn Fn(FileId, &str) -> Option<FileId>,
    /// A document by its file and `name`.
    pub documents: &'a HashMap<(FileId, String), Node>,
}

impl<'a> Library<'a> {
    /// The check with this name in this file, which `by` mentions.
    pub fn document(&self, place: &(FileId, String), by: Span) -> Result<&'a Node, Diagnostic> {
        let (file, name) = place;
        self.documents.get(place).ok_or_else(|| {
            let missing = Diagnostic::error(by, format!("there is no check `{name}` in that file"));
            let known = self.documents.keys().filter(|(known, _)| known == file).map(|(_, name)| name.as_str());
            missing.did_you_mean(name, known, None)
        })
    }
}

/// Merges a check over its bases; the flag tells whether all of them were found.
pub fn resolve(check: &Node, library: &Library<'_>, diagnostics: &mut Vec<Diagnostic>) -> (Node, bool) {
    let own = check.get("name").and_then(Node::text).unwrap_or("this check");
    let mut merging =
        Merging { library, trail: vec![(check.span.file, own.to_owned())], num_bases: 0, is_whole: true, diagnostics };
    let tree = merging.merged(check);
    (tree, merging.is_whole)
}

/// A walk from a check down to its bases.
struct Merging<'a> {
    library: &'a Library<'a>,
    /// The checks between the first one and this one: by file too, for a base may have the name of what extends it.
    trail: Vec<(FileId, String)>,
    num_bases: usize,
    is_whole: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Merging<'_> {
    fn merged(&mut self, check: &Node) -> Node {
        let mut below: Option<Node> = None;
        for (name, span) in bases(check) {
            match name.map_err(Some).and_then(|name| self.base(check, name, span)) {
                Ok(base) => {
                    // The first one settles its `key+` over nothing: what it appends begins a list.
                    let before = below.take().unwrap_or_else(|| Node::new(base.span, Kind::Map(vec![])));
                    below = Some(yaml::merge(&before, &base, self.diagnostics));
                }
                Err(diagnostic) => {
                    self.is_whole = false;
                    self.diagnostics.extend(diagnostic);
                }
            }
        }
        match below {
            None => check.clone(),
            Some(below) => yaml::merge(&below, check, self.diagnostics),
        }
    }

    /// A base, merged over its own bases. An error without a diagnostic has been reported already.
    fn base(&mut self, check: &Node, (path, name): BaseName<'_>, span: Span) -> Result<Node, Option<Diagnostic>> {
        let file = match path {
            "" => check.span.file,
            path => (self.library.files)(check.span.file, path).ok_or(None)?,
        };
        let place = (file, name.to_owned());
        if self.trail.contains(&place) {
            let names: Vec<&str> = self.trail.iter().map(|(_, name)| name.as_str()).collect();
            let cycle = format!("a check cannot extend itself: {} -> {name}", names.join(" -> "));
            return Err(Some(Diagnostic::error(span, cycle)));
        }
        let base = self.library.document(&place, span)?;
        self.num_bases += 1;
        if self.trail.len() > MAX_CHAIN {
            let message = format!("this chain of bases is longer than {MAX_CHAIN}");
            // Every check further up has the same chain below it.
            let is_reported = self.diagnostics.iter().any(|known| known.message == message);
            return Err((!is_reported).then(|| Diagnostic::error(span, message).hint("merge some of them")));
        }
        if self.num_bases > MAX_BASES {
            let message = format!("a check extends more than {MAX_BASES} bases, each counted as often as it is reached");
            let diagnostic = Diagnostic::error(span, message).hint("let it extend each of them once");
            return Err((self.num_bases == MAX_BASES + 1).then_some(diagnostic));
        }
        self.trail.push(place);
        let base = inheritable(&self.merged(base));
        self.trail.pop();
        Ok(base)
    }
}

/// A base without what belongs to it alone.
fn inheritable(base: &Node) -> Node {
    base.without(&["name", "abstract", "extends"])
}
