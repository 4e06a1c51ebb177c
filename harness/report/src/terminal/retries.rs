//! The retry report: every attempt of the cases that were run more than once, with its node and its cause. A pass after
//! a failure is no clean pass: it is called flaky.

use crate::{
    counts::{Results, is_flaky, retried},
    text::{
        style::{Screen, Tone, heading, one_line},
        words::{titled, what_happened},
    },
};
use muster_core::result::CaseResult;
use muster_text::time::format_duration;
use std::fmt::Write;

/// All of them under a heading; empty if nothing was retried.
pub fn report(results: &Results<'_>, screen: &Screen) -> String {
    let retried: Vec<_> = retried(results);
    if retried.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", screen.paint.apply(Tone::Strong, heading("SUMMARY OF RETRIES", screen.width)));
    for attempts in &retried {
        let Some(last) = attempts.last() else { continue };
        let flaky =
            if is_flaky(results, last) { format!(" ({})", screen.paint.apply(Tone::Odd, "flaky")) } else { String::new() };
        let times = attempts.len() - 1;
        let _ = writeln!(text, "* {} was retried {times} time(s) and {}{flaky}", titled(&last.name), what_happened(last));
        for case in attempts {
            text += &attempt(case, screen);
        }
    }
    text + &"=".repeat(screen.width.min(80)) + "\n"
}

/// `    1. fail{workload} on gpu-17 (12.5s): exit status 7`
fn attempt(case: &CaseResult, screen: &Screen) -> String {
    let outcome = screen.paint.apply(case.outcome.row().grade.into(), one_line(&case.outcome.to_string()));
    let mut text = format!("    {}. {outcome}", case.attempt);
    match case.nodes.as_slice() {
        [] => {}
        [node] => _ = write!(text, " on {}", one_line(node)),
        many => _ = write!(text, " on {} nodes", many.len()),
    }
    let _ = write!(text, " ({})", format_duration(case.times.total()));
    if let Some(cause) = &case.cause {
        let _ = write!(text, ": {}", one_line(cause));
    }
    text + "\n"
}
