//! Kubernetes quantities, exact to the thousandth: `500m`, `2`, `4Gi`, `1e3`.
//!
//! Not the one of the code under test, on purpose: a server that shared its arithmetic would make the same mistakes.

use std::{fmt, ops::Add};

/// An amount and how it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub thousandths: i128,
    binary: bool,
}

const BINARY: [(&str, i128); 6] =
    [("Ei", 1 << 60), ("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
/// In thousandths.
const DECIMAL: [(&str, i128); 8] = [
    ("E", 1_000_000_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("G", 1_000_000_000_000),
    ("M", 1_000_000_000),
    ("k", 1_000_000),
    ("", 1_000),
    ("m", 1),
];

impl Quantity {
    pub(crate) const ZERO: Self = Self { thousandths: 0, binary: false };

    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((suffix, factor)) = BINARY.iter().find(|(suffix, _)| text.ends_with(suffix)) {
            let thousandths = scaled(text.strip_suffix(suffix)?, factor * 1_000)?;
            return Some(Self { thousandths, binary: true });
        }
        if let Some((digits, exponent)) = text.split_once(['e', 'E']).filter(|(_, exponent)| !exponent.is_empty()) {
            let factor = 10_i128.checked_pow(exponent.parse().ok()?)?;
            return Some(Self { thousandths: scaled(digits, factor * 1_000)?, binary: false });
        }
        let (suffix, factor) =
            DECIMAL.iter().find(|(suffix, _)| !suffix.is_empty() && text.ends_with(suffix)).unwrap_or(&DECIMAL[6]);
        Some(Self { thousandths: scaled(text.strip_suffix(suffix)?, *factor)?, binary: false })
    }

    pub(crate) fn count(n: usize) -> Self {
        Self { thousandths: i128::try_from(n).unwrap_or(i128::MAX / 1_000) * 1_000, binary: false }
    }
}

/// A decimal number times a factor, rounded up as the server does.
fn scaled(digits: &str, factor: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction_value: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let whole: i128 = whole.parse().ok()?;
    Some(whole.checked_mul(factor)? + (fraction_value.checked_mul(factor)? + divisor - 1) / divisor)
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let binary = if self.thousandths == 0 { other.binary } else { self.binary };
        Self { thousandths: self.thousandths + other.thousandths, binary }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.thousandths.partial_cmp(&other.thousandths)
    }
}

/// Canonical: the largest suffix that divides it.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.thousandths;
        if amount == 0 {
            return f.write_str("0");
        }
        if self.binary && amount % 1_000 == 0 {
            let whole = amount / 1_000;
            let (suffix, factor) = BINARY.iter().find(|(_, factor)| whole % factor == 0).unwrap_or(&("", 1));
            return write!(f, "{}{suffix}", whole / factor);
        }
        let (suffix, factor) = DECIMAL.iter().find(|(_, factor)| amount % factor == 0).unwrap_or(&("m", 1));
        write!(f, "{}{suffix}", amount / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_added_and_written_canonically() {
        let rows =
            [("500m", "0.5", "1"), ("4Gi", "512Mi", "4608Mi"), ("2", "1e3", "1002"), ("1.5k", "500", "2k"), ("0", "1Ki", "1Ki")];
        for (one, other, sum) in rows {
            assert_eq!((Quantity::of(one).unwrap() + Quantity::of(other).unwrap()).to_string(), sum, "{one} + {other}");
        }
        assert!(Quantity::of("1Gi") > Quantity::of("1G"));
        assert_eq!(Quantity::of("many"), None);
    }
}
