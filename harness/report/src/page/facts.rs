//! The facts for templates: plain data, in the words of docs/reports.md. Every text is clean of control characters and
//! of what looks like a secret; numbers come as text for people and as numbers for sorting.

use crate::{
    counts::{self, Results, is_excused, is_flaky},
    page::bar::Bar,
    text::{
        command,
        number::{bounds, difference_of, limits_of, number, percent},
        secret::masked,
        style::{Tone, one_line, sanitize},
        words::{Origins, counted, failed_exits, verdict_tone, verdict_word, what_happened},
    },
};
use muster_core::{
    case::CaseName,
    decisions::rounds::is_failure,
    result::{CaseResult, Grade, Outcome},
    rules::perf::Measurement,
};
use muster_text::{
    shell,
    time::{Timestamp, format_duration},
};
use serde_json::{Value as Json, json};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
};
use tera::{Context, Value};

/// At most so many failures are shown in full.
const FAILURES: usize = 100;
/// So many of the cases that took longest are listed.
const SLOWEST: usize = 5;

/// All that templates can read.
pub(super) fn context(results: &Results<'_>, rerun_options: &[String], time: impl Fn(Timestamp) -> String) -> Context {
    let rerun = |case: &CaseResult| command::rerun_in(results.session, case, rerun_options);
    let facts = |case: &CaseResult| case_facts(case, &rerun(case), false);
    let counting = results.counting();
    let retried = counts::retried(results);
    let flaky = retried.iter().filter_map(|attempts| attempts.last()).filter(|last| is_flaky(results, last));
    let flaky: HashSet<&CaseName> = flaky.map(|last| &last.name).collect();
    let cases: Vec<Value> = counting.iter().map(|case| case_facts(case, &rerun(case), flaky.contains(&case.name))).collect();
    let only = |is_meant: fn(&CaseResult) -> bool| -> Vec<Value> {
        counting.iter().zip(&cases).filter(|(case, _)| is_meant(case)).map(|(_, facts)| facts.clone()).collect()
    };
    let mut failures = only(is_failure);
    let more = failures.len().saturating_sub(FAILURES);
    failures.truncate(FAILURES);
    let left_behind: Vec<Value> = results.sorted().iter().copied().filter(|case| !case.leftovers.is_empty()).map(facts).collect();
    let mut slowest: Vec<_> = counting.iter().filter(|case| case.outcome != Outcome::Skip).collect();
    slowest.sort_by_key(|case| Reverse(case.times.total()));
    let slowest: Vec<Value> = slowest.into_iter().take(SLOWEST).map(|case| facts(case)).collect();
    let mut counts = json!(results.counts());
    counts["ran"] = results.counts().ran().into();
    counts["flaky"] = flaky.len().into();
    counts["retried"] = retried.len().into();
    let retried: Vec<Value> = retried
        .iter()
        .filter_map(|attempts| {
            let last = attempts.last()?;
            let attempts = attempts.iter().map(|case| facts(case)).collect::<Vec<Value>>();
            Some(Value::from_serializable(&json!({
                "name": line(&last.name.to_string()),
                "flaky": flaky.contains(&last.name),
                "outcome": last.outcome.row().bracket,
                "tone": tone(last.outcome.row().grade.into()),
                "attempts": attempts,
            })))
        })
        .collect();
    let mut context = Context::new();
    context.insert("muster", &json!({ "version": env!("CARGO_PKG_VERSION") }));
    context.insert("session", &session(results, time));
    context.insert("verdict", &verdict(results));
    context.insert("counts", &counts);
    context.insert("outcomes", &outcomes(results, counting));
    context.insert("partitions", &partitions(counting));
    context.insert_value("failures", failures.into());
    context.insert("failures_more", &more);
    context.insert_value("quarantined", only(is_excused).into());
    context.insert_value("left_behind", left_behind.into());
    context.insert_value("retried", retried.into());
    context.insert_value("slowest", slowest.into());
    context.insert_value("cases", cases.into());
    context.insert("num_figures", &counting.iter().map(|case| case.measurements.len()).sum::<usize>());
    context
}

