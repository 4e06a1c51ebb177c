//! The running cases of this session, from its events. Every event costs the same whether ten cases were selected or ten thousand:
//! counts are kept, never taken.

use super::{
    BARS, LEAST_COLUMNS, Limit, RUNNING, Size, WIDEST,
    lines::{CaseLine, FAILURES, Tally, bars, case_lines, failure_line, fitted, whole_seconds},
    names::Names,
};
use crate::text::{
    secret::masked,
    style::{Paint, Tone, one_line},
};
use muster_core::{
    case::CaseName,
    job::workload::Clock,
    result::{CaseResult, Grade, Outcome, Phase},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use unicode_width::UnicodeWidthStr;

/// So many of the cases that took longest are named.
const SLOWEST: usize = 3;

/// Everything that the view knows. Times are since it began.
#[derive(Debug, Default)]
pub struct Board {
    total: Tally,
    partitions: BTreeMap<String, Tally>,
    running: HashMap<Arc<CaseName>, Running>,
    /// The running cases in the order in which they began.
    order: BTreeMap<u64, Arc<CaseName>>,
    started: u64,
    names: Names,
    /// Each with the bracket before its name and the cause behind it.
    failures: Vec<(&'static str, CaseName, Option<String>)>,
    slowest: Vec<(Duration, CaseName)>,
}

#[derive(Debug)]
struct Running {
    number: u64,
    started: Duration,
    doing: String,
    /// How much of that stands before the last line of its log; `None`: it does not run.
    place: Option<usize>,
    clock: Option<Clock>,
    /// When its clock began.
    since: Duration,
    limit: Option<Duration>,
}

impl Board {
    /// A view of a session of so many cases, of which so many were over before.
    pub fn new(total: u32, done: u32) -> Self {
        Self { total: Tally { total, good: done, ..Tally::default() }, ..Self::default() }
    }

    /// Says in which partitions the cases are that will run. Without this there is one bar for all.
    pub fn planned<'a>(&mut self, names: impl IntoIterator<Item = &'a CaseName>) {
        for name in names {
            self.names.learn(name);
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
        self.names.learn(case);
        self.started += 1;
        let running =
            Running { number: self.started, started: at, doing: String::new(), place: None, clock: None, since: at, limit: None };
        if self.running.insert(Arc::clone(case), running).is_none() {
            self.order.insert(self.started, Arc::clone(case));
            self.tally(case, |tally| tally.running += 1);
        }
    }

    /// A case does something else than before.
    pub fn phase(&mut self, case: &CaseName, phase: Phase, note: Option<&str>, limit: Option<Limit>, at: Duration) {
        let Some(running) = self.running.get_mut(case) else { return };
        running.doing = match note {
            // What it waits for, or where it runs, says that it is launched or runs.
            Some(note) if matches!(phase, Phase::Launch | Phase::Run) => one_line(note).into_owned(),
            Some(note) => format!("{phase}: {}", one_line(note)),
            None => phase.to_string(),
        };
        running.place = (phase == Phase::Run).then_some(running.doing.len());
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

    /// A case has written a line to its log.
    pub fn says(&mut self, case: &CaseName, line: &str) {
        if let Some(running) = self.running.get_mut(case)
            && let Some(place) = running.place
        {
            running.doing.truncate(place);
            running.doing += ": ";
            // More has no place on a screen, and ten thousand cases may run.
            running.doing.extend(masked(&one_line(line)).chars().take(WIDEST));
        }
    }

    /// The session ends: what runs is being stopped, whatever it was reported to do before.
    pub fn cancelled(&mut self) {
        for running in self.running.values_mut() {
            (running.doing, running.place, running.limit) = ("stopping".to_owned(), None, None);
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
            self.failures.push((row.bracket, name.clone(), result.cause.clone()));
            let more = self.failures.len().saturating_sub(FAILURES);
            self.failures.drain(..more);
        }
        // What was aborted took as long as the session let it.
        if crate::counts::ran_here(result) && result.outcome != Outcome::Abort {
            self.slowest.push((result.times.total(), name.clone()));
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
        let look = (width, size.unicode, paint);
        let bars = self.bars(now, look);
        let bars: Vec<_> = if bars.len() > room { bars.into_iter().rev().take(1).collect() } else { bars };
        let room = room.saturating_sub(bars.len());
        let mut lines = self.failures(room / 3, look);
        lines.extend(self.running(now, room.saturating_sub(lines.len()), look));
        lines.extend(bars);
        lines
    }

    fn failures(&self, room: usize, look: (usize, bool, Paint)) -> Vec<String> {
        let shown = self.failures.iter().skip(self.failures.len().saturating_sub(room));
        shown.map(|(bracket, name, cause)| failure_line((bracket, name, cause.as_deref()), &self.names, look)).collect()
    }

    fn running(&self, now: Duration, room: usize, look: (usize, bool, Paint)) -> Vec<String> {
        let room = room.min(RUNNING);
        if room == 0 || self.order.is_empty() {
            return Vec::new();
        }
        let shown = if self.order.len() > room { room - 1 } else { self.order.len() };
        let cases = self.order.values().take(shown).filter_map(|case| {
            let running = self.running.get(case)?;
            let (clock, tone) = running.clock_text(now);
            Some(CaseLine { name: case, doing: &running.doing, clock, tone })
        });
        let mut lines = case_lines(&cases.collect::<Vec<_>>(), &self.names, now, look);
        let more = self.order.len() - shown;
        if more > 0 {
            let (width, unicode, paint) = look;
            let dots = if unicode { "…" } else { "..." };
            lines.push(paint.apply(Tone::Faint, fitted(&format!("  {dots} and {more} more running"), width, unicode)));
        }
        lines
    }

    /// A bar a partition if there are several, and one for all; the slowest beside that where there is room, else above.
    fn bars(&self, now: Duration, look: (usize, bool, Paint)) -> Vec<String> {
        let (width, unicode, paint) = look;
        let mut facts = format!("  {}", whole_seconds(now));
        let mut above = None;
        if width >= 120
            && let Some(slowest) = self.slowest(width / 2).filter(|slowest| slowest.width() <= width / 2)
        {
            facts = format!("{facts}  {slowest}");
        } else {
            above = self.slowest(width).map(|slowest| paint.apply(Tone::Faint, fitted(&slowest, width, unicode)));
        }
        above.into_iter().chain(bars(self.partitions.iter(), (self.total, facts), BARS, look)).collect()
    }

    /// `slowest: CASE 12s, CASE 10s`: as many as fit, and at least one.
    fn slowest(&self, width: usize) -> Option<String> {
        let mut items = self.slowest.iter().map(|(took, name)| format!("{} {}", self.names.brief(name), whole_seconds(*took)));
        let mut text = format!("slowest: {}", items.next()?);
        for item in items {
            if text.width() + 2 + item.width() > width {
                break;
            }
            text = text + ", " + &item;
        }
        Some(text)
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
