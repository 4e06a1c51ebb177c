//! The view of a running session: lines on stdout as cases begin and end, and on a terminal a live view of what runs now, at
//! the bottom, on stderr.

use crate::terminal::{NoEcho, Terminal, live_screen};
use muster_core::{
    case::CaseName,
    result::{CaseResult, Outcome},
    secret::Secrets,
};
use muster_report::{
    Paint,
    live::{Board, Size},
    progress,
    style::one_line,
};
use muster_session::{
    event::Event,
    front::{libtest::Frontend, signals::ONE_MORE},
    log::lines::NewLines,
};
use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, error::TryRecvError};

/// What happens within this time is shown together: a thread that is woken for every event of thousands costs more than
/// what it prints.
const PAUSE: Duration = Duration::from_millis(10);
/// How often the live view looks for news.
const LOOK: Duration = Duration::from_millis(40);
/// How often it is drawn when nothing happens: the spinner turns, the clocks run.
const TICK: Duration = Duration::from_millis(250);

/// Takes the live lines off the screen for good.
pub fn take_down() {
    live_screen::take_down();
}

pub struct View {
    terminal: Terminal,
    /// A tool reads stdout: nothing of ours belongs there.
    is_silent: bool,
    total: u32,
    /// How many have a result before anything happens.
    done: u32,
    board: Board,
    /// What no line of a log shows.
    secrets: Secrets,
}

impl View {
    /// A view of a session of `total` cases, of which so many are `done`.
    pub fn new(terminal: Terminal, has_format: bool, total: u32, done: usize, secrets: Secrets) -> Self {
        let done = u32::try_from(done).unwrap_or(u32::MAX).min(total);
        Self { terminal, is_silent: has_format || terminal.level < 0, total, done, board: Board::new(total, done), secrets }
    }

    pub fn is_live(&self) -> bool {
        self.terminal.live && !self.is_silent
    }

    /// Says where the cases will run, so that every partition has its bar.
    #[must_use]
    pub fn planned<'a>(mut self, names: impl IntoIterator<Item = &'a CaseName>) -> Self {
        self.board.planned(names);
        self
    }

    /// Prints everything before the first case.
    pub fn header(&self, header: &progress::Header<'_>) {
        if !self.is_silent {
            self.terminal.print(&progress::header(header, &self.terminal.screen()));
        }
    }

    /// Prints what happens, on a thread of its own, until nothing more can happen. libtest's trials see it, too.
    pub fn watch(self, events: UnboundedReceiver<Event>, lines: Receiver<NewLines>, trials: Frontend) -> JoinHandle<()> {
        thread::spawn(move || {
            let _no_echo = NoEcho::begin(self.terminal);
            let is_live = self.is_live();
            let mut watching = Watching::new(self, trials);
            if is_live { watching.live(events, lines) } else { watching.plain(events) }
        })
    }
}

struct Watching {
    terminal: Terminal,
    trials: Frontend,
    is_silent: bool,
    done: u32,
    total: u32,
    board: Board,
    secrets: Secrets,
    started: Instant,
    /// What is to be printed, in order. Nothing of it is printed before all that has happened is taken in: the live view
    /// is then drawn once.
    queued: Vec<Queued>,
}

/// Text for one of the two streams.
enum Queued {
    Results(String),
    Notes(String),
}

impl Watching {
    fn new(view: View, trials: Frontend) -> Self {
        let View { terminal, is_silent, total, done, board, secrets } = view;
        Self { terminal, trials, is_silent, done, total, board, secrets, started: Instant::now(), queued: Vec::new() }
    }

    /// Without a live view: what happens is printed as it happens.
    fn plain(&mut self, mut events: UnboundedReceiver<Event>) {
        while let Some(event) = events.blocking_recv() {
            self.take(event);
            thread::sleep(PAUSE);
            while let Ok(event) = events.try_recv() {
                self.take(event);
            }
            self.print();
        }
    }