/// One attempt. `flaky`: its case is well only in its last attempt, which this is.
fn case_facts(case: &CaseResult, rerun: &str, flaky: bool) -> Value {
    let (name, about) = (&case.name, &case.about);
    let origins = Origins::of(&case.measurements);
    Value::from_serializable(&json!({
        // Names this attempt within the page.
        "anchor": anchor(case),
        "name": line(&name.to_string()),
        "display": line(&name.title()),
        "check": line(&name.check),
        "hash": line(&name.hash),
        "place": line(&name.place()),
        "system_partition": line(&name.system_partition()),
        "environ": line(&name.environ),
        "descr": line(&about.descr),
        "file": line(&about.file),
        "tags": lines(&about.tags),
        "maintainers": lines(&about.maintainers),
        "scheduler": about.scheduler,
        "identifier": case.identifier,
        "attempt": case.attempt,
        "flaky": flaky,
        // Why its outcome does not count, and until when.
        "quarantine": case.quarantine.as_ref().map(|of| line(&format!("until {}: {}", of.until, of.reason))),
        "restored_from": case.restored_from.as_ref().map(|session| line(&session.0)),
        "outcome": line(&case.outcome.to_string()),
        "word": case.outcome.row().word,
        "tone": tone(grade_of(case).into()),
        "fine": case.outcome.is_fine(),
        "phase": case.phase,
        "happened": line(&what_happened(case)),
        "cause": case.cause.as_deref().map(line),
        "warnings": lines(&case.warnings),
        "nodes": lines(&case.nodes),
        "exits": lines(&failed_exits(case)),
        "figures": case.measurements.iter().map(|one| figure(one, origins.text(one))).collect::<Vec<_>>(),
        "took": format_duration(case.times.total()),
        "took_s": case.times.total().as_secs_f64(),
        // What it has used of instances that are paid by time.
        "usage": (!case.usage.is_empty()).then(|| line(&case.usage.to_string())),
        "folder": case.folder.as_ref().map(|folder| line(&folder.to_string_lossy())),
        "log_tail": case.log_tail.as_deref().map(block),
        "look": lines(&case.look),
        "delete": lines(&case.delete),
        "leftovers": lines(&case.leftovers),
        "rerun": line(rerun),
    }))
}

/// Letters, digits and dashes only.
fn anchor(case: &CaseResult) -> String {
    let name = &case.name;
    let text = format!("{}-{}-{}-{}-{}", name.check, name.hash, name.hidden, name.place(), case.attempt);
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn figure(figure: &Measurement, origin: Option<String>) -> Json {
    let [reference, lower, upper] = limits_of(figure).map(|limit| limit.map(number));
    json!({
        "label": line(&figure.label()),
        "origin": origin.map(|origin| line(&origin)),
        "value": number(figure.value),
        // For sorting; null for what is not a number.
        "number": figure.value.is_finite().then_some(figure.value),
        "unit": line(&figure.unit),
        "reference": reference,
        "lower": lower,
        "upper": upper,
        "bounds": bounds(figure.bounds).trim(),
        "diff": difference_of(figure).map(percent),
        "diff_percent": difference_of(figure),
        "verdict": verdict_word(&figure.verdict),
        "reason": figure.verdict.reason().map(line),
        "tone": tone(verdict_tone(&figure.verdict)),
        "bad": figure.verdict.is_bad(),
        "bar": Bar::of(figure),
    })
}

/// One line, clean and without secrets.
fn line(text: &str) -> String {
    masked(&one_line(text)).into_owned()
}

/// The same of many.
fn lines(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| line(text)).collect()
}

/// Several lines, clean and without secrets.
fn block(text: &str) -> String {
    masked(&sanitize(text)).into_owned()
}

/// A failure in quarantine is not shown as bad.
fn grade_of(case: &CaseResult) -> Grade {
    if is_excused(case) { Grade::Odd } else { case.outcome.row().grade }
}

/// The word that style sheets know.
fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Odd => "odd",
        Tone::Strong | Tone::Faint | Tone::Plain => "plain",
    }
}

