//! Sanity items: all are evaluated, even after a failure; the sentences keep their order.

use super::{
    evaluate::Evaluator,
    position::{Monitor, Position},
    search::matches::{Matches, Question},
    views::Views,
    words::{in_section, quote, times},
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

#[derive(Debug, Default)]
pub(super) struct Sanity {
    /// One sentence for each failed item.
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
    monitor: &Monitor<'_>,
) -> Sanity {
    let mut answers = answers.into_iter();
    let mut sanity = Sanity::default();
    for (number, item) in items.iter().enumerate() {
        let file = item.file.as_deref();
        let (text, no_files) = (views.of(file), views.no_files(file));
        let complaint = match &item.claim {
            Claim::Exit(_) => None,
            Claim::Assert { expression } => {
                if let Some(why) = no_files {
                    Some(format!("{}: {why}", quote(expression)))
                } else {
                    (monitor.report)(Position::Sanity(number, None));
                    untrue(expression, evaluator, text).unwrap_or_else(|fact| {
                        sanity.missing.get_or_insert(fact);
                        None
                    })
                }
            }
            // What is not there proves nothing, not even that something is not found.
            claim => answers.next().and_then(|(pattern, matches)| match no_files {
                Some(why) => Some(format!("{} could not be looked for: {why}", quote(pattern.as_str()))),
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
    let pattern = quote(pattern.as_str());
    match claim {
        Claim::Found { count: Some(wanted), .. } => {
            (matches.count != *wanted).then(|| format!("{pattern} found {}, expected {wanted}", times(matches.count)))
        }
        Claim::Found { count: None, .. } => (matches.count == 0).then(|| format!("{pattern} not found")),
        Claim::NotFound { .. } => matches.first.map(|place| {
            let (line, text) = place.line(stdout);
            let place = match in_section(stdout, place.section) {
                section if section.is_empty() => " in".to_owned(),
                section => format!("{section},"),
            };
            format!("{pattern} found{place} line {line}: {}", quote(text))
        }),
        Claim::Assert { .. } | Claim::Exit(_) => None,
    }
}

/// Adds the glob of the searched files, unless the sentence names a file already.
fn in_files(file: Option<&str>, fact: String) -> String {
    match file {
        Some(glob) if !fact.contains(" line ") => format!("{fact} in `{glob}`"),
        _ => fact,
    }
}

/// Why an assertion fails; `None` if it holds.
fn untrue(expression: &str, evaluator: &Evaluator, text: &Stdout) -> Result<Option<String>, Fact> {
    match evaluator.is_true(expression, text) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(format!("{} is false{}", quote(expression), evaluator.why_false(expression, text)))),
        Err(error) => match Fact::missing_in(&error) {
            Some(fact) => Err(fact),
            None => Ok(Some(format!("{}: {error}", quote(expression)))),
        },
    }
}
