//! Sessions of the past: `muster results list` and `muster results show`.

use crate::{
    RenderError,
    counts::{Counts, Results},
    files::json::written,
    terminal::{
        failure,
        progress::{finished, setup, verdict_line},
        summary,
    },
    text::{
        csv_cells::{record, text_cell},
        style::{Screen, Tone, one_line},
        table::{Layout, left, right},
        time::local,
    },
};
use muster_core::result::{Session, SessionState};
use muster_text::time::{Timestamp, format_duration};
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Clone)]
pub struct ListedSession<'a> {
    pub session: &'a Session,
    pub state: SessionState,
    pub counts: Counts,
}

/// Returns the text of an empty list of sessions. `of_all`: nothing was left out.
pub fn nothing(of_all: bool) -> &'static str {
    if of_all { "No session is stored\n" } else { "No stored session matches\n" }
}

/// One line a session, in the order given. `is_cut`: there are more. `now` is for those that still run.
pub fn list(sessions: &[ListedSession<'_>], is_cut: bool, now: Timestamp, screen: &Screen) -> String {
    let (layout, rows) = fitted(sessions, now, screen);
    let mut text = layout.head(screen.paint);
    for (row, listed) in rows.iter().zip(sessions) {
        text += &layout.row(row, screen.paint, state_tone(state_word(listed.session, listed.state)));
    }
    text += &layout.rule();
    let more = if is_cut { ", the newest: there are more, `-N all` lists them" } else { "" };
    let _ = writeln!(text, "{} session(s){more}", sessions.len());
    text
}

/// A session for programs.
#[derive(Serialize)]
struct Entry<'a> {
    session: &'a str,
    state: &'static str,
    started_unix_us: i64,
    ended_unix_us: Option<i64>,
    night: Option<String>,
    system: &'a str,
    user: &'a str,
    host: &'a str,
    version: &'a str,
    cases: u32,
    passed: u32,
    failed: u32,
}

impl<'a> Entry<'a> {
    fn of(listed: &ListedSession<'a>) -> Self {
        let ListedSession { session, state, counts } = listed;
        Self {
            session: &session.id.0,
            state: state_word(session, *state),
            started_unix_us: session.started.0,
            ended_unix_us: session.ended.map(|ended| ended.0),
            night: session.night.map(|night| night.to_string()),
            system: &session.system,
            user: &session.user,
            host: &session.host,
            version: &session.version,
            cases: counts.total,
            passed: counts.passed,
            failed: counts.failed,
        }
    }
}

/// A list of objects.
pub fn list_as_json(sessions: &[ListedSession<'_>]) -> Result<String, RenderError> {
    let entries: Vec<_> = sessions.iter().map(Entry::of).collect();
    written(&entries)
}

/// A row a session, below the names of columns.
pub fn list_as_csv(sessions: &[ListedSession<'_>]) -> Result<String, RenderError> {
    let head = [
        "session",
        "state",
        "started_unix_us",
        "ended_unix_us",
        "night",
        "system",
        "user",
        "host",
        "version",
        "cases",
        "passed",
        "failed",
    ];
    let row = |listed: &ListedSession<'_>| {
        let one = Entry::of(listed);
        vec![
            text_cell(one.session),
            one.state.to_owned(),
            one.started_unix_us.to_string(),
            one.ended_unix_us.map(|ended| ended.to_string()).unwrap_or_default(),
            one.night.unwrap_or_default(),
            text_cell(one.system),
            text_cell(one.user),
            text_cell(one.host),
            text_cell(one.version),
            one.cases.to_string(),
            one.passed.to_string(),
            one.failed.to_string(),
        ]
    };
    record(std::iter::once(head.map(str::to_owned).to_vec()).chain(sessions.iter().map(row)))
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
