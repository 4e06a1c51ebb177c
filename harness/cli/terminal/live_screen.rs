//! The live lines on the terminal: drawn at the bottom, taken off before anything else is written, drawn again.
//!
//! It never fails: a session must outlive the window it was started in, and what cannot be written is dropped. All of a
//! picture goes out in one write, between the marks of a synchronised update, so that nothing flickers.
//!
//! Everything that is printed goes through [`above`]: the lines are taken off from where they were drawn, which holds only
//! as long as nothing else has moved the cursor.

use parking_lot::{ReentrantMutex, const_reentrant_mutex};
use rustix::termios;
use std::{
    cell::RefCell,
    io::{self, Write},
    mem,
    time::Duration,
};
use unicode_width::UnicodeWidthStr;

/// What a terminal that knows it takes as one picture; the others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// A write that takes longer may never end: nobody reads the pipe.
const WRITE_LIMIT: Duration = Duration::from_millis(250);

/// What is on the screen. Reentrant: what is printed while the lines are drawn anew is printed by the same thread.
static SCREEN: ReentrantMutex<RefCell<Shown>> = const_reentrant_mutex(RefCell::new(Shown { lines: Vec::new(), is_over: false }));

struct Shown {
    lines: Vec<String>,
    /// They were taken down for good.
    is_over: bool,
}

/// Columns and rows of the terminal behind stderr, now: it may have been resized.
pub fn size() -> (usize, usize) {
    let size = termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Puts these lines at the bottom, in the place of those before. `print` writes above them in between.
pub fn draw(lines: Vec<String>, print: impl FnOnce()) {
    let screen = SCREEN.lock();
    replace(&screen, |_| lines, print);
}

/// Prints what belongs above the lines that are on the screen, if there are any. A thread that is blocked in a write
/// with the lines does not keep it from being printed.
pub fn above<T>(print: impl FnOnce() -> T) -> T {
    match SCREEN.try_lock_for(WRITE_LIMIT) {
        Some(screen) => replace(&screen, |before| before, print),
        None => print(),
    }
}

/// Takes the lines off the screen for good, unless another thread is blocked in a write.
pub fn take_down() {
    let Some(screen) = SCREEN.try_lock_for(WRITE_LIMIT) else { return };
    replace(&screen, |_| Vec::new(), || {});
    screen.borrow_mut().is_over = true;
}

/// Takes the lines off, prints, and draws others. Nobody holds stderr or the cell across `print`, which may write, and
/// print above in its turn.
fn replace<T>(screen: &RefCell<Shown>, lines: impl FnOnce(Vec<String>) -> Vec<String>, print: impl FnOnce() -> T) -> T {
    let before = mem::take(&mut screen.borrow_mut().lines);
    if !before.is_empty() {
        let widths: Vec<_> = before.iter().map(|line| printed_width(line)).collect();
        write(&format!("{BEGIN}{}", taken_off(&widths, size().0)));
    }
    let has_begun = !before.is_empty();
    let printed = print();
    let mut shown = screen.borrow_mut();
    let after = if shown.is_over { Vec::new() } else { lines(before) };
    if has_begun || !after.is_empty() {
        write(&format!("{}{END}", after.join("\r\n")));
    }
    shown.lines = after;
    printed
}

/// Stderr for those who write by themselves.
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        above(|| io::stderr().write(text))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// From the end of the last line to the beginning of the first, and clear from there. A terminal that became narrower
/// has wrapped what was on it.
fn taken_off(drawn: &[usize], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    let up = rows.saturating_sub(1);
    if up > 0 { format!("\r\x1b[{up}A\x1b[J") } else { "\r\x1b[J".to_owned() }
}

/// Columns, without the colours.
fn printed_width(line: &str) -> usize {
    muster_report::style::sanitize(line).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_the_terminal_wrapped_are_taken_off_too() {
        for (drawn, columns, up) in
            [(&[10, 20][..], 80, "\r\x1b[1A\x1b[J"), (&[10], 80, "\r\x1b[J"), (&[79, 79, 5], 40, "\r\x1b[4A\x1b[J")]
        {
            assert_eq!(taken_off(drawn, columns), up);
        }
        assert_eq!(printed_width("\x1b[31mFAIL\x1b[0m ██"), 7);
    }
}
