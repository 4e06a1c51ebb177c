//! `muster night`: what a night says of each system, as lines, JSON, JUnit and Markdown, and the arithmetic of a verdict.

mod arithmetic;
mod files;
mod lines;

pub use arithmetic::{explain, why};
pub use files::{json, junit, markdown};
pub use lines::report;

use crate::text::time;
use muster_core::rules::perf::format_digits;
use muster_judge::night::{Change, Metric, Night, NightVerdicts, Settings, System, Verdict};

/// The verdicts of a system.
#[derive(Debug, Clone, Copy)]
pub struct SystemNight<'a> {
    pub system: &'a System,
    pub verdicts: &'a NightVerdicts,
    pub settings: &'a Settings,
    /// The last night in which it had a session, if that is an earlier one.
    pub absent_since: Option<Night>,
    /// The notes on the figures that the reader needs: one sentence each.
    pub notes: &'a [String],
}

/// `triad %size=2G @eidf:gpu+gnu`
fn case(system: &System, metric: &Metric) -> String {
    let name = &metric.name;
    format!("{} @{}:{}+{}", name.case, system.name, name.partition, name.environ)
}

/// `1912 -> 1815 GB/s`
fn levels(change: &Change, unit: &str) -> String {
    format!("{} -> {} {unit}", format_digits(change.before, 4), format_digits(change.after, 4)).trim_end().to_owned()
}

/// `-5.1 % (-6.0 .. -4.2)`
fn effect(change: &Change) -> String {
    let Some(effect) = change.effect else { return "from zero".to_owned() };
    format!("{:+.1} % ({:+.1} .. {:+.1})", 100.0 * effect.estimate, 100.0 * effect.low, 100.0 * effect.high)
}

/// `Tue 17 Nov (16-17)`: the night, and those that may be it.
fn since(change: &Change) -> String {
    let (low, high) = change.since_interval;
    let day = |night: Night| time::evening(night, "%-d");
    let date = |night: Night| time::evening(night, "%-d %b");
    let text = time::evening(change.since, "%a %-d %b");
    let month = |night: Night| time::evening(night, "%Y-%m");
    if low == high {
        text
    } else if month(low) == month(high) && month(low) == month(change.since) {
        format!("{text} ({}-{})", day(low), day(high))
    } else {
        format!("{text} ({}-{})", date(low), date(high))
    }
}

/// `Tue 17 Nov 2026`
fn long_date(night: Night) -> String {
    time::evening(night, "%a %-d %b %Y")
}

/// `no session in this night, the last one was in that of Mon 16 Nov 2026`
fn absence(night: &SystemNight<'_>) -> Option<String> {
    let last = long_date(night.absent_since?);
    Some(format!("absent: no session in this night, the last one was in that of {last}"))
}

/// So many nights without a figure are told.
const SILENT: i32 = 7;
/// So many of them are named.
const NAMED: usize = 3;

/// What the reader has to know of the figures, first of those that are compared with nothing and those that are missing.
fn notes(night: &SystemNight<'_>) -> Vec<String> {
    new_baselines(night).into_iter().chain(silent(night)).chain(night.notes.iter().cloned()).collect()
}

/// `1 metric is not compared with earlier nights: triad @eidf:gpu+gnu bandwidth (since 2026-11-18 the check is another: ...)`
fn new_baselines(night: &SystemNight<'_>) -> Option<String> {
    let all = night.system.metrics.iter().zip(&night.verdicts.verdicts);
    let mut new: Vec<(&Metric, &Verdict)> = all.filter(|(_, verdict)| verdict.is_new_baseline()).collect();
    new.sort_by_key(|(_, verdict)| verdict.nights);
    let why = |verdict: &Verdict| verdict.reason.clone().unwrap_or_default();
    let new: Vec<(&Metric, String)> = new.into_iter().map(|(metric, verdict)| (metric, why(verdict))).collect();
    let are = if new.len() == 1 { "metric is" } else { "metrics are" };
    (!new.is_empty()).then(|| format!("{} {are} not compared with earlier nights: {}", new.len(), named(night.system, &new)))
}

/// `triad @eidf:gpu+gnu bandwidth (why) and 2 more`: the first metrics, with what is said of each.
fn named(system: &System, metrics: &[(&Metric, String)]) -> String {
    let name = |(metric, why): &(&Metric, String)| format!("{} {} ({why})", case(system, metric), metric.name.label());
    let names: Vec<String> = metrics.iter().take(NAMED).map(name).collect();
    let more = metrics.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

/// `2 metrics have not been measured for over 7 nights: triad @eidf:gpu+gnu bandwidth (last on 2026-11-03), ...`
fn silent(night: &SystemNight<'_>) -> Option<String> {
    // While a system is absent, that is said.
    let tonight = night.absent_since.unwrap_or(night.verdicts.night);
    let last = |metric: &Metric| metric.values.iter().map(|value| value.night).filter(|night| *night <= tonight).max();
    let metrics = night.system.metrics.iter().filter_map(|metric| Some((last(metric)?, metric)));
    let mut silent: Vec<(Night, &Metric)> = metrics.filter(|(last, _)| *last < tonight.before(SILENT)).collect();
    // What has vanished lately is news.
    silent.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    let have = if silent.len() == 1 { "1 metric has".to_owned() } else { format!("{} metrics have", silent.len()) };
    let silent: Vec<_> = silent.into_iter().map(|(last, metric)| (metric, format!("last on {last}"))).collect();
    let names = named(night.system, &silent);
    (!silent.is_empty()).then(|| format!("{have} not been measured for over {SILENT} nights: {names}"))
}

/// `1 : 41000`
fn odds(evidence: f64) -> String {
    if evidence < 1e15 { format!("1 : {evidence:.0}") } else { format!("1 : {evidence:.0e}") }
}

/// `one false alarm in 25 nights over all metrics of a system`
fn error_rate(settings: &Settings) -> String {
    let nights = 1.0 / settings.false_alarms;
    format!("one false alarm in {} nights over all metrics of a system", format_digits(nights, 3))
}
