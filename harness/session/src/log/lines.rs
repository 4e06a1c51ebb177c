//! Counting the lines of a text that is too large to look at whole.

use std::{fs::File, io, os::unix::fs::FileExt};

/// So much is read at once.
const BLOCK: usize = 64 * 1024;

pub(crate) fn count_newlines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

/// A last line without a newline is a line.
pub(crate) fn count_lines(newlines: u64, whole_lines: bool) -> u64 {
    newlines + u64::from(!whole_lines)
}

/// Where the last whole line within a part of a file ends.
pub(crate) fn end_of_last_line(file: &File, start: u64, end: u64) -> io::Result<u64> {
    let mut buffer = vec![0; BLOCK];
    let mut at = end;
    while at > start {
        let from = at.saturating_sub(BLOCK as u64).max(start);
        let block = &mut buffer[..usize::try_from(at - from).unwrap_or(BLOCK)];
        file.read_exact_at(block, from)?;
        if let Some(newline) = memchr::memrchr(b'\n', block) {
            return Ok(from + newline as u64 + 1);
        }
        at = from;
    }
    Ok(start)
}

pub(crate) fn ends_in_newline(file: &File, end: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, end - 1)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_whole_line_is_found_however_long_the_one_behind_it_is() {
        let long = "x".repeat(2 * BLOCK);
        let rows = [
            ("head\none\ntwo\n".to_owned(), 5, 13, 13),
            ("head\none\ntwo".to_owned(), 5, 12, 9),
            ("head\none".to_owned(), 5, 8, 5),
            ("head\n".to_owned(), 5, 5, 5),
            (format!("head\none\n{long}"), 5, 9 + 2 * BLOCK as u64, 9),
            (format!("head\n{long}"), 5, 5 + 2 * BLOCK as u64, 5),
        ];
        for (text, start, end, expected) in rows {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(end_of_last_line(&file, start, end).unwrap(), expected, "{} bytes", text.len());
        }
    }
}
