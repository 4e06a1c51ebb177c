//! `--failure-stats`: how failures are spread over phases, causes, partitions and nodes. A node on which most of what
//! ran failed is the first thing to look at, whatever the checks say.

use crate::{
    counts::Results,
    text::{
        style::{Screen, Tone, heading, one_line},
        table::{Column, Layout, left, right},
        words::counted,
    },
};
use muster_core::{
    query::causes::without_numbers,
    result::{CaseResult, Outcome},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};
use unicode_width::UnicodeWidthStr;

/// The columns before the names of cases.
const BEFORE_NAMES: usize = 44;
/// So many nodes and causes are listed.
const ROWS: usize = 10;

/// The statistics of a session under a heading: one line if nothing failed.
pub fn report(results: &Results<'_>, screen: &Screen) -> String {
    let cases: Vec<_> = results.counting().iter().copied().filter(|case| was_judged(case)).collect();
    let failed: Vec<_> = cases.iter().copied().filter(|case| !case.outcome.is_fine()).collect();
    let title = heading("FAILURE STATISTICS", screen.width);
    let mut text = format!("{}\n", screen.paint.apply(Tone::Strong, title));
    let _ = writeln!(text, "{} of {} failed", failed.len(), counted(cases.len(), "case"));
    if !failed.is_empty() {
        text += &by_phase(&failed, screen);
        let place = |case: &CaseResult| vec![one_line(&case.name.system_partition()).into_owned()];
        text += &shares("partition", &cases, place, screen);
        text += &shares("node", &cases, |case| case.nodes.iter().map(|node| one_line(node).into_owned()).collect(), screen);
        text += &by_cause(&failed, screen);
    }
    text + &"=".repeat(screen.width.min(80)) + "\n"
}

/// What was skipped or cancelled says nothing about where failures come from.
fn was_judged(case: &CaseResult) -> bool {
    !matches!(case.outcome, Outcome::Skip | Outcome::Abort)
}

/// ReFrame's table: how many failed in which phase, and which they are.
fn by_phase(failed: &[&CaseResult], screen: &Screen) -> String {
    let mut phases: BTreeMap<_, Vec<&CaseResult>> = BTreeMap::new();
    for case in failed {
        phases.entry((case.phase, case.outcome.to_string())).or_default().push(case);
    }
    let rows = phases.iter().map(|((phase, outcome), cases)| {
        vec![phase.as_str().to_owned(), one_line(outcome).into_owned(), cases.len().to_string(), names(cases, screen.width)]
    });
    table(&[left("phase"), left("outcome"), right("failed"), left("cases")], rows.collect(), screen)
}

/// For each place how many of the cases that ran there failed: the worst first, only places with a failure.
fn shares(title: &'static str, cases: &[&CaseResult], places_of: impl Fn(&CaseResult) -> Vec<String>, screen: &Screen) -> String {
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for case in cases {
        for place in places_of(case).into_iter().collect::<BTreeSet<_>>() {
            let (failed, all) = places.entry(place).or_default();
            *failed += usize::from(!case.outcome.is_fine());
            *all += 1;
        }
    }
    let mut places: Vec<_> = places.into_iter().filter(|(_, (failed, _))| *failed > 0).collect();
    // By share without dividing, then by number, then by name.
    places.sort_by(|(a, (fa, na)), (b, (fb, nb))| (fb * na).cmp(&(fa * nb)).then(fb.cmp(fa)).then(a.cmp(b)));
    let rows = places.iter().map(|(place, (failed, all))| {
        vec![place.clone(), failed.to_string(), all.to_string(), format!("{} %", failed * 100 / all)]
    });
    table(&[left(title), right("failed"), right("of"), right("share")], rows.collect(), screen)
}

/// The same sentence with other numbers is the same cause.
fn by_cause(failed: &[&CaseResult], screen: &Screen) -> String {
    let mut causes: BTreeMap<String, Vec<&CaseResult>> = BTreeMap::new();
    for case in failed {
        causes.entry(without_numbers(&one_line(case.cause.as_deref().unwrap_or("no cause was given")))).or_default().push(case);
    }
    let mut causes: Vec<_> = causes.into_iter().filter(|(_, cases)| cases.len() > 1).collect();
    causes.sort_by(|(a, ca), (b, cb)| cb.len().cmp(&ca.len()).then(a.cmp(b)));
    let rows = causes.iter().map(|(cause, cases)| vec![cause.clone(), cases.len().to_string()]);
    table(&[left("common cause"), right("failed")], rows.collect(), screen)
}

/// As many names as fit, at least one, and how many more there are.
fn names(cases: &[&CaseResult], width: usize) -> String {
    let mut text = String::new();
    for (number, case) in cases.iter().enumerate() {
        let title = case.name.title();
        let name = one_line(&title);
        let comma = if number > 0 { ", " } else { "" };
        if number > 0 && BEFORE_NAMES + text.width() + name.width() > width {
            return format!("{text}, +{}", cases.len() - number);
        }
        text = text + comma + &name;
    }
    text
}

fn table(columns: &[Column], mut rows: Vec<Vec<String>>, screen: &Screen) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let layout = Layout::new(columns, &rows);
    let lines: String = rows.iter().map(|row| layout.row(row, screen.paint, Tone::Plain)).collect();
    let more = if more > 0 { format!("... and {more} more\n") } else { String::new() };
    format!("\n{}{lines}{more}", layout.head(screen.paint))
}
