//! The words for outcomes and verdicts, and their colours.

use crate::text::{
    number::{bounds, number},
    style::{Paint, Tone, one_line},
};
use muster_core::{
    case::CaseName,
    job::{scheduler::SectionExit, workload::Clock},
    result::{CaseResult, Failure, Outcome},
    rules::perf::{Measurement, Verdict},
};
use std::{collections::HashMap, fmt::Write};

/// `failed during 'sanity'`: what became of a case that did not pass, before the colon and the cause.
pub(crate) fn what_happened(case: &CaseResult) -> String {
    let detail = case.outcome.detail().unwrap_or_default();
    let verb = match &case.outcome {
        Outcome::Pass => return "passed".to_owned(),
        Outcome::Skip => return "skipped".to_owned(),
        Outcome::Xfail => "failed as expected".to_owned(),
        Outcome::Xpass => "passed although a failure was expected".to_owned(),
        Outcome::Fail(Failure::Sanity | Failure::Performance) => "failed".to_owned(),
        Outcome::Fail(Failure::Workload) => "the workload failed".to_owned(),
        Outcome::Invalid(_) => format!("cannot be judged ({detail})"),
        Outcome::Timeout(Clock::Pending) => "waited longer than max_pending_time".to_owned(),
        Outcome::Timeout(Clock::Run) => "ran longer than time_limit".to_owned(),
        Outcome::Disrupted(_) => format!("was ended by the site ({detail})"),
        Outcome::Error(_) => format!("error ({detail})"),
        Outcome::Abort => "aborted".to_owned(),
        Outcome::Stopped(rule) => format!("stopped by the rule '{}'", one_line(rule)),
    };
    format!("{verb} during '{}'", case.phase)
}

/// The word in a table; `-` where nothing was judged.
pub(crate) fn verdict_word(verdict: &Verdict) -> &'static str {
    if *verdict == Verdict::None { "-" } else { verdict.word() }
}

pub(crate) fn verdict_tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::None => Tone::Plain,
        Verdict::Pass => Tone::Good,
        Verdict::Warn | Verdict::Xfail(_) => Tone::Odd,
        Verdict::Fail | Verdict::Xpass(_) => Tone::Bad,
    }
}

/// Where each of a case's figures comes from, as short as possible.
pub(crate) struct Origins<'a> {
    figures: HashMap<Row<'a>, u32>,
}

/// What makes two figures look alike: variable, key, node.
type Row<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

impl<'a> Origins<'a> {
    /// Of all figures of one case.
    pub(crate) fn of(measurements: &'a [Measurement]) -> Self {
        let mut figures = HashMap::with_capacity(measurements.len());
        for measurement in measurements {
            *figures.entry(row_of(measurement)).or_default() += 1;
        }
        Self { figures }
    }

    /// The node; `SECTION@NODE` if that node has several such figures; the section if the node is not known.
    pub(crate) fn text(&self, measurement: &Measurement) -> Option<String> {
        let is_alone = self.figures.get(&row_of(measurement)).is_none_or(|count| *count == 1);
        let origin = match (&measurement.section, &measurement.node) {
            (None, None) => return None,
            (Some(section), Some(node)) if section != node && !is_alone => format!("{section}@{node}"),
            (_, Some(one)) | (Some(one), None) => one.clone(),
        };
        Some(one_line(&origin).into_owned())
    }
}

fn row_of(measurement: &Measurement) -> Row<'_> {
    (&measurement.variable, measurement.key.as_deref(), measurement.node.as_deref())
}

/// `3 cases`, `1 case`
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// At most so many exits and figures are listed: a job of a thousand pods fails a thousand times in the same way.
const LIST_LINES: usize = 10;

/// The first lines, and how many more there are.
pub(crate) fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LIST_LINES);
    if more > 0 {
        lines.truncate(LIST_LINES);
        lines.push(format!("... and {more} more"));
    }
    lines
}

/// The sections that did not end well: `SECTION on NODE: exit status 1`.
pub(crate) fn failed_exits(case: &CaseResult) -> Vec<String> {
    let line = |exit: &SectionExit| {
        let node = exit.node.as_ref().filter(|node| **node != exit.section);
        format!("{}{}: {}", exit.section, node.map_or_else(String::new, |node| format!(" on {node}")), exit.exit)
    };
    shortened(case.exits.iter().filter(|exit| exit.exit.status() != Some(0)).map(line).collect())
}

/// How a figure is shown: `P: flops: 7439.68 GFLOP/s (r:7440, l:6696, u:8184)`, with the verdict as a word where it is not good.
pub(crate) fn figure(measurement: &Measurement, origin: Option<String>, paint: Paint) -> String {
    let label = measurement.label();
    let mut text = format!("P: {}", one_line(&label));
    if let Some(origin) = origin {
        let _ = write!(text, " {origin}");
    }
    let value = format!("{} {}", number(measurement.value), one_line(&measurement.unit));
    let value = paint.apply(verdict_tone(&measurement.verdict), value.trim_end());
    let _ = write!(text, ": {value}{}", bounds(measurement.bounds));
    if !matches!(measurement.verdict, Verdict::None | Verdict::Pass) {
        let reason = measurement.verdict.reason().map_or_else(String::new, |why| format!(": {}", one_line(why)));
        let word = format!("[{}{reason}]", verdict_word(&measurement.verdict));
        let _ = write!(text, " {}", paint.apply(verdict_tone(&measurement.verdict), word));
    }
    text.push('\n');
    text
}

/// `nbody %num_bodies=512000 /b542e2db @eidf:gpu-service+default`
pub(crate) fn titled(name: &CaseName) -> String {
    format!("{} /{} @{}", one_line(&name.title()), one_line(&name.hash), one_line(&name.place()))
}
