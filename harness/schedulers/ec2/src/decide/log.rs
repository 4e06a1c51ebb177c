//! The log of an instance, from its segments in S3 and what the console has. Nothing is put in the place of bytes that are lost.

use base64::{Engine, prelude::BASE64_STANDARD};
use std::collections::BTreeMap;

/// What a line of the console holds before base64: the agent numbers the lines.
const LINE: u64 = 57;

/// The end of a log that an agent wrote to the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    pub exit: i32,
    /// The length of the whole log.
    pub total: u64,
    /// By their offset in the log. Lines that were damaged are missing.
    pub pieces: BTreeMap<u64, Vec<u8>>,
}

/// A part of a log, in order. They have no gap between them but those that are `Lost`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Of a segment: its number, and the bytes of it to leave out at its beginning.
    Segment {
        number: u32,
        from: u64,
    },
    Console(Vec<u8>),
    /// So many bytes: the case is `invalid{logs}`.
    Lost(u64),
}

/// Finds the newest tail of an agent among the lines of a console.
pub(crate) fn read_console(console: &str, id: &str, rank: u32) -> Option<Tail> {
    let mark = format!("rfm-log {id} {rank} ");
    let mut tail: Option<(u64, Tail)> = None;
    // A kernel writes its own text before a line that has begun.
    for line in console.lines().filter_map(|line| line.find(&mark).map(|at| &line[at + mark.len()..])) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &mut tail) {
            ([exit, total, from], _) if exit.starts_with("exit=") => {
                let number = |word: &str, key: &str| word.strip_prefix(key)?.parse::<i64>().ok();
                let (Some(exit), Some(total), Some(from)) =
                    (number(exit, "exit="), number(total, "total="), number(from, "from="))
                else {
                    continue;
                };
                let unsigned = |number| u64::try_from(number).unwrap_or(0);
                let head = Tail { exit: i32::try_from(exit).unwrap_or(-1), total: unsigned(total), pieces: BTreeMap::new() };
                tail = Some((unsigned(from), head));
            }
            ([number, text], Some((from, tail))) => {
                let at = number.parse::<u64>().ok().map(|number| *from + number * LINE);
                let bytes = BASE64_STANDARD.decode(text).ok();
                if let (Some(at), Some(bytes)) = (at, bytes)
                    // All lines but the last are full.
                    && (bytes.len() as u64 == LINE || at + bytes.len() as u64 == tail.total)
                {
                    tail.pieces.insert(at, bytes);
                }
            }
            _ => {}
        }
    }
    tail.map(|(_, tail)| tail)
}

/// Puts a log together. `segments`: how long each is, by its number; all but the last are `full` bytes. `total`: how long the log is, if
/// its agent said so.
pub(crate) fn assemble(full: u64, segments: &BTreeMap<u32, u64>, total: Option<u64>, tail: Option<&Tail>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    let total = total.into_iter().chain(tail.map(|tail| tail.total)).max();
    for (number, length) in segments {
        let start = u64::from(*number) * full;
        at = fill(&mut parts, at, start, tail);
        // The console may have had the beginning of it.
        if at < start + length {
            parts.push(Part::Segment { number: *number, from: at - start });
            at = start + length;
        }
    }
    if let Some(total) = total {
        fill(&mut parts, at, total, tail);
    }
    parts
}

/// Fills the bytes from `at` to `end` with what the console has, and returns where the log is now.
fn fill(parts: &mut Vec<Part>, mut at: u64, end: u64, tail: Option<&Tail>) -> u64 {
    for (start, bytes) in tail.into_iter().flat_map(|tail| &tail.pieces) {
        let after = start + bytes.len() as u64;
        if after <= at || *start >= end {
            continue;
        }
        lose(parts, start.saturating_sub(at));
        at = at.max(*start);
        let until = after.min(end);
        let range = |offset: u64| usize::try_from(offset - start).unwrap_or(0);
        parts.push(Part::Console(bytes[range(at)..range(until)].to_vec()));
        at = until;
    }
    lose(parts, end.saturating_sub(at));
    at.max(end)
}

fn lose(parts: &mut Vec<Part>, bytes: u64) {
    if bytes > 0 {
        parts.push(Part::Lost(bytes));
    }
}
