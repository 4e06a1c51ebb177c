//! The tree of a file as far as it can be read: a mistake ends it, and what is before the mistake counts.

use granit_parser::{Event, Parser, ScalarStyle, options};
use std::ops::Range;

/// Deeper ones are not read, as in `yaml`, which imports what this is for.
const MAX_DEPTH: usize = 100;

pub(super) enum Tree {
    Scalar {
        text: String,
        is_plain: bool,
        is_block: bool,
        bytes: Range<usize>,
    },
    Seq(Vec<Tree>),
    /// Keys and values in turn.
    Map(Vec<Tree>),
    Other,
}

impl Tree {
    pub(super) fn text(&self) -> &str {
        if let Self::Scalar { text, .. } = self { text } else { "" }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::Seq(items) = self { items } else { &[] }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Self)> {
        let pairs = if let Self::Map(nodes) = self { nodes.chunks_exact(2) } else { [].chunks_exact(2) };
        pairs.map(|pair| (pair[0].text(), &pair[1]))
    }

    /// The text of a key's value.
    pub(super) fn text_of(&self, key: &str) -> &str {
        self.entries().find(|(name, _)| *name == key).map_or("", |(_, value)| value.text())
    }
}

/// The documents of a file.
pub(super) fn read(text: &str) -> Vec<Tree> {
    let (mut documents, mut open) = (Vec::new(), Vec::<Tree>::new());
    let mut parser = Parser::new_from_str_with_options(text, options! { emit_unresolved_aliases: true, emit_comments: false });
    while let Some(next) = parser.next() {
        let Ok((event, at)) = next else {
            while !open.is_empty() {
                close(&mut open, &mut documents);
            }
            if matches!(parser.proceed_next_document(), Ok(true)) {
                continue;
            }
            break;
        };
        match event {
            Event::Scalar(text, style, ..) => {
                let is_plain = matches!(style, ScalarStyle::Plain);
                let is_block = !is_plain && !matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
                let bytes = at.byte_range().unwrap_or_default();
                put(Tree::Scalar { text: text.into_owned(), is_plain, is_block, bytes }, &mut open, &mut documents);
            }
            Event::SequenceStart(..) => open.push(Tree::Seq(Vec::new())),
            Event::MappingStart(..) => open.push(Tree::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => close(&mut open, &mut documents),
            Event::Alias(..) | Event::UnresolvedAlias(..) => put(Tree::Other, &mut open, &mut documents),
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            break;
        }
    }
    while !open.is_empty() {
        close(&mut open, &mut documents);
    }
    documents
}

fn close(open: &mut Vec<Tree>, documents: &mut Vec<Tree>) {
    if let Some(tree) = open.pop() {
        put(tree, open, documents);
    }
}

fn put(tree: Tree, open: &mut [Tree], documents: &mut Vec<Tree>) {
    match open.last_mut() {
        Some(Tree::Seq(nodes) | Tree::Map(nodes)) => nodes.push(tree),
        _ => documents.push(tree),
    }
}
