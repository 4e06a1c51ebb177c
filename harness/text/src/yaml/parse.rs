//! Parses text to trees: documents, anchors, `<<`, limits. A syntax error ends its document, not the file.

use super::{Kind, Node, Style, syntax};
use crate::diagnostic::{Diagnostic, FileId, Span};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, StructureStyle, options};
use std::{collections::HashMap, ops::Range};

/// The largest file that is read.
pub const MAX_BYTES: usize = 4 << 20;
/// The deepest nesting of lists and mappings, aliases followed.
pub const MAX_DEPTH: usize = 100;
/// The most values of a file, every alias counted as what it refers to.
pub const MAX_NODES: usize = 250_000;

#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// Its documents in order, without empty ones. One that could not be read is [`Kind::Bad`].
    pub documents: Vec<Node>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads all documents of a file.
pub fn parse(file: FileId, text: &str) -> Parsed {
    let mut builder = Builder::new(file, text);
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; the limit is {MAX_BYTES}", text.len());
        builder.parsed.diagnostics.push(Diagnostic::error(builder.span(0, 0), message));
        return builder.parsed;
    }
    let mut parser = Parser::new_from_str_with_options(text, options! { emit_unresolved_aliases: true, emit_comments: false });
    while let Some(next) = parser.next() {
        let step = match next {
            Ok((event, span)) => builder.take(event, &span),
            Err(error) => builder.syntax_error(&error),
        };
        match step {
            Step::Next => {}
            Step::SkipDocument => {
                builder.abandon();
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    break;
                }
            }
            Step::Stop => {
                builder.abandon();
                break;
            }
        }
    }
    builder.parsed
}

/// What to read after an event.
enum Step {
    Next,
    SkipDocument,
    Stop,
}

/// A node with what it costs: an alias counts all of it again.
#[derive(Clone)]
struct Built {
    node: Node,
    nodes: usize,
    height: usize,
}

/// A list or mapping whose end has not been read.
struct Open {
    start: usize,
    flow: bool,
    anchor: usize,
    nodes: usize,
    height: usize,
    items: Items,
}

enum Items {
    Seq(Vec<Node>),
    Map(Vec<(Node, Node)>, Option<Node>),
}

