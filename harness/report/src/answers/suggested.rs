//! `muster results suggest-references`: references from stored figures, as a check file takes them.

use super::compared::case_of;
use crate::text::{
    number::number,
    style::{Screen, Tone, one_line},
    words::counted,
};
use muster_core::{
    query::answers::{NoReference, SuggestedReference, Suggestion},
    rules::perf::format_digits,
};
use muster_judge::suggest::{DEVIATIONS, NEAREST};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The beginning of a file of suggestions.
pub const HEAD: &str = "# From the figures";

/// The figures from which references are suggested.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    /// The period, as asked for.
    pub period: String,
    /// The percentiles that become the bounds; `None`: they are so many standard deviations away.
    pub lower: Option<u8>,
    pub upper: Option<u8>,
}

/// A suggestion that there is.
type Suggested<'a> = (&'a Suggestion, &'a SuggestedReference);

fn suggested(suggestions: &[Suggestion]) -> Vec<Suggested<'_>> {
    suggestions.iter().filter_map(|suggestion| Some((suggestion, suggestion.reference.as_ref().ok()?))).collect()
}

/// The suggestions that there are, as YAML: for each check the key `reference`, for its system and partition. Ready for a check file, or
/// for a file of references, which names each by its check.
pub fn yaml(suggestions: &[Suggestion], basis: &Basis) -> String {
    let all = suggested(suggestions);
    let mut checks: BTreeMap<&str, BTreeMap<Scope<'_>, Vec<Suggested<'_>>>> = BTreeMap::new();
    for row in &all {
        checks.entry(&row.0.check).or_default().entry(Scope::of(row.0)).or_default().push(*row);
    }
    if checks.is_empty() {
        return String::new();
    }
    let mut text = head(&all, basis);
    for (check, scopes) in checks {
        let _ = writeln!(text, "{}:", scalar(check));
        for (scope, rows) in scopes {
            text += &scope.head();
            for (suggestion, reference) in rows {
                text += &row(suggestion, reference);
            }
        }
    }
    text
}

/// What the bounds are, and how often a healthy machine misses them.
fn head(all: &[Suggested<'_>], basis: &Basis) -> String {
    let rule = |percentile: Option<u8>| match percentile {
        Some(percentile) => format!("percentile {percentile}"),
        None => format!("{DEVIATIONS} standard deviations from it, at least {} %", number(100.0 * NEAREST)),
    };
    let expected = |kind: usize| format_digits(all.iter().map(|(_, reference)| reference.expected[kind]).sum(), 2);
    format!(
        "{HEAD} of {}: the median; lower bounds: {}; upper bounds: {}.\n\
         # Of {}, {} would have failed. On a healthy machine expect, in a night with one run of each variable, at most\n\
         # {} false failures if the noise is normal, {} if it has a long tail; more if nights differ more than these runs.\n",
        one_line(&basis.period),
        rule(basis.lower),
        rule(basis.upper),
        counted(all.iter().map(|(suggestion, _)| suggestion.count).sum(), "stored figure"),
        all.iter().map(|(_, reference)| reference.failed).sum::<usize>(),
        expected(0),
        expected(1),
    )
}

/// The key with which a check beside a file of suggestions reads its part, for each check.
pub fn keys(suggestions: &[Suggestion], file_name: &str) -> Vec<String> {
    let checks: BTreeSet<&str> = suggested(suggestions).iter().map(|(suggestion, _)| suggestion.check.as_str()).collect();
    checks.iter().map(|check| format!("reference: {}", scalar(&format!("{file_name}#{check}")))).collect()
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

/// `bandwidth: [1912, -0.044, null, GB/s]     # 412 runs of 90 nights, spread 0.8 %, the furthest at -1.9 %, 0 would have failed`
fn row(suggestion: &Suggestion, reference: &SuggestedReference) -> String {
    let bound = |bound: Option<f64>| bound.map_or_else(|| "null".to_owned(), |bound| format_digits(bound, 3));
    let unit = if suggestion.unit.is_empty() { String::new() } else { format!(", {}", scalar(&suggestion.unit)) };
    let share = |share: f64| match reference.value {
        0.0 => format_digits(share, 2),
        _ => format!("{} %", format_digits(share * 100.0, 2)),
    };
    let replaced = ["lower", "upper"].iter().zip(reference.replaced).filter(|(_, replaced)| *replaced);
    let replaced = replaced.map(|(side, _)| format!(", {side} bound of standard deviations: the percentile is the median"));
    let left_out = suggestion.left_out.iter().map(|why| format!("      # {}\n", one_line(why)));
    left_out.collect::<String>()
        + &format!(
            "      {}: [{}, {}, {}{unit}]     # {} of {}, spread {}, the furthest at {}, {} would have failed{}\n",
            scalar(&suggestion.metric.label()),
            number(reference.value),
            bound(reference.lower),
            bound(reference.upper),
            counted(suggestion.count, "run"),
            counted(suggestion.nights, "night"),
            share(reference.spread),
            share(reference.furthest),
            reference.failed,
            replaced.collect::<String>(),
        )
}

/// A text as a scalar of a flow collection.
fn scalar(text: &str) -> String {
    if text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
    {
        return text.to_owned();
    }
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+' | '#'))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Returns why there is no suggestion for a metric, one line each; empty if there is one for all.
pub fn refused(suggestions: &[Suggestion], screen: &Screen) -> String {
    refusals(suggestions).map(|line| screen.paint.apply(Tone::Odd, line) + "\n").collect()
}

/// Returns these lines as comments for the end of a file of suggestions: it may replace one that had a reference.
pub fn comments(suggestions: &[Suggestion]) -> String {
    refusals(suggestions).map(|line| "# ".to_owned() + &line + "\n").collect()
}

fn refusals(suggestions: &[Suggestion]) -> impl Iterator<Item = String> {
    suggestions.iter().filter_map(|suggestion| {
        let why = reason(suggestion.reference.as_ref().err()?, suggestion.count);
        let (case, label) = (case_of(&suggestion.metric), suggestion.metric.label());
        let mut line = format!("no reference for {case} {}: {why}", one_line(&label));
        for why in &suggestion.left_out {
            let _ = write!(line, "; {}", one_line(why));
        }
        Some(line)
    })
}

fn reason(why: &NoReference, count: usize) -> String {
    let runs = counted(count, "run");
    match why {
        NoReference::TooFewRuns { needed } => format!("{runs}, {needed} needed, {} missing", needed.saturating_sub(count)),
        NoReference::TooNoisy => format!("{runs}, which vary so much that every figure up to zero would pass"),
        NoReference::OnlyZeros => format!("{runs}, all of 0, which says nothing of a bound"),
    }
}
