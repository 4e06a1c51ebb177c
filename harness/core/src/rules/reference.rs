//! References: what a figure should be, and by how much it may miss.
//!
//! The arithmetic is ReFrame's `sn.reference_bounds`, operation by operation, so that a figure on the very edge passes
//! here if and only if it passes there. Which reference applies to a case is decided in `select`; how a miss becomes an
//! outcome, in `judge`.

use crate::rules::perf::{Bounds, format_number, label};
use muster_text::unit;
use serde::{Deserialize, Serialize};

/// A reference that applies to the case at hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRow {
    pub variable: String,
    /// `None` for a plain variable; a key, or `*` for every key that has no row of its own.
    pub key: Option<String>,
    pub reference: Reference,
}

/// `[value, lower, upper, unit]`, or the same as a mapping with `warn` and `xfail`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    pub value: f64,
    /// A fraction of the value, at most 0; absolute if the value is 0; `None`: open.
    pub lower: Option<f64>,
    /// A fraction of the value, at least 0; absolute if the value is 0; `None`: open.
    pub upper: Option<f64>,
    /// Its unit, which must be the variable's.
    pub unit: Option<String>,
    /// A narrower band, as `[lower, upper]`: outside it but inside the bounds is a warning.
    pub warn: Option<(Option<f64>, Option<f64>)>,
    /// A miss is expected, and why.
    pub xfail: Option<String>,
}

/// A lower and an upper threshold, as written.
type Band = (Option<f64>, Option<f64>);

impl ReferenceRow {
    /// `latency[8]`, `latency[*]`, or `flops`.
    pub fn label(&self) -> String {
        label(&self.variable, self.key.as_deref())
    }
}

impl Reference {
    /// The interval in which a value passes.
    pub fn bounds(&self) -> Bounds {
        self.interval((self.lower, self.upper))
    }

    /// The interval outside which a value that passes is worth a warning.
    pub fn warn_bounds(&self) -> Option<Bounds> {
        self.warn.map(|band| self.interval(band))
    }

    fn interval(&self, (lower, upper): Band) -> Bounds {
        Bounds {
            reference: self.value,
            lower: lower.map(|threshold| self.bound(threshold)),
            upper: upper.map(|threshold| self.bound(threshold)),
        }
    }

    /// Fractions of the value, mirrored below zero; absolute around zero.
    fn bound(&self, threshold: f64) -> f64 {
        match self.value {
            0.0 => threshold,
            value if value < 0.0 => value * (1.0 - threshold),
            value => value * (1.0 + threshold),
        }
    }

    /// Finds what cannot be meant, for a variable of this unit.
    ///
    /// # Errors
    /// Every mistake in one line: a lower-case fragment that says what is allowed.
    pub fn validate(&self, unit: &str) -> Result<(), String> {
        let mut mistakes = Vec::new();
        if self.value.is_finite() {
            mistakes.extend(self.outside_their_range("", (self.lower, self.upper)));
            if let Some(band) = self.warn {
                mistakes.extend(self.outside_their_range("warn ", band));
                mistakes.extend(self.wider_than_the_bounds(band));
            }
        } else {
            mistakes.push(format!("the reference value is {}: it must be a finite number", format_number(self.value)));
        }
        mistakes.extend(self.unit.as_deref().and_then(|written| unit_clash(written, unit)));
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("; ")) }
    }

    fn outside_their_range(&self, which: &str, (lower, upper): Band) -> Vec<String> {
        // Mirrored: below zero it is the upper threshold that cannot exceed the whole value.
        let floor = if self.value > 0.0 { -1.0 } else { f64::NEG_INFINITY };
        let ceiling = if self.value < 0.0 { 1.0 } else { f64::INFINITY };
        let what = if self.value == 0.0 { "an absolute bound, as the value is 0" } else { "a fraction of the value" };
        let complain = |side: &str, threshold: f64, range: String| {
            let shown = format_number(threshold);
            format!("the {which}{side} threshold is {shown}: it must be {range}, {what}, or null for an open end")
        };
        let mut mistakes = Vec::new();
        if let Some(lower) = lower.filter(|lower| !(lower.is_finite() && (floor..=0.0).contains(lower))) {
            let range = if floor.is_finite() { "between -1 and 0" } else { "0 or less" };
            mistakes.push(complain("lower", lower, range.to_owned()));
        }
        if let Some(upper) = upper.filter(|upper| !(upper.is_finite() && (0.0..=ceiling).contains(upper))) {
            let range = if ceiling.is_finite() { "between 0 and 1" } else { "0 or more" };
            mistakes.push(complain("upper", upper, range.to_owned()));
        }
        mistakes
    }

    fn wider_than_the_bounds(&self, (warn_lower, warn_upper): Band) -> Option<String> {
        let beyond = |warn: Option<f64>, bound: Option<f64>| match (warn, bound) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(warn), Some(bound)) => warn.abs() > bound.abs(),
        };
        let wider = beyond(warn_lower, self.lower) || beyond(warn_upper, self.upper);
        wider.then(|| "the warn band reaches beyond the bounds: what lies between them fails, it does not warn".to_owned())
    }
}

