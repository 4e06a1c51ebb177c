//! Turns the API's reply to "the log since this second, and go on" into bytes that were not passed on before. Pure.
//!
//! ```text
//!          feed                          finish (the end of the last reply)
//! bytes ---------> lines that are new -----------> a last line without newline
//!   ^                                                 \ gap, if what is known did not come again
//!   '--- disconnect, resume_since: an unfinished line is dropped, it will come again
//! ```
//! One reader is one instance of one container: a restart is another. Memory: one second of lines (`known`), and a line
//! of at most 1 MiB; what is longer is passed on in pieces. Not noticed: a node whose clock is set back *after* a stream was
//! resumed: the server then silently leaves out the older lines.

mod known;
mod line;

use self::{
    known::{Cut, Known},
    line::{Hash, Seen, may_begin, micros, split},
};
use muster_text::time::Timestamp;
use std::time::Duration;

/// A line longer than this is passed on before it has ended.
const LONG: usize = 1 << 20;
const KEPT: usize = 64 << 10;
/// A file of the node is the newest for longer than this, in nanoseconds: kubelets look after their files every 3 s at most (10 s unless
/// set otherwise).
const FILE_LIVES: i64 = 2_000_000_000;
/// So many texts of the node are kept, and so much of each.
const NOTES: usize = 4;
const NOTE: usize = 300;

/// When the line was written that a reply begins with; `None`: it begins with no line of a log.
pub(in crate::logs) fn time_of(beginning: &[u8]) -> Option<Timestamp> {
    split(beginning).map(|(at, _)| Timestamp(micros(at)))
}

/// What a line has in the file of a node, and not in a reply: ` stdout F` of the runtime interface's format.
const TAG: usize = 9;

/// The state of one log.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    known: Known,
    line: Line,
    fed: Fed,
    notes: Vec<String>,
    /// The reply has a line of the log.
    pub(in crate::logs) has_lines: bool,
    /// How many bytes of the node's file they were, times and tags included: what counts for its rotation.
    pub(in crate::logs) received: u64,
    /// When the first line that ever came was written, in nanoseconds since the epoch.
    first: Option<i64>,
    /// The latest time of a line that was new.
    newest: Option<i64>,
    /// For how long nothing came before what is read now, in nanoseconds; `None`: it is one file of the node.
    waited: Option<i64>,
    /// Can the node have rotated a whole file away that a stream went past? A stream reads each file to its end before it goes on with
    /// the newest, and a node looks after its files every few seconds: where lines follow one another faster than that, or where nothing
    /// came because nothing was written, there was no file in between.
    pub(in crate::logs) may_have_skipped: bool,
}

/// What is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Bytes of the log, in order.
    pub bytes: Vec<u8>,
    /// The time when the first line in them was written.
    pub first: Option<Timestamp>,
    /// The time when the last line in them was written.
    pub last: Option<Timestamp>,
    /// The reasons why lines may be missing, one sentence each.
    pub gaps: Vec<String>,
}

/// The line that is being received.
#[derive(Debug, Clone)]
enum Line {
    /// This is all of it so far, time included.
    Held(Vec<u8>),
    /// It is passed on as it comes.
    Long(Long),
    /// It has no time, and its end is waited for.
    Text,
}

#[derive(Debug, Clone)]
struct Long {
    at: i64,
    hash: Hash,
    len: u64,
    /// So many of its first bytes were passed on before; their hash, where it is known.
    known: u64,
    expected: Option<Hash>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::resume(0, None)
    }
}

impl Reader {
    /// Goes on where another process stopped: so many bytes are safe, the last line of them is of this moment.
    pub(crate) fn resume(bytes: u64, last: Option<Timestamp>) -> Self {
        Self {
            known: Known::up_to(bytes, last.map(|last| last.0)),
            line: Line::Held(Vec::new()),
            fed: Fed::default(),
            notes: Vec::new(),
            has_lines: false,
            received: 0,
            first: None,
            newest: None,
            waited: None,
            may_have_skipped: false,
        }
    }

