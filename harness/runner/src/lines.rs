//! Counting the lines of a text that is too large to look at whole.

use std::{fs::File, io, os::unix::fs::FileExt};

pub(crate) fn count_newlines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

/// A last line without a newline is a line.
pub(crate) fn count_lines(newlines: u64, whole_lines: bool) -> u64 {
    newlines + u64::from(!whole_lines)
}

pub(crate) fn ends_in_newline(file: &File, end: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, end - 1)?;
    Ok(last == *b"\n")
}
