//! What a person sees while a session runs: lines on stdout as cases begin and end, and on a terminal one live line
//! on stderr for each case that runs now.

use crate::terminal::Terminal;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::{
    case::CaseName,
    result::{CaseResult, Phase},
};
use muster_report::{Paint, progress, style::one_line};
use muster_runner::event::Event;
use std::{collections::HashMap, sync::Arc, thread::JoinHandle, time::Duration};
use tokio::sync::mpsc::UnboundedReceiver;

/// More live lines than this would scroll.
const LIVE_LINES: usize = 8;

/// The view of one session.
pub struct View {
    terminal: Terminal,
    /// A tool reads stdout: nothing of ours belongs there.
    is_silent: bool,
    total: u32,
}

impl View {
    /// A view of a session of `total` cases.
    pub fn new(terminal: Terminal, has_format: bool, total: u32) -> Self {
        Self { terminal, is_silent: has_format || terminal.level < 0, total }
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
            let mut watching = Watching::new(&self);
            while let Some(event) = events.blocking_recv() {
                watching.show(event);
            }
            watching.live.clear();
        })
    }
}

struct Watching<'a> {
    view: &'a View,
    done: u32,
    live: Live,
}

impl<'a> Watching<'a> {
    fn new(view: &'a View) -> Self {
        Self { view, done: 0, live: Live::new(view.terminal.live && !view.is_silent, view.total) }
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
        if !self.view.is_silent {
            let terminal = self.view.terminal;
            let text = progress::finished(result, self.done, self.view.total, Paint { color: terminal.color });
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
    running: HashMap<CaseName, ProgressBar>,
}

impl Live {
    fn new(is_wanted: bool, total: u32) -> Self {
        let lines = is_wanted.then(|| {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            let bar = all.add(ProgressBar::new(total.into()).with_style(style("{bar:24} {pos}/{len} cases, {elapsed}")));
            bar.enable_steady_tick(Duration::from_secs(1));
            Lines { all, total: bar, running: HashMap::new() }
        });
        Self { lines }
    }

    /// Prints something above the live lines.
    fn around(&self, print: impl FnOnce()) {
        match &self.lines {
            Some(lines) => lines.all.suspend(print),
            None => print(),
        }
    }

    fn begin(&mut self, case: &Arc<CaseName>) {
        let Some(lines) = self.lines.as_mut().filter(|lines| lines.running.len() < LIVE_LINES) else { return };
        let bar = lines.all.insert_before(
            &lines.total,
            ProgressBar::new_spinner().with_style(style("{spinner} {prefix} {elapsed:>4} {wide_msg}")),
        );
        bar.set_prefix(one_line(&case.to_string()).into_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        lines.running.insert((**case).clone(), bar);
    }

    fn phase(&self, case: &CaseName, phase: Phase, note: Option<&str>) {
        if let Some(bar) = self.lines.as_ref().and_then(|lines| lines.running.get(case)) {
            let note = note.map_or_else(String::new, |note| format!(": {}", one_line(note)));
            bar.set_message(format!("{}{note}", phase.as_str()));
        }
    }

    fn end(&mut self, case: &CaseName, done: u32) {
        let Some(lines) = &mut self.lines else { return };
        lines.total.set_position(done.into());
        if let Some(bar) = lines.running.remove(case) {
            bar.finish_and_clear();
            lines.all.remove(&bar);
        }
    }

    fn clear(&self) {
        if let Some(lines) = &self.lines {
            let _ = lines.all.clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours; should one be wrong, the plain bar is good enough.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
