//! The parts of a live view: bars, lines of cases, and cutting to columns.

use super::{WIDEST, names::Names};
use crate::text::style::{Paint, Tone, one_line};
use muster_core::case::CaseName;
use muster_text::time::format_duration;
use std::time::Duration;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many cases are how far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) total: u32,
    pub(super) good: u32,
    pub(super) odd: u32,
    pub(super) bad: u32,
    pub(super) running: u32,
    /// In a slot, but not running; where that is not told apart, these run.
    pub(super) pending: u32,
}

impl Tally {
    pub(super) fn done(self) -> u32 {
        self.good + self.odd + self.bad
    }

    /// Those that nothing is known of, too.
    pub(super) fn waiting(self) -> u32 {
        self.total.saturating_sub(self.done() + self.running + self.pending)
    }

    /// `12/40  8 running  3 pending  2 failed`
    pub(super) fn text(self) -> String {
        let counts = [(self.running, "running"), (self.pending, "pending"), (self.bad, "failed")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let done = format!("{}/{}", self.done(), self.total);
        counts.fold(done, |text, (count, word)| format!("{text}  {count} {word}"))
    }
}

/// The last failures; more than these are in the report.
pub(super) const FAILURES: usize = 3;

/// A case that has failed: the bracket of its outcome, its name, and the cause.
pub(super) fn failure_line(
    (bracket, name, cause): (&str, &CaseName, Option<&str>),
    names: &Names,
    (width, unicode, paint): (usize, bool, Paint),
) -> String {
    let cause = cause.map_or_else(String::new, |cause| format!(": {}", one_line(cause)));
    let name = names.short(name, (width * 3 / 5).saturating_sub(bracket.len() + 1), unicode);
    paint.apply(Tone::Bad, fitted(&format!("{bracket} {name}{cause}"), width, unicode))
}

/// A case that is being worked on.
pub(super) struct CaseLine<'a> {
    pub(super) name: &'a CaseName,
    pub(super) doing: &'a str,
    pub(super) clock: String,
    pub(super) tone: Tone,
}

