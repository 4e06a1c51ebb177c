//! Turns trees into values and back into text: the meaning of an unquoted scalar.
//!
//! Manifests mean what kubectl makes of them (go-yaml 2 below sigs.k8s.io/yaml): `0644` is octal, `1_000` a number.
//! What kubectl reads in a way that surprises (`no`, `.inf`, `089`) is refused rather than copied.

use super::{Kind, Node, Style, parse};
use crate::{
    Value,
    diagnostic::{Diagnostic, FileId, Span},
};
use serde_json::{Map, Number};
use std::ops::Range;

/// Whether a string has to be quoted, because it would be something else without.
fn needs_quotes(text: &str) -> bool {
    !matches!(meaning(text), Meaning::Text)
}

/// What an unquoted scalar is.
enum Meaning {
    Null,
    Bool(bool),
    Number(Number),
    Text,
    /// A word that YAML 1.1 reads as a boolean.
    Switch(bool),
    /// `y` or `n`: a boolean to kubectl, a letter to everybody else.
    Letter(bool),
    /// Something like a number that is ambiguous or out of range, and why.
    Refused(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Manifest,
    Parameter,
}

pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub(super) fn what(text: &str) -> &'static str {
    match meaning(text) {
        Meaning::Null => "nothing",
        Meaning::Bool(_) => "a boolean",
        Meaning::Number(_) | Meaning::Refused(_) => "a number",
        Meaning::Text | Meaning::Switch(_) | Meaning::Letter(_) => "text",
    }
}

fn meaning(text: &str) -> Meaning {
    match text {
        _ if is_null(text) => Meaning::Null,
        "true" | "True" | "TRUE" => Meaning::Bool(true),
        "false" | "False" | "FALSE" => Meaning::Bool(false),
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Meaning::Switch(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Meaning::Switch(false),
        "y" | "Y" => Meaning::Letter(true),
        "n" | "N" => Meaning::Letter(false),
        _ => number(text),
    }
}

/// Numbers as go-yaml 2 finds them: underscores are dropped, a leading zero means octal.
fn number(text: &str) -> Meaning {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Meaning::Refused("JSON has no infinity and no NaN");
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Meaning::Text;
    }
    let digits = unsigned.replace('_', "");
    let based = |prefix: &str, radix: u32| {
        let rest = digits.strip_prefix(prefix)?;
        (!rest.is_empty() && rest.chars().all(|c| c.is_digit(radix))).then(|| (rest.to_owned(), radix))
    };
    let decimal = digits.bytes().all(|b| b.is_ascii_digit()).then(|| (digits.clone(), 10));
    let octal = || if digits.len() > 1 { based("0", 8) } else { None };
    let whole = based("0x", 16).or_else(|| based("0b", 2)).or_else(|| based("0o", 8)).or_else(octal).or(decimal);
    let negative = text.starts_with('-');
    match whole {
        Some((_, 10)) if digits.len() > 1 && digits.starts_with('0') => {
            Meaning::Refused("a leading zero means octal, and 8 and 9 are not octal digits")
        }
        Some((whole, radix)) => match integer(negative, &whole, radix) {
            Some(number) => Meaning::Number(number),
            None => Meaning::Refused("it is too large for a whole number of 64 bits"),
        },
        None => float(&digits, negative),
    }
}

fn integer(negative: bool, digits: &str, radix: u32) -> Option<Number> {
    if negative {
        return i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Number::from);
    }
    u64::from_str_radix(digits, radix).ok().map(Number::from)
}

fn float(digits: &str, negative: bool) -> Meaning {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, None), |(m, e)| (m, Some(e)));
    let is_mantissa = mantissa.bytes().any(|b| b.is_ascii_digit())
        && mantissa.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && mantissa.bytes().filter(|b| *b == b'.').count() <= 1;
    let is_exponent = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit())
    });
    if !is_mantissa || !is_exponent {
        return Meaning::Text;
    }
    let value = digits.parse::<f64>().ok().map(|value| if negative { -value } else { value });
    match value.and_then(Number::from_f64) {
        Some(number) => Meaning::Number(number),
        None => Meaning::Refused("it is too large for a number of 64 bits"),
    }
}