fn session(results: &Results<'_>, time: impl Fn(Timestamp) -> String) -> Json {
    let session = results.session;
    let last = results.attempts().iter().map(|case| case.times.finished).max();
    let end = session.ended.or(last).unwrap_or(session.started);
    let command: Vec<_> = session.command.iter().map(|word| shell::quote(word)).collect();
    json!({
        "id": line(&session.id.0),
        "system": line(&session.system),
        "user": line(&session.user),
        "host": line(&session.host),
        "workdir": line(&session.workdir.to_string_lossy()),
        "version": line(&session.version),
        "command": line(&command.join(" ")),
        "started": time(session.started),
        "ended": session.ended.map(time),
        "took": format_duration(end.since(session.started)),
        "interrupted": session.interrupted,
        // What all its cases have used.
        "usage": Some(results.usage()).filter(|usage| !usage.is_empty()).map(|usage| line(&usage.to_string())),
        // Name and value.
        "extras": session.extras.iter().map(|(name, value)| [line(name), line(value)]).collect::<Vec<_>>(),
    })
}

/// `word` is `passed`, `failed` or `interrupted`.
fn verdict(results: &Results<'_>) -> Json {
    let counts = results.counts();
    let (word, tone) = match (results.session.interrupted, counts.is_fine()) {
        (true, _) => ("interrupted", "bad"),
        (false, true) => ("passed", "good"),
        (false, false) => ("failed", "bad"),
    };
    let mut parts = vec![format!("{} of {} passed", counts.passed, counted(counts.total as usize, "case"))];
    let more = [
        (counts.failed, "failed"),
        (counts.expected, "failed as expected"),
        (counts.quarantined, "in quarantine"),
        (counts.stopped, "stopped by a rule"),
        (counts.skipped, "skipped"),
        (counts.aborted, "aborted"),
        (counts.not_run, "not run"),
    ];
    parts.extend(more.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    parts.extend(counts.why_skips_fail());
    json!({ "word": word, "tone": tone, "sentence": parts.join(", ") })
}

/// How many cases ended how: what is good first, what is bad last but for those without a result.
fn outcomes(results: &Results<'_>, cases: &[&CaseResult]) -> Vec<Json> {
    let counts = results.counts();
    let row = |outcome: &str, count: u32, tone: &str| {
        let percent = f64::from(count) * 100.0 / f64::from(counts.total.max(1));
        json!({ "outcome": outcome, "count": count, "percent": percent, "tone": tone })
    };
    let mut seen: BTreeMap<String, (Grade, u32)> = BTreeMap::new();
    for case in cases {
        let excused = if is_excused(case) { " in quarantine" } else { "" };
        seen.entry(line(&format!("{}{excused}", case.outcome))).or_insert((grade_of(case), 0)).1 += 1;
    }
    for (outcome, is_quarantined, count) in results.dropped().outcomes() {
        let is_excused = is_quarantined && outcome.row().grade == Grade::Bad;
        let (excused, grade) = if is_excused { (" in quarantine", Grade::Odd) } else { ("", outcome.row().grade) };
        seen.entry(line(&format!("{outcome}{excused}"))).or_insert((grade, 0)).1 += count;
    }
    let mut seen: Vec<_> = seen.into_iter().collect();
    // Stable: of as many, by their words.
    seen.sort_by_key(|(_, (grade, count))| (*grade, Reverse(*count)));
    let mut rows: Vec<_> = seen.iter().map(|(outcome, (grade, count))| row(outcome, *count, tone((*grade).into()))).collect();
    if counts.not_run > 0 {
        rows.push(row("not run", counts.not_run, "plain"));
    }
    rows
}

fn partitions(cases: &[&CaseResult]) -> Vec<Json> {
    let mut partitions: BTreeMap<String, Vec<Grade>> = BTreeMap::new();
    for case in cases {
        partitions.entry(line(&case.name.system_partition())).or_default().push(grade_of(case));
    }
    let row = |(name, grades): (String, Vec<Grade>)| {
        let count = |wanted| grades.iter().filter(|grade| **grade == wanted).count();
        let (good, odd, bad) = (count(Grade::Good), count(Grade::Odd), count(Grade::Bad));
        json!({ "name": name, "total": grades.len(), "good": good, "odd": odd, "bad": bad })
    };
    partitions.into_iter().map(row).collect()
}
