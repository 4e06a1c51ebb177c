//! Kubernetes' Quantity: `500m`, `1Gi`, `0.5`, `2k`, `1e3`. Exact, in billionths.
//!
//! ```text
//! [+-] digits [. digits] (n u m k M G T P E | Ki Mi Gi Ti Pi Ei | e or E with an exponent)
//! ```
//! As in the API, what is finer than a billionth is rounded away from zero.

use std::{cmp::Ordering, fmt, str::FromStr};

/// An amount of a resource. Two are equal if they are the same amount, however written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nanos: i128,
    /// Written with a binary suffix, and shown so again.
    binary: bool,
}

/// A text is not a Quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a quantity: write a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or none")]
pub(crate) struct NotAQuantity(pub String);

const NANO: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

impl Quantity {
    /// Nothing.
    pub(crate) const ZERO: Self = Self { nanos: 0, binary: false };

    /// So many whole ones.
    pub(crate) fn whole(count: u32) -> Self {
        Self { nanos: i128::from(count) * NANO, binary: false }
    }

    /// Both together, shown as the first. What no number holds is the largest one.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), binary: self.binary || other.binary }
    }

    /// How many whole times there is `one` in it.
    pub(crate) fn holds(self, one: Self) -> u64 {
        if one.nanos <= 0 { u64::MAX } else { u64::try_from(self.nanos / one.nanos).unwrap_or(0) }
    }

    /// `count` times as much.
    #[must_use]
    pub(crate) fn times(self, count: u32) -> Self {
        Self { nanos: self.nanos.saturating_mul(i128::from(count)), binary: self.binary }
    }

    /// In billionths, if `text` is a number of that size with one of the suffixes.
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let number = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return None;
        }
        let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
        let mantissa = digits.trim_start_matches('0');
        let mantissa: i128 = if mantissa.is_empty() { 0 } else { mantissa.parse().ok()? };
        let decimals = i32::try_from(digits.len() - whole.len()).ok()?;
        let binary = BINARY.iter().find(|(name, _)| *name == suffix).map(|(_, bits)| *bits);
        let exponent = match binary {
            Some(_) => 0,
            None => decimal_exponent(suffix)?,
        };
        let scaled = mantissa.checked_mul(1_i128 << binary.unwrap_or(0))?;
        let nanos = scale(scaled, exponent.checked_add(9)?.checked_sub(decimals)?)?;
        Some(Self { nanos: if negative { -nanos } else { nanos }, binary: binary.is_some() })
    }
}

/// `k` is 3, `e-2` is -2.
fn decimal_exponent(suffix: &str) -> Option<i32> {
    let named = DECIMAL.iter().find(|(name, _)| *name == suffix).map(|(_, exponent)| *exponent);
    named.or_else(|| suffix.strip_prefix(['e', 'E'])?.parse().ok())
}

/// A positive number times a power of ten; what is left below one is rounded up.
fn scale(number: i128, exponent: i32) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    match (exponent < 0, power) {
        (false, power) => number.checked_mul(power?),
        (true, Some(power)) => Some(number / power + i128::from(number % power > 0)),
        (true, None) => Some(1),
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        Self::read(text.trim()).ok_or_else(|| NotAQuantity(text.to_owned()))
    }
}

/// As the API writes it: the largest suffix that leaves a whole number.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.binary && self.nanos % NANO == 0 {
            let whole = self.nanos / NANO;
            let fits = BINARY.iter().find(|(_, bits)| whole % (1_i128 << bits) == 0);
            return match fits {
                Some((suffix, bits)) => write!(f, "{}{suffix}", whole >> bits),
                None => write!(f, "{whole}"),
            };
        }
        let size = |exponent: i32| 10_i128.pow((exponent + 9).unsigned_abs());
        let fits = DECIMAL.iter().find(|(_, exponent)| self.nanos % size(*exponent) == 0);
        let (suffix, exponent) = fits.copied().unwrap_or(("n", -9));
        write!(f, "{}{suffix}", self.nanos / size(exponent))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn quantities_are_read_and_written_as_the_api_does() {
        let rows = [
            ("500m", 500_000_000, "500m"),
            ("0.5", 500_000_000, "500m"),
            (".5", 500_000_000, "500m"),
            ("5.", 5_000_000_000, "5"),
            ("1000m", 1_000_000_000, "1"),
            ("1Gi", (1 << 30) * NANO, "1Gi"),
            ("1.5Gi", (3 << 29) * NANO, "1536Mi"),
            ("1000Ki", 1_024_000 * NANO, "1000Ki"),
            ("1000", 1000 * NANO, "1k"),
            ("2k", 2000 * NANO, "2k"),
            ("1e3", 1000 * NANO, "1k"),
            ("1E3", 1000 * NANO, "1k"),
            ("12e-1", 1_200_000_000, "1200m"),
            ("3E", 3_000_000_000_000_000_000 * NANO, "3E"),
            ("8Ei", (1_i128 << 63) * NANO, "8Ei"),
            ("1P", 1_000_000_000_000_000 * NANO, "1P"),
            ("7n", 7, "7n"),
            ("7u", 7_000, "7u"),
            ("0.1n", 1, "1n"),
            ("1e-99", 1, "1n"),
            ("-1.5", -1_500_000_000, "-1500m"),
            ("+4", 4 * NANO, "4"),
            ("0", 0, "0"),
            ("0Ki", 0, "0"),
            ("0.000", 0, "0"),
            ("007", 7 * NANO, "7"),
        ];
        for (text, nanos, shown) in rows {
            let quantity = quantity(text);
            assert_eq!((quantity.nanos, quantity.to_string().as_str()), (nanos, shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "-", ".", "m", "1.2.3", "1 Gi", "1gi", "1K", "1ki", "0x10", "1e", "1e3.5", "--1", "1Gim", "9e99", "ten"]
        {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_and_not_texts() {
        for text in ["1", "1000m", "1e0", "1000000u"] {
            assert_eq!(quantity(text), quantity("1"), "{text}");
        }
        assert!(quantity("999m") < quantity("1") && quantity("1Gi") > quantity("1G") && quantity("-1") < Quantity::ZERO);
        assert_eq!(quantity("250m").times(4), Quantity::whole(1));
        let holds = |all: &str, one: &str| quantity(all).holds(quantity(one));
        assert_eq!((holds("1", "300m"), holds("1", "2"), holds("0", "1")), (3, 0, 0));
        assert_eq!((holds("1", "0"), holds("-1", "1")), (u64::MAX, 0));
        assert_eq!(quantity("1Gi").plus(quantity("512Mi")).to_string(), "1536Mi");
        assert_eq!(quantity("8Ei").times(u32::MAX).times(u32::MAX).times(u32::MAX).nanos, i128::MAX);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same_amount(nanos in -1_i128 << 96..1_i128 << 96, binary: bool) {
            let quantity = Quantity { nanos, binary };
            prop_assert_eq!(quantity.to_string().parse(), Ok(quantity));
        }

        #[test]
        fn no_text_panics(text in "[-+]?[0-9.]{0,45}[a-zA-Z]{0,3}[-+]?[0-9]{0,12}") {
            let _ = text.parse::<Quantity>();
        }
    }
}
