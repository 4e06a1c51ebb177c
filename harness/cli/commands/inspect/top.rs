//! `muster top`: a session that runs elsewhere, as its database shows it. Reads what has changed, once a second.

use super::results::resolve_states;
use crate::{
    args::{Cli, TopArgs},
    settings::{self, Places},
    terminal::{NoEcho, Terminal, live_screen},
    wiring::{database, owners, scope},
};
use muster_answers::nothing_stored;
use muster_core::decisions::pipeline::EXIT_INTERRUPTED;
use muster_host::{clock, owner};
use muster_report::{
    Paint,
    live::{Size, Top},
};
use muster_session::{
    front::signals::Signals,
    ownership::{Finding, InScope, Owners, Wait},
};
use muster_store::{Reader, SessionRow, SessionState};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until},
};

/// How often the database is asked.
const POLL: Duration = Duration::from_secs(1);
/// How often to look for the heartbeat of an owner whose process is not visible from here.
const OWNER_POLL: Duration = Duration::from_secs(10);
/// Among so many sessions the one to watch is looked for.
const NEWEST: u32 = 20;

pub fn top(cli: &Cli, args: &TopArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let is_live = terminal.live && terminal.level >= 0 && io::stdout().is_terminal() && !args.json;
    let _no_echo = is_live.then(|| NoEcho::begin(terminal));
    let watched = runtime::Builder::new_current_thread().enable_all().build()?.block_on(watch(cli, args, is_live, terminal));
    live_screen::take_down();
    let (code, text) = watched?;
    terminal.print(&text);
    Ok(code)
}

/// Watches until the session ends, or a signal comes. The exit code, and what is left to print.
async fn watch(cli: &Cli, args: &TopArgs, is_live: bool, terminal: Terminal) -> anyhow::Result<(u8, String)> {
    let reader = Reader::open(Places::of(cli).database).await?;
    let mut row = chosen(cli, &reader, args.session.as_deref(), terminal).await?;
    let schedulers = schedulers(cli, &reader, &row).await?;
    let owners = Owners { reader: Some(&reader), schedulers: &schedulers, tell: &owners::told(terminal) };
    let mut owner = OwnerWatch { owners, looked: Instant::now(), since: Instant::now(), seen: None, state: row.state };
    let (mut signals, mut resized) = (Signals::listen()?, signal(SignalKind::window_change())?);
    let id = row.session.id.clone();
    let (mut top, mut last) = (Top::new(row.session.clone()), 0);
    loop {
        // The session first: when it has ended, all of its states are there.
        let state = owner.state(&row).await;
        let changes = reader.changes(&id, last).await?;
        let is_news = last == 0 || !changes.cases.is_empty();
        last = changes.last.max(1);
        changes.cases.into_iter().for_each(|case| top.update(case));
        top.session(row.session);
        if args.json {
            return Ok((0, top.json(state)?));
        }
        if matches!(state, SessionState::Ended | SessionState::Interrupted) {
            return Ok((0, top.end(clock::now(), state, &settings::attach(cli, &id))));
        }
        if is_news && !is_live {
            terminal.print(&top.lines(clock::now()));
        }
        let draw = || {
            if is_live {
                draw(&top, state, terminal);
            }
        };
        if until_next_poll(&mut signals, &mut resized, draw).await {
            return Ok((EXIT_INTERRUPTED, String::new()));
        }
        row = reader.session(&id.0, &owner::is_alive).await?;
    }
}

/// Draws now, and when the terminal has another size. True if a signal came.
async fn until_next_poll(signals: &mut Signals, resized: &mut Signal, draw: impl Fn()) -> bool {
    let poll = Instant::now() + POLL;
    loop {
        draw();
        tokio::select! {
            () = sleep_until(poll) => return false,
            _ = signals.next() => return true,
            _ = resized.recv() => {}
        }
    }
}

fn draw(top: &Top, state: SessionState, terminal: Terminal) {
    let (columns, rows) = live_screen::size();
    let size = Size { columns, rows, unicode: terminal.unicode };
    live_screen::draw(top.frame(clock::now(), state, size, Paint { color: terminal.live }), || {});
}

/// The session that is named, else the newest that is not over, else the newest.
async fn chosen(cli: &Cli, reader: &Reader, session: Option<&str>, terminal: Terminal) -> anyhow::Result<SessionRow> {
    if let Some(session) = session {
        return database::session_named(cli, reader, session, terminal).await;
    }
    let mut rows = reader.sessions(NEWEST, &owner::is_alive).await?;
    resolve_states(cli, reader, &mut rows, terminal).await?;
    let is_open = |row: &SessionRow| matches!(row.state, SessionState::Running | SessionState::Unknown);
    let at = rows.iter().position(is_open).unwrap_or_default();
    let row = rows.into_iter().nth(at);
    row.ok_or_else(|| nothing_stored(reader).into())
}

/// The schedulers that may have a Lease of an owner whose process is not visible from here.
async fn schedulers(cli: &Cli, reader: &Reader, row: &SessionRow) -> anyhow::Result<Vec<InScope>> {
    if row.state != SessionState::Unknown {
        return Ok(Vec::new());
    }
    Ok(scope::in_scope(cli, &reader.open_jobs().await?).schedulers)
}

/// The owner of the session, as far as its process is not visible from here.
struct OwnerWatch<'a> {
    owners: Owners<'a>,
    looked: Instant,
    /// Since when nothing has changed.
    since: Instant,
    seen: Option<Finding>,
    state: SessionState,
}

impl OwnerWatch<'_> {
    /// Whether the session goes on.
    async fn state(&mut self, row: &SessionRow) -> SessionState {
        let is_due = self.seen.is_none() || self.looked.elapsed() >= OWNER_POLL;
        if row.state != SessionState::Unknown {
            return row.state;
        }
        if is_due {
            self.looked = Instant::now();
            self.state = self.look(row).await;
        }
        self.state
    }

    async fn look(&mut self, row: &SessionRow) -> SessionState {
        let id = &row.session.id;
        if let Some(finding) = &mut self.seen {
            self.owners.look_again(id, finding, self.since.elapsed()).await;
            let state = finding.life.shown();
            if state != SessionState::Running {
                return state;
            }
        }
        // It was not seen before, or is alive: whatever it does next is news.
        let is_first = self.seen.is_none();
        self.since = Instant::now();
        self.seen = self.owners.find([(id.clone(), Some(row.held.clone()))], Wait::No).await.into_values().next();
        match &self.seen {
            Some(finding) if is_first => finding.life.shown(),
            _ => SessionState::Running,
        }
    }
}