    /// How the next piece comes: in a stream that goes on from one file of the node to the next, after nothing came for so long; or
    /// (`None`) in a reply that is one file.
    pub(crate) fn arrives(&mut self, after: Option<Duration>) {
        self.waited = after.map(|waited| i64::try_from(waited.as_nanos()).unwrap_or(i64::MAX));
    }

    /// Takes a piece of a reply, cut anywhere.
    pub(crate) fn feed(&mut self, mut data: &[u8]) -> Fed {
        while !data.is_empty() {
            let end = memchr::memchr(b'\n', data).map(|newline| newline + 1);
            let (part, rest) = data.split_at(end.unwrap_or(data.len()));
            self.part(part, end.is_some());
            data = rest;
        }
        std::mem::take(&mut self.fed)
    }

    /// The stream broke off. An unfinished line is dropped: it will come again.
    pub(crate) fn disconnect(&mut self) {
        // What comes next has to repeat what is known: that proves more than its time.
        self.newest = None;
        self.has_lines = false;
        let cut = match std::mem::replace(&mut self.line, Line::Held(Vec::new())) {
            Line::Long(long) if long.len > long.known => Some(Cut { at: long.at, bytes: long.len, hash: long.hash }),
            Line::Long(Long { at, known, expected: Some(hash), .. }) => Some(Cut { at, bytes: known, hash }),
            Line::Held(text) if !may_begin(&text) => {
                self.note(&text);
                None
            }
            _ => None,
        };
        self.known.interrupted(cut);
    }

    /// The second (since the epoch) from which the server is to repeat; `None`: from the first byte.
    pub(crate) fn resume_since(&self) -> Option<i64> {
        self.known.since()
    }

    /// Has the reply repeated all that is known? Not before its end is it a loss if not.
    pub(crate) fn caught_up(&self) -> bool {
        self.known.caught_up()
    }

    /// The last reply is over: what it ended with without a newline is a line, what it did not repeat is lost.
    pub(crate) fn finish(&mut self) -> Fed {
        match std::mem::replace(&mut self.line, Line::Held(Vec::new())) {
            Line::Held(last) if !last.is_empty() => self.whole(&last),
            Line::Long(long) => self.end(&long),
            _ => {}
        }
        if !self.known.caught_up() {
            self.gap();
        }
        std::mem::take(&mut self.fed)
    }

    /// Did the reply so far end with a whole line?
    pub(crate) fn is_between_lines(&self) -> bool {
        matches!(&self.line, Line::Held(held) if held.is_empty())
    }

    /// Where the log ends as far as it came: an unfinished line counts.
    pub(in crate::logs) fn read_to(&self) -> u64 {
        match &self.line {
            Line::Held(held) => self.known.bytes + held.len() as u64,
            Line::Long(_) | Line::Text => self.known.bytes,
        }
    }

    /// When the line was written of which a part has come, if nothing was passed on yet.
    pub(in crate::logs) fn unfinished(&self) -> Option<Timestamp> {
        let at = match &self.line {
            _ if self.known.bytes > 0 => None,
            Line::Held(held) => split(held).map(|(at, _)| at),
            Line::Long(long) => Some(long.at),
            Line::Text => None,
        };
        at.map(|at| Timestamp(micros(at)))
    }

    /// When the youngest line that came was written.
    pub(in crate::logs) fn newest(&self) -> Option<Timestamp> {
        self.newest.map(|at| Timestamp(micros(at)))
    }

