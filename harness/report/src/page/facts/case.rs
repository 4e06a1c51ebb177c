//! What templates can read of one case, of its figures and of its attempts.

use crate::page::facts::{
    Bar, CaseResult, Measurement, Origins, Results, Serialize, Value, Verdict, block, bounds, bracket_word, command,
    difference_of, failed_exits, format_duration, is_flaky, json, line, lines, number, outcome_tone, percent, tone, tone_of,
    verdict_reason, verdict_tone, verdict_word, what_happened,
};

#[derive(Debug, Clone, Serialize)]
pub(super) struct CaseFacts {
    /// Names this attempt within the page.
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) display: String,
    pub(super) check: String,
    pub(super) hash: String,
    pub(super) place: String,
    pub(super) system_partition: String,
    pub(super) environ: String,
    pub(super) descr: String,
    pub(super) file: String,
    pub(super) tags: Vec<String>,
    pub(super) maintainers: Vec<String>,
    pub(super) scheduler: &'static str,
    pub(super) identifier: Option<String>,
    pub(super) attempt: u32,
    pub(super) flaky: bool,
    /// Why its outcome does not count, and until when.
    pub(super) quarantine: Option<String>,
    pub(super) restored_from: Option<String>,
    pub(super) outcome: String,
    pub(super) word: &'static str,
    pub(super) tone: &'static str,
    pub(super) fine: bool,
    pub(super) phase: &'static str,
    pub(super) happened: String,
    pub(super) cause: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) nodes: Vec<String>,
    pub(super) exits: Vec<String>,
    pub(super) figures: Vec<Value>,
    pub(super) took: String,
    pub(super) took_s: f64,
    pub(super) folder: Option<String>,
    pub(super) log_tail: Option<String>,
    pub(super) look: Vec<String>,
    pub(super) delete: Vec<String>,
    pub(super) leftovers: Vec<String>,
    pub(super) rerun: String,
}

#[derive(Debug, Serialize)]
pub(super) struct RetriedFacts {
    pub(super) name: String,
    pub(super) flaky: bool,
    pub(super) outcome: String,
    pub(super) tone: &'static str,
    pub(super) attempts: Vec<CaseFacts>,
}

impl CaseFacts {
    pub(super) fn of(case: &CaseResult, rerun_options: &[String]) -> Self {
        let (name, about) = (&case.name, &case.about);
        let origins = Origins::of(&case.measurements);
        Self {
            anchor: anchor(case),
            name: line(&name.to_string()),
            display: line(&name.title()),
            check: line(&name.check),
            hash: line(&name.hash),
            place: line(&name.place()),
            system_partition: line(&name.system_partition()),
            environ: line(&name.environ),
            descr: line(&about.descr),
            file: line(&about.file),
            tags: lines(&about.tags),
            maintainers: lines(&about.maintainers),
            scheduler: about.scheduler.as_str(),
            identifier: case.identifier.as_ref().map(ToString::to_string),
            attempt: case.attempt,
            flaky: false,
            quarantine: case.quarantine.as_ref().map(|of| line(&format!("until {}: {}", of.until, of.reason))),
            restored_from: case.restored_from.as_ref().map(|session| line(&session.0)),
            outcome: line(&case.outcome.to_string()),
            word: case.outcome.word(),
            tone: tone(tone_of(case)),
            fine: case.outcome.is_fine(),
            phase: case.phase.as_str(),
            happened: line(&what_happened(case)),
            cause: case.cause.as_deref().map(line),
            warnings: lines(&case.warnings),
            nodes: lines(&case.nodes),
            exits: lines(&failed_exits(case)),
            figures: case.measurements.iter().map(|one| figure(one, origins.text(one))).collect(),
            took: format_duration(case.times.total()),
            took_s: case.times.total().as_secs_f64(),
            folder: case.folder.as_ref().map(|folder| line(&folder.to_string_lossy())),
            log_tail: case.log_tail.as_deref().map(block),
            look: lines(&case.look),
            delete: lines(&case.delete),
            leftovers: lines(&case.leftovers),
            rerun: line(&command::rerun(case, rerun_options)),
        }
    }
}

/// Letters, digits and dashes only.
fn anchor(case: &CaseResult) -> String {
    let name = &case.name;
    let text = format!("{}-{}-{}-{}-{}", name.check, name.hash, name.hidden, name.place(), case.attempt);
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn figure(figure: &Measurement, origin: Option<String>) -> Value {
    let bound = |bound: Option<f64>| bound.map(number);
    json!({
        "label": line(&figure.label()),
        "origin": origin.map(|origin| line(&origin)),
        "value": number(figure.value),
        // For sorting; null for what is not a number.
        "number": figure.value.is_finite().then_some(figure.value),
        "unit": line(&figure.unit),
        "reference": bound(figure.bounds.map(|bounds| bounds.reference)),
        "lower": bound(figure.bounds.and_then(|bounds| bounds.lower)),
        "upper": bound(figure.bounds.and_then(|bounds| bounds.upper)),
        "bounds": bounds(figure.bounds).trim(),
        "diff": difference_of(figure).map(percent),
        "diff_percent": difference_of(figure),
        "verdict": verdict_word(&figure.verdict),
        "reason": verdict_reason(&figure.verdict).map(line),
        "tone": tone(verdict_tone(&figure.verdict)),
        "bad": matches!(figure.verdict, Verdict::Fail | Verdict::Xpass(_)),
        "bar": Bar::of(figure),
    })
}

impl RetriedFacts {
    pub(super) fn of(results: &Results<'_>, attempts: &[&CaseResult], rerun_options: &[String]) -> Option<Self> {
        let last = attempts.last()?;
        Some(Self {
            name: line(&last.name.to_string()),
            flaky: is_flaky(results, last),
            outcome: bracket_word(&last.outcome).to_owned(),
            tone: tone(outcome_tone(&last.outcome)),
            attempts: attempts.iter().map(|case| CaseFacts::of(case, rerun_options)).collect(),
        })
    }
}
