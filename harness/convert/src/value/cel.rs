//! Expressions in CEL, put together so that they mean what the Python meant.

use crate::value::{
    Choice, Piece, Value,
    cond::{Cond, Subject},
};
use std::fmt::Write as _;

/// How tightly the outermost operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Prec {
    Ternary,
    Or,
    And,
    Relation,
    Add,
    Mul,
    Unary,
    Atom,
}

/// What kind of value an expression gives, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Float,
    Text,
    Bool,
    List,
    Map,
    Any,
}

impl Kind {
    /// What is known if it is one or the other.
    pub(crate) fn either(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cel {
    /// Its text.
    pub text: String,
    /// Its outermost operator.
    pub prec: Prec,
    /// The type of its result.
    pub kind: Kind,
    /// The subject whose value it is, if it is only that.
    pub subject: Option<Subject>,
}

impl Cel {
    /// An expression.
    pub(crate) fn new(text: impl Into<String>, prec: Prec, kind: Kind) -> Self {
        Self { text: text.into(), prec, kind, subject: None }
    }

    /// What stands for a subject.
    pub(crate) fn subject(text: impl Into<String>, kind: Kind, subject: Subject) -> Self {
        Self { subject: Some(subject), ..Self::new(text, Prec::Atom, kind) }
    }

    /// A call.
    pub(crate) fn call(function: &str, args: &[Self], kind: Kind) -> Self {
        let args: Vec<&str> = args.iter().map(|arg| &*arg.text).collect();
        Self::new(format!("{function}({})", args.join(", ")), Prec::Atom, kind)
    }

    /// A method of it.
    pub(crate) fn method(&self, name: &str, args: &[Self], kind: Kind) -> Self {
        let args: Vec<&str> = args.iter().map(|arg| &*arg.text).collect();
        Self::new(format!("{}.{name}({})", self.at(Prec::Atom), args.join(", ")), Prec::Atom, kind)
    }

    /// An operator between two; what is on the right of its like is put in brackets.
    pub(crate) fn binary(left: &Self, operator: &str, right: &Self, prec: Prec, kind: Kind) -> Self {
        let tighter = match prec {
            Prec::Ternary => Prec::Or,
            Prec::Or => Prec::And,
            Prec::And => Prec::Relation,
            Prec::Relation => Prec::Add,
            Prec::Add => Prec::Mul,
            Prec::Mul => Prec::Unary,
            Prec::Unary | Prec::Atom => Prec::Atom,
        };
        // Two relations in a row are legal and mean nothing to a reader.
        let before = if prec == Prec::Relation { Prec::Add } else { prec };
        Self::new(format!("{} {operator} {}", left.at(before), right.at(tighter)), prec, kind)
    }

    /// `test ? then : otherwise`
    pub(crate) fn ternary(test: &Self, then: &Self, otherwise: &Self) -> Self {
        let whole = format!("{} ? {} : {}", test.at(Prec::Or), then.at(Prec::Or), otherwise.at(Prec::Ternary));
        Self::new(whole, Prec::Ternary, then.kind.either(otherwise.kind))
    }

    /// Its text where something that binds so tightly is wanted.
    pub(crate) fn at(&self, prec: Prec) -> String {
        if self.prec < prec { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Its value as text.
    pub(crate) fn as_text(&self) -> Self {
        if self.kind == Kind::Text { self.clone() } else { Self::call("string", std::slice::from_ref(self), Kind::Text) }
    }

    /// A text.
    pub(crate) fn literal(text: &str) -> Self {
        Self::new(literal(text), Prec::Atom, Kind::Text)
    }

    /// A value as an expression; `None` for what only a shell, a judge or nobody can tell.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::None => Self::new("null", Prec::Atom, Kind::Any),
            Value::Bool(value) => Self::new(value.to_string(), Prec::Atom, Kind::Bool),
            Value::Int(value) => Self::new(value.to_string(), sign(*value < 0), Kind::Int),
            Value::Float(value) if value.is_finite() => Self::new(format!("{value:?}"), sign(*value < 0.0), Kind::Float),
            Value::Str(text) => Self::literal(text),
            Value::Text(pieces) => Self::of_pieces(pieces)?,
            Value::List(items) | Value::Tuple(items) => Self::of_list(items)?,
            Value::Dict(entries) => {
                let entry = |(key, value): &(Value, Value)| Some(format!("{}: {}", Self::of(key)?.text, Self::of(value)?.text));
                let entries: Option<Vec<_>> = entries.iter().map(entry).collect();
                Self::new(format!("{{{}}}", entries?.join(", ")), Prec::Atom, Kind::Map)
            }
            Value::Cel(cel) => cel.clone(),
            Value::Choice(choice) => Self::of_choice(choice)?,
            Value::Test(cond) => cond.cel(),
            _ => return None,
        })
    }

    fn of_pieces(pieces: &[Piece]) -> Option<Self> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => Some(Self::literal(text)),
            Piece::Cel(cel) => Some(cel.as_text()),
            Piece::Shell(_) => None,
        };
        let mut parts = pieces.iter().map(part);
        let first = parts.next()??;
        parts.try_fold(first, |whole, part| Some(Self::binary(&whole, "+", &part?, Prec::Add, Kind::Text)))
    }

    /// Lists in lists are joined.
    fn of_list(items: &[Value]) -> Option<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let mut plain: Vec<String> = Vec::new();
        let list = |plain: &mut Vec<String>| Self::new(format!("[{}]", std::mem::take(plain).join(", ")), Prec::Atom, Kind::List);
        for item in items {
            if let Value::Items(choice) = item {
                if !plain.is_empty() {
                    parts.push(list(&mut plain));
                }
                parts.push(Self::of_choice(choice)?);
            } else {
                plain.push(Self::of(item)?.text);
            }
        }
        if !plain.is_empty() || parts.is_empty() {
            parts.push(list(&mut plain));
        }
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        Some(parts.fold(first, |whole, part| Self::binary(&whole, "+", &part, Prec::Add, Kind::List)))
    }

    /// A look-up in a mapping where every condition compares the same thing; else a chain of questions.
    fn of_choice(choice: &Choice) -> Option<Self> {
        if let Some(looked_up) = Self::of_lookup(choice) {
            return Some(looked_up);
        }
        let mut arms = choice.arms.iter().rev();
        let last = match &choice.default {
            Some(default) => Self::of(default)?,
            None => Self::of(&arms.next()?.1)?,
        };
        arms.try_fold(last, |rest, (cond, value)| Some(Self::ternary(&cond.cel(), &Self::of(value)?, &rest)))
    }

    fn of_lookup(choice: &Choice) -> Option<Self> {
        let mut subject = None;
        let mut entries = Vec::new();
        if choice.arms.len() < 2 {
            return None;
        }
        for (cond, value) in &choice.arms {
            let Cond::Is(of, values) = cond else { return None };
            let ([one], true) = (&values[..], subject.is_none_or(|known| known == of)) else { return None };
            subject = Some(of);
            entries.push(format!("{}: {}", Self::of(one)?.text, Self::of(value)?.text));
        }
        let (map, key) = (format!("{{{}}}", entries.join(", ")), subject?.cel());
        let kind = Value::Choice(Box::new(choice.clone())).kind();
        Some(match &choice.default {
            None => Self::new(format!("{map}[{}]", key.text), Prec::Atom, kind),
            Some(default) => Self::new(format!("get({map}, {}, {})", key.text, Self::of(default)?.text), Prec::Atom, kind),
        })
    }
}

fn sign(is_negative: bool) -> Prec {
    if is_negative { Prec::Unary } else { Prec::Atom }
}

/// A text as a literal of CEL: raw where backslashes would double.
pub(crate) fn literal(text: &str) -> String {
    let plain = text.chars().all(|letter| !letter.is_control());
    if text.contains('\\') && plain && !text.contains('\'') {
        return format!("r'{text}'");
    }
    if text.contains('\\') && plain && !text.contains('"') {
        return format!("r\"{text}\"");
    }
    let mut quoted = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('\'');
    quoted
}
