//! Decoding a YAML tree with a table of keys: every mistake is collected, none stops the reading.
//!
//! Decoding is pure and reports nothing twice: a value that cannot be read is `None`, with its diagnostic in the
//! [`Context`]. The caller checks values against each other.

mod collections;
mod keys;
mod scalars;

pub use collections::{Documents, Mapping, OneOrMany, Ordered};
pub use keys::{Instead, Key, Keyed, MoreKeys, Overlay, Table, derived, object, overlay, overlay_schema};
pub use scalars::{Limit, Name, Within, word, words_schema};

use crate::{
    Value,
    diagnostic::{Diagnostic, Span},
    yaml::{Kind, Node},
};
use serde_json::json;
use std::ops::Deref;

/// The treatment of scalars with placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholders {
    /// The type is only known once the file is rendered: such a scalar decodes to `None` without a diagnostic.
    Defer,
    /// A placeholder is a mistake: in a rendered tree, or in a file that has none.
    Refuse,
}

/// Settings and diagnostics of decoding.
#[derive(Debug)]
pub struct Context {
    pub diagnostics: Vec<Diagnostic>,
    pub placeholders: Placeholders,
    /// Keys that open tables have beside their own.
    pub more: MoreKeys,
    /// Whether what is being decoded will be merged over something that may have what is missing.
    overlay: bool,
}

impl Context {
    /// A context without mistakes yet.
    pub fn new(placeholders: Placeholders) -> Self {
        Self::with(placeholders, MoreKeys::default())
    }

    /// A context without mistakes yet, in which open tables have `more` keys.
    pub fn with(placeholders: Placeholders, more: MoreKeys) -> Self {
        Self { diagnostics: vec![], placeholders, more, overlay: false }
    }

    /// Returns whether what is being decoded will be merged over something else, which may have what is missing.
    pub fn is_overlay(&self) -> bool {
        self.overlay
    }

    /// Decodes something that will be merged over something else.
    fn as_overlay<T>(&mut self, decode: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.overlay, true);
        let decoded = decode(self);
        self.overlay = outer;
        decoded
    }

    /// The kind of a node that can be decoded now: not of a broken one, and not of a placeholder.
    pub fn kind<'a>(&mut self, node: &'a Node) -> Option<&'a Kind> {
        if node.is_bad() {
            return None;
        }
        if node.has_placeholder() {
            if self.placeholders == Placeholders::Refuse {
                self.push(
                    Diagnostic::error(node.place(), "`${{` is not allowed here")
                        .hint("placeholders are filled in in check files and manifests, once; what they yield is not read again"),
                );
            }
            return None;
        }
        Some(&node.kind)
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds a mistake in a node and decodes it to nothing.
    pub fn wrong<T>(&mut self, node: &Node, message: impl Into<String>, hint: Option<&str>) -> Option<T> {
        let mut diagnostic = Diagnostic::error(node.place(), message).maybe_hint(hint);
        if let Some(alias) = node.via
            && alias != node.span
        {
            diagnostic = diagnostic.related(node.span, "the alias refers to this");
        }
        self.push(diagnostic);
        None
    }

    /// The mistake of a wrong type: `expected a list, found a number`.
    pub fn expected<T>(&mut self, node: &Node, expected: &str, hint: Option<&str>) -> Option<T> {
        self.wrong(node, format!("expected {expected}, found {}", node.what()), hint)
    }
}

/// A value that can be read from a tree, and its JSON schema for editors.
pub trait Decode: Sized {
    /// Null is a value. If it is not, a null entry of a mapping counts as missing: so a layer removes what one below it sets.
    const TAKES_NULL: bool = false;

    /// Reads a value. `None` after a mistake, and for a placeholder under [`Placeholders::Defer`].
    fn decode(node: &Node, context: &mut Context) -> Option<Self>;

    /// The JSON schema of what [`Decode::decode`] accepts, placeholders included.
    fn schema() -> Value;
}

/// A value that is one of a few words. Declared by [`words!`](crate::words).
pub trait Words: Copy + 'static {
    /// The words of the files with their values, in the order of the documentation.
    const WORDS: &'static [(&'static str, Self)];
}

/// Declares enums of plain variants, each with its word: the one in files, in JSON, in the database and in messages. Files
/// may have other spellings, `Variant = "word" | "other"`.
/// The crate that uses it needs `serde`.
#[macro_export]
macro_rules! words {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal $(| $other:literal)*,)* }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $visibility enum $name {
            $($(#[$of_variant])* #[serde(rename = $word)] $variant,)*
        }

        impl $crate::decode::Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant), $(($other, Self::$variant),)*)*];
        }

        impl $name {
            #[allow(dead_code, reason = "not every enum is written")]
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

impl<T: Words> Decode for T {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        word(node, context, Self::WORDS)
    }

    fn schema() -> Value {
        words_schema(Self::WORDS)
    }
}

/// A value and its place, for mistakes that only show later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Decode> Decode for Spanned<T> {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        Some(Self { value: T::decode(node, context)?, span: node.place() })
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// Kept as it is, placeholders included.
impl Decode for Node {
    const TAKES_NULL: bool = true;

    fn decode(node: &Node, _: &mut Context) -> Option<Self> {
        (!node.is_bad()).then(|| node.clone())
    }

    fn schema() -> Value {
        json!({})
    }
}

/// A list or scalar may be null where the format says so: an open bound, say.
impl<T: Decode> Decode for Option<T> {
    const TAKES_NULL: bool = true;

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        if node.is_null() { Some(None) } else { T::decode(node, context).map(Some) }
    }

    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "null" }] })
    }
}

/// The schema of a typed value, or of a placeholder that will yield one.
pub fn or_placeholder(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "$ref": "#/$defs/placeholder" }] })
}

#[cfg(test)]
mod tests;
