//! What templates can read: plain data, in the words of docs/reports.md. Every text is clean of control characters and
//! of what looks like a secret; numbers come as text for people and as numbers for sorting.

mod case;

use crate::page::bar::Bar;
use crate::{
    counts::{Counts, Results, is_excused, is_flaky, retried},
    text::{
        command,
        number::{bounds, difference_of, number, percent},
        secret::masked,
        style::{Tone, one_line, sanitize},
        words::{
            Origins, bracket_word, counted, failed_exits, outcome_tone, verdict_reason, verdict_tone, verdict_word, what_happened,
        },
    },
};
use case::{CaseFacts, RetriedFacts};
use muster_core::{
    result::{CaseResult, Outcome},
    rules::perf::{Measurement, Verdict},
};
use muster_text::{
    Value, shell,
    time::{Timestamp, format_duration},
};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};

/// At most so many failures are shown in full.
const FAILURES: usize = 100;
/// So many of the cases that took longest are listed.
const SLOWEST: usize = 5;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    muster: Value,
    session: Value,
    verdict: Value,
    counts: CountFacts,
    outcomes: Vec<OutcomeCount>,
    partitions: Vec<PartitionFacts>,
    failures: Vec<CaseFacts>,
    failures_more: usize,
    quarantined: Vec<CaseFacts>,
    left_behind: Vec<CaseFacts>,
    retried: Vec<RetriedFacts>,
    slowest: Vec<CaseFacts>,
    cases: Vec<CaseFacts>,
    num_figures: usize,
}

#[derive(Debug, Serialize)]
struct CountFacts {
    #[serde(flatten)]
    counts: Counts,
    ran: u32,
    flaky: usize,
    retried: usize,
}

#[derive(Debug, Serialize)]
struct OutcomeCount {
    outcome: String,
    count: u32,
    percent: f64,
    tone: &'static str,
}

#[derive(Debug, Default, Serialize)]
struct PartitionFacts {
    name: String,
    total: u32,
    good: u32,
    odd: u32,
    bad: u32,
}

impl Facts {
    pub(super) fn of(results: &Results<'_>, rerun_options: &[String], time: impl Fn(Timestamp) -> String) -> Self {
        let of = |case: &&CaseResult| CaseFacts::of(case, rerun_options);
        let retried: Vec<_> =
            retried(results).iter().filter_map(|attempts| RetriedFacts::of(results, attempts, rerun_options)).collect();
        let counting = results.counting();
        let mut cases: Vec<_> = counting.iter().map(of).collect();
        let flaky: HashSet<&str> = retried.iter().filter(|case| case.flaky).map(|case| case.name.as_str()).collect();
        for case in &mut cases {
            case.flaky = flaky.contains(case.name.as_str());
        }
        let bad = |case: &&CaseFacts| !case.fine && case.word != Outcome::Abort.word() && case.quarantine.is_none();
        let excused = |case: &&CaseFacts| !case.fine && case.word != Outcome::Abort.word() && case.quarantine.is_some();
        let mut slowest: Vec<_> = counting.iter().filter(|case| case.outcome != Outcome::Skip).collect();
        slowest.sort_by_key(|case| std::cmp::Reverse(case.times.total()));
        Self {
            muster: json!({ "version": env!("CARGO_PKG_VERSION") }),
            session: session(results, time),
            verdict: verdict(results),
            counts: CountFacts::of(results, &retried),
            outcomes: outcomes(results, &counting),
            partitions: partitions(&counting),
            failures: cases.iter().filter(bad).take(FAILURES).cloned().collect(),
            failures_more: cases.iter().filter(bad).count().saturating_sub(FAILURES),
            quarantined: cases.iter().filter(excused).cloned().collect(),
            left_behind: results.sorted().iter().filter(|case| !case.leftovers.is_empty()).map(of).collect(),
            slowest: slowest.into_iter().take(SLOWEST).map(of).collect(),
            num_figures: cases.iter().map(|case| case.figures.len()).sum(),
            retried,
            cases,
        }
    }
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
fn tone_of(case: &CaseResult) -> Tone {
    if is_excused(case) { Tone::Odd } else { outcome_tone(&case.outcome) }
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

fn session(results: &Results<'_>, time: impl Fn(Timestamp) -> String) -> Value {
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
        // Name and value.
        "extras": session.extras.iter().map(|(name, value)| [line(name), line(value)]).collect::<Vec<_>>(),
    })
}

/// `word` is `passed`, `failed` or `interrupted`.
fn verdict(results: &Results<'_>) -> Value {
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
    json!({ "word": word, "tone": tone, "sentence": parts.join(", ") })
}

impl CountFacts {
    fn of(results: &Results<'_>, retried: &[RetriedFacts]) -> Self {
        let counts = results.counts();
        Self { ran: counts.ran(), flaky: retried.iter().filter(|case| case.flaky).count(), retried: retried.len(), counts }
    }
}

/// How many cases ended how: what is good first, what is bad last but for those without a result.
fn outcomes(results: &Results<'_>, cases: &[&CaseResult]) -> Vec<OutcomeCount> {
    let counts = results.counts();
    let share = |count: u32| f64::from(count) * 100.0 / f64::from(counts.total.max(1));
    let mut seen: BTreeMap<String, (u32, &'static str)> = BTreeMap::new();
    for case in cases {
        let excused = if is_excused(case) { " in quarantine" } else { "" };
        seen.entry(line(&format!("{}{excused}", case.outcome))).or_insert((0, tone(tone_of(case)))).0 += 1;
    }
    let seen = seen.into_iter().map(|(outcome, (count, tone))| OutcomeCount { outcome, count, percent: share(count), tone });
    let mut all: Vec<_> = seen.collect();
    let rank = |tone: &str| ["good", "plain", "odd", "bad"].iter().position(|known| *known == tone);
    all.sort_by(|a, b| rank(a.tone).cmp(&rank(b.tone)).then(b.count.cmp(&a.count)).then_with(|| a.outcome.cmp(&b.outcome)));
    if counts.not_run > 0 {
        let (outcome, count) = ("not run".to_owned(), counts.not_run);
        all.push(OutcomeCount { outcome, count, percent: share(count), tone: "plain" });
    }
    all
}

fn partitions(cases: &[&CaseResult]) -> Vec<PartitionFacts> {
    let mut partitions: BTreeMap<String, PartitionFacts> = BTreeMap::new();
    for case in cases {
        let name = line(&case.name.system_partition());
        let facts = partitions.entry(name.clone()).or_insert_with(|| PartitionFacts { name, ..PartitionFacts::default() });
        facts.total += 1;
        *match tone_of(case) {
            Tone::Good => &mut facts.good,
            Tone::Bad => &mut facts.bad,
            Tone::Odd | Tone::Strong | Tone::Faint | Tone::Plain => &mut facts.odd,
        } += 1;
    }
    partitions.into_values().collect()
}