    /// With one: it is drawn when something happens, and when time has passed.
    fn live(&mut self, mut events: UnboundedReceiver<Event>, mut lines: Receiver<NewLines>) {
        let mut drawn = Instant::now();
        loop {
            let mut has_news = false;
            let is_over = loop {
                match events.try_recv() {
                    Ok(event) => {
                        self.take(event);
                        has_news = true;
                    }
                    Err(TryRecvError::Empty) => break false,
                    Err(TryRecvError::Disconnected) => break true,
                }
            };
            // No more than there are now: jobs that always write would keep it from drawing.
            for NewLines { case, text, .. } in (0..lines.len()).map_while(|_| lines.try_recv().ok()) {
                self.says(&case, &text);
            }
            if has_news || drawn.elapsed() >= TICK {
                self.draw();
                drawn = Instant::now();
            }
            if is_over {
                break;
            }
            thread::sleep(LOOK);
        }
        take_down();
    }

    fn draw(&mut self) {
        let (columns, rows) = live_screen::size();
        let size = Size { columns, rows, unicode: self.terminal.unicode };
        // The live view is on stderr: its colours are those of a live terminal, whatever stdout is.
        let lines = self.board.frame(self.started.elapsed(), size, Paint { color: self.terminal.live });
        live_screen::draw(lines, || self.print());
    }

    fn print(&mut self) {
        for queued in self.queued.drain(..) {
            match queued {
                Queued::Results(text) => self.terminal.print(&text),
                Queued::Notes(text) => self.terminal.note(text.trim_end()),
            }
        }
    }

    fn take(&mut self, event: Event) {
        self.trials.saw(&event);
        let (paint, at) = (Paint { color: self.terminal.color }, self.started.elapsed());
        match event {
            Event::Started(case) => {
                self.queue_result(&progress::started(&case, paint));
                self.board.begin(&case, at);
            }
            Event::Phase { case, phase, note, limit, .. } => {
                self.board.phase(&case, phase, note.as_deref(), limit, at);
                if self.terminal.level > 0 && !self.is_silent {
                    let note = note.map_or_else(String::new, |note| format!(": {}", one_line(&note)));
                    self.queue_note(&format!("--- {case}: {}{note}", phase.as_str()));
                }
            }
            Event::Round { cases, why } => {
                (self.done, self.total) = (0, cases);
                self.board.round(cases);
                self.queue_result(&progress::round(&why, paint));
            }
            Event::Finished(result) => self.finished(&result, paint),
            Event::Warning(text) => self.queue_note(&format!("warning: {}", one_line(&text))),
            Event::Cancelling(why) => {
                self.board.cancelled();
                self.queue_note(&format!("{}: stopping what runs, then reporting; {ONE_MORE}", one_line(&why)));
            }
        }
    }

    /// The last of some lines that says anything.
    fn says(&mut self, case: &CaseName, text: &[u8]) {
        let mut lines = text.rsplit(|byte| *byte == b'\n');
        if let Some(last) = lines.find(|line| !line.trim_ascii().is_empty()) {
            let mut last = String::from_utf8_lossy(last).into_owned();
            self.secrets.hide(&mut last);
            self.board.says(case, &last);
        }
    }

    fn finished(&mut self, result: &CaseResult, paint: Paint) {
        self.done += 1;
        self.board.finish(result);
        // After an interrupt, cases that never started have no line each: the summary counts them.
        let is_news = result.outcome != Outcome::Abort || result.identifier.is_some() || self.terminal.level > 0;
        if is_news {
            self.queue_result(&progress::finished(result, self.done, self.total, paint));
        }
    }

    /// A result, for stdout.
    fn queue_result(&mut self, text: &str) {
        if self.is_silent {
            return;
        }
        match self.queued.last_mut() {
            Some(Queued::Results(results)) => *results += text,
            _ => self.queued.push(Queued::Results(text.to_owned())),
        }
    }

    /// A line for stderr.
    fn queue_note(&mut self, line: &str) {
        match self.queued.last_mut() {
            Some(Queued::Notes(notes)) => notes.extend([line, "\n"]),
            _ => self.queued.push(Queued::Notes(format!("{line}\n"))),
        }
    }
}
