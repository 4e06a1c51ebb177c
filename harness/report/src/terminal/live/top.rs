//! The running cases of another session, from the states that its database has: `muster top`.

use super::{
    BARS, LEAST_COLUMNS, Size,
    lines::{CaseLine, FAILURES, Tally, bars, case_lines, failure_line, fitted, whole_seconds},
    names::Names,
};
use crate::{
    RenderError,
    files::json,
    text::{
        style::{Paint, Tone, one_line},
        time::utc,
    },
};
use muster_core::{
    case::CaseName,
    live::{CaseProgress, CaseState, LiveCase},
    result::{Grade, Outcome, Session, SessionState},
};
use muster_text::time::Timestamp;
use serde_json::{Value, json};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use unicode_width::UnicodeWidthStr;

/// At the end so many cases that have failed are named, if no line has named them before.
const LAST_FAILURES: usize = 20;
/// So many reasons for waiting have a line.
const REASONS: usize = 3;

/// Everything that the view knows of a session. A state costs the same however many cases there are.
#[derive(Debug, Default)]
pub struct Top {
    session: Session,
    total: Tally,
    partitions: BTreeMap<String, Tally>,
    /// What was last known of each case.
    cases: HashMap<CaseName, Known>,
    /// Cases that have failed, and that no line has named yet.
    unnamed: Vec<CaseName>,
    names: Names,
}

#[derive(Debug)]
struct Known {
    progress: CaseProgress,
    grade: Option<Grade>,
    outcome: Option<Outcome>,
    cause: Option<String>,
}

impl Known {
    fn has_failed(&self) -> bool {
        self.progress.state == CaseState::Ended && self.grade == Some(Grade::Bad)
    }

    /// Where it is counted.
    fn counter<'a>(&self, tally: &'a mut Tally) -> Option<&'a mut u32> {
        match (self.progress.state, self.grade) {
            (CaseState::Waiting, _) => None,
            (CaseState::Pending, _) => Some(&mut tally.pending),
            (CaseState::Running, _) => Some(&mut tally.running),
            (CaseState::Ended, Some(Grade::Bad)) => Some(&mut tally.bad),
            (CaseState::Ended, Some(Grade::Odd)) => Some(&mut tally.odd),
            (CaseState::Ended, Some(Grade::Good) | None) => Some(&mut tally.good),
        }
    }
}

impl Top {
    /// A view of a session of which no case is known yet.
    pub fn new(session: Session) -> Self {
        let total = Tally { total: session.num_cases, ..Tally::default() };
        Self { session, total, ..Self::default() }
    }

    /// The session, as it was read last.
    pub fn session(&mut self, session: Session) {
        self.session = session;
    }

    /// A case is in another state than before.
    pub fn update(&mut self, case: LiveCase) {
        let LiveCase { name, progress, outcome, cause, quarantine } = case;
        let grade = outcome.as_ref().map(|outcome| match outcome.row().grade {
            Grade::Bad if quarantine.is_some() => Grade::Odd,
            grade => grade,
        });
        let known = Known { progress, grade, outcome, cause };
        let before = self.cases.get(&name);
        let partition = self.partitions.entry(name.system_partition()).or_default();
        partition.total += u32::from(before.is_none());
        for tally in [&mut self.total, partition] {
            if let Some(count) = before.and_then(|before| before.counter(tally)) {
                *count = count.saturating_sub(1);
            }
            if let Some(count) = known.counter(tally) {
                *count += 1;
            }
        }
        if before.is_none() {
            self.names.learn(&name);
        }
        let is_named = before.is_some_and(|before| before.has_failed() && before.progress.attempt == known.progress.attempt);
        if known.has_failed() && !is_named {
            self.unnamed.push(name.clone());
        }
        self.cases.insert(name, known);
        self.total.total = self.session.num_cases.max(u32::try_from(self.cases.len()).unwrap_or(u32::MAX));
    }

