//! Scalars: text, numbers, booleans, durations, and words of a fixed set.

use super::{Context, Decode, or_placeholder};
use crate::{
    Value,
    diagnostic::did_you_mean,
    time::parse_duration,
    yaml::{Kind, Node},
};
use serde_json::json;
use std::{num::NonZeroU32, ops::Deref, time::Duration};

/// Numbers and booleans are text too, as they are written.
impl Decode for String {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Scalar { text, .. } if !node.is_null() => Some(text.clone()),
            _ => context.expected(node, "text", None),
        }
    }

    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

impl Decode for bool {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        context.kind(node)?;
        match node.plain() {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            _ => {
                let hint = match node.text().unwrap_or_default().to_ascii_lowercase().as_str() {
                    "yes" | "on" | "y" | "1" | "true" => "write true, without quotes",
                    "no" | "off" | "n" | "0" | "false" => "write false, without quotes",
                    _ => "write true or false",
                };
                context.expected(node, "true or false", Some(hint))
            }
        }
    }

    fn schema() -> Value {
        or_placeholder(&json!({ "type": "boolean" }))
    }
}

/// Reads a plain scalar with `FromStr`; `expected` names what it should have been.
fn number<T: std::str::FromStr>(node: &Node, context: &mut Context, expected: &str) -> Option<T> {
    context.kind(node)?;
    if let Some(number) = node.plain().and_then(|text| text.parse().ok()) {
        return Some(number);
    }
    if let Some(text) = node.plain().filter(|_| node.what() == "a number") {
        return context.wrong(node, format!("expected {expected}, found {text}"), None);
    }
    let hint = match node.text() {
        Some(text) if node.plain().is_none() && text.parse::<T>().is_ok() => Some("leave the quotes out"),
        Some(text) if text.ends_with('%') => Some("write a fraction: 10 % is 0.1"),
        _ => None,
    };
    context.expected(node, expected, hint)
}

macro_rules! whole_numbers {
    ($($type:ty, $expected:literal, $schema:tt;)*) => {$(
        impl Decode for $type {
            fn decode(node: &Node, context: &mut Context) -> Option<Self> {
                number(node, context, $expected)
            }

            fn schema() -> Value {
                or_placeholder(&json!($schema))
            }
        }
    )*};
}

whole_numbers! {
    u32, "a whole number from 0", { "type": "integer", "minimum": 0 };
    u64, "a whole number from 0", { "type": "integer", "minimum": 0 };
    NonZeroU32, "a whole number from 1", { "type": "integer", "minimum": 1 };
    i32, "a whole number", { "type": "integer" };
    i64, "a whole number", { "type": "integer" };
}

impl Decode for f64 {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let value: f64 = number(node, context, "a number")?;
        // Rust also reads `inf` and `nan`, which YAML takes for text.
        if value.is_finite() { Some(value) } else { context.expected(node, "a finite number", None) }
    }

    fn schema() -> Value {
        or_placeholder(&json!({ "type": "number" }))
    }
}

const DURATION: &str = "write 1d2h3m4s, any part may be left out, or a number of seconds";

impl Decode for Duration {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Scalar { text, .. } => match parse_duration(text) {
                Ok(duration) => Some(duration),
                Err(_) => context.wrong(node, format!("`{text}` is not a duration"), Some(DURATION)),
            },
            _ => context.expected(node, "a duration", Some(DURATION)),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": r"^(\d+|(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$" },
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

/// A limit, or null for none at all: different from a limit that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit<T>(pub Option<T>);

impl<T> Limit<T> {
    /// The more specific limit, else the more general one.
    pub fn over<U: From<T>>(own: Option<Self>, below: Option<U>) -> Option<U> {
        own.map_or(below, |Self(limit)| limit.map(U::from))
    }
}

impl<T: Decode> Decode for Limit<T> {
    const TAKES_NULL: bool = true;

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        if node.is_null() { Some(Self(None)) } else { T::decode(node, context).map(|limit| Self(Some(limit))) }
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// A duration in which something must be done: longer than none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within(pub Duration);

impl From<Within> for Duration {
    fn from(Within(length): Within) -> Self {
        length
    }
}

impl Decode for Within {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let length = Duration::decode(node, context)?;
        if length.is_zero() { context.wrong(node, "nothing is done in no time", Some(DURATION)) } else { Some(Self(length)) }
    }

    fn schema() -> Value {
        Duration::schema()
    }
}

/// A name that can be part of a case name, a folder and a selector: `nbody`, `gpu-service`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub String);

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The longest name. A folder's name has 255 letters: this one, a hash, the number of a copy, an identifier.
const LONGEST_NAME: usize = 150;

impl Decode for Name {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = String::decode(node, context)?;
        if text.len() > LONGEST_NAME {
            let message = format!("a name has at most {LONGEST_NAME} letters, and this one has {}", text.chars().count());
            return context.wrong(node, message, Some("shorten it: it becomes part of the names of folders"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && text.chars().all(fits) {
            return Some(Self(text));
        }
        let hint = "use ASCII letters, digits, `_`, `-` and `.`, and begin with a letter, a digit or `_`";
        context.wrong(node, format!("`{text}` cannot be a name"), Some(hint))
    }

    fn schema() -> Value {
        json!({ "type": ["string", "number"], "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "maxLength": LONGEST_NAME })
    }
}

/// Reads one word of a fixed set.
pub fn word<T: Copy>(node: &Node, context: &mut Context, words: &[(&str, T)]) -> Option<T> {
    context.kind(node)?;
    let list = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let Some(text) = node.text() else { return context.expected(node, &format!("one of {}", list()), None) };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Some(*value);
    }
    let hint = did_you_mean(text, words.iter().map(|(word, _)| *word));
    context.wrong(node, format!("expected one of {}, found `{text}`", list()), hint.as_deref())
}

/// The schema of one word of a fixed set.
pub fn words_schema<T>(words: &[(&str, T)]) -> Value {
    or_placeholder(&json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() }))
}
