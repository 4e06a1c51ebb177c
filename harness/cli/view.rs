//! What a person sees while a session runs: lines on stdout as cases begin and end, and on a terminal one live line
//! on stderr for each case that runs now.

use crate::{
    live_screen::LiveScreen,
    terminal::{NoEcho, Terminal},
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::{
    case::CaseName,
    result::{CaseResult, Outcome, Phase},
};
use muster_report::{Paint, progress, style::one_line};
use muster_runner::event::Event;
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedReceiver;

/// What happens within this time is shown together.
const PAUSE: Duration = Duration::from_millis(10);

/// More live lines than this would scroll.
const LIVE_LINES: usize = 8;
/// How often they are drawn: the spinner turns, the clock runs.
const TICK: Duration = Duration::from_millis(250);

/// The live lines, for whoever has to leave at once.
static ON_SCREEN: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Takes the live lines off the screen for good.
pub fn take_down() {
    if let Some(all) = ON_SCREEN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = all.clear();
        all.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// The view of one session.
pub struct View {
    terminal: Terminal,
    /// A tool reads stdout: nothing of ours belongs there.
    is_silent: bool,
    total: u32,
    /// How many have a result before anything happens.
    done: u32,
}

impl View {
    /// A view of a session of `total` cases, of which so many are `done`.
    pub fn new(terminal: Terminal, has_format: bool, total: u32, done: usize) -> Self {
        let done = u32::try_from(done).unwrap_or(u32::MAX).min(total);
        Self { terminal, is_silent: has_format || terminal.level < 0, total, done }
    }

    /// Prints everything before the first case.
    pub fn header(&self, header: &progress::Header<'_>) {
        if !self.is_silent {
            self.terminal.print(&progress::header(header, &self.terminal.screen()));
        }
    }

    /// Prints what happens, on a thread of its own, until nothing more can happen.
    pub fn watch(self, mut events: UnboundedReceiver<Event>) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let _no_echo = NoEcho::begin(self.terminal);
            let mut watching = Watching::new(&self);
            while let Some(event) = events.blocking_recv() {
                watching.show(event);
                // A thread that is woken for every event of thousands costs more than what it prints.
                std::thread::sleep(PAUSE);
                while let Ok(event) = events.try_recv() {
                    watching.show(event);
                }
            }
            watching.live.clear();
        })
    }
}

struct Watching<'a> {
    view: &'a View,
    /// Of this round.
    done: u32,
    total: u32,
    live: Live,
}

impl<'a> Watching<'a> {
    fn new(view: &'a View) -> Self {
        Self { view, done: view.done, total: view.total, live: Live::new(view.terminal.live && !view.is_silent, view.total) }
    }

    fn show(&mut self, event: Event) {
        let terminal = self.view.terminal;
        let paint = Paint { color: terminal.color };
        match event {
            Event::Begun { case, .. } => {
                if !self.view.is_silent {
                    self.live.around(|| terminal.print(&progress::begun(&case, paint)));
                }
                self.live.begin(&case);
            }
            Event::Phase { case, phase, note, .. } => {
                self.live.phase(&case, phase, note.as_deref());
                if terminal.level > 0 && !self.view.is_silent {
                    let note = note.map_or_else(String::new, |note| format!(": {}", one_line(&note)));
                    self.live.around(|| terminal.note(&format!("--- {case}: {}{note}", phase.as_str())));
                }
            }
            Event::Log { .. } => {}
            Event::Round { cases, why } => {
                (self.done, self.total) = (0, cases);
                self.live.restart(cases);
                if !self.view.is_silent {
                    self.live.around(|| terminal.print(&progress::round(&why, paint)));
                }
            }
            Event::Finished(result) => self.finished(&result),
            Event::Warning(text) => self.live.around(|| terminal.note(&format!("warning: {}", one_line(&text)))),
            Event::Cancelling(why) => self.live.around(|| {
                terminal.note(&format!("{}: stopping what runs, then reporting; a second signal leaves at once", one_line(&why)));
            }),
        }
    }