    /// The lines, none wider than the terminal and not more than it has rows. None where there is no room.
    pub fn frame(&self, now: Timestamp, state: SessionState, size: Size, paint: Paint) -> Vec<String> {
        let look = (size.columns.saturating_sub(1), size.unicode, paint);
        if size.columns < LEAST_COLUMNS || size.rows < 4 {
            return Vec::new();
        }
        let bars = bars(self.partitions.iter(), (self.total, self.waiting()), BARS, look);
        // The last row stays free: the cursor is there.
        let rows = size.rows - 1;
        let bars = if bars.len() + 1 > rows { bars.into_iter().rev().take(1).collect() } else { bars };
        let room = rows.saturating_sub(bars.len() + 1);
        let mut rest = self.reasons_and_nodes(look);
        rest.truncate(room / 2);
        let failures = self.failures(room / 4, look);
        let room = room - rest.len() - failures.len();
        let mut lines = vec![paint.apply(Tone::Strong, fitted(&self.title(now, state), look.0, look.1))];
        lines.extend(failures);
        lines.extend(self.running(now, room, look));
        lines.extend(rest);
        lines.extend(bars);
        lines
    }

    /// Returns the news for a reader that is no terminal: a line for each case that has failed since the last time, and one with
    /// the counts.
    pub fn lines(&mut self, now: Timestamp) -> String {
        self.new_failures(usize::MAX) + &self.line(now)
    }

    /// A line for each case that has failed and was not named yet, but for not more than `most`.
    fn new_failures(&mut self, most: usize) -> String {
        let unnamed = std::mem::take(&mut self.unnamed);
        // It may run again by now.
        let failed = unnamed.iter().filter_map(|name| Some((name, self.cases.get(name).filter(|known| known.has_failed())?)));
        let line = |(name, known): (&CaseName, &Known)| {
            let bracket = known.outcome.as_ref().map_or("", |outcome| outcome.row().bracket);
            let cause = known.cause.as_deref().map_or_else(String::new, |cause| format!(": {}", one_line(cause)));
            format!("{bracket} {}{cause}\n", one_line(&name.to_string()))
        };
        let mut lines: Vec<String> = failed.map(line).collect();
        let more = lines.len().saturating_sub(most);
        if more > 0 {
            lines.truncate(most);
            lines.push(format!("... and {more} more failed\n"));
        }
        lines.concat()
    }

    fn line(&self, now: Timestamp) -> String {
        let mut line = format!("{}  {}{}", whole_seconds(self.took(now)), self.total.text(), self.waiting());
        let nodes = self.nodes();
        if !nodes.is_empty() {
            line = format!("{line}  on {} node(s)", nodes.len());
        }
        if let Some((name, progress)) = self.longest().first() {
            let (name, took) = (one_line(&name.to_string()).into_owned(), whole_seconds(now.since(progress.since)));
            line = format!("{line}  longest: {name} {took}");
        }
        if let Some((reason, count)) = self.reasons().first() {
            line = format!("{line}  pending: {count} {reason}");
        }
        line + "\n"
    }

    /// Returns the last text when there is nothing more to see. `attach` is the command that continues the session.
    pub fn end(&mut self, now: Timestamp, state: SessionState, attach: &str) -> String {
        let failures = self.new_failures(LAST_FAILURES);
        failures + &self.last_words(now, state, attach)
    }

    fn last_words(&self, now: Timestamp, state: SessionState, attach: &str) -> String {
        let Session { id, interrupted, .. } = &self.session;
        let Tally { total, good, odd, bad, .. } = self.total;
        if state == SessionState::Interrupted {
            let left = total.saturating_sub(self.total.done());
            return format!(
                "session {id} was interrupted: its process is gone. {left} of {total} cases have no result; `{attach}` goes on with it\n"
            );
        }
        let how = if *interrupted { "was interrupted" } else { "has ended" };
        let took = whole_seconds(self.took(now));
        format!("session {id} {how} after {took}: {good} passed, {bad} failed, {odd} neither, of {total} cases\n")
    }

