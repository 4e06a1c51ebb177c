//! `muster results suggest-references`: references from stored figures, as a check file takes them.

use super::compared::case_of;
use crate::text::{
    number::number,
    style::{Screen, Tone, one_line},
    words::counted,
};
use muster_core::{
    query::answers::{SuggestedReference, Suggestion},
    rules::perf::format_digits,
};
use std::{collections::BTreeMap, fmt::Write};

/// How a file of suggestions begins.
pub const HEAD: &str = "# From the figures";

/// From which figures references are suggested.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    /// The period, as asked for.
    pub period: String,
    /// The percentiles that become the bounds.
    pub lower: u8,
    pub upper: u8,
}

/// The suggestions that there are, as YAML: for each check the key `reference`, for its system and partition. Ready for a check file, or
/// for a file of references, which names each by its check.
pub fn yaml(suggestions: &[Suggestion], basis: &Basis) -> String {
    let mut checks: BTreeMap<&str, Vec<(&Suggestion, &SuggestedReference)>> = BTreeMap::new();
    for suggestion in suggestions {
        if let Ok(reference) = &suggestion.reference {
            checks.entry(&suggestion.check).or_default().push((suggestion, reference));
        }
    }
    if checks.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{HEAD} of {}: the median, and as bounds the percentiles {} and {}.\n",
        one_line(&basis.period),
        basis.lower,
        basis.upper
    );
    for (check, rows) in checks {
        let _ = writeln!(text, "{}:", scalar(check));
        let mut scopes: BTreeMap<Scope<'_>, Vec<(&Suggestion, &SuggestedReference)>> = BTreeMap::new();
        for (suggestion, reference) in rows {
            scopes.entry(Scope::of(suggestion)).or_default().push((suggestion, reference));
        }
        for (scope, rows) in scopes {
            text += &scope.head();
            for (suggestion, reference) in rows {
                text += &row(suggestion, reference);
            }
        }
    }
    text
}

/// Where rows of references hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Scope<'a> {
    place: String,
    environ: &'a str,
    with: &'a [(String, String)],
}

impl<'a> Scope<'a> {
    fn of(suggestion: &'a Suggestion) -> Self {
        let metric = &suggestion.metric;
        Self { place: format!("{}:{}", metric.system, metric.partition), environ: &metric.environ, with: &suggestion.parameters }
    }

    fn head(&self) -> String {
        let mut text = format!("  - system: {}\n", scalar(&self.place));
        if !self.with.is_empty() {
            let pairs: Vec<String> =
                self.with.iter().map(|(name, value)| format!("{}: {}", scalar(name), scalar(value))).collect();
            let _ = writeln!(text, "    with: {{ {} }}", pairs.join(", "));
        }
        text + "    values:\n"
    }
}

/// `bandwidth: [1912, -0.021, null, GB/s]     # 412 runs, spread 0.8 %`
fn row(suggestion: &Suggestion, reference: &SuggestedReference) -> String {
    let bound = |bound: Option<f64>| bound.map_or_else(|| "null".to_owned(), |bound| format_digits(bound, 3));
    let unit = if suggestion.unit.is_empty() { String::new() } else { format!(", {}", scalar(&suggestion.unit)) };
    let list = format!("[{}, {}, {}{unit}]", number(reference.value), bound(reference.lower), bound(reference.upper));
    let spread = reference.spread.map_or_else(String::new, |spread| format!(", spread {} %", format_digits(spread * 100.0, 2)));
    let label = suggestion.metric.label();
    format!("      {}: {list}     # {}{spread}\n", scalar(&label), counted(suggestion.count, "run"))
}

/// A text as a scalar of a flow collection.
fn scalar(text: &str) -> String {
    if text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
    {
        return text.to_owned();
    }
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+'))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Why there is no suggestion for a metric, one line each; empty if there is one for all.
pub fn refused(suggestions: &[Suggestion], screen: &Screen) -> String {
    let mut text = String::new();
    for suggestion in suggestions {
        if let Err(too_few) = suggestion.reference {
            let missing = too_few.needed.saturating_sub(suggestion.count);
            let line = format!(
                "no reference for {} {}: {}, {} needed, {missing} missing",
                case_of(&suggestion.metric),
                one_line(&suggestion.metric.label()),
                counted(suggestion.count, "run"),
                too_few.needed
            );
            let _ = writeln!(text, "{}", screen.paint.apply(Tone::Odd, line));
        }
    }
    text
}
