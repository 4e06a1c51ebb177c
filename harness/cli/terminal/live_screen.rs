//! The live lines on the terminal: drawn at the bottom, taken off before anything else is written, drawn again.
//!
//! It never fails: a session must outlive the window it was started in, and what cannot be written is dropped. All of a
//! picture goes out in one write, between the marks of a synchronised update, so that nothing flickers.

use parking_lot::Mutex;
use rustix::termios;
use std::{
    io::{self, Write},
    time::Duration,
};
use unicode_width::UnicodeWidthStr;

/// What a terminal that knows it takes as one picture; the others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// A write that takes longer may never end: nobody reads the pipe.
const WRITE_LIMIT: Duration = Duration::from_millis(250);

/// The widths of the lines that are on the screen; `None` after they were taken down for good.
static ON_SCREEN: Mutex<Option<Vec<usize>>> = Mutex::new(Some(Vec::new()));

/// Columns and rows of the terminal behind stderr, now: it may have been resized.
pub fn size() -> (usize, usize) {
    let size = termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Puts these lines at the bottom, in the place of those before. `above` is written to its own stream in between.
pub fn draw(lines: &[String], above: impl FnOnce()) {
    let mut on_screen = ON_SCREEN.lock();
    let Some(drawn) = on_screen.as_mut() else {
        above();
        return;
    };
    // Nobody holds stderr across `above`, which may write to it.
    if !drawn.is_empty() {
        write(&format!("{BEGIN}{}", taken_off(drawn, size().0)));
    }
    above();
    write(&format!("{}{END}", lines.join("\r\n")));
    *drawn = lines.iter().map(|line| printed_width(line)).collect();
}

/// Takes the lines off the screen for good, unless another thread is blocked in a write.
pub fn take_down() {
    let Some(mut on_screen) = ON_SCREEN.try_lock_for(WRITE_LIMIT) else { return };
    if let Some(drawn) = on_screen.take().filter(|drawn| !drawn.is_empty()) {
        write(&format!("{BEGIN}{}{END}", taken_off(&drawn, size().0)));
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
