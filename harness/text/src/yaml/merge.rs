//! Merging one tree over another: for `extends`, for `when`, and for a partition's settings over its system's.

use super::{Kind, Node};
use crate::diagnostic::Diagnostic;
use std::collections::HashMap;

/// Merges `over` over `base`: mappings merge, keys of `base` first; lists and scalars replace, null included.
/// `key+: [..]` in `over` appends to the list `key`, or begins it.
///
/// A placeholder may be either list of an append: it becomes an item, and is spliced when it is rendered.
/// Appending to anything but a list is a diagnostic.
pub fn merge(base: &Node, over: &Node, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let Kind::Map(additions) = &*over.kind else { return over.clone() };
    let mut entries = base.entries().to_vec();
    let mut places: HashMap<&str, usize> =
        base.entries().iter().enumerate().filter_map(|(at, (key, _))| Some((key.text()?, at))).collect();
    for (key, value) in additions {
        let written = key.text().unwrap_or_default();
        let appended = written.strip_suffix('+');
        let name = appended.unwrap_or(written);
        let before = places.get(name).map(|at| &entries[*at].1);
        let after = match (appended, before) {
            (Some(_), _) => match append(before, key, value) {
                Ok(list) => list,
                Err(diagnostic) => {
                    diagnostics.push(*diagnostic);
                    continue;
                }
            },
            (None, Some(before)) => merge(before, value, diagnostics),
            // Even without a base, the appending keys inside have to be resolved.
            (None, None) => merge(&Node::new(value.span, Kind::Map(vec![])), value, diagnostics),
        };
        let key = if appended.is_some() { Node { kind: renamed(key, name), ..key.clone() } } else { key.clone() };
        let at = *places.entry(name).or_insert(entries.len());
        if at == entries.len() {
            entries.push((key, after));
        } else {
            entries[at] = (key, after);
        }
    }
    Node { kind: Kind::Map(entries).into(), ..over.clone() }
}

fn renamed(key: &Node, name: &str) -> std::sync::Arc<Kind> {
    match &*key.kind {
        Kind::Scalar { style, tag, .. } => Kind::Scalar { text: name.to_owned(), style: *style, tag: tag.clone() }.into(),
        _ => key.kind.clone(),
    }
}

fn append(before: Option<&Node>, key: &Node, value: &Node) -> Result<Node, Box<Diagnostic>> {
    let list = |node: &Node| match &*node.kind {
        Kind::Seq(items) => Some(items.clone()),
        Kind::Bad => Some(vec![]),
        Kind::Scalar { .. } if node.has_placeholder() => Some(vec![node.clone()]),
        Kind::Scalar { .. } | Kind::Map(_) => None,
    };
    let name = key.text().unwrap_or_default();
    let Some(mut added) = list(value) else {
        let message = format!("`{name}` appends a list, found {}", value.what());
        return Err(Box::new(Diagnostic::error(value.place(), message).hint(format!("write `{name}: [...]`"))));
    };
    let mut items = match before {
        Some(before) if !before.is_null() => list(before).ok_or_else(|| {
            let message = format!("`{name}` appends to a list, but the value below it is {}", before.what());
            let replace = format!("write `{}` to replace the value", name.trim_end_matches('+'));
            Box::new(Diagnostic::error(key.place(), message).hint(replace).related(before.place(), "this value"))
        })?,
        _ => vec![],
    };
    items.append(&mut added);
    Ok(Node { kind: Kind::Seq(items).into(), ..value.clone() })
}
