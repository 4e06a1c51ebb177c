//! Values on both sides of the border: JSON's data model outside, CEL's inside.

use super::text::Captured;
use crate::Value;
use cel::common::{
    types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString, CelUInt, Kind},
    value::Val,
};
use std::collections::HashMap;

/// A list or map that may hold more than this is not built: a log of 1 GiB has a hundred million matches.
pub(crate) const MAX_ITEMS: usize = 1_000_000;

/// Makes a type a value of CEL, with what CEL may do with it beside handing it on.
macro_rules! impl_val {
    ($type:ty, $cel_type:expr $(, { $($more:item)* })?) => {
        impl cel::common::value::Val for $type {
            fn get_type(&self) -> &cel::common::types::Type {
                &$cel_type
            }
            fn cel_type() -> &'static cel::common::types::Type {
                &$cel_type
            }
            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }
            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
            $($($more)*)?
        }

        impl cel::common::value::StaticVal for $type {}
    };
}
pub(crate) use impl_val;

/// A number as the expression has it: integers are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
}

impl Number {
    /// The number, if the value is one. Text is not.
    pub(crate) fn of(value: &dyn Val) -> Option<Self> {
        if let Some(int) = value.downcast_ref::<CelInt>() {
            Some(Self::Int(*int.inner()))
        } else if let Some(double) = value.downcast_ref::<CelDouble>() {
            Some(Self::Double(*double.inner()))
        } else {
            value.downcast_ref::<CelUInt>().map(|uint| match i64::try_from(*uint.inner()) {
                Ok(int) => Self::Int(int),
                Err(_) => Self::Double(approximate(*uint.inner())),
            })
        }
    }

    /// The number a text shows, blanks around it trimmed. Words for NaN and infinities count: logs print them. Digits that are too
    /// large for any number do not.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(int) = text.parse() {
            return Some(Self::Int(int));
        }
        let overflows = |number: &f64| number.is_infinite() && text.contains(|c: char| c.is_ascii_digit());
        text.parse().ok().filter(|number| !overflows(number)).map(Self::Double)
    }

    /// The number, if the value is one or is captured text that shows one.
    pub(crate) fn met(value: &dyn Val) -> Option<Self> {
        match value.downcast_ref::<Captured>() {
            Some(captured) => Self::parse(captured.text()),
            None => Self::of(value),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "this is where integers become doubles")]
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Double(double) => double,
        }
    }

    /// The integer, if it is one exactly: `3`, and also `3.0`, which is what 3 becomes when counting in doubles.
    #[expect(clippy::cast_possible_truncation, reason = "checked by the round trip")]
    pub(crate) fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(int),
            // 2^63 itself saturates to a different number, and back again to the same one.
            Self::Double(double) if double < 9.2e18 && double > -9.2e18 && double.fract() == 0.0 => Some(double as i64),
            Self::Double(_) => None,
        }
    }

    pub(crate) fn into_val(self) -> Box<dyn Val> {
        match self {
            Self::Int(int) => Box::new(CelInt::from(int)),
            Self::Double(double) => Box::new(CelDouble::from(double)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "beyond 2^63 there is no exact type to go to")]
fn approximate(uint: u64) -> f64 {
    uint as f64
}

/// A value as CEL's own.
pub(crate) fn to_val(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(bool) => Box::new(CelBool::from(*bool)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Box::new(CelInt::from(int)),
            (None, Some(uint)) => Box::new(CelUInt::from(uint)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => text_val(text.clone()),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(to_val).collect::<Vec<_>>())),
        Value::Object(entries) => Box::new(map_val(entries.iter().map(|(key, value)| (key.clone(), to_val(value))))),
    }
}

/// What other cases left, by name, one or a list of a name: the texts of their `outputs` are captured.
pub(crate) fn of_others(value: &Value) -> Box<dyn Val> {
    fn output(value: &Value) -> Box<dyn Val> {
        value.as_str().map_or_else(|| to_val(value), |text| Box::new(Captured::new(text.as_bytes())))
    }
    fn case(value: &Value) -> Box<dyn Val> {
        match value {
            Value::Array(cases) => Box::new(CelList::from(cases.iter().map(case).collect::<Vec<_>>())),
            facts => {
                each(facts, |name, fact| if name == "outputs" { each(fact, |_, value| output(value)) } else { to_val(fact) })
            }
        }
    }
    fn each(value: &Value, made: impl Fn(&str, &Value) -> Box<dyn Val>) -> Box<dyn Val> {
        let Some(entries) = value.as_object() else { return to_val(value) };
        Box::new(map_val(entries.iter().map(|(name, value)| (name.clone(), made(name, value)))))
    }
    each(value, |_, cases| case(cases))
}