    /// One object for a program.
    ///
    /// # Errors
    /// Never: a test holds that what it has is JSON.
    pub fn json(&self, state: SessionState) -> Result<String, RenderError> {
        let Session { id, system, user, host, started, ended, interrupted, .. } = &self.session;
        // A process that is gone could not store it.
        let interrupted = *interrupted || state == SessionState::Interrupted;
        let Tally { total, good, odd, bad, running, pending } = self.total;
        let case = |(name, progress): &(&CaseName, &CaseProgress)| {
            let CaseProgress { attempt, since, note, nodes, .. } = progress;
            json!({ "case": name.to_string(), "attempt": attempt, "since": utc(*since), "note": note, "nodes": nodes })
        };
        let running_cases: Vec<Value> = self.longest().iter().map(case).collect();
        let pending_cases: Vec<Value> = self.in_state(CaseState::Pending).iter().map(case).collect();
        let failed = self.failed().into_iter().map(|(name, Known { progress, outcome, cause, .. })| {
            let outcome = outcome.as_ref().map(ToString::to_string);
            json!({ "case": name.to_string(), "attempt": progress.attempt, "outcome": outcome, "cause": cause })
        });
        let reasons = self.reasons().into_iter().map(|(reason, cases)| json!({ "reason": reason, "cases": cases }));
        let nodes = self.nodes().into_iter().map(|(node, cases)| json!({ "node": node, "cases": cases }));
        json::written(&json!({
            "session": { "id": id, "state": state.as_str(), "interrupted": interrupted, "system": system, "user": user, "host": host,
                "started": utc(*started), "ended": ended.map(utc) },
            "cases": { "total": total, "waiting": self.total.waiting(), "pending": pending, "running": running,
                "ended": self.total.done(), "passed": good, "failed": bad, "other": odd },
            "running": running_cases,
            "pending": pending_cases,
            "failed": failed.collect::<Vec<_>>(),
            "reasons": reasons.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
        }))
    }

    fn title(&self, now: Timestamp, state: SessionState) -> String {
        let Session { id, user, host, system, .. } = &self.session;
        one_line(&format!("session {id} on {system}, by {user} on {host}: {state}, {}", whole_seconds(self.took(now))))
            .into_owned()
    }

    fn took(&self, now: Timestamp) -> Duration {
        self.session.ended.unwrap_or(now).since(self.session.started)
    }

    fn waiting(&self) -> String {
        match self.total.waiting() {
            0 => String::new(),
            count => format!("  {count} waiting"),
        }
    }

    /// The cases in a state, those first that have been in it for longest.
    fn in_state(&self, state: CaseState) -> Vec<(&CaseName, &CaseProgress)> {
        let cases = self.cases.iter().filter(|(_, known)| known.progress.state == state);
        let mut cases: Vec<_> = cases.map(|(name, known)| (name, &known.progress)).collect();
        cases.sort_by_key(|(name, progress)| (progress.since, *name));
        cases
    }

    /// The cases that have failed, in the order in which they ended.
    fn failed(&self) -> Vec<(&CaseName, &Known)> {
        let mut cases: Vec<_> = self.cases.iter().filter(|(_, known)| known.has_failed()).collect();
        cases.sort_by_key(|(name, known)| (known.progress.since, *name));
        cases
    }

    /// A line for each of the last failures.
    fn failures(&self, room: usize, look: (usize, bool, Paint)) -> Vec<String> {
        let failed = self.failed();
        let shown = failed.iter().skip(failed.len().saturating_sub(room.min(FAILURES)));
        let line = |(name, known): &(&CaseName, &Known)| {
            let bracket = known.outcome.as_ref().map_or("", |outcome| outcome.row().bracket);
            failure_line((bracket, name, known.cause.as_deref()), &self.names, look)
        };
        shown.map(line).collect()
    }

    fn longest(&self) -> Vec<(&CaseName, &CaseProgress)> {
        self.in_state(CaseState::Running)
    }

