//! YAML as a tree that keeps what the author wrote: source text, quoting, places.
//!
//! Scalars are not resolved here; `1.20`, `0644` and `no` mean something only to the key that reads them.

use crate::diagnostic::Span;
use std::sync::Arc;

/// A value in a YAML document. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it stands. For what a placeholder became: the placeholder's place.
    pub span: Span,
    /// The alias (`*name`) through which it was reached.
    pub via: Option<Span>,
    /// What it is.
    pub kind: Arc<Kind>,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Text, not resolved.
    Scalar {
        /// As written, escapes and folding undone.
        text: String,
        /// How it was written: only a plain scalar can be a number, a boolean or null.
        style: Style,
        /// An explicit tag.
        tag: Option<String>,
    },
    /// A list.
    Seq(Vec<Node>),
    /// A mapping, duplicates included.
    Map(Vec<(Node, Node)>),
    /// What could not be read; its diagnostic exists already.
    Bad,
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// `|` or `>`.
    Block,
}
