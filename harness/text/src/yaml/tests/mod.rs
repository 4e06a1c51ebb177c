//! Tests of the tree as its users see it.

use super::*;
use crate::diagnostic::{Sources, render_short};

/// Parses a text and renders its mistakes short.
fn read(text: &str) -> (Vec<Node>, String) {
    let mut sources = Sources::default();
    let file = sources.add("t.yaml", text);
    let parsed = parse(file, text);
    (parsed.documents, render_short(&parsed.diagnostics, &sources))
}

/// A tree in one line, styles and places left out.
fn shape(node: &Node) -> String {
    match &*node.kind {
        Kind::Scalar { text, .. } => format!("{text:?}"),
        Kind::Seq(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let entry = |(key, value): &(Node, Node)| format!("{}: {}", key.text().unwrap_or("?"), shape(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Kind::Bad => "BAD".to_owned(),
    }
}

fn shapes(text: &str) -> String {
    let (documents, mistakes) = read(text);
    format!("{}\n{mistakes}", documents.iter().map(shape).collect::<Vec<_>>().join("\n"))
}

mod merging;
mod parsing;
mod values;
