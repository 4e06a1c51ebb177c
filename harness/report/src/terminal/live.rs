//! The live view: what runs now, as a few lines at the bottom of a terminal. Pure: events and the time go in, lines of
//! exactly the asked-for size come out; the caller draws them.
//!
//! ```text
//!  FAIL ior %fs=lustre @cpu+default: pattern 'Max Write' was not found      the last failures
//!  / hpl @gpu-service+default  run: running on gpu-17          2m10s/10m    what runs, the longest first
//!    ... and 34 more running
//!  eidf:gpu-service  ████████████▒▒▒▒░░░░░░░░   12/40  8 running  2 failed  a bar a partition
//!  total             ██████████▒▒░░░░░░░░░░░░   32/60  4m12s                slowest: hpl 12m
//! ```
//! Every event costs the same whether ten cases were selected or ten thousand: counts are kept, never taken.

use crate::text::style::{Paint, Tone, one_line};
use muster_core::{
    case::CaseName,
    job::workload::Clock,
    result::{CaseResult, Grade, Outcome, Phase},
};
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// So many failures are kept in sight.
const FAILURES: usize = 3;
/// So many of the cases that took longest are named.
const SLOWEST: usize = 3;
/// So many running cases have a line at most, however high the terminal is.
const RUNNING: usize = 12;
/// A running case's line is no wider.
const WIDEST: usize = 120;
/// So many partitions have a bar at most.
const BARS: usize = 6;
/// Below this there is no room for a view.
const LEAST_COLUMNS: usize = 30;

/// How large the terminal is, and what it can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
    /// Blocks and dots of Unicode, not only ASCII.
    pub unicode: bool,
}

/// How long a state may last: which clock runs, and its limit.
pub type Limit = (Clock, Option<Duration>);

/// Everything that the view knows. Times are since it began.
#[derive(Debug, Default)]
pub struct Board {
    total: Tally,
    partitions: BTreeMap<String, Tally>,
    running: HashMap<Arc<CaseName>, Running>,
    /// The running cases in the order in which they began.
    order: BTreeMap<u64, Arc<CaseName>>,
    started: u64,
    failures: Vec<String>,
    slowest: Vec<(Duration, String)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    total: u32,
    good: u32,
    odd: u32,
    bad: u32,
    running: u32,
}

#[derive(Debug)]
struct Running {
    number: u64,
    started: Duration,
    doing: String,
    clock: Option<Clock>,
    /// When its clock began.
    since: Duration,
    limit: Option<Duration>,
}

impl Tally {
    fn done(self) -> u32 {
        self.good + self.odd + self.bad
    }
}

impl Board {
    /// A view of a session of so many cases, of which so many were over before.
    pub fn new(total: u32, done: u32) -> Self {
        Self { total: Tally { total, good: done, ..Tally::default() }, ..Self::default() }
    }

