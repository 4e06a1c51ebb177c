//! The terminal under the live lines: it never fails.
//!
//! indicatif panics when its terminal goes away, and a session must outlive the window it was started in: what cannot
//! be written is dropped.

use indicatif::TermLike;
use std::{
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Standard error, written to in one go whenever indicatif has finished a picture.
#[derive(Debug, Default)]
pub struct LiveScreen {
    picture: Mutex<String>,
}

impl LiveScreen {
    fn picture(&self) -> MutexGuard<'_, String> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the cursor, in the words of ECMA-48: `A` up, `B` down, `C` right, `D` left.
    fn go(&self, count: usize, direction: char) {
        if count > 0 {
            // Writing to a String cannot fail.
            let _ = write!(self.picture(), "\x1b[{count}{direction}");
        }
    }

    fn size() -> Option<rustix::termios::Winsize> {
        rustix::termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)
    }
}

impl TermLike for LiveScreen {
    fn width(&self) -> u16 {
        Self::size().map_or(80, |size| size.ws_col)
    }

    fn height(&self) -> u16 {
        Self::size().map_or(24, |size| size.ws_row)
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.go(count, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.go(count, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.go(count, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.go(count, 'D');
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        *self.picture() += text;
        *self.picture() += "\n";
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        *self.picture() += text;
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        *self.picture() += "\r\x1b[2K";
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let picture = std::mem::take(&mut *self.picture());
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(picture.as_bytes()).and_then(|()| stderr.flush());
        Ok(())
    }
}