fn unit_clash(written: &str, unit: &str) -> Option<String> {
    match unit::factor(written, unit) {
        Some(1.0) => None,
        Some(_) => Some(format!("the reference is in {written}, the variable in {unit}: write it in {unit}")),
        None => Some(format!("the reference is in {written}, the variable in {unit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(value: f64, lower: Option<f64>, upper: Option<f64>) -> Reference {
        Reference { value, lower, upper, unit: None, warn: None, xfail: None }
    }

    #[test]
    fn bounds_are_those_of_reframe() {
        // (value, lower, upper) and what ReFrame 4.10.4's `sn.reference_bounds` computes.
        let rows = [
            (100.0, Some(-0.1), Some(0.1), Some(90.0), Some(110.000_000_000_000_01)),
            (100.0, Some(-1.0), Some(0.0), Some(0.0), Some(100.0)),
            (250.0, Some(-0.1), Some(0.1), Some(225.0), Some(275.0)),
            (100.0, None, Some(2.0), None, Some(300.0)),
            (100.0, Some(-0.05), None, Some(95.0), None),
            (-100.0, Some(-0.01), Some(0.02), Some(-101.0), Some(-98.0)),
            (-100.0, Some(-3.0), Some(1.0), Some(-400.0), Some(0.0)),
            (-100.0, None, Some(0.5), None, Some(-50.0)),
            (0.0, Some(-2.0), Some(5.0), Some(-2.0), Some(5.0)),
            (0.0, None, Some(5.0), None, Some(5.0)),
            (-0.0, Some(-2.0), Some(5.0), Some(-2.0), Some(5.0)),
            (0.0, None, None, None, None),
        ];
        for (value, lower, upper, low, high) in rows {
            let bounds = reference(value, lower, upper).bounds();
            assert_eq!((bounds.lower, bounds.upper), (low, high), "({value}, {lower:?}, {upper:?})");
        }
    }

    #[test]
    fn thresholds_have_a_range_that_depends_on_the_sign_of_the_value() {
        let allowed = [
            (100.0, Some(-1.0), Some(7.0)),
            (100.0, Some(0.0), Some(0.0)),
            (100.0, None, None),
            (-100.0, Some(-7.0), Some(1.0)),
            (0.0, Some(-1000.0), Some(1000.0)),
        ];
        for (value, lower, upper) in allowed {
            assert_eq!(reference(value, lower, upper).validate(""), Ok(()), "({value}, {lower:?}, {upper:?})");
        }
        let refused = [
            (100.0, Some(0.1), None),
            (100.0, Some(-1.1), None),
            (100.0, None, Some(-0.1)),
            (100.0, None, Some(f64::INFINITY)),
            (100.0, Some(f64::NAN), None),
            (-100.0, Some(0.1), None),
            (-100.0, None, Some(1.1)),
            (0.0, Some(0.1), Some(-0.1)),
            (f64::NAN, Some(0.1), None),
        ];
        let say = |(value, lower, upper)| reference(value, lower, upper).validate("").unwrap_err();
        insta::assert_snapshot!(refused.map(say).join("\n"), @"
        the lower threshold is 0.1: it must be between -1 and 0, a fraction of the value, or null for an open end
        the lower threshold is -1.1: it must be between -1 and 0, a fraction of the value, or null for an open end
        the upper threshold is -0.1: it must be 0 or more, a fraction of the value, or null for an open end
        the upper threshold is inf: it must be 0 or more, a fraction of the value, or null for an open end
        the lower threshold is NaN: it must be between -1 and 0, a fraction of the value, or null for an open end
        the lower threshold is 0.1: it must be 0 or less, a fraction of the value, or null for an open end
        the upper threshold is 1.1: it must be between 0 and 1, a fraction of the value, or null for an open end
        the lower threshold is 0.1: it must be 0 or less, an absolute bound, as the value is 0, or null for an open end; the upper threshold is -0.1: it must be 0 or more, an absolute bound, as the value is 0, or null for an open end
        the reference value is NaN: it must be a finite number
        ");
    }

    #[test]
    fn a_reference_is_in_the_unit_of_its_variable() {
        let with_unit = |unit: &str| Reference { unit: Some(unit.into()), ..reference(1.0, None, None) }.validate("GB/s");
        assert_eq!(with_unit("GB/s"), Ok(()));
        assert_eq!(with_unit("GBps"), Ok(()));
        insta::assert_snapshot!(with_unit("MB/s").unwrap_err(), @"the reference is in MB/s, the variable in GB/s: write it in GB/s");
        insta::assert_snapshot!(with_unit("GLOP/s").unwrap_err(), @"the reference is in GLOP/s, the variable in GB/s");
    }

    #[test]
    fn a_warn_band_lies_within_the_bounds() {
        let warn = |lower, upper| Reference { warn: Some((lower, upper)), ..reference(100.0, Some(-0.1), None) };
        assert_eq!(warn(Some(-0.05), Some(0.05)).validate(""), Ok(()));
        let bounds = warn(Some(-0.05), None).warn_bounds().unwrap();
        assert_eq!((bounds.lower, bounds.upper), (Some(95.0), None));
        insta::assert_snapshot!(warn(None, Some(0.05)).validate("").unwrap_err(), @"the warn band reaches beyond the bounds: what lies between them fails, it does not warn");
        insta::assert_snapshot!(warn(Some(-0.2), Some(-0.05)).validate("").unwrap_err(), @"the warn upper threshold is -0.05: it must be 0 or more, a fraction of the value, or null for an open end; the warn band reaches beyond the bounds: what lies between them fails, it does not warn");
    }
}
