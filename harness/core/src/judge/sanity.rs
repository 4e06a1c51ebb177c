//! Sanity items: all are looked at, whatever came before; their order is the order of the sentences.

use super::{
    evaluate::Evaluator,
    matches::{Matches, Question},
    views::Views,
    words::{in_section, quote, quote_pattern, times},
};
use crate::{
    pattern::Pattern,
    sanity::{Assertion, Claim},
    stdout::Stdout,
};

/// What has to be searched for a claim; `None` for one that is not a pattern.
pub(super) fn question(claim: &Claim) -> Option<(&str, Question)> {
    match claim {
        Claim::Found { pattern, count: None } => Some((pattern, Question::Whether)),
        Claim::Found { pattern, count: Some(_) } => Some((pattern, Question::HowOften)),
        Claim::NotFound { pattern } => Some((pattern, Question::Where)),
        Claim::Assert { .. } | Claim::Exit(_) => None,
    }
}

/// One sentence for each item that does not hold. `answers` are those of the items that asked a question, in order.
pub(super) fn failures(
    items: &[Assertion],
    answers: impl IntoIterator<Item = (Pattern, Matches)>,
    evaluator: &Evaluator,
    views: &Views,
) -> Vec<String> {
    let mut answers = answers.into_iter();
    let mut failures = Vec::new();
    for item in items {
        let file = item.file.as_deref();
        let (text, lack) = (views.of(file), views.lack(file));
        let complaint = match &item.claim {
            Claim::Exit(_) => None,
            Claim::Assert { expression } => match lack {
                Some(lack) => Some(format!("{}: {lack}", quote(expression.as_bytes()))),
                None => untrue(expression, evaluator, text),
            },
            // What is not there proves nothing, not even that something is not found.
            claim => answers.next().and_then(|(pattern, matches)| match lack {
                Some(lack) => Some(format!("{} could not be looked for: {lack}", quote_pattern(&pattern))),
                None => unmet(claim, &pattern, &matches, text).map(|fact| in_files(file, fact)),
            }),
        };
        failures.extend(complaint.map(|fact| match &item.msg {
            Some(msg) => format!("{msg} ({fact})"),
            None => fact,
        }));
    }
    failures
}

fn unmet(claim: &Claim, pattern: &Pattern, matches: &Matches, stdout: &Stdout) -> Option<String> {
    let pattern = quote_pattern(pattern);
    match claim {
        Claim::Found { count: Some(wanted), .. } => {
            (matches.count != *wanted).then(|| format!("{pattern} found {}, expected {wanted}", times(matches.count)))
        }
        Claim::Found { count: None, .. } => (matches.count == 0).then(|| format!("{pattern} not found")),
        Claim::NotFound { .. } => matches.first.map(|place| {
            let (line, text) = place.line(stdout);
            let place = match in_section(stdout, place.section) {
                nowhere if nowhere.is_empty() => " in".to_owned(),
                section => format!("{section},"),
            };
            format!("{pattern} found{place} line {line}: {}", quote(text))
        }),
        Claim::Assert { .. } | Claim::Exit(_) => None,
    }
}

/// Where it was looked for, if that is not the output and not said.
fn in_files(file: Option<&str>, fact: String) -> String {
    match file {
        Some(glob) if !fact.contains(" line ") => format!("{fact} in `{glob}`"),
        _ => fact,
    }
}

fn untrue(expression: &str, evaluator: &Evaluator, text: &Stdout) -> Option<String> {
    match evaluator.is_true(expression, text) {
        Ok(true) => None,
        Ok(false) => Some(format!("{} is false", quote(expression.as_bytes()))),
        Err(why) => Some(format!("{}: {why}", quote(expression.as_bytes()))),
    }
}
