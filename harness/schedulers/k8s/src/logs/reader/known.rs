//! The lines of a log that were passed on already, and how a repetition is recognized.
//!
//! ```text
//!                    line not in the window: gap
//!          interrupted           .--> Scattered (what is left of the window may still come)
//! Live ------------------> Sequence --(the whole window came)--> Live
//!   \--(clock went back)-> Bytes ----(as many bytes came)------> Live
//! taken over: Bytes, or Until (a moment) when the log is too long to be read again
//! ```
//! Memory is one second of lines, 16 bytes each: the server is asked again for the second of the newest line, and must
//! begin with exactly the lines of that second that are remembered.

use crate::logs::reader::line::{Hash, Seen, micros, second, start_of};
use std::collections::HashMap;

/// Two streams of one container are stamped before they are queued, so their lines may be a little out of order.
const SKEW: i64 = 100_000_000;
/// A log that is shorter than this is read again from its first byte when another process takes it over: that is exact.
const READ_AGAIN: u64 = 9 << 20;

/// What was passed on.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// The number of bytes.
    pub bytes: u64,
    /// The lines that a reply since `since` begins with.
    window: Vec<Seen>,
    /// The latest time of a line.
    newest: Option<i64>,
    /// The time of the last line.
    last: Option<i64>,
    /// The second from which on everything is remembered.
    since: i64,
    /// It cannot be earlier than this: nothing was remembered before.
    floor: i64,
    /// A line came that is older than all that is remembered: asking since a second would miss its like.
    backwards: bool,
    /// The line that was passed on in part.
    cut: Option<Cut>,
    replay: Replay,
}

/// A line of which only the beginning was passed on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub at: i64,
    pub bytes: u64,
    pub hash: Hash,
}

#[derive(Debug, Clone)]
enum Replay {
    /// Whatever comes is new.
    Live,
    /// The next line is this one of the window, or one after it.
    Sequence(usize),
    /// Lines are missing; these may still be repeated.
    Scattered(HashMap<Seen, u32>),
    /// The log comes from its first byte, and so many bytes of it are known. The last of them is of this moment (µs).
    Bytes { left: u64, last: Option<i64>, taken_over: bool },
    /// Lines up to this moment (µs) are known.
    Until(i64),
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineMatch {
    /// The number of its first bytes that are known.
    pub known: u64,
    /// Something before it may be missing.
    pub lost: bool,
}

const NEW: LineMatch = LineMatch { known: 0, lost: false };
const OLD: LineMatch = LineMatch { known: u64::MAX, lost: false };
const AFTER_GAP: LineMatch = LineMatch { known: 0, lost: true };

impl Known {
    /// From where another process stopped: so many bytes, the last line of this moment (µs).
    pub(super) fn up_to(bytes: u64, last: Option<i64>) -> Self {
        match last {
            Some(last) if bytes >= READ_AGAIN => Self::after(bytes, last),
            _ if bytes > 0 => Self::new(bytes, i64::MIN, Replay::Bytes { left: bytes, last, taken_over: true }),
            _ => Self::new(0, i64::MIN, Replay::Live),
        }
    }

    /// From where another process stopped, by time alone.
    fn after(bytes: u64, last: i64) -> Self {
        Self::new(bytes, second(last.saturating_mul(1_000)), Replay::Until(last))
    }

    fn new(bytes: u64, floor: i64, replay: Replay) -> Self {
        let (window, since) = (Vec::new(), i64::MIN);
        Self { bytes, window, newest: None, last: None, since, floor, backwards: false, cut: None, replay }
    }

    /// The second since which the server is asked; `None`: from the first byte.
    pub(super) fn since(&self) -> Option<i64> {
        match self.replay {
            Replay::Bytes { .. } => None,
            Replay::Until(_) => Some(self.floor),
            _ => self.newest.map(|_| self.since),
        }
    }

    /// The stream broke off, a line of it perhaps after some bytes.
    pub(super) fn interrupted(&mut self, cut: Option<Cut>) {
        self.cut = cut.or(self.cut);
        let last = self.cut.map(|cut| cut.at).or(self.last).map(micros);
        self.replay = match self.replay {
            Replay::Bytes { last, taken_over, .. } => Replay::Bytes { left: self.bytes, last, taken_over },
            Replay::Until(last) => Replay::Until(last),
            _ if self.backwards => Replay::Bytes { left: self.bytes, last, taken_over: false },
            _ if self.window.is_empty() && self.cut.is_none() => Replay::Live,
            _ => return self.replay = Replay::Sequence(0),
        };
        self.window.clear();
        self.newest = None;
        self.since = i64::MIN;
        self.backwards = false;
    }

