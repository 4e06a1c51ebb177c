//! Sessions of the past: `muster results list` and `muster results show`.

use crate::{
    counts::{Counts, Results},
    terminal::{
        failure,
        progress::{finished, setup, verdict_line},
        summary,
    },
    text::{
        style::{Screen, Tone, one_line},
        table::{Layout, left, right},
        time::local,
    },
};
use muster_core::result::{Session, SessionState};
use muster_text::time::{Timestamp, format_duration};
use std::fmt::Write;

#[derive(Debug, Clone)]
pub struct ListedSession<'a> {
    pub session: &'a Session,
    pub state: SessionState,
    pub counts: Counts,
}

/// What a list without a session says. `of_all`: nothing was left out.
pub fn nothing(of_all: bool) -> &'static str {
    if of_all { "No session is stored\n" } else { "No stored session matches\n" }
}

/// One line a session, in the order given. `now` is for those that still run.
pub fn list(sessions: &[ListedSession<'_>], now: Timestamp, screen: &Screen) -> String {
    let (layout, rows) = fitted(sessions, now, screen);
    let mut text = layout.head(screen.paint);
    for (row, listed) in rows.iter().zip(sessions) {
        text += &layout.row(row, screen.paint, state_tone(state_word(listed.session, listed.state)));
    }
    text += &layout.rule();
    let _ = writeln!(text, "{} session(s)", sessions.len());
    text
}

/// The table with what fits: first the year goes (the session's name has it too), then the system.
fn fitted(sessions: &[ListedSession<'_>], now: Timestamp, screen: &Screen) -> (Layout, Vec<Vec<String>>) {
    let table = |with_year: bool, with_system: bool| {
        let mut columns = vec![left("session"), left("started"), right("took")];
        columns.extend(with_system.then_some(left("system")));
        columns.extend([right("passed"), right("failed"), left("state")]);
        let rows: Vec<_> = sessions.iter().map(|listed| row(listed, now, screen, with_year, with_system)).collect();
        (Layout::new(&columns, &rows), rows)
    };
    let wide = [(true, true), (false, true)].into_iter().map(|(year, system)| table(year, system));
    wide.into_iter().find(|(layout, _)| layout.width() <= screen.width).unwrap_or_else(|| table(false, false))
}

fn row(listed: &ListedSession<'_>, now: Timestamp, screen: &Screen, with_year: bool, with_system: bool) -> Vec<String> {
    let (session, counts) = (listed.session, &listed.counts);
    // The end of a killed session is unknown.
    let end = session.ended.or((listed.state == SessionState::Running).then_some(now));
    let started = local(session.started, &screen.zone);
    let mut cells = vec![
        one_line(&session.id.0).into_owned(),
        started.get(if with_year { 0..16 } else { 5..16 }).unwrap_or(&started).to_owned(),
        end.map_or_else(|| "-".to_owned(), |end| format_duration(end.since(session.started))),
    ];
    cells.extend(with_system.then(|| one_line(&session.system).into_owned()));
    cells.push(format!("{}/{}", counts.passed, counts.total));
    cells.push(counts.failed.to_string());
    cells.push(state_word(session, listed.state).to_owned());
    cells
}

fn state_tone(word: &str) -> Tone {
    match word {
        "ended" => Tone::Plain,
        "running" => Tone::Good,
        "unknown" => Tone::Odd,
        _ => Tone::Bad,
    }
}

/// One session: who, where, when, every attempt with its figures, the failures, the last line. `rerun_options` as in
/// [`failure::report`].
pub fn show(results: &Results<'_>, rerun_options: &[String], state: SessionState, now: Timestamp, screen: &Screen) -> String {
    let session = results.session;
    let mut text = setup(session, screen.paint);
    let mut row = |label: &str, value: &str| _ = writeln!(text, "  {:<19}{value}", format!("{label}:"));
    row("started", &local(session.started, &screen.zone));
    if let Some(ended) = session.ended {
        let took = format_duration(ended.since(session.started));
        row("ended", &format!("{} ({took})", local(ended, &screen.zone)));
    }
    row("state", state_word(session, state));
    text.push('\n');
    let cases = results.sorted();
    let total = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    for (number, case) in (1..).zip(cases) {
        text += &finished(case, number, total, screen.paint);
    }
    text.push('\n');
    let failures = failure::report(results, rerun_options, screen);
    if !failures.is_empty() {
        text += &failures;
        text.push('\n');
    }
    text += &summary::leftovers(results, screen);
    text += &verdict_line(&results.counts(), session.interrupted || state == SessionState::Interrupted, screen.paint);
    // The end of a killed session is unknown: what it did last is all there is.
    let last = results.attempts().iter().map(|case| case.times.finished).max().unwrap_or(session.started);
    text + &summary::summary(results, if state == SessionState::Running { now } else { last })
}

/// A signal ends a session in good order, and yet it was interrupted.
fn state_word(session: &Session, state: SessionState) -> &'static str {
    if session.interrupted { SessionState::Interrupted.as_str() } else { state.as_str() }
}