/// The value of a tree as kubectl would read it. For manifests and every setting that is passed on unchanged.
///
/// # Errors
/// Every scalar that kubectl would read in a surprising way.
pub fn to_value(node: &Node) -> Result<Value, Vec<Diagnostic>> {
    Conversion::new(Reader::Manifest, |_| false).of(node)
}

/// Says whether a value is text to its reader, by the keys that lead to it; `[]` for an item of a list.
pub type IsText = fn(&[&str]) -> bool;

/// Turns a tree into a value; numbers and booleans become text, as written, where `is_text` says that their reader takes text only.
///
/// # Errors
/// As for [`to_value`].
pub fn to_value_with_texts(node: &Node, is_text: IsText) -> Result<Value, Vec<Diagnostic>> {
    Conversion::new(Reader::Manifest, is_text).of(node)
}

/// The value of a parameter, a variable or an extra. Numbers must be written as Muster would print them, for they
/// become part of names: `1.20` and `010` have to be quoted.
///
/// # Errors
/// Every number in another form, and what [`to_value`] refuses (`y` and `n` excepted, which are text here).
pub fn to_parameter_value(node: &Node) -> Result<Value, Vec<Diagnostic>> {
    Conversion::new(Reader::Parameter, |_| false).of(node)
}

struct Conversion<'n> {
    reader: Reader,
    is_text: IsText,
    path: Vec<&'n str>,
    diagnostics: Vec<Diagnostic>,
}

impl<'n> Conversion<'n> {
    fn new(reader: Reader, is_text: IsText) -> Self {
        Self { reader, is_text, path: Vec::new(), diagnostics: Vec::new() }
    }

    fn of(mut self, node: &'n Node) -> Result<Value, Vec<Diagnostic>> {
        let value = self.convert(node);
        if self.diagnostics.is_empty() && !contains_bad(node) { Ok(value) } else { Err(self.diagnostics) }
    }

    fn convert(&mut self, node: &'n Node) -> Value {
        match &*node.kind {
            Kind::Bad => Value::Null,
            Kind::Seq(items) => items.iter().map(|item| self.below("[]", item)).collect(),
            Kind::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let Some(name) = key.text() else { continue };
                    if self.reader == Reader::Manifest
                        && let Some(plain) = key.plain()
                        && matches!(meaning(plain), Meaning::Switch(_) | Meaning::Letter(_))
                    {
                        let message = format!("YAML 1.1 reads the key {plain} as a boolean");
                        self.diagnostics.push(Diagnostic::error(key.place(), message).hint("quote it"));
                    }
                    map.insert(name.to_owned(), self.below(name, value));
                }
                Value::Object(map)
            }
            Kind::Scalar { text, .. } => match node.plain() {
                None => Value::String(text.clone()),
                Some(plain) => match scalar(plain, self.reader) {
                    Ok(Value::Number(_) | Value::Bool(_)) if (self.is_text)(&self.path) => Value::String(plain.to_owned()),
                    Ok(value) => value,
                    Err((message, hint)) => {
                        self.diagnostics.push(Diagnostic::error(node.place(), message).hint(hint));
                        Value::Null
                    }
                },
            },
        }
    }

    fn below(&mut self, key: &'n str, node: &'n Node) -> Value {
        self.path.push(key);
        let value = self.convert(node);
        self.path.pop();
        value
    }
}

fn contains_bad(node: &Node) -> bool {
    match &*node.kind {
        Kind::Scalar { .. } => false,
        Kind::Seq(items) => items.iter().any(contains_bad),
        Kind::Map(entries) => entries.iter().any(|(key, value)| contains_bad(key) || contains_bad(value)),
        Kind::Bad => true,
    }
}