    /// Says in which partitions the cases are that will run. Without this there is one bar for all.
    pub fn planned<'a>(&mut self, names: impl IntoIterator<Item = &'a CaseName>) {
        for name in names {
            self.partitions.entry(name.system_partition()).or_default().total += 1;
        }
    }

    /// Another round of so many cases begins. Where they are is not known.
    pub fn round(&mut self, total: u32) {
        self.total = Tally { total, running: self.total.running, ..Tally::default() };
        self.partitions.clear();
    }

    /// A case has started.
    pub fn begin(&mut self, case: &Arc<CaseName>, at: Duration) {
        self.started += 1;
        let running = Running { number: self.started, started: at, doing: String::new(), clock: None, since: at, limit: None };
        if self.running.insert(Arc::clone(case), running).is_none() {
            self.order.insert(self.started, Arc::clone(case));
            self.tally(case, |tally| tally.running += 1);
        }
    }

    /// A case does something else than before.
    pub fn phase(&mut self, case: &CaseName, phase: Phase, note: Option<&str>, limit: Option<Limit>, at: Duration) {
        let Some(running) = self.running.get_mut(case) else { return };
        running.doing = match note {
            Some(note) => format!("{phase}: {}", one_line(note)),
            None => phase.to_string(),
        };
        match limit {
            Some((clock, limit)) => {
                if running.clock.replace(clock) != Some(clock) {
                    running.since = at;
                }
                running.limit = limit;
            }
            // Judging and cleaning up have no limit that anybody waits for.
            None if !matches!(phase, Phase::Launch | Phase::Run) => running.limit = None,
            None => {}
        }
    }

    pub fn finish(&mut self, result: &CaseResult) {
        let name = &result.name;
        if let Some(running) = self.running.remove(name) {
            self.order.remove(&running.number);
            self.tally(name, |tally| tally.running = tally.running.saturating_sub(1));
        }
        let row = result.outcome.row();
        let grade = if crate::counts::is_excused(result) { Grade::Odd } else { row.grade };
        self.tally(name, |tally| {
            *match grade {
                Grade::Good => &mut tally.good,
                Grade::Odd => &mut tally.odd,
                Grade::Bad => &mut tally.bad,
            } += 1;
            // A round that is run again makes more of them than were planned.
            tally.total = tally.total.max(tally.done());
        });
        if grade == Grade::Bad {
            let cause = result.cause.as_deref().map_or_else(String::new, |cause| format!(": {}", one_line(cause)));
            self.failures.push(format!("{} {}{cause}", row.bracket, short(name)));
            let more = self.failures.len().saturating_sub(FAILURES);
            self.failures.drain(..more);
        }
        if result.outcome != Outcome::Skip {
            self.slowest.push((result.times.total(), one_line(&name.title()).into_owned()));
            self.slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
            self.slowest.truncate(SLOWEST);
        }
    }

    fn tally(&mut self, case: &CaseName, change: impl Fn(&mut Tally)) {
        change(&mut self.total);
        if let Some(tally) = self.partitions.get_mut(&case.system_partition()) {
            change(tally);
        }
    }

    /// The lines, none wider than the terminal, and at most half of its rows. None where there is no room.
    pub fn frame(&self, now: Duration, size: Size, paint: Paint) -> Vec<String> {
        // The last column stays free: some terminals break the line as soon as it is written.
        let width = size.columns.saturating_sub(1);
        if size.columns < LEAST_COLUMNS || size.rows < 4 {
            return Vec::new();
        }
        let room = (size.rows / 2).max(2);
        let bars = self.bars(now, width, size.unicode, paint);
        let bars: Vec<_> = if bars.len() > room { bars.into_iter().rev().take(1).collect() } else { bars };
        let room = room.saturating_sub(bars.len());
        let failures = self.failures(width, room / 3, size.unicode, paint);
        let mut lines = failures;
        lines.extend(self.running(now, width, room.saturating_sub(lines.len()), size.unicode, paint));
        lines.extend(bars);
        lines
    }

    fn failures(&self, width: usize, room: usize, unicode: bool, paint: Paint) -> Vec<String> {
        let more = self.failures.len().saturating_sub(room);
        self.failures.iter().skip(more).map(|text| paint.apply(Tone::Bad, fitted(text, width, unicode))).collect()
    }

    fn running(&self, now: Duration, width: usize, room: usize, unicode: bool, paint: Paint) -> Vec<String> {
        // A clock far from its name is hard to read.
        let (room, width) = (room.min(RUNNING), width.min(WIDEST));
        if room == 0 || self.order.is_empty() {
            return Vec::new();
        }
        let shown = if self.order.len() > room { room - 1 } else { self.order.len() };
        let spinner: &[&str] = if unicode { &["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"] } else { &["|", "/", "-", "\\"] };
        let turn = usize::try_from(now.as_millis() / 125).unwrap_or_default() % spinner.len();
        let cases: Vec<_> = self.order.values().take(shown).filter_map(|case| Some((case, self.running.get(case)?))).collect();
        let names: Vec<_> = cases.iter().map(|(case, _)| short(case)).collect();
        let name_width = names.iter().map(|name| name.width()).max().unwrap_or_default().min(width * 2 / 5);
        let lines = cases.iter().zip(names).map(|((_, running), name)| {
            let (clock, tone) = running.clock_text(now);
            let room = width.saturating_sub(2 + name_width + 2 + 2 + clock.width());
            let (name, doing) = (padded(&name, name_width, unicode), padded(&running.doing, room, unicode));
            let doing = paint.apply(Tone::Faint, doing);
            format!("{} {name}  {doing}  {}", spinner.get(turn).unwrap_or(&"*"), paint.apply(tone, clock))
        });
        let mut lines: Vec<_> = lines.collect();
        let more = self.order.len() - shown;
        if more > 0 {
            let dots = if unicode { "…" } else { "..." };
            lines.push(paint.apply(Tone::Faint, fitted(&format!("  {dots} and {more} more running"), width, unicode)));
        }
        lines
    }

    /// A bar a partition if there are several, the ones with work to do first, and one for all.
    fn bars(&self, now: Duration, width: usize, unicode: bool, paint: Paint) -> Vec<String> {
        let mut partitions: Vec<_> = self.partitions.iter().filter(|_| self.partitions.len() > 1).collect();
        partitions.sort_by_key(|(_, tally)| tally.done() >= tally.total);
        let more = partitions.len().saturating_sub(BARS);
        partitions.truncate(BARS);
        let label = partitions.iter().map(|(name, _)| name.width()).max().unwrap_or(0).max(5).min(width / 3);
        let bar = (width / 4).clamp(8, 48);
        let mut lines: Vec<_> = partitions
            .iter()
            .map(|(name, tally)| bar_line(&one_line(name), (label, bar, width), tally, "", unicode, paint))
            .collect();
        let mut facts = format!("  {}", whole_seconds(now));
        if more > 0 {
            facts = format!("{facts}  +{more} partitions");
        }
        // Beside the last bar where there is room, else on a line of its own above the bars.
        let slowest: Vec<_> = self.slowest.iter().map(|(took, name)| format!("{name} {}", whole_seconds(*took))).collect();
        let slowest = format!("slowest: {}", slowest.join(", "));
        match width / 2 {
            _ if self.slowest.is_empty() => {}
            room if slowest.width() <= room && width >= 120 => facts = format!("{facts}  {slowest}"),
            _ => lines.insert(0, paint.apply(Tone::Faint, fitted(&slowest, width, unicode))),
        }
        lines.push(bar_line("total", (label, bar, width), &self.total, &facts, unicode, paint));
        lines
    }
}