    /// How many bytes were passed on.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.bytes
    }

    /// When the first line that came was written.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.first.map(|at| Timestamp(micros(at)))
    }

    /// Texts of the node that came in place of a log: `unable to retrieve container logs for ...`. They are taken away.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The texts, if this is the end of a reply: its last line may be one.
    pub(crate) fn notes_at_the_end(mut self) -> Vec<String> {
        self.finish();
        self.notes
    }

    /// A part of a line without a newline, or with it at its end.
    fn part(&mut self, part: &[u8], ends: bool) {
        match &mut self.line {
            Line::Held(held) if held.is_empty() && ends => self.whole(part),
            Line::Held(held) => {
                held.extend_from_slice(part);
                if ends || held.len() > LONG {
                    let mut held = std::mem::take(held);
                    if ends {
                        self.whole(&held);
                        // The allocation is kept for the next one, unless it is a large one.
                        held.clear();
                        held.shrink_to(KEPT);
                        self.line = Line::Held(held);
                    } else {
                        self.begin_long(&held, false);
                    }
                }
            }
            Line::Long(_) => self.long(part, ends),
            Line::Text if ends => self.line = Line::Held(Vec::new()),
            Line::Text => {}
        }
    }

    fn whole(&mut self, line: &[u8]) {
        if line.len() > LONG {
            return self.begin_long(line, true);
        }
        let Some((at, bytes)) = split(line) else { return self.note(line) };
        self.begins(at);
        let seen = Seen { at, hash: Hash::of(bytes).value() };
        let verdict = self.known.judge(seen, bytes.len() as u64);
        if verdict.lost {
            self.gap();
        }
        let known = usize::try_from(verdict.known).unwrap_or(usize::MAX);
        if let Some(new) = bytes.get(known..) {
            self.pass(at, new, TAG + line.len() - known);
            self.known.remember(seen);
        }
    }

    fn begins(&mut self, at: i64) {
        self.first.get_or_insert(at);
        self.has_lines = true;
    }

    fn begin_long(&mut self, held: &[u8], ends: bool) {
        let Some((at, bytes)) = split(held) else {
            self.line = if ends { Line::Held(Vec::new()) } else { Line::Text };
            return self.note(held);
        };
        self.begins(at);
        let (verdict, expected) = self.known.judge_long(at);
        if verdict.lost {
            self.gap();
        }
        self.received += (TAG + held.len() - bytes.len()) as u64;
        self.line = Line::Long(Long { at, hash: Hash::of(b""), len: 0, known: verdict.known, expected });
        self.long(bytes, ends);
    }

    fn long(&mut self, part: &[u8], ends: bool) {
        let Line::Long(long) = &mut self.line else { return };
        let known = usize::try_from(long.known.saturating_sub(long.len)).unwrap_or(usize::MAX).min(part.len());
        let (old, new) = part.split_at(known);
        long.hash = long.hash.and(old);
        let wrong = !new.is_empty() && long.expected.take().is_some_and(|expected| expected != long.hash);
        long.hash = long.hash.and(new);
        long.len += part.len() as u64;
        let at = long.at;
        if wrong {
            self.gap();
        }
        if !new.is_empty() {
            self.known.touch(at);
            self.pass(at, new, new.len());
        }
        if ends && let Line::Long(long) = std::mem::replace(&mut self.line, Line::Held(Vec::new())) {
            self.end(&long);
        }
    }

    fn end(&mut self, long: &Long) {
        let seen = Seen { at: long.at, hash: long.hash.value() };
        if self.known.end_long(seen, long.len, long.known).lost {
            self.gap();
        }
    }

    fn pass(&mut self, at: i64, bytes: &[u8], received: usize) {
        self.follows(at);
        let time = Timestamp(micros(at));
        self.fed.first.get_or_insert(time);
        self.fed.last = Some(time);
        self.fed.bytes.extend_from_slice(bytes);
        self.known.bytes += bytes.len() as u64;
        self.received += received as u64;
    }

    /// A new line is this much younger than the one before it.
    fn follows(&mut self, at: i64) {
        let hole = self.newest.map_or(0, |newest| at.saturating_sub(newest));
        if let Some(waited) = &mut self.waited {
            self.may_have_skipped |= hole.saturating_sub(*waited) >= FILE_LIVES;
            // Only the first line of a piece was waited for.
            *waited = 0;
        }
        self.newest = self.newest.max(Some(at));
    }

    fn gap(&mut self) {
        let why =
            format!("lines after byte {} may be missing: the node rotated the log while it was not being read", self.known.bytes);
        if !self.fed.gaps.contains(&why) {
            self.fed.gaps.push(why);
        }
    }

    fn note(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(&text[..text.len().min(NOTE)]).trim().to_owned();
        if !text.is_empty() && self.notes.len() < NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

#[cfg(test)]
mod tests;