/// The text, if the value is one, whether it was captured or not.
pub(crate) fn text_of<'b>(value: &'b (dyn Val + '_)) -> Option<&'b str> {
    value.downcast_ref::<Captured>().map(Captured::text).or_else(|| value.downcast_ref::<CelString>().map(CelString::inner))
}

/// The most characters of a value that a message shows.
const SHOWN: usize = 80;

/// A text in quotes, in one line, without secrets, shortened.
pub(crate) fn quoted(text: &str) -> String {
    // Looked at are a few times as many, so that a secret is not cut before it is found.
    let start: String = text.chars().take(50 * SHOWN).collect();
    shortened(&format!("{:?}", crate::secret::masked(&start)))
}

/// A value as messages show it.
pub(crate) fn shown(value: &dyn Val) -> String {
    if let Some(text) = text_of(value) {
        return quoted(text);
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        let items: Vec<_> = list.inner().iter().take(SHOWN).map(|item| shown(item.as_ref())).collect();
        return shortened(&format!("[{}]", items.join(", ")));
    }
    match Number::of(value).map(|number| (number, number.as_int())) {
        Some((_, Some(int))) => int.to_string(),
        Some((Number::Double(double), _)) if !double.is_finite() => double.to_string(),
        _ => to_json(value).map_or_else(|_| kind(value).to_owned(), |json| shortened(&crate::secret::masked(&json.to_string()))),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN { text.to_owned() } else { text.chars().take(SHOWN - 3).chain("...".chars()).collect() }
}

/// A text as a value.
pub(crate) fn text_val(text: String) -> Box<dyn Val> {
    Box::new(CelString::from(text))
}

/// A map with text keys.
pub(crate) fn map_val(entries: impl IntoIterator<Item = (String, Box<dyn Val>)>) -> CelMap<'static> {
    let entries: HashMap<_, _> = entries.into_iter().map(|(key, value)| (CelMapKey::from(key), value)).collect();
    CelMap::from(entries)
}

/// A CEL value as JSON. Keys become text and are sorted: CEL's maps have no order of their own.
///
/// # Errors
/// What has no JSON form: NaN, an infinity, bytes, a type.
pub(crate) fn to_json(value: &dyn Val) -> Result<Value, String> {
    if let Some(text) = text_of(value) {
        return Ok(Value::String(text.to_owned()));
    }
    if let Some(bool) = value.downcast_ref::<CelBool>() {
        return Ok(Value::Bool(*bool.inner()));
    }
    if let Some(uint) = value.downcast_ref::<CelUInt>() {
        return Ok(Value::from(*uint.inner()));
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        return optional.inner().map_or(Ok(Value::Null), to_json);
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().map(|item| to_json(item.as_ref())).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut entries = map
            .inner()
            .iter()
            .map(|(key, value)| Ok((key_text(key), to_json(value.as_ref())?)))
            .collect::<Result<Vec<_>, String>>()?;
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        return Ok(Value::Object(entries.into_iter().collect()));
    }
    match Number::of(value) {
        Some(Number::Int(int)) => Ok(Value::from(int)),
        Some(Number::Double(double)) => serde_json::Number::from_f64(double)
            .map(Value::Number)
            .ok_or_else(|| if double.is_nan() { "NaN" } else { "infinite" }.to_owned()),
        None => Err(format!("{}, which is not a value", kind(value))),
    }
}

/// A map's key as text.
pub(crate) fn key_text(key: &CelMapKey<'_>) -> String {
    match key {
        CelMapKey::Bool(key) => key.inner().to_string(),
        CelMapKey::Int(key) => key.inner().to_string(),
        CelMapKey::UInt(key) => key.inner().to_string(),
        CelMapKey::String(key) => key.inner().to_owned(),
    }
}

/// What a value is, for messages: `an integer`.
pub(crate) fn kind(value: &dyn Val) -> &'static str {
    match value.get_type().kind() {
        Kind::Boolean => "a boolean",
        Kind::Int | Kind::UInt => "an integer",
        Kind::Double => "a double",
        Kind::String => "text",
        Kind::List => "a list",
        Kind::Map => "a map",
        Kind::NullType => "null",
        Kind::Bytes => "bytes",
        Kind::Type => "a type",
        _ if value.downcast_ref::<CelOptional>().is_some() => "an optional",
        _ if value.downcast_ref::<Captured>().is_some() => "text",
        _ => "an unknown thing",
    }
}

/// What a JSON value is, in the same words.
pub(crate) fn kind_of_json(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a double",
        Value::Number(_) => "an integer",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Integers within a value as doubles, lists and maps included. `None`: there are none.
pub(crate) fn to_doubles<'v>(value: &(dyn Val + 'v)) -> Option<Box<dyn Val + 'v>> {
    if let Some(list) = value.downcast_ref::<CelList>() {
        let items: Vec<_> = list.inner().iter().map(|item| to_doubles(item.as_ref())).collect();
        return items.iter().any(Option::is_some).then(|| {
            let items = items.into_iter().zip(list.inner());
            let items: Vec<_> = items.map(|(double, item)| double.unwrap_or_else(|| item.clone())).collect();
            Box::new(CelList::from(items)) as Box<dyn Val + 'v>
        });
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let entries = map.inner().iter();
        let entries = entries.map(|(key, item)| (key.clone(), to_doubles(item.as_ref()).unwrap_or_else(|| item.clone())));
        return Some(Box::new(CelMap::from(entries.collect::<HashMap<_, _>>())));
    }
    match Number::of(value) {
        Some(number) if value.downcast_ref::<CelDouble>().is_none() => Some(Box::new(CelDouble::from(number.as_f64()))),
        _ => None,
    }
}