    /// Has everything come again that is known?
    pub(super) fn caught_up(&self) -> bool {
        match self.replay {
            Replay::Live | Replay::Scattered(_) => true,
            Replay::Sequence(_) | Replay::Bytes { .. } => false,
            Replay::Until(_) => self.newest.is_some(),
        }
    }

    /// A whole line of this length.
    pub(super) fn judge(&mut self, seen: Seen, len: u64) -> LineMatch {
        match &mut self.replay {
            Replay::Live => NEW,
            Replay::Scattered(rest) => match rest.get_mut(&seen) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    OLD
                }
                _ => NEW,
            },
            Replay::Sequence(next) => {
                let next = *next;
                if let Some(found) = self.window[next..].iter().position(|known| *known == seen) {
                    self.came(next + found + 1);
                    return OLD;
                }
                self.cut = None;
                self.missed(next)
            }
            Replay::Bytes { left, last, taken_over } => {
                let (left, last, taken_over) = (*left, *last, *taken_over);
                if len > left || (taken_over && last.is_some_and(|last| micros(seen.at) > last)) {
                    self.replay = Replay::Live;
                    return AFTER_GAP;
                }
                self.skipped(seen, len)
            }
            Replay::Until(last) => {
                let (time, last) = (micros(seen.at), *last);
                if time <= last {
                    // A runtime may give all lines of a buffer one time: how many of them are known, it does not say.
                    let is_second = time == last && self.newest.is_some_and(|newest| micros(newest) == last);
                    self.remember(seen);
                    return LineMatch { lost: is_second, ..OLD };
                }
                self.replay = Replay::Live;
                if self.newest.is_some() { NEW } else { AFTER_GAP }
            }
        }
    }

    /// A line that is too long to be held whole: recognised by its time, which is exact to the nanosecond.
    pub(super) fn judge_long(&mut self, at: i64) -> (LineMatch, Option<Hash>) {
        match &mut self.replay {
            Replay::Live | Replay::Scattered(_) => (NEW, None),
            Replay::Sequence(next) => {
                let next = *next;
                if let Some(found) = self.window[next..].iter().position(|known| known.at == at) {
                    self.came(next + found + 1);
                    return (OLD, None);
                }
                match self.cut.take() {
                    Some(cut) if cut.at == at => {
                        self.replay = Replay::Live;
                        (LineMatch { known: cut.bytes, lost: false }, Some(cut.hash))
                    }
                    _ => (self.missed(next), None),
                }
            }
            Replay::Bytes { left, .. } => (LineMatch { known: *left, lost: false }, None),
            Replay::Until(_) => (self.judge(Seen { at, hash: 0 }, 0), None),
        }
    }

    /// A long line is over: what it was, how long, and how many of its bytes were known.
    pub(super) fn end_long(&mut self, seen: Seen, len: u64, known: u64) -> LineMatch {
        if let Replay::Bytes { .. } = self.replay {
            return self.skipped(seen, len.min(known));
        }
        if known != u64::MAX {
            self.remember(seen);
        }
        NEW
    }

    /// Lines are remembered for as long as the server repeats them.
    pub(super) fn remember(&mut self, seen: Seen) {
        self.touch(seen.at);
        self.last = Some(seen.at);
        if seen.at < start_of(self.since) {
            self.backwards = true;
        } else {
            self.window.push(seen);
        }
    }

    /// A line of this moment begins.
    pub(super) fn touch(&mut self, at: i64) {
        if self.newest.is_some_and(|newest| newest >= at) {
            return;
        }
        self.newest = Some(at);
        let since = second(at.saturating_sub(SKEW)).max(self.floor);
        if since > self.since {
            self.since = since;
            self.window.retain(|seen| seen.at >= start_of(since));
        }
    }

    fn came(&mut self, next: usize) {
        let all = next == self.window.len() && self.cut.is_none();
        self.replay = if all { Replay::Live } else { Replay::Sequence(next) };
    }

    /// A line came that is not known, although known ones are due.
    fn missed(&mut self, next: usize) -> LineMatch {
        let mut rest = HashMap::new();
        for seen in &self.window[next..] {
            *rest.entry(*seen).or_default() += 1;
        }
        self.replay = Replay::Scattered(rest);
        AFTER_GAP
    }

    /// Bytes of the log's known beginning came.
    fn skipped(&mut self, seen: Seen, len: u64) -> LineMatch {
        let Replay::Bytes { left, last, .. } = &mut self.replay else { return OLD };
        *left -= len.min(*left);
        let wrong = *left == 0 && last.is_some_and(|last| last != micros(seen.at));
        if *left == 0 {
            self.replay = Replay::Live;
            self.cut = None;
        }
        self.remember(seen);
        LineMatch { known: u64::MAX, lost: wrong }
    }
}
