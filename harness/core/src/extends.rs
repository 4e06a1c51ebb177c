//! `extends`: a check laid over its bases, in this file or in another.
//!
//! Bases are merged in the order of the list, each over the one before, and the check over them all: maps merge, lists
//! replace, `key+:` appends. `name`, `abstract` and `extends` are not inherited.

use crate::{
    diagnostic::{Diagnostic, FileId, Span},
    yaml::{self, Node},
};
use std::collections::HashMap;

/// Where a base is: `base.yaml#name`, or `#name` for the same file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseName {
    /// The path as written; `None`: this file.
    pub path: Option<String>,
    /// The base's `name`.
    pub name: String,
}

/// The bases that a check names, with their places.
pub fn bases(check: &Node) -> Vec<(Result<BaseName, Diagnostic>, Span)> {
    let Some(node) = check.get("extends") else { return vec![] };
    let items = if node.text().is_some() { std::slice::from_ref(node) } else { node.items() };
    items.iter().map(|item| (base_name(item), item.span)).collect()
}

fn base_name(item: &Node) -> Result<BaseName, Diagnostic> {
    let wrong = |message: &str| Diagnostic::error(item.span, message).hint("write base.yaml#name, or \"#name\" for this file");
    let text = item.text().ok_or_else(|| wrong("a base must be text"))?;
    let (path, name) = text.split_once('#').ok_or_else(|| wrong("a base lacks `#` and the name of the check"))?;
    if name.is_empty() {
        return Err(wrong("a base lacks the name of the check behind `#`"));
    }
    Ok(BaseName { path: (!path.is_empty()).then(|| path.to_owned()), name: name.to_owned() })
}

/// All documents that a base may be in: by file and `name`.
pub struct Library<'a> {
    /// A base file's number by the file that names it and the path as written there.
    pub files: &'a dyn Fn(FileId, &str) -> Option<FileId>,
    /// A document by its file and `name`.
    pub documents: &'a HashMap<(FileId, String), Node>,
}

/// Lays a check over its bases.
pub fn resolve(check: &Node, library: &Library<'_>, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let mut trail = vec![own_name(check).unwrap_or("this check").to_owned()];
    lay(check, library, &mut trail, diagnostics)
}

fn own_name(check: &Node) -> Option<&str> {
    check.get("name").and_then(Node::text)
}

fn lay(check: &Node, library: &Library<'_>, trail: &mut Vec<String>, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let mut below: Option<Node> = None;
    for (name, span) in bases(check) {
        let base = match name.and_then(|name| find(check, &name, span, library)) {
            Ok(base) => base,
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                continue;
            }
        };
        let title = own_name(&base).unwrap_or_default().to_owned();
        if trail.contains(&title) {
            let circle = format!("{} -> {title}", trail.join(" -> "));
            diagnostics.push(Diagnostic::error(span, format!("a check cannot extend itself: {circle}")));
            continue;
        }
        trail.push(title);
        let base = inheritable(&lay(&base, library, trail, diagnostics));
        trail.pop();
        below = Some(match below {
            None => base,
            Some(below) => yaml::merge(&below, &base, diagnostics),
        });
    }
    match below {
        None => check.clone(),
        Some(below) => yaml::merge(&below, check, diagnostics),
    }
}

fn find(check: &Node, name: &BaseName, span: Span, library: &Library<'_>) -> Result<Node, Diagnostic> {
    let file = match &name.path {
        None => check.span.file,
        // A file that could not be read has its diagnostic already; its spans would point nowhere.
        Some(path) => (library.files)(check.span.file, path)
            .ok_or_else(|| Diagnostic::error(span, format!("the base file {path} could not be read")))?,
    };
    library.documents.get(&(file, name.name.clone())).cloned().ok_or_else(|| {
        let names: Vec<&str> = library.documents.keys().filter(|(f, _)| *f == file).map(|(_, name)| name.as_str()).collect();
        let known = crate::diagnostic::nearest(&name.name, names.iter().copied());
        let diagnostic = Diagnostic::error(span, format!("there is no check `{}` in that file", name.name));
        match known {
            Some(known) => diagnostic.hint(format!("did you mean `{known}`?")),
            None => diagnostic,
        }
    })
}

/// A base without what belongs to it alone.
fn inheritable(base: &Node) -> Node {
    base.without(&["name", "abstract", "extends"])
}