fn scalar(text: &str, reader: Reader) -> Result<Value, (String, String)> {
    let switch = |on: bool| {
        Err((format!("{text} is a boolean to some readers of YAML and text to others"), format!("write {on}, or quote it")))
    };
    match meaning(text) {
        Meaning::Null => Ok(Value::Null),
        Meaning::Bool(value) => Ok(Value::Bool(value)),
        Meaning::Switch(on) => switch(on),
        Meaning::Letter(on) if reader == Reader::Manifest => switch(on),
        Meaning::Text | Meaning::Letter(_) => Ok(Value::String(text.to_owned())),
        Meaning::Refused(why) => Err((format!("{text} cannot be a number: {why}"), "quote it to keep it as text".to_owned())),
        Meaning::Number(number) if reader == Reader::Parameter && number.to_string() != text => Err((
            format!("the number {text} is not in the form in which it would be printed"),
            format!("write {number}, or quote it to keep it as text"),
        )),
        Meaning::Number(number) => Ok(Value::Number(number)),
    }
}

impl Node {
    /// A tree of this value, every node of it at `span`. Strings are quoted: none of them becomes a number again.
    pub fn from_value(value: &Value, span: Span) -> Self {
        let plain = |text: String| Self::scalar(span, text, Style::Plain);
        match value {
            Value::Null => plain("null".to_owned()),
            Value::Bool(value) => plain(value.to_string()),
            Value::Number(number) => plain(number.to_string()),
            Value::String(text) => Self::scalar(span, text.as_str(), Style::Quoted),
            Value::Array(items) => Self::new(span, Kind::Seq(items.iter().map(|item| Self::from_value(item, span)).collect())),
            Value::Object(map) => {
                let entry = |(key, value): (&String, &Value)| {
                    (Self::scalar(span, key.as_str(), Style::Quoted), Self::from_value(value, span))
                };
                Self::new(span, Kind::Map(map.iter().map(entry).collect()))
            }
        }
    }
}

/// Writes a value as YAML that kubectl and we read back as the same value.
pub fn to_text(value: &Value) -> String {
    let text = serde_yaml::to_string(value).ok().and_then(|text| quoted(value, text));
    // JSON is YAML, too, should the writer and the reader ever disagree.
    text.unwrap_or_else(|| format!("{value:#}\n"))
}

/// Quotes what the writer left bare but kubectl reads as something else, `yes` and `0o7` for example. `None` if the
/// text is not the value for another reason.
fn quoted(value: &Value, mut text: String) -> Option<String> {
    let parsed = parse(FileId::default(), &text);
    let ([document], []) = (&parsed.documents[..], &parsed.diagnostics[..]) else { return None };
    let mut bare = Vec::new();
    find_bare(value, document, &mut bare)?;
    // From the end, so that the places before stay what they are.
    for range in bare.into_iter().rev() {
        let quoted = Value::from(text.get(range.clone())?).to_string();
        text.replace_range(range, &quoted);
    }
    Some(text)
}

fn find_bare(value: &Value, node: &Node, bare: &mut Vec<Range<usize>>) -> Option<()> {
    match (value, &*node.kind) {
        (Value::String(wanted), Kind::Scalar { text, .. }) if wanted == text => {
            if node.plain().is_some_and(needs_quotes) {
                bare.push(node.span.start as usize..node.span.end as usize);
            }
            Some(())
        }
        (Value::Array(values), Kind::Seq(nodes)) if values.len() == nodes.len() => {
            values.iter().zip(nodes).try_for_each(|(value, node)| find_bare(value, node, bare))
        }
        (Value::Object(values), Kind::Map(nodes)) if values.len() == nodes.len() => {
            values.iter().zip(nodes).try_for_each(|((name, value), (key, node))| {
                find_bare(&Value::from(name.as_str()), key, bare)?;
                find_bare(value, node, bare)
            })
        }
        (Value::Null | Value::Bool(_) | Value::Number(_), Kind::Scalar { .. }) => {
            (to_value(node).as_ref() == Ok(value)).then_some(())
        }
        _ => None,
    }
}
