//! Amounts of data, as files say them: `2GiB`, `500 MB`, a number of bytes.

use crate::{
    Value,
    decode::{Context, Decode},
    unit,
    yaml::{Kind, Node},
};
use serde_json::json;
use std::{fmt, str::FromStr};

/// A number of bytes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl From<Size> for u64 {
    fn from(Size(bytes): Size) -> Self {
        bytes
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an amount of data");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
        let unit = text.get(digits.len()..).unwrap_or_default().trim();
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        let factor = if unit.is_empty() { Some(1.0) } else { unit::factor(unit, "B") };
        let bytes = number * factor.ok_or_else(wrong)?;
        // Beyond this not every number of bytes has a double.
        if !(1.0..=9_007_199_254_740_992.0).contains(&bytes) {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the range")]
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for Size {
    /// In the largest binary unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(unit, _)| self.0 > 0 && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl Decode for Size {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let hint = Some("write 2GiB, 500MB, or a number of bytes");
        match context.kind(node)? {
            Kind::Scalar { text, .. } if !node.is_null() => match text.parse() {
                Ok(size) => Some(size),
                Err(message) => context.wrong(node, message, hint),
            },
            _ => context.expected(node, "an amount of data", hint),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^\d+(\.\d+)? ?([kKMGT]i?)?B$" },
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_of_data_has_a_unit_or_is_a_number_of_bytes() {
        let rows = [
            ("2GiB", "2 GiB"),
            ("1.5 GiB", "1536 MiB"),
            ("500MB", "500000000 bytes"),
            ("4096", "4 KiB"),
            ("1000", "1000 bytes"),
            ("1 B", "1 bytes"),
        ];
        for (text, shown) in rows {
            assert_eq!(text.parse::<Size>().map(|size| size.to_string()).as_deref(), Ok(shown), "{text}");
        }
        for text in ["", "GiB", "0", "-1", "2 GiB/s", "2 s", "1e3000", "nan", "inf", "2 parsecs"] {
            assert_eq!(text.parse::<Size>(), Err(format!("`{text}` is not an amount of data")));
        }
    }
}
