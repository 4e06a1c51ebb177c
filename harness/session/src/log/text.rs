//! The text of a log on disk: its bytes, its lines. A small file is read and a large one is mapped, so that a log of gigabytes
//! costs no memory.

use memmap2::Mmap;
use muster_core::job::stdout::Text;
use std::{
    fs::File,
    io::{self, Read, Seek},
    os::unix::fs::FileExt,
    sync::Arc,
};

/// Below this, reading costs less than setting up a map.
const SMALL: u64 = 64 * 1024;

/// The whole of a file that is not written any more.
pub(crate) fn text_of(mut file: File) -> io::Result<Text> {
    let len = file.metadata()?.len();
    if len < SMALL {
        let mut text = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        // After a newline was added, the cursor is at the end.
        file.rewind()?;
        file.read_to_end(&mut text)?;
        return Ok(Arc::new(text));
    }
    Ok(Arc::new(map(&file)?))
}

#[allow(unsafe_code, reason = "the only way to map a file; see SAFETY")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map is sound as long as nobody changes the file under it. Callers pass a log of a job that is over: its
    // scheduler said that it is not written any more, or the spool closed it. It lies in a stage folder of this session,
    // which no other session takes while this one lives.
    unsafe { Mmap::map(file) }
}

/// So much is read at once to find the end of a line.
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
    fn a_file_that_was_just_written_to_is_read_from_its_beginning() {
        for len in [10, 100 * 1024] {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&vec![b'x'; len]).expect("written");
            assert_eq!((*text_of(file).expect("read")).as_ref().len(), len);
        }
    }

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