/// A line for each case: its name, what it does, and its clock at the end. The name gets what the others leave, and most
/// of the room in any case.
pub(super) fn case_lines(
    cases: &[CaseLine<'_>],
    names: &Names,
    now: Duration,
    (width, unicode, paint): (usize, bool, Paint),
) -> Vec<String> {
    // A clock far from its name is hard to read.
    let width = width.min(WIDEST);
    let spinner: &[&str] = if unicode { &["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"] } else { &["|", "/", "-", "\\"] };
    let turn = usize::try_from(now.as_millis() / 125).unwrap_or_default() % spinner.len();
    let clock = cases.iter().map(|case| case.clock.width()).max().unwrap_or_default();
    let room = width.saturating_sub(2 + 2 + 2 + clock);
    let doing = cases.iter().map(|case| case.doing.width()).max().unwrap_or_default();
    let most = room.saturating_sub(doing).max(room * 3 / 5);
    let short: Vec<_> = cases.iter().map(|case| names.short(case.name, most, unicode)).collect();
    let name_width = short.iter().map(|name| name.width()).max().unwrap_or_default();
    let line = |(case, name): (&CaseLine<'_>, String)| {
        let room = width.saturating_sub(2 + name_width + 2 + 2 + case.clock.width());
        let (name, doing) = (padded(&name, name_width, unicode), padded(case.doing, room, unicode));
        let doing = paint.apply(Tone::Faint, doing);
        format!("{} {name}  {doing}  {}", spinner.get(turn).unwrap_or(&"*"), paint.apply(case.tone, &case.clock))
    };
    cases.iter().zip(short).map(line).collect()
}

/// `LABEL  BAR  12/40  8 running  2 failed FACTS`
pub(super) fn bar_line(
    label: &str,
    (label_width, bar_width, width): (usize, usize, usize),
    tally: Tally,
    facts: &str,
    unicode: bool,
    paint: Paint,
) -> String {
    let bar = bar(tally, bar_width, unicode, paint);
    let text = format!("  {}{facts}", tally.text());
    let text = fitted(&text, width.saturating_sub(label_width + 2 + bar_width), unicode);
    // Cut first, coloured then: a colour that is cut off would colour the rest of the screen.
    let failed = format!("  {} failed", tally.bad);
    let text = if tally.bad > 0 { text.replacen(&failed, &paint.apply(Tone::Bad, &failed), 1) } else { text };
    format!("{}  {bar}{text}", padded(label, label_width, unicode))
}

/// A bar for each partition if there are several, those with work to do first, and one for all.
pub(super) fn bars<'a>(
    partitions: impl ExactSizeIterator<Item = (&'a String, &'a Tally)>,
    (total, facts): (Tally, String),
    most: usize,
    (width, unicode, paint): (usize, bool, Paint),
) -> Vec<String> {
    let count = partitions.len();
    let mut partitions: Vec<_> = partitions.filter(|_| count > 1).collect();
    partitions.sort_by_key(|(_, tally)| tally.done() >= tally.total);
    let more = partitions.len().saturating_sub(most);
    partitions.truncate(most);
    let label = partitions.iter().map(|(name, _)| name.width()).max().unwrap_or(0).max(5).min(width / 3);
    let facts = if more > 0 { format!("{facts}  +{more} partitions") } else { facts };
    // A shorter bar says as much, a text that is cut does not.
    let text =
        partitions.iter().map(|(_, tally)| tally.text().width()).max().unwrap_or(0).max(total.text().width() + facts.width());
    let bar = (width / 4).min(width.saturating_sub(label + 2 + 2 + text)).clamp(8, 48);
    let sizes = (label, bar, width);
    let line = |(name, tally): &(&String, &Tally)| bar_line(&one_line(name), sizes, **tally, "", unicode, paint);
    let mut lines: Vec<_> = partitions.iter().map(line).collect();
    lines.push(bar_line("total", sizes, total, &facts, unicode, paint));
    lines
}

/// Good, odd, bad, running, the rest: each in its share of the columns, and in at least one if there is any.
fn bar(tally: Tally, columns: usize, unicode: bool, paint: Paint) -> String {
    let (full, running, rest) = if unicode { ('█', '▒', '░') } else { ('#', '+', '.') };
    let parts = [
        (tally.good, Tone::Good, full),
        (tally.odd, Tone::Odd, full),
        (tally.bad, Tone::Bad, if unicode { full } else { '!' }),
        (tally.running, Tone::Plain, running),
    ];
    let total = tally.total.max(tally.done() + tally.running).max(1) as usize;
    let mut text = String::new();
    let mut used = 0;
    let mut counted = 0;
    for (count, tone, c) in parts {
        counted += count as usize;
        // By where each part ends, so that the parts of a whole fill all columns.
        let share = (counted * columns / total).saturating_sub(used).max(usize::from(count > 0)).min(columns - used);
        used += share;
        text += &paint.apply(tone, c.to_string().repeat(share));
    }
    text + &paint.apply(Tone::Faint, rest.to_string().repeat(columns - used))
}

/// `2m10s`: tenths would flicker.
pub(super) fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds => format_duration(Duration::from_secs(seconds)),
    }
}

/// Cut to so many columns, with a mark where something is missing.
pub(super) fn fitted(text: &str, width: usize, unicode: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mark = if unicode { "…" } else { "~" };
    let mut cut = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        cut.push(c);
    }
    if width > 0 { cut + mark } else { String::new() }
}

/// Cut or filled to exactly so many columns.
pub(super) fn padded(text: &str, width: usize, unicode: bool) -> String {
    let text = fitted(text, width, unicode);
    let blanks = width.saturating_sub(text.width());
    text + &" ".repeat(blanks)
}
