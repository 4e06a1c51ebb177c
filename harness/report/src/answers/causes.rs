//! `muster results causes`: why the cases of a night failed, since when, and what changed then.

use super::compared::case_of;
use crate::{
    RenderError,
    files::json,
    text::{
        style::{Screen, Tone, one_line, wrapped},
        words::counted,
    },
};
use muster_core::{
    case::CaseName,
    night::Night,
    query::{
        causes::{Cause, FactChange, Level, NightOfCauses, Since},
        figures::Metric,
    },
};
use serde_json::{Value, json};
use std::fmt::Write;

/// So many cases of a group are named, and so many changes are listed.
const NAMED: usize = 5;
const CHANGES: usize = 8;

/// A block for each cause, the one with the most cases first.
pub fn report(night: &NightOfCauses, all: bool, screen: &Screen) -> String {
    let failed: usize = night.causes.iter().map(|(cause, _)| cause.failures.len()).sum();
    let nights = if night.first == night.night {
        format!("Night of {}", night.night)
    } else {
        format!("Nights of {} to {}", night.first, night.night)
    };
    let more = night.systems.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let systems: Vec<&str> = night.systems.iter().take(NAMED).map(String::as_str).collect();
    let on = if systems.is_empty() { String::new() } else { format!(" on {}{more}", systems.join(", ")) };
    let mut text = format!(
        "{nights}{on}: {} of {} failed in {}\n",
        failed,
        counted(night.cases, "case"),
        counted(night.sessions, "session")
    );
    for (cause, since) in &night.causes {
        text.push('\n');
        text += &block(cause, since, all, screen);
    }
    text
}

fn block(cause: &Cause, since: &Since<Night>, all: bool, screen: &Screen) -> String {
    let quarantined = cause.failures.iter().filter(|failure| failure.in_quarantine).count();
    let mut lead = format!("{}: {}", counted(cause.failures.len(), "case"), one_line(&cause.text));
    if !cause.nodes.is_empty() {
        let _ = write!(lead, " (all on {})", one_line(&cause.nodes.join(", ")));
    }
    let mut lines = wrapped(&lead, screen.width).into_iter();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{}\n", screen.paint.apply(Tone::Bad, first));
    lines.for_each(|line| _ = writeln!(text, "  {line}"));
    let _ = writeln!(text, "  {}", one_line(&cause.outcome));
    if quarantined > 0 {
        let _ = writeln!(text, "  {quarantined} of them in quarantine");
    }
    let first_bad = since.first_bad.map_or_else(|| "-".to_owned(), |night| night.to_string());
    match since.last_good {
        Some(good) => _ = writeln!(text, "  first bad night {first_bad}, last good night {good}"),
        None => _ = writeln!(text, "  first bad night {first_bad}, no good night is stored"),
    }
    if let Some(Level { change, since, interval: (low, high) }) = &since.level {
        let between = if low == high { String::new() } else { format!(" ({low} to {high})") };
        let _ = writeln!(text, "  a figure is worse since {since}{between}: {change}");
    }
    text += &changes(since);
    let shown = if all { cause.failures.len() } else { NAMED };
    for failure in cause.failures.iter().take(shown) {
        let on = if failure.nodes.is_empty() || failure.nodes.len() > 3 {
            String::new()
        } else {
            format!(" on {}", failure.nodes.join(", "))
        };
        let _ = writeln!(text, "    {}{}", one_line(&titled(&failure.name)), one_line(&on));
    }
    let more = cause.failures.len().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "    ... and {more} more: --all shows them");
    }
    text
}

fn titled(name: &CaseName) -> String {
    let metric = Metric {
        case: name.title().into_owned(),
        system: name.system.clone(),
        partition: name.partition.clone(),
        environ: name.environ.clone(),
        ..Metric::default()
    };
    case_of(&metric)
}

/// What differs between the last good night and the first bad one, or before and after the change of a figure.
fn changes(since: &Since<Night>) -> String {
    let when = match (&since.level, since.last_good) {
        (Some(_), _) => "then",
        (None, Some(_)) => "between them",
        (None, None) => return String::new(),
    };
    if since.changed.is_empty() {
        return format!("  nothing that is recorded changed {when}\n");
    }
    let mut text = format!("  changed {when}:\n");
    for FactChange { fact, before, after } in since.changed.iter().take(CHANGES) {
        let value =
            |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), |value| one_line(value).into_owned());
        let _ = writeln!(text, "    {}: {} -> {}", one_line(fact), value(before), value(after));
    }
    let more = since.changed.len().saturating_sub(CHANGES);
    if more > 0 {
        let _ = writeln!(text, "    ... and {more} more: --json has them");
    }
    text
}

/// Renders the night for programs.
///
/// # Errors
/// A value that JSON has no form for.
pub fn json(night: &NightOfCauses) -> Result<String, RenderError> {
    let cause = |(cause, since): &(Cause, Since<Night>)| {
        let cases: Vec<Value> = cause
            .failures
            .iter()
            .map(|failure| {
                json!({
                    "name": failure.name.title(), "system": failure.name.system, "partition": failure.name.partition,
                    "environ": failure.name.environ, "session": failure.session, "outcome": failure.outcome.to_string(),
                    "phase": failure.phase, "cause": failure.cause, "nodes": failure.nodes, "quarantine": failure.in_quarantine,
                })
            })
            .collect();
        let changed: Vec<Value> = since
            .changed
            .iter()
            .map(|change| json!({ "fact": change.fact, "before": change.before, "after": change.after }))
            .collect();
        json!({
            "cause": cause.text, "outcome": cause.outcome, "nodes": cause.nodes, "first_bad": since.first_bad,
            "last_good": since.last_good, "level": since.level.as_ref().map(|level| {
                json!({
                    "change": level.change, "since": level.since,
                    "since_interval": level.interval,
                })
            }),
            "changed": changed, "cases": cases,
        })
    };
    json::written(&json!({
        "night": night.night, "systems": night.systems, "sessions": night.sessions, "cases": night.cases,
        "causes": night.causes.iter().map(cause).collect::<Vec<_>>(),
    }))
}
