//! Constants as Python sees them: their truth, whether they are equal, how they are printed.

use super::Value;

impl Value {
    /// What Python calls its truth, for a constant.
    pub(crate) fn truth(&self) -> Option<bool> {
        Some(match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(value) => !value.is_empty(),
            Self::List(items) | Self::Tuple(items) if items.is_empty() => false,
            Self::List(items) | Self::Tuple(items) if !matches!(items[0], Self::Items(_)) => true,
            Self::Dict(entries) if entries.is_empty() => false,
            Self::Dict(entries) if entries[0].1 != Self::Absent => true,
            Self::Thing(_) => true,
            _ => return None,
        })
    }

    /// Whether two constants are equal as Python sees it; `None` for what is not constant.
    pub(crate) fn equals(&self, other: &Self) -> Option<bool> {
        if !self.is_constant() || !other.is_constant() {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "as Python compares an integer with a decimal")]
        let number = |value: &Self| match value {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        };
        match (number(self), number(other)) {
            #[expect(clippy::float_cmp, reason = "as Python compares")]
            (Some(left), Some(right)) => Some(left == right),
            _ => Some(self == other),
        }
    }

    /// What Python prints for a constant: `str(value)`.
    pub(crate) fn shown(&self) -> Option<String> {
        match self {
            Self::Str(text) => Some(text.clone()),
            _ => self.repr(),
        }
    }

    /// `repr(value)` of a constant.
    pub(crate) fn repr(&self) -> Option<String> {
        let list = |items: &[Self]| items.iter().map(Self::repr).collect::<Option<Vec<_>>>().map(|items| items.join(", "));
        Some(match self {
            Self::None => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => float_text(*value),
            Self::Str(text) => text_repr(text),
            Self::List(items) => format!("[{}]", list(items)?),
            Self::Tuple(items) if items.len() == 1 => format!("({},)", list(items)?),
            Self::Tuple(items) => format!("({})", list(items)?),
            Self::Dict(entries) => {
                let entry = |(key, value): &(Self, Self)| Some(format!("{}: {}", key.repr()?, value.repr()?));
                format!("{{{}}}", entries.iter().map(entry).collect::<Option<Vec<_>>>()?.join(", "))
            }
            _ => return None,
        })
    }
}

/// `str(float)`
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let exponent = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    if (-4.0..16.0).contains(&exponent) {
        return format!("{value:?}");
    }
    // Rust writes 1e-6 and 1e16 where Python writes 1e-06 and 1e+16.
    let text = format!("{value:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{digits}e{sign}{power:0>2}")
}

fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut repr = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => repr.push_str("\\n"),
            '\t' => repr.push_str("\\t"),
            '\r' => repr.push_str("\\r"),
            '\\' => repr.push_str("\\\\"),
            letter if letter == quote => repr.extend(['\\', letter]),
            letter => repr.push(letter),
        }
    }
    repr.push(quote);
    repr
}