impl Running {
    /// `2m10s/10m`, and whether that is near the limit.
    fn clock_text(&self, now: Duration) -> (String, Tone) {
        match self.limit {
            Some(limit) => {
                let elapsed = now.saturating_sub(self.since);
                let tone = if elapsed * 5 > limit * 4 { Tone::Odd } else { Tone::Plain };
                (format!("{}/{}", whole_seconds(elapsed), whole_seconds(limit)), tone)
            }
            None => (whole_seconds(now.saturating_sub(self.started)), Tone::Plain),
        }
    }
}

/// `nbody %num_bodies=512000 @gpu-service+default`: the system is the same for all.
fn short(name: &CaseName) -> String {
    let text = format!("{} @{}+{}", name.title(), name.partition, name.environ);
    one_line(&text).into_owned()
}

/// `2m10s`: tenths would flicker.
fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds => format_duration(Duration::from_secs(seconds)),
    }
}

/// `LABEL  BAR  12/40  8 running  2 failed FACTS`
fn bar_line(
    label: &str,
    (label_width, bar_width, width): (usize, usize, usize),
    tally: &Tally,
    facts: &str,
    unicode: bool,
    paint: Paint,
) -> String {
    let bar = bar(tally, bar_width, unicode, paint);
    let mut text = format!("  {}/{}", tally.done(), tally.total);
    if tally.running > 0 {
        text = format!("{text}  {} running", tally.running);
    }
    if tally.bad > 0 {
        text = format!("{text}  {} failed", tally.bad);
    }
    let text = fitted(&(text + facts), width.saturating_sub(label_width + 2 + bar_width), unicode);
    // Cut first, coloured then: a colour that is cut off would colour the rest of the screen.
    let failed = format!("  {} failed", tally.bad);
    let text = if tally.bad > 0 { text.replacen(&failed, &paint.apply(Tone::Bad, &failed), 1) } else { text };
    format!("{}  {bar}{text}", padded(label, label_width, unicode))
}

/// Good, odd, bad, running, the rest: each in its share of the columns, and in at least one if there is any.
fn bar(tally: &Tally, columns: usize, unicode: bool, paint: Paint) -> String {
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

/// Cut to so many columns, with a mark where something is missing.
fn fitted(text: &str, width: usize, unicode: bool) -> String {
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
fn padded(text: &str, width: usize, unicode: bool) -> String {
    let text = fitted(text, width, unicode);
    let blanks = width.saturating_sub(text.width());
    text + &" ".repeat(blanks)
}
