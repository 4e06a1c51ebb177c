//! Writes text: results to stdout, everything else to stderr, colours only to a terminal that shows them.

pub mod live_screen;
pub mod unwritten;
pub mod view;

use crate::{args::Output, terminal::unwritten::EXIT_UNWRITTEN};
use muster_core::error::chain;
use muster_report::{Paint, Screen};
use muster_text::diagnostic::{self, Diagnostic, Sources};
use parking_lot::Mutex;
use rustix::{
    fs::FileType,
    io::Errno,
    termios::{self, LocalModes, OptionalActions, Termios},
};
use std::{
    any::Any,
    io::{self, IsTerminal, Write},
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::OnceLock,
};

/// Why standard output could not be written, the first time. From then on nothing more is printed.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Remembers that something could not be printed.
pub fn take(printed: io::Result<()>) {
    if let Err(error) = printed {
        let _ = LOST.set(error);
    }
}

/// Returns whether something could not be printed that somebody still wants to read.
pub fn has_lost_output() -> bool {
    LOST.get().is_some_and(|error| !is_left(error))
}

/// The end of the process. A failed write to stdout is reported, and changes the exit code of a success.
pub fn settled(code: u8) -> ExitCode {
    let Some(error) = LOST.get().filter(|error| !is_left(error)) else { return ExitCode::from(code) };
    let _ = writeln!(io::stderr().lock(), "error: standard output could not be written: {error}");
    ExitCode::from(if code == 0 { EXIT_UNWRITTEN } else { code })
}

/// A reader that went away is not an error: `| head`, or a terminal that was closed.
fn is_left(error: &io::Error) -> bool {
    let is_device = || {
        let about = rustix::fs::fstat(io::stdout());
        about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice)
    };
    error.kind() == io::ErrorKind::BrokenPipe || (error.raw_os_error() == Some(Errno::IO.raw_os_error()) && is_device())
}

/// Prints a file whose name is `-`.
pub fn print_file(text: &str) {
    if LOST.get().is_none() {
        live_screen::above(|| {
            let mut stdout = io::stdout().lock();
            take(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
        });
    }
}

/// Runs what prints by itself, and panics where it cannot: libtest's printer. The session goes on: its results are wanted all the
/// same.
pub fn guarded(print: impl FnOnce()) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if unprinted(panic.payload()).is_none() {
            usual(panic);
        }
    }));
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(print)) {
        match unprinted(&*cause) {
            Some(error) => take(Err(error)),
            None => panic::resume_unwind(cause),
        }
    }
}

/// The I/O error in the message of a panic by `unwrap`.
fn unprinted(panic: &(dyn Any + Send)) -> Option<io::Error> {
    let text = panic.downcast_ref::<String>()?.split_once("`Err` value: Os { code: ")?.1;
    text.split_once(',')?.0.parse().ok().map(io::Error::from_raw_os_error)
}

/// The kinds of the two standard streams, and how much to say.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub struct Terminal {
    /// Colours on stdout.
    pub color: bool,
    /// Colours and live lines on stderr.
    pub live: bool,
    /// The locale says UTF-8: blocks and dots can be drawn.
    pub unicode: bool,
    /// `-v` minus `-q`.
    pub level: i16,
    /// A report takes stdout, and what is usually printed there goes to stderr.
    pub aside: bool,
}

#[allow(clippy::unused_self, reason = "who has a `Terminal` may print")]
impl Terminal {
    /// Looks at the streams and the options. `NO_COLOR` counts as `--nocolor`.
    pub fn new(output: &Output, aside: bool) -> Self {
        let plain = output.nocolor || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let level = i16::from(output.verbose) - i16::from(output.quiet);
        Self {
            color: !plain && !dumb && if aside { io::stderr().is_terminal() } else { io::stdout().is_terminal() },
            live: !plain && !dumb && io::stderr().is_terminal(),
            unicode: is_utf8(|name| std::env::var(name).ok()),
            level,
            aside,
        }
    }

    /// Columns of the terminal, 80 if there is none.
    pub fn width(self) -> usize {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        columns
            .or_else(|| termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col)))
            .filter(|width| *width >= 40)
            .unwrap_or(80)
    }

    /// Returns the screen that reports need.
    pub fn screen(self) -> Screen {
        Screen { paint: Paint { color: self.color }, width: self.width(), zone: jiff::tz::TimeZone::system() }
    }

    /// Prints a result. [`settled`] reports at the end what could not be printed.
    pub fn print(self, text: &str) {
        if self.aside {
            live_screen::above(|| {
                let _ = io::stderr().lock().write_all(text.as_bytes());
            });
        } else {
            print_file(text);
        }
    }

    /// Prints a line to stderr, unless it is empty.
    pub fn note(self, text: &str) {
        if text.is_empty() {
            return;
        }
        live_screen::above(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// Prints an error with its causes, once.
    pub fn error(self, error: &anyhow::Error) {
        let text = chain(error.as_ref());
        // What was rendered with places has its own `error:` lines.
        let text = if text.starts_with("error") || text.contains("\nerror") { text } else { format!("error: {text}") };
        self.note(text.trim_end());
    }

    /// Prints mistakes with their places.
    pub fn diagnostics(self, diagnostics: &[Diagnostic], sources: &Sources) {
        if !diagnostics.is_empty() {
            self.note(diagnostic::render(diagnostics, sources, self.live).trim_end());
        }
    }

    /// `tracing` to stderr: warnings always, more with `-vv` or `MUSTER_LOG`.
    pub fn log_to_stderr(self) {
        use tracing_subscriber::EnvFilter;
        let level = match self.level {
            ..=1 => "off",
            2 => "info",
            _ => "debug",
        };
        // The beginning of the name of every crate of ours.
        let filter = EnvFilter::try_from_env("MUSTER_LOG").unwrap_or_else(|_| EnvFilter::new(format!("muster={level}")));
        // A second call (in tests) leaves the first subscriber in place.
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| live_screen::Stderr).with_ansi(self.live).try_init();
    }
}

/// What POSIX says of the locale: the first of these that is set decides.
fn is_utf8(env: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| env(name).filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// The terminal's settings before [`NoEcho`] changed them.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While live lines are on the screen, `^C` is not echoed: it would push the line below them out of its place, and
/// leave a copy of the first one behind. Dropping this puts the terminal back.
pub struct NoEcho;

impl NoEcho {
    /// Turns the echo off, for a session in the foreground alone: the terminal stops any other that touches its settings.
    pub fn begin(terminal: Terminal) -> Self {
        let stdin = io::stdin();
        let is_ours = || termios::tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
        if terminal.live
            && stdin.is_terminal()
            && is_ours()
            && let Ok(before) = termios::tcgetattr(&stdin)
        {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHOCTL);
            let _ = termios::tcsetattr(&stdin, OptionalActions::Now, &quiet);
            *BEFORE.lock() = Some(before);
        }
        Self
    }

    /// Puts the terminal back, once.
    pub fn end() {
        if let Some(before) = BEFORE.lock().take() {
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        Self::end();
    }
}
