//! The values of statements.

use muster_core::night::Night;
use sqlx::{Arguments, error::BoxDynError, postgres::PgArguments, sqlite::SqliteArguments};
use std::{borrow::Cow, sync::Arc};

/// What both databases store. A truth value is 0 or 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Shared(Arc<str>),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
    /// PostgreSQL wants to know the type of what is not there.
    Null(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Real,
    Bytes,
}

/// What can be bound.
pub(crate) trait ToValue {
    const KIND: Kind;

    fn to_value(self) -> Value;
}

macro_rules! to_value {
    ($($type:ty, $kind:ident, $value:ident => $into:expr;)*) => {
        $(impl ToValue for $type {
            const KIND: Kind = Kind::$kind;

            fn to_value(self) -> Value {
                let $value = self;
                $into
            }
        })*
    };
}

to_value! {
    String, Text, text => Value::Text(text.into());
    &'static str, Text, text => Value::Text(text.into());
    Arc<str>, Text, text => Value::Shared(text);
    i64, Integer, number => Value::Integer(number);
    &i64, Integer, number => Value::Integer(*number);
    u32, Integer, number => Value::Integer(number.into());
    bool, Integer, truth => Value::Integer(truth.into());
    Night, Integer, night => Value::Integer(night.days());
    f64, Real, number => Value::Real(number);
    Vec<u8>, Bytes, bytes => Value::Bytes(bytes);
}

impl<T: ToValue> ToValue for Option<T> {
    const KIND: Kind = T::KIND;

    fn to_value(self) -> Value {
        self.map_or(Value::Null(T::KIND), T::to_value)
    }
}

pub(super) fn add_sqlite(arguments: &mut SqliteArguments, values: Vec<Value>) -> Result<(), BoxDynError> {
    arguments.reserve(values.len(), 0);
    for value in values {
        match value {
            Value::Text(text) => Arguments::add(arguments, text.into_owned())?,
            Value::Shared(text) => Arguments::add(arguments, text)?,
            Value::Integer(number) => Arguments::add(arguments, number)?,
            Value::Real(number) => Arguments::add(arguments, number)?,
            Value::Bytes(bytes) => Arguments::add(arguments, bytes)?,
            Value::Null(_) => Arguments::add(arguments, None::<i64>)?,
        }
    }
    Ok(())
}

pub(super) fn add_postgres(arguments: &mut PgArguments, values: Vec<Value>) -> Result<(), BoxDynError> {
    for value in values {
        match value {
            Value::Text(text) => arguments.add(storable(&text))?,
            Value::Shared(text) => arguments.add(storable(&text))?,
            Value::Integer(number) => arguments.add(number)?,
            Value::Real(number) => arguments.add(number)?,
            Value::Bytes(bytes) => arguments.add(bytes)?,
            Value::Null(Kind::Text) => arguments.add(None::<&str>)?,
            Value::Null(Kind::Integer) => arguments.add(None::<i64>)?,
            Value::Null(Kind::Real) => arguments.add(None::<f64>)?,
            Value::Null(Kind::Bytes) => arguments.add(None::<Vec<u8>>)?,
        }
    }
    Ok(())
}

/// PostgreSQL stores no NUL in a text: its symbol takes its place. JSON has none, only `\u0000`.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{2400}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_has_a_type() {
        assert_eq!(None::<String>.to_value(), Value::Null(Kind::Text));
        assert_eq!(None::<u32>.to_value(), Value::Null(Kind::Integer));
        assert_eq!(None::<f64>.to_value(), Value::Null(Kind::Real));
        assert_eq!(Some(true).to_value(), Value::Integer(1));
    }

    #[test]
    fn a_nul_becomes_its_symbol_in_postgresql() {
        assert_eq!(storable("a\0b"), "a\u{2400}b");
        assert_eq!(storable("ab"), "ab");
    }
}
