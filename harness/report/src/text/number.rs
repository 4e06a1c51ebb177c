//! Numbers as people read them.

use muster_core::rules::perf::{Bounds, Measurement};

/// Up to six significant digits, no float noise: the same in causes, lines and tables.
pub use muster_core::rules::perf::format_number as number;

/// The shortest text that reads back as the same number, for files.
pub fn exact(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}

/// Returns by how many percent a value misses its reference: `100 * (value - reference) / reference`. A reference of 0 has no
/// percentage.
pub fn difference(value: f64, reference: f64) -> Option<f64> {
    let percent = 100.0 * (value - reference) / reference;
    (reference != 0.0 && percent.is_finite()).then_some(percent)
}

/// The same of a measurement, if it has a reference.
pub(crate) fn difference_of(measurement: &Measurement) -> Option<f64> {
    measurement.bounds.and_then(|bounds| difference(measurement.value, bounds.reference))
}

/// `+3.25`, `0.00`, `-1.00`
pub(crate) fn percent(value: f64) -> String {
    let text = format!("{value:+.2}");
    if matches!(text.as_str(), "-0.00" | "+0.00") { "0.00".to_owned() } else { text }
}

/// The reference, the lower and the upper bound of a measurement, where it has them.
pub(crate) fn limits_of(measurement: &Measurement) -> [Option<f64>; 3] {
    let bounds = measurement.bounds;
    [bounds.map(|bounds| bounds.reference), bounds.and_then(|bounds| bounds.lower), bounds.and_then(|bounds| bounds.upper)]
}

/// ` (r:7440, l:6696, u:8184)`: only the bounds that are set, nothing without a reference.
pub(crate) fn bounds(bounds: Option<Bounds>) -> String {
    let Some(Bounds { reference, lower, upper }) = bounds else { return String::new() };
    let side = |letter, bound: Option<f64>| bound.map_or_else(String::new, |bound| format!(", {letter}:{}", number(bound)));
    format!(" (r:{}{}{})", number(reference), side('l', lower), side('u', upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_without_float_noise() {
        let rows = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (110.000_000_000_000_01, "110"),
            (7439.683, "7439.68"),
            (0.1 + 0.2, "0.3"),
            (-101.5, "-101.5"),
            (9.999_999_9, "10"),
            (999_999.96, "1000000"),
            (0.000_123_456_789, "0.000123457"),
            (0.000_1, "0.0001"),
            (0.000_000_15, "1.5e-7"),
            (1_073_741_824.0, "1073741824"),
            (1_234_567.89, "1234568"),
            (6.022e23, "6.022e23"),
            (-2.5e16, "-2.5e16"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in rows {
            assert_eq!(number(value), text, "{value:?}");
        }
    }

    #[test]
    fn files_get_every_digit() {
        for value in [0.1 + 0.2, 7439.683, 1e300, 5e-324, -1.0, 0.0, 123_456_789_012.5] {
            assert_eq!(exact(value).parse(), Ok(value), "{value:?}");
        }
        assert_eq!(exact(1e300), "1e300");
        assert_eq!(exact(f64::NAN), "NaN");
    }

    #[test]
    fn only_bounds_that_are_set_are_printed() {
        let of = |lower, upper| bounds(Some(Bounds { reference: -100.0, lower, upper }));
        assert_eq!(of(Some(-101.0), Some(-98.0)), " (r:-100, l:-101, u:-98)");
        assert_eq!(of(None, Some(-98.0)), " (r:-100, u:-98)");
        assert_eq!(of(None, None), " (r:-100)");
        assert_eq!(bounds(None), "");
    }

    #[test]
    fn a_reference_of_zero_has_no_percentage() {
        let rows = [
            (110.0, 100.0, Some("+10.00")),
            (99.999, 100.0, Some("0.00")),
            (100.0, 100.0, Some("0.00")),
            (-110.0, -100.0, Some("+10.00")),
            (90.0, 100.0, Some("-10.00")),
            (3.0, 0.0, None),
            (f64::NAN, 100.0, None),
            (f64::INFINITY, 100.0, None),
        ];
        for (value, reference, text) in rows {
            assert_eq!(difference(value, reference).map(percent).as_deref(), text, "{value} of {reference}");
        }
    }
}