struct Builder<'a> {
    file: FileId,
    text: &'a str,
    parsed: Parsed,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Built>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn new(file: FileId, text: &'a str) -> Self {
        Self { file, text, parsed: Parsed::default(), open: vec![], root: None, anchors: HashMap::new(), nodes: 0 }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let byte = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { file: self.file, start: byte(start), end: byte(end.max(start)) }
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        self.parsed.diagnostics.push(diagnostic);
    }

    fn take(&mut self, event: Event<'_>, at: &granit_parser::Span) -> Step {
        let bytes = at.byte_range().unwrap_or_default();
        let span = self.span(bytes.start, bytes.end);
        let tagged = at.tag_span().and_then(|tag| tag.byte_range()).map_or(span, |tag| self.span(tag.start, tag.end));
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::DocumentEnd => {
                let empty = |node: &Node| node.plain() == Some("");
                self.parsed.documents.extend(self.root.take().filter(|root| !empty(root)));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| self.tag(&tag.original(), tagged, &["!!str", "!"]));
                // The parser writes `~` for a value that is not there.
                let text = if bytes.is_empty() && style == ScalarStyle::Plain { String::new() } else { text.into_owned() };
                let node = self.scalar(span, text, style, tag);
                return self.finish(Built { node, nodes: 1, height: 0 }, anchor);
            }
            Event::SequenceStart(style, anchor, tag) => {
                tag.map(|tag| self.tag(&tag.original(), tagged, &["!!seq"]));
                return self.begin(bytes.start, style, anchor, Items::Seq(vec![]), span);
            }
            Event::MappingStart(style, anchor, tag) => {
                tag.map(|tag| self.tag(&tag.original(), tagged, &["!!map"]));
                return self.begin(bytes.start, style, anchor, Items::Map(vec![], None), span);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(bytes.end),
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::UnresolvedAlias(name) => {
                self.error(
                    Diagnostic::error(span, format!("no anchor `&{name}` above this alias"))
                        .hint(format!("a text that begins with `*` needs quotes: \"*{name}\"")),
                );
                return self.finish(Built { node: Node::new(span, Kind::Bad), nodes: 1, height: 0 }, 0);
            }
            _ => {}
        }
        Step::Next
    }

    /// Only tags that change nothing or make text are known.
    fn tag(&mut self, tag: &str, span: Span, known: &[&str]) -> String {
        if !known.contains(&tag) {
            let message = format!("the tag `{tag}` is not supported");
            self.error(Diagnostic::error(span, message).hint("leave it out, or put a value that begins with `!` in quotes"));
        }
        "!!str".to_owned()
    }

    fn scalar(&mut self, span: Span, text: String, style: ScalarStyle, tag: Option<String>) -> Node {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            _ => Style::Block,
        };
        let cut = style == Style::Plain && text.rfind("${{").is_some_and(|start| !text[start..].contains("}}"));
        if cut {
            let hint = if self.text[span.end as usize..].trim_start_matches([' ', '\t']).starts_with('#') {
                "YAML takes ` #` for the beginning of a comment: put the whole value in quotes"
            } else {
                "close it with `}}`, or put the whole value in quotes"
            };
            self.error(Diagnostic::error(span, "a placeholder `${{` is never closed").hint(hint));
            return Node::new(span, Kind::Bad);
        }
        Node::new(span, Kind::Scalar { text, style, tag })
    }

    fn begin(&mut self, start: usize, style: StructureStyle, anchor: usize, items: Items, span: Span) -> Step {
        if self.open.len() >= MAX_DEPTH {
            self.error(Diagnostic::error(span, too_deep()));
            return Step::SkipDocument;
        }
        let flow = matches!(style, StructureStyle::Flow);
        self.open.push(Open { start, flow, anchor, nodes: 1, height: 0, items });
        Step::Next
    }

    fn end(&mut self, event_end: usize) -> Step {
        let Some(open) = self.open.pop() else { return Step::Next };
        let (kind, last) = match open.items {
            Items::Seq(items) => {
                let last = items.last().map(Node::place);
                (Kind::Seq(items), last)
            }
            Items::Map(entries, _) => {
                let last = entries.last().map(|(_, value)| value.place());
                (Kind::Map(self.settle(entries)), last)
            }
        };
        // The event that ends a block is at whatever follows it, lines below.
        let end = if open.flow { event_end } else { last.map_or(event_end, |span| span.end as usize) };
        let node = Node::new(self.span(open.start, end), kind);
        self.finish(Built { node, nodes: open.nodes, height: open.height + 1 }, open.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Step {
        let Some(built) = self.anchors.get(&anchor).cloned() else {
            self.error(Diagnostic::error(span, "an alias inside the value that it names"));
            return self.finish(Built { node: Node::new(span, Kind::Bad), nodes: 1, height: 0 }, 0);
        };
        if self.open.len() + built.height > MAX_DEPTH {
            self.error(Diagnostic::error(span, too_deep()).related(built.node.span, "the alias refers to this"));
            return Step::SkipDocument;
        }
        self.finish(Built { node: Node { via: Some(span), ..built.node }, ..built }, 0)
    }

    /// Puts a complete node into its parent.
    fn finish(&mut self, built: Built, anchor: usize) -> Step {
        let is_collection = matches!(&*built.node.kind, Kind::Seq(_) | Kind::Map(_)) && built.node.via.is_none();
        // The items of a collection were counted when they ended.
        self.nodes += if is_collection { 1 } else { built.nodes };
        if self.nodes > MAX_NODES {
            let message = format!("the file has more than {MAX_NODES} values, aliases counted as what they refer to");
            self.error(Diagnostic::error(built.node.place(), message).hint("split it"));
            return Step::Stop;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, built.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(built.node);
            return Step::Next;
        };
        parent.nodes += built.nodes;
        parent.height = parent.height.max(built.height);
        match &mut parent.items {
            Items::Seq(items) => items.push(built.node),
            Items::Map(entries, key) => match key.take() {
                None => *key = Some(built.node),
                Some(key) => entries.push((key, built.node)),
            },
        }
        Step::Next
    }

    /// Makes a mapping of its entries as written: merges `<<`, reports duplicates and keys that are not text.
    fn settle(&mut self, written: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
        let mut entries: Vec<(Node, Node)> = Vec::with_capacity(written.len());
        let mut merges = Vec::new();
        let mut first: HashMap<String, Span> = HashMap::with_capacity(written.len());
        for (key, value) in written {
            let Some(text) = key.text().filter(|text| !text.is_empty()) else {
                if !key.is_bad() {
                    self.error(Diagnostic::error(key.place(), format!("a key must be text, found {}", key.what())));
                }
                continue;
            };
            if key.plain() == Some("<<") {
                merges.push(value);
            } else if let Some(span) = first.get(text) {
                let message = format!("`{text}` is written twice");
                self.error(
                    Diagnostic::error(key.place(), message).related(*span, "first written here").hint("leave one of them out"),
                );
            } else {
                first.insert(text.to_owned(), key.place());
                entries.push((key, value));
            }
        }
        for value in merges {
            self.merge_into(&mut entries, &mut first, &value);
        }
        entries
    }

    /// Explicit keys win over merged ones, and of several merged mappings the first.
    fn merge_into(&mut self, entries: &mut Vec<(Node, Node)>, seen: &mut HashMap<String, Span>, value: &Node) {
        let sources = match &*value.kind {
            Kind::Seq(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for source in sources {
            match &*source.kind {
                Kind::Map(merged) => {
                    for (key, value) in merged {
                        if let Some(text) = key.text()
                            && !seen.contains_key(text)
                        {
                            seen.insert(text.to_owned(), key.place());
                            entries.push((key.clone(), value.clone()));
                        }
                    }
                }
                Kind::Bad => {}
                _ => self.error(
                    Diagnostic::error(source.place(), format!("`<<` merges a mapping, found {}", source.what()))
                        .hint("write `<<: *name` of a mapping, or a list of such aliases"),
                ),
            }
        }
    }

    fn syntax_error(&mut self, error: &ScanError) -> Step {
        use granit_parser::ErrorKind as E;
        let mut at = error.marker().byte_offset().unwrap_or(self.text.len()).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        if matches!(error.kind(), E::RecursionLimitExceeded) {
            self.error(Diagnostic::error(self.span(at, at), too_deep()));
            return Step::SkipDocument;
        }
        if let Some(start) = syntax::placeholder_around(self.text, at) {
            // What YAML cut off before the error was reported as a placeholder without an end.
            self.parsed.diagnostics.retain(|known| known.span.is_none_or(|span| span.start as usize != start));
            let message = "a placeholder needs quotes here";
            self.error(Diagnostic::error(self.span(start, at), message).hint(syntax::QUOTE_PLACEHOLDER));
            return Step::SkipDocument;
        }
        let (message, hint) = syntax::explain(error.kind(), self.text, at);
        let mut diagnostic = Diagnostic::error(self.span(at, at), message).maybe_hint(hint);
        let bracket = self.open.iter().rev().find(|open| open.flow);
        // An error may be found late and placed before the bracket.
        let is_above = |bracket: &&Open| self.text.get(bracket.start..at).is_some_and(|between| between.contains('\n'));
        if let Some(bracket) = bracket.filter(is_above) {
            diagnostic = diagnostic.related(self.span(bracket.start, bracket.start + 1), "inside this bracket");
        }
        self.error(diagnostic);
        Step::SkipDocument
    }

    fn abandon(&mut self) {
        let start = self.open.first().map_or(0, |open| open.start);
        self.parsed.documents.push(Node::new(self.span(start, start), Kind::Bad));
        self.open.clear();
        self.anchors.clear();
        self.root = None;
    }
}

fn too_deep() -> String {
    format!("lists and mappings are nested more than {MAX_DEPTH} deep")
}

/// The comments of a text, without their `#`, and their places in bytes. Ends at the first mistake.
pub fn comments(text: &str) -> impl Iterator<Item = (String, Range<usize>)> {
    let options = options! { emit_unresolved_aliases: true, emit_comments: true };
    Parser::new_from_str_with_options(text, options).map_while(Result::ok).filter_map(|(event, at)| match event {
        Event::Comment(words, _) => Some((words.into_owned(), at.byte_range()?)),
        _ => None,
    })
}