    fn finished(&mut self, result: &CaseResult) {
        self.done += 1;
        self.live.end(&result.name, self.done);
        // After an interrupt, those that never began are counted in the end: thousands of lines would say no more.
        let is_news = result.outcome != Outcome::Abort || result.identifier.is_some() || self.view.terminal.level > 0;
        if !self.view.is_silent && is_news {
            let terminal = self.view.terminal;
            let text = progress::finished(result, self.done, self.total, Paint { color: terminal.color });
            self.live.around(|| terminal.print(&text));
        }
    }
}

/// Live lines; none of it does anything where there is no terminal.
struct Live {
    lines: Option<Lines>,
}

struct Lines {
    all: MultiProgress,
    total: ProgressBar,
    /// In the order in which they began.
    running: Vec<Running>,
}

/// A case that runs. Those that began first have a line; the others get one when there is room.
struct Running {
    case: Arc<CaseName>,
    begun: Instant,
    doing: String,
    line: Option<ProgressBar>,
}

impl Live {
    fn new(is_wanted: bool, total: u32) -> Self {
        let lines = is_wanted.then(|| {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(Box::<LiveScreen>::default(), 8));
            let bar = all.add(ProgressBar::new(total.into()).with_style(style("{bar:24} {pos}/{len} cases, {elapsed}{msg}")));
            bar.enable_steady_tick(TICK);
            *ON_SCREEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(all.clone());
            Lines { all, total: bar, running: Vec::new() }
        });
        Self { lines }
    }

    /// Counts another round of cases.
    fn restart(&self, total: u32) {
        if let Some(lines) = &self.lines {
            lines.total.set_length(total.into());
            lines.total.set_position(0);
        }
    }

    /// Prints something above the live lines.
    fn around(&self, print: impl FnOnce()) {
        match &self.lines {
            Some(lines) => lines.all.suspend(print),
            None => print(),
        }
    }

    fn begin(&mut self, case: &Arc<CaseName>) {
        let Some(lines) = &mut self.lines else { return };
        lines.running.push(Running { case: case.clone(), begun: Instant::now(), doing: String::new(), line: None });
        lines.fill();
    }

    fn phase(&mut self, case: &CaseName, phase: Phase, note: Option<&str>) {
        let running = self.lines.iter_mut().flat_map(|lines| &mut lines.running);
        for running in running.filter(|running| *running.case == *case) {
            let note = note.map_or_else(String::new, |note| format!(": {}", one_line(note)));
            running.doing = format!("{}{note}", phase.as_str());
            if let Some(line) = &running.line {
                line.set_message(running.doing.clone());
            }
        }
    }

    fn end(&mut self, case: &CaseName, done: u32) {
        let Some(lines) = &mut self.lines else { return };
        lines.total.set_position(done.into());
        let Some(at) = lines.running.iter().position(|running| *running.case == *case) else { return };
        if let Some(line) = lines.running.remove(at).line {
            line.finish_and_clear();
            lines.all.remove(&line);
        }
        lines.fill();
    }

    fn clear(&self) {
        if self.lines.is_some() {
            take_down();
        }
    }
}

impl Lines {
    /// Gives lines to as many cases as there is room for, and counts the rest.
    fn fill(&mut self) {
        let mut free = LIVE_LINES.saturating_sub(self.running.iter().filter(|running| running.line.is_some()).count());
        for running in self.running.iter_mut().filter(|running| running.line.is_none()) {
            if free == 0 {
                break;
            }
            free -= 1;
            let line = ProgressBar::new_spinner().with_elapsed(running.begun.elapsed());
            let line = self.all.insert_before(&self.total, line.with_style(style("{spinner} {prefix} {elapsed:>4} {wide_msg}")));
            line.set_prefix(one_line(&running.case.to_string()).into_owned());
            line.set_message(running.doing.clone());
            line.enable_steady_tick(TICK);
            running.line = Some(line);
        }
        let more = self.running.len().saturating_sub(LIVE_LINES);
        self.total.set_message(if more > 0 { format!(", {more} more running") } else { String::new() });
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours; should one be wrong, the plain bar is good enough.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
