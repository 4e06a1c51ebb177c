//! The end of a session in a few lines: outcomes, durations, retries, and what could not be removed.

use crate::{
    counts::{Results, is_flaky, retried},
    text::{
        style::{Screen, Tone, folded, one_line},
        words::{counted, titled},
    },
};
use muster_core::result::{CaseResult, Outcome};
use muster_text::time::{Timestamp, format_duration};
use std::{fmt::Write, time::Duration};

/// `9 cases in 12.3s: 6 pass, 1 fail{sanity}, ...`, the longest case, and cases that were run again. `at` is now, for a
/// session that has not ended.
pub fn summary(results: &Results<'_>, at: Timestamp) -> String {
    let counts = results.counts();
    let took = results.session.ended.unwrap_or(at).since(results.session.started);
    let mut parts: Vec<_> = counts.by_outcome.iter().map(|(word, count)| (*count, one_line(word))).collect();
    parts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut parts: Vec<_> = parts.iter().map(|(count, word)| format!("{count} {word}")).collect();
    if counts.not_run > 0 {
        parts.push(format!("{} not run", counts.not_run));
    }
    let lead = format!("{} in {}", counted(counts.total as usize, "case"), format_duration(took));
    let mut text = if parts.is_empty() { lead + "\n" } else { folded(&lead, &parts, 80) };
    if let Some(why) = counts.why_skips_fail() {
        let _ = writeln!(text, "{why}");
    }
    if counts.quarantined > 0 {
        let failed = counted(counts.quarantined as usize, "case");
        let _ = writeln!(text, "{failed} failed in quarantine, which does not fail the session");
    }
    let longest = results.attempts().iter().filter(|case| case.outcome != Outcome::Skip).max_by_key(|case| case.times.total());
    if let Some(case) = longest.filter(|_| results.attempts().len() > 1) {
        let all = results.attempts().iter().map(|case| case.times.total()).sum::<Duration>() + results.dropped().time;
        let (longest, name) = (format_duration(case.times.total()), titled(&case.name));
        let _ = writeln!(text, "the cases took {} in all; the longest {longest}: {name}", format_duration(all));
    }
    let usage = results.usage();
    if !usage.is_empty() {
        let _ = writeln!(text, "the cases used {usage}");
    }
    let dropped = results.dropped().attempts;
    if dropped > 0 {
        let _ = writeln!(text, "{} are only counted here: the results database has them", counted(dropped, "earlier attempt"));
    }
    let retried = retried(results);
    if !retried.is_empty() {
        let flaky = retried.iter().filter_map(|attempts| attempts.last()).filter(|last| is_flaky(results, last)).count();
        let _ = writeln!(text, "{} retried, {flaky} of them flaky", counted(retried.len(), "case"));
    }
    text
}

/// So many folders are listed: a thousand users of a thousand fixtures may have been cut short.
const KEPT: usize = 10;

/// The stage folders of passed cases that are still there, since cases that were given them did not pass; empty if there are
/// none.
pub fn kept(results: &Results<'_>, screen: &Screen) -> String {
    let is_kept = |case: &&CaseResult| case.outcome != Outcome::Skip && case.outcome.is_fine() && !case.delete.is_empty();
    let kept: Vec<_> = results.sorted().iter().copied().filter(is_kept).collect();
    if kept.is_empty() {
        return String::new();
    }
    let title = format!("KEPT: what {} left behind", counted(kept.len(), "case"));
    let mut text = format!("{}\n", screen.paint.apply(Tone::Strong, title));
    for case in kept.iter().take(KEPT) {
        let _ = writeln!(text, "  {}", titled(&case.name));
        for command in &case.delete {
            let _ = writeln!(text, "      {}", one_line(command));
        }
    }
    if kept.len() > KEPT {
        let _ = writeln!(text, "  ... and {} more: see `delete` in the run report", kept.len() - KEPT);
    }
    text
}

/// Renders what the session created and could not remove; empty if nothing is left.
pub fn leftovers(results: &Results<'_>, screen: &Screen) -> String {
    let left: Vec<_> = results.sorted().iter().copied().filter(|case| !case.leftovers.is_empty()).collect();
    if left.is_empty() {
        return String::new();
    }
    let count = left.iter().map(|case| case.leftovers.len()).sum();
    let title = format!("LEFT BEHIND: {} could not be removed", counted(count, "thing"));
    let mut text = format!("{}\n", screen.paint.apply(Tone::Bad, title));
    for case in left {
        let _ = writeln!(text, "  {}", titled(&case.name));
        for item in &case.leftovers {
            let _ = writeln!(text, "      {}", one_line(item));
        }
    }
    text
}
