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
    /// The pieces by their offset in the log. Lines that were damaged are missing.
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

/// The first line of a tail, which is its last one, too: EC2 keeps the end of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    exit: i32,
    total: u64,
    from: u64,
}

impl Head {
    fn read(words: &[&str]) -> Option<Self> {
        let [exit, total, from] = words else { return None };
        let number = |word: &str, key: &str| word.strip_prefix(key)?.parse::<i64>().ok();
        let unsigned = |number| u64::try_from(number).unwrap_or(0);
        Some(Self {
            exit: i32::try_from(number(exit, "exit=")?).unwrap_or(-1),
            total: unsigned(number(total, "total=")?),
            from: unsigned(number(from, "from=")?),
        })
    }
}

/// Finds the newest tail of an agent among the lines of a console.
pub(crate) fn read_console(console: &str, id: &str, rank: u32) -> Option<Tail> {
    let mark = format!("rfm-log {id} {rank} ");
    let (mut head, mut pieces): (Option<Head>, BTreeMap<u64, Vec<u8>>) = (None, BTreeMap::new());
    // A kernel writes its own text before a line that has begun.
    for line in console.lines().filter_map(|line| line.find(&mark).map(|at| &line[at + mark.len()..])) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [said @ .., "end"] => head = Head::read(said).or(head),
            [number, text] => {
                if let (Ok(number), Ok(bytes)) = (number.parse(), BASE64_STANDARD.decode(text)) {
                    pieces.insert(number, bytes);
                }
            }
            said => {
                if let Some(said) = Head::read(said) {
                    head = Some(said);
                    pieces.clear();
                }
            }
        }
    }
    let Head { exit, total, from } = head?;
    let placed = pieces.into_iter().filter_map(|(number, bytes)| {
        let at = from.checked_add(number.checked_mul(LINE)?)?;
        // All lines but the last are full.
        let is_whole = bytes.len() as u64 == LINE || at.checked_add(bytes.len() as u64) == Some(total);
        is_whole.then_some((at, bytes))
    });
    Some(Tail { exit, total, pieces: placed.collect() })
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
