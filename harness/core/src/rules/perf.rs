//! Performance variables: how figures are read from a stdout, and how numbers are read and written.
//! Reading them is done in `judge`.

use muster_text::{
    pattern::{Pattern, PatternError},
    words,
};
use serde::{Deserialize, Serialize};

/// The most values that a median, or an item counted from the end, may hold in memory.
pub const VALUES_LIMIT: usize = 1_000_000;

/// The most rows of a table.
pub const ROWS_LIMIT: usize = 10_000;

/// One entry of `perf_variables`, rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerfVariable {
    pub name: String,
    /// `GFLOP/s`; values whose unit is in the text are converted to it.
    pub unit: String,
    pub source: Source,
    /// A glob: it is read from the kept files that this fits, not from the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// One figure a section, each with its node.
    pub per_section: bool,
    /// Finding no value is not a failure.
    pub optional: bool,
    /// The better direction, for colours and comparisons.
    pub direction: Option<Direction>,
}

impl PerfVariable {
    /// Finds what cannot be meant, before anything is launched: a pattern that does not compile, a tag without its
    /// group. Expressions are compiled where they are read.
    ///
    /// # Errors
    /// The first mistake, with a hint.
    pub fn validate(&self) -> Result<(), PatternError> {
        let plain = |message: String, hint: &str| PatternError { message, hint: Some(hint.to_owned()), at: None };
        match &self.source {
            Source::Pattern { pattern, tag, pick } => {
                Pattern::compile(pattern)?.groups(tag.as_deref())?;
                let far = |item: i64| item < 0 && item.unsigned_abs() > VALUES_LIMIT as u64;
                if let Pick::Item(item) = pick
                    && far(*item)
                {
                    return Err(plain(format!("item {item} is too far from the end"), "count from the beginning"));
                }
                Ok(())
            }
            Source::Value(_) if self.per_section => Err(plain(
                "`per: section` needs a pattern".to_owned(),
                "an expression sees all sections at once: leave `per` out",
            )),
            Source::Value(_) => Ok(()),
        }
    }
}

/// The source of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Matches of a regex.
    Pattern {
        /// Multi-line. Group `value`, else the only named group, else group 1, else the whole match is the figure;
        /// group `unit` its unit, group `key` makes a table.
        pattern: String,
        /// Another group: a name or a number.
        tag: Option<String>,
        /// The match that counts of several.
        pick: Pick,
    },
    /// A CEL expression over the text and the variables before this one.
    Value(String),
}

/// The matches that make the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The n-th, from 0; -1 is the last.
    Item(i64),
    Reduce(Reduce),
}

words! {
    /// The function that combines several figures.
    pub enum Reduce {
        First = "first",
        Last = "last",
        Min = "min",
        Max = "max",
        Mean = "mean",
        /// The median; the mean of the middle two for an even number.
        Median = "median",
        /// 0 for no values.
        Sum = "sum",
        /// 0 for no values.
        Count = "count",
    }

    /// The direction that is better.
    pub enum Direction {
        Higher = "higher",
        Lower = "lower",
    }
}

/// One figure, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub variable: String,
    /// The row of a table.
    pub key: Option<String>,
    /// The section it was read from, for `per: section`.
    pub section: Option<String>,
    pub node: Option<String>,
    /// NaN is kept, and fails.
    pub value: f64,
    pub unit: String,
    pub bounds: Option<Bounds>,
    pub verdict: Verdict,
    pub direction: Option<Direction>,
}

impl Measurement {
    /// `latency[8]`, or `flops`.
    pub fn label(&self) -> String {
        label(&self.variable, self.key.as_deref())
    }
}

/// `latency[8]`, or `flops`.
pub fn label(variable: &str, key: Option<&str>) -> String {
    key.map_or_else(|| variable.to_owned(), |key| format!("{variable}[{key}]"))
}

/// A reference and the interval around it, absolute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    pub reference: f64,
    /// The lowest value that passes; `None`: open.
    pub lower: Option<f64>,
    /// The highest value that passes; `None`: open.
    pub upper: Option<f64>,
}

/// The result of comparing a figure with its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    None,
    Pass,
    /// Within the bounds, but outside the warn band.
    Warn,
    Fail,
    /// Outside, as expected, and why.
    Xfail(String),
    /// Within, though a miss was expected, and why.
    Xpass(String),
}

impl Verdict {
    /// Its word, in the database and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Xfail(_) => "xfail",
            Self::Xpass(_) => "xpass",
        }
    }

    /// The reason that a reference gives for an expected miss.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Xfail(why) | Self::Xpass(why) => Some(why),
            Self::None | Self::Pass | Self::Warn | Self::Fail => None,
        }
    }

    /// Returns whether the figure fails its case.
    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Fail | Self::Xpass(_))
    }
}

