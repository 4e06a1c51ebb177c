//! YAML as a tree that keeps what the author wrote: source text, quoting, places.
//!
//! Scalars are not resolved here; `1.20`, `0644` and `no` mean something only to the key that reads them
//! (`decode`), to a manifest ([`to_value`]) or to a parameter ([`to_parameter_value`]).
//!
//! ```text
//! text -parse-> Node -merge-> Node -to_value-> Value -to_text-> text
//! ```

mod merge;
mod parse;
mod syntax;
mod value;

pub use merge::merge;
pub use parse::{MAX_BYTES, MAX_DEPTH, MAX_NODES, Parsed, comments, parse};
pub use value::{IsText, to_parameter_value, to_text, to_value, to_value_with_texts};

use crate::diagnostic::Span;
use std::sync::Arc;

/// A value in a YAML document. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its place in the file. For what a placeholder became: the placeholder's place.
    pub span: Span,
    /// The alias (`*name`) through which it was reached.
    pub via: Option<Span>,
    pub kind: Arc<Kind>,
}

#[derive(Debug, Clone)]
pub enum Kind {
    /// Unresolved text.
    Scalar {
        /// The text as written, escapes and folding undone.
        text: String,
        /// The notation: only a plain scalar can be a number, a boolean or null.
        style: Style,
        /// An explicit tag: `!!str`, which makes text of a plain scalar. Others are refused when read.
        tag: Option<String>,
    },
    Seq(Vec<Node>),
    /// A mapping. Its keys are scalars and differ: a key written twice is a diagnostic, and its first value counts.
    Map(Vec<(Node, Node)>),
    /// A node that could not be read; its diagnostic exists already.
    Bad,
}

/// The notation of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Quoted,
    /// `|` or `>`.
    Block,
}

impl Node {
    pub fn new(span: Span, kind: Kind) -> Self {
        Self { span, via: None, kind: Arc::new(kind) }
    }

    /// A scalar without a tag.
    pub fn scalar(span: Span, text: impl Into<String>, style: Style) -> Self {
        Self::new(span, Kind::Scalar { text: text.into(), style, tag: None })
    }

    /// The place to show for a mistake in this value: the alias if it was reached through one.
    pub fn place(&self) -> Span {
        self.via.unwrap_or(self.span)
    }

    /// A scalar's text, whatever its style.
    pub fn text(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a plain scalar: the only kind that can be a number, a boolean or null.
    pub fn plain(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Scalar { text, style: Style::Plain, tag: None } => Some(text),
            _ => None,
        }
    }

    /// The kind for messages: `a list`, `a number`.
    pub fn what(&self) -> &'static str {
        match &*self.kind {
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Bad => "a broken value",
            Kind::Scalar { .. } => self.plain().map_or("text", value::what),
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// A key's own node and its value.
    pub fn entry(&self, key: &str) -> Option<&(Node, Node)> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key))
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[(Node, Node)] {
        match &*self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &*self.kind {
            Kind::Seq(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, or the one value that means a list of one.
    pub fn one_or_many(&self) -> &[Node] {
        if matches!(&*self.kind, Kind::Seq(_)) { self.items() } else { std::slice::from_ref(self) }
    }

    /// Nothing at all, `~` or `null`, without quotes.
    pub fn is_null(&self) -> bool {
        self.plain().is_some_and(value::is_null)
    }

    /// Returns whether the node could not be read; its diagnostic exists already.
    pub fn is_bad(&self) -> bool {
        matches!(&*self.kind, Kind::Bad)
    }

    /// Returns whether this scalar contains a placeholder. Lists and mappings are not searched.
    pub fn has_placeholder(&self) -> bool {
        self.text().is_some_and(|text| text.contains("${{"))
    }

    /// The mapping without these keys, and without their `key+`. Anything else as it is.
    #[must_use]
    pub fn without(&self, keys: &[&str]) -> Self {
        self.keep(|name| !keys.contains(&name.trim_end_matches('+')))
    }

    /// The mapping with these keys only. Anything else as it is.
    #[must_use]
    pub fn only(&self, keys: &[&str]) -> Self {
        self.keep(|name| keys.contains(&name))
    }

    fn keep(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let Kind::Map(entries) = &*self.kind else { return self.clone() };
        let stays = |(key, _): &&(Node, Node)| key.text().is_none_or(&wanted);
        if entries.iter().all(|entry| stays(&entry)) {
            return self.clone();
        }
        let kept = entries.iter().filter(stays).cloned().collect();
        Self { via: self.via, ..Self::new(self.span, Kind::Map(kept)) }
    }

    /// Returns whether a placeholder is in this tree, in keys or values.
    pub fn has_placeholder_within(&self) -> bool {
        match &*self.kind {
            Kind::Scalar { .. } => self.has_placeholder(),
            Kind::Seq(items) => items.iter().any(Self::has_placeholder_within),
            Kind::Map(entries) => entries.iter().any(|(key, value)| key.has_placeholder() || value.has_placeholder_within()),
            Kind::Bad => false,
        }
    }
}

#[cfg(test)]
mod tests;
