//! Sanity items: all are looked at, whatever came before; their order is the order of the sentences.

use super::{
    at::{At, Watcher},
    evaluate::Evaluator,
    search::matches::{Matches, Question},
    views::Views,
    words::{in_section, quote, quote_pattern, times},
};
use crate::{
    fact::Fact,
    job::stdout::Stdout,
    rules::sanity::{Assertion, Claim},
};
use muster_text::pattern::Pattern;

/// What has to be searched for a claim; `None` for one that is not a pattern.
pub(super) fn question(claim: &Claim) -> Option<(&str, Question)> {
    match claim {
        Claim::Found { pattern, count: None } => Some((pattern, Question::Whether)),
        Claim::Found { pattern, count: Some(_) } => Some((pattern, Question::HowOften)),
        Claim::NotFound { pattern } => Some((pattern, Question::Where)),
        Claim::Assert { .. } | Claim::Exit(_) => None,
    }
}

/// What is wrong with the items.
#[derive(Debug, Default)]
pub(super) struct Sanity {
    /// One sentence for each item that does not hold.
    pub failures: Vec<String>,
    /// The first fact of the site that an `assert` needs and that is missing: it says nothing here.
    pub missing: Option<Fact>,
}

/// Looks at all items. `answers` are those of the items that asked a question, in order.
pub(super) fn look(
    items: &[Assertion],
    answers: impl IntoIterator<Item = (Pattern, Matches)>,
    evaluator: &Evaluator,
    views: &Views,
    watcher: &Watcher<'_>,
) -> Sanity {
    let mut answers = answers.into_iter();
    let mut sanity = Sanity::default();
    for (number, item) in items.iter().enumerate() {
        let file = item.file.as_deref();
        let (text, lack) = (views.of(file), views.lack(file));
        let complaint = match &item.claim {
            Claim::Exit(_) => None,
            Claim::Assert { expression } => {
                if let Some(lack) = lack {
                    Some(format!("{}: {lack}", quote(expression.as_bytes())))
                } else {
                    (watcher.at)(At::Sanity(number, None));
                    untrue(expression, evaluator, text).unwrap_or_else(|fact| {
                        sanity.missing.get_or_insert(fact);
                        None
                    })
                }
            }
            // What is not there proves nothing, not even that something is not found.
            claim => answers.next().and_then(|(pattern, matches)| match lack {
                Some(lack) => Some(format!("{} could not be looked for: {lack}", quote_pattern(&pattern))),
                None => unmet(claim, &pattern, &matches, text).map(|fact| in_files(file, fact)),
            }),
        };
        sanity.failures.extend(complaint.map(|fact| match &item.msg {
            Some(msg) => format!("{msg} ({fact})"),
            None => fact,
        }));
    }
    sanity
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

/// Why an assertion does not hold, if it does not.
fn untrue(expression: &str, evaluator: &Evaluator, text: &Stdout) -> Result<Option<String>, Fact> {
    match evaluator.is_true(expression, text) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(format!("{} is false", quote(expression.as_bytes())))),
        Err(error) => match Fact::missed_by(&error) {
            Some(fact) => Err(fact),
            None => Ok(Some(format!("{}: {error}", quote(expression.as_bytes())))),
        },
    }
}