impl Bounds {
    /// Returns whether a value passes: both ends belong to the interval, an open end lets infinity through, NaN never passes.
    pub fn hold(&self, value: f64) -> bool {
        !value.is_nan() && self.lower.is_none_or(|lower| lower <= value) && self.upper.is_none_or(|upper| value <= upper)
    }
}

/// Reads a number as benchmarks print them; blanks around it do not count. One that is too large (`12e4567`) is none.
pub fn parse_number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let number: f64 = text.parse().ok()?;
    (number.is_finite() || !text.contains(|c: char| c.is_ascii_digit())).then_some(number)
}

/// Writes a number for people: six significant digits, no trailing zeros, no exponent between 0.0001 and 10^15.
pub fn format_number(value: f64) -> String {
    format_digits(value, 6)
}

/// Formats a number with this many significant digits; the integer part is never shortened.
pub fn format_digits(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() || value == 0.0 {
        return if value == 0.0 { "0".to_owned() } else { format!("{value}") };
    }
    // Rounded first: 999999.7 has seven digits before the point once it is written with six.
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..15).contains(&exponent) {
        return format!("{}e{exponent}", without_trailing_zeros(mantissa));
    }
    let decimals = usize::try_from(i32::try_from(digits).unwrap_or(6) - 1 - exponent).unwrap_or(0);
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let rows = [
            (10.0, "10"),
            (110.000_000_000_000_01, "110"),
            (7439.683, "7439.68"),
            (0.1, "0.1"),
            (-98.0, "-98"),
            (1_234_567.89, "1234568"),
            (999_999.7, "1000000"),
            (123_456_789_012.0, "123456789012"),
            (1e15, "1e15"),
            (1.5e300, "1.5e300"),
            (0.000_123_456_78, "0.000123457"),
            (0.000_012_345_678, "1.23457e-5"),
            (1e-6, "1e-6"),
            (0.0, "0"),
            (-0.0, "0"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in rows {
            assert_eq!(format_number(value), text);
        }
    }

    #[test]
    fn numbers_are_read_as_benchmarks_print_them() {
        for (text, value) in [(" 7439.683 ", 7439.683), ("1e3", 1000.0), ("+5", 5.0), ("-.5", -0.5), ("inf", f64::INFINITY)] {
            assert_eq!(parse_number(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse_number(b"-nan").is_some_and(f64::is_nan));
        for text in ["", "1,234", "0x10", "12 MB", "1_000", "\u{663}", "12e4567", "-12e4567"] {
            assert_eq!(parse_number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_number(b"\xff1"), None);
    }

    #[test]
    fn bounds_are_inclusive_and_nan_never_passes() {
        let closed = Bounds { reference: 100.0, lower: Some(90.0), upper: Some(110.0) };
        let open = Bounds { reference: 100.0, lower: None, upper: None };
        let rows = [
            (closed, 90.0, true),
            (closed, 110.0, true),
            (closed, 89.999, false),
            (closed, 110.001, false),
            (closed, f64::INFINITY, false),
            (closed, f64::NAN, false),
            (open, f64::INFINITY, true),
            (open, f64::NEG_INFINITY, true),
            (open, f64::NAN, false),
        ];
        for (bounds, value, passes) in rows {
            assert_eq!(bounds.hold(value), passes, "{value} in {bounds:?}");
        }
    }

    #[test]
    fn a_variable_that_cannot_be_meant_is_found_before_the_launch() {
        let pattern = |pattern: &str, tag: Option<&str>, item| Source::Pattern {
            pattern: pattern.into(),
            tag: tag.map(str::to_owned),
            pick: Pick::Item(item),
        };
        let say = |source, per_section| {
            let variable = PerfVariable {
                name: "x".into(),
                unit: "s".into(),
                source,
                file: None,
                per_section,
                optional: false,
                direction: None,
            };
            match variable.validate() {
                Ok(()) => "fine".to_owned(),
                Err(error) => format!("{error}: {}", error.hint.clone().unwrap_or_default()),
            }
        };
        let sentences = [
            say(pattern(r"x=(\d+)", None, 0), true),
            say(pattern(r"x=(\d+)", Some("1"), -1), false),
            say(Source::Value("1 + 1".into()), false),
            say(pattern(r"x=(\d+", None, 0), false),
            say(pattern(r"x=(\d+)", Some("y"), 0), false),
            say(pattern("x", None, i64::MIN), false),
            say(Source::Value("1 + 1".into()), true),
        ];
        insta::assert_snapshot!(sentences.join("\n"), @r"
        fine
        fine
        fine
        unclosed group: close it with `)`, or write `\(` for the character itself
        the pattern has no group `y`: it has 1
        item -9223372036854775808 is too far from the end: count from the beginning
        `per: section` needs a pattern: an expression sees all sections at once: leave `per` out
        ");
    }
}