    fn running(&self, now: Timestamp, room: usize, look: (usize, bool, Paint)) -> Vec<String> {
        let cases = self.longest();
        let shown = if cases.len() > room { room.saturating_sub(1) } else { cases.len() };
        let doing: Vec<_> = cases.iter().take(shown).map(|(_, progress)| doing(progress)).collect();
        let line = |((name, progress), doing)| {
            let (name, progress): (&CaseName, &CaseProgress) = (name, progress);
            CaseLine { name, doing, clock: whole_seconds(now.since(progress.since)), tone: Tone::Plain }
        };
        let lines: Vec<_> = cases.iter().copied().zip(doing.iter().map(String::as_str)).map(line).collect();
        let mut lines = case_lines(&lines, &self.names, now.since(self.session.started), look);
        let more = cases.len() - shown;
        if more > 0 && room > 0 {
            let (width, unicode, paint) = look;
            let dots = if unicode { "…" } else { "..." };
            lines.push(paint.apply(Tone::Faint, fitted(&format!("  {dots} and {more} more running"), width, unicode)));
        }
        lines
    }

    /// Why cases are pending, and how many for each reason, the most frequent first.
    fn reasons(&self) -> Vec<(String, usize)> {
        let pending = self.cases.values().filter(|known| known.progress.state == CaseState::Pending);
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for known in pending {
            *counts.entry(known.progress.note.as_deref().unwrap_or("launching")).or_default() += 1;
        }
        most_frequent(counts)
    }

    /// The nodes with the number of cases that run on each, those with most first.
    fn nodes(&self) -> Vec<(String, usize)> {
        let running = self.cases.values().filter(|known| known.progress.state == CaseState::Running);
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for node in running.flat_map(|known| &known.progress.nodes) {
            *counts.entry(node).or_default() += 1;
        }
        most_frequent(counts)
    }

    fn reasons_and_nodes(&self, (width, unicode, paint): (usize, bool, Paint)) -> Vec<String> {
        let reasons = self.reasons();
        let digits = reasons.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or_default();
        let mut lines: Vec<_> =
            reasons.iter().take(REASONS).map(|(reason, count)| format!("pending  {count:>digits$} {reason}")).collect();
        if reasons.len() > REASONS {
            let more: usize = reasons.iter().skip(REASONS).map(|(_, count)| count).sum();
            lines.push(format!("pending  {more:>digits$} for {} other reasons", reasons.len() - REASONS));
        }
        let nodes = self.nodes();
        if !nodes.is_empty() {
            let mut line = format!("nodes    {}:", nodes.len());
            for (number, (node, count)) in nodes.iter().enumerate() {
                let more = format!(" and {} more", nodes.len() - number);
                let item = format!("{} {node} {count}", if number == 0 { "" } else { "," });
                let is_last = number + 1 == nodes.len();
                if line.width() + item.width() + if is_last { 0 } else { more.width() } > width && number > 0 {
                    line += &more;
                    break;
                }
                line += &item;
            }
            lines.push(line);
        }
        lines.into_iter().map(|line| paint.apply(Tone::Faint, fitted(&line, width, unicode))).collect()
    }
}

/// Where a case runs, or what is done after it has run.
fn doing(progress: &CaseProgress) -> String {
    let place = match progress.nodes.as_slice() {
        [] => String::new(),
        [node] => node.clone(),
        [node, rest @ ..] => format!("{node} and {} more", rest.len()),
    };
    let text = match (&progress.note, place.is_empty()) {
        (None, true) => "running".to_owned(),
        (None, false) => format!("running on {place}"),
        (Some(note), true) => note.clone(),
        (Some(note), false) => format!("{note} ({place})"),
    };
    one_line(&text).into_owned()
}

fn most_frequent(counts: HashMap<&str, usize>) -> Vec<(String, usize)> {
    let mut counts: Vec<_> = counts.into_iter().map(|(text, count)| (one_line(text).into_owned(), count)).collect();
    counts.sort_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
    counts
}
