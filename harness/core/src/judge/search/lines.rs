//! The lines of a log, for the search of one that is whole and for who listens to one that grows: a line ends at `\n`, at `\r\n`, and
//! at a `\r` that no `\n` follows.

use muster_text::pattern::Haystack;
use std::mem;

/// A longer line is cut after so many bytes, and ends in [`CUT`] then.
const LONGEST: usize = 16 << 10;
const CUT: &str = "…";

/// Blocks of whole lines without the line end that ends them, with their offsets; longer than `size` only where a line that `\n` ends
/// is. The last one is the rest of the text, final line end included, so that what follows it is searched as well.
pub(crate) fn blocks(text: &[u8], size: usize) -> impl Iterator<Item = (usize, Haystack<'_>)> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let rest = &text[at..];
        let cut = (rest.len() > size)
            .then(|| memchr::memrchr(b'\n', &rest[..size]).or_else(|| memchr::memchr(b'\n', &rest[size..]).map(|n| n + size)))
            .flatten();
        next = cut.map(|cut| at + cut + 1);
        let mut text = Haystack::of(&rest[..cut.unwrap_or(rest.len())]);
        if cut.is_some() && text.has_returns {
            text.bytes = text.bytes.strip_suffix(b"\r").unwrap_or(text.bytes);
        }
        Some((at, text))
    })
}

/// Compares the place of some bytes with how far a text is known: returns how many are missing before them, and those that are new.
/// A source may repeat what it has sent.
pub fn unknown(mark: u64, at: u64, data: &[u8]) -> (u64, &[u8]) {
    let known = usize::try_from(mark.saturating_sub(at)).unwrap_or(usize::MAX).min(data.len());
    (at.saturating_sub(mark), &data[known..])
}

/// The complete lines of a text that arrives in pieces. It keeps no more of it than the line that has no end yet.
#[derive(Debug, Default)]
pub struct Lines {
    /// Offset of the next byte.
    mark: u64,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// That beginning is longer than a line may be.
    is_cut: bool,
    /// A line that began in what is missing is no complete line.
    has_no_start: bool,
    /// A `\r` ended the last line: a `\n` is a part of that end.
    after_return: bool,
    /// The number of bytes that are in no line: they never came, or their line has no start.
    pub missed: u64,
}

impl Lines {
    /// The offset of the next byte.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Takes a piece of the text. Returns the lines that have their end now, each with a newline behind it.
    pub fn add(&mut self, at: u64, data: &[u8]) -> Vec<u8> {
        let (lost, mut data) = unknown(self.mark, at, data);
        if lost > 0 {
            self.missed += lost + mem::take(&mut self.rest).len() as u64;
            (self.has_no_start, self.is_cut, self.after_return) = (true, false, false);
        }
        self.mark += lost + data.len() as u64;
        let mut complete = Vec::new();
        while let Some(end) = memchr::memchr2(b'\r', b'\n', data) {
            let is_second = end == 0 && data[0] == b'\n' && self.after_return;
            self.after_return = data[end] == b'\r';
            if !is_second {
                self.hold(&data[..end]);
                self.finish(&mut complete);
            }
            data = &data[end + 1..];
        }
        self.after_return &= data.is_empty();
        self.hold(data);
        complete
    }

    /// Takes the end of the text: a last line without a line end is a line.
    pub fn end(&mut self) -> Vec<u8> {
        let mut complete = Vec::new();
        if !self.rest.is_empty() {
            self.finish(&mut complete);
        }
        complete
    }

    fn hold(&mut self, data: &[u8]) {
        if self.has_no_start {
            self.missed += data.len() as u64;
            return;
        }
        let room = LONGEST - self.rest.len();
        self.is_cut |= data.len() > room;
        self.rest.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn finish(&mut self, complete: &mut Vec<u8>) {
        if mem::take(&mut self.has_no_start) {
            self.missed += 1;
            return;
        }
        complete.append(&mut self.rest);
        complete.extend_from_slice(if mem::take(&mut self.is_cut) { CUT.as_bytes() } else { b"" });
        complete.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// With their offsets.
    type Pieces<'a> = &'a [(u64, &'a str)];

    /// What pieces become, and what is missing.
    fn heard(pieces: Pieces) -> (String, u64) {
        let mut lines = Lines::default();
        let mut text: Vec<u8> = pieces.iter().flat_map(|(at, piece)| lines.add(*at, piece.as_bytes())).collect();
        text.extend(lines.end());
        (String::from_utf8(text).unwrap(), lines.missed)
    }

    #[test]
    fn lines_are_complete_and_come_once_whatever_a_source_repeats_or_loses() {
        let rows: [(Pieces, &str, u64); 7] = [
            (&[(0, "ab"), (2, "c\nd"), (5, "e\n")], "abc\nde\n", 0),
            (&[(0, "a\nb"), (0, "a\nb"), (0, "a\nbc\n"), (2, "bc\nd\n")], "a\nbc\nd\n", 0),
            (&[(0, "10%\r"), (4, "20%\r"), (8, "\nend")], "10%\n20%\nend\n", 0),
            (&[(0, "a\r"), (2, "\r\n\n")], "a\n\n\n", 0),
            (&[(0, "spe"), (10, "ed 7\nspeed 8\n")], "speed 8\n", 7 + 3 + 5),
            (&[(4, "x")], "", 5),
            (&[], "", 0),
        ];
        for (pieces, expected, missed) in rows {
            assert_eq!(heard(pieces), (expected.to_owned(), missed), "{pieces:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_with_a_mark_and_takes_no_more_memory() {
        let mut lines = Lines::default();
        for n in 0..100 {
            assert_eq!(lines.add(n * LONGEST as u64, &[b'x'; LONGEST]), b"");
        }
        assert!(lines.rest.capacity() <= 2 * LONGEST);
        let text = lines.add(100 * LONGEST as u64, b"\nnext\n");
        assert_eq!(text, ["x".repeat(LONGEST), CUT.to_owned(), "\nnext\n".to_owned()].concat().into_bytes());
    }

    proptest! {
        /// However a text is cut into pieces, its lines are those of the text that judging searches.
        #[test]
        fn lines_that_are_heard_are_the_lines_that_are_judged(
            pieces in prop::collection::vec(prop::sample::select(vec![&b"a"[..], b"\n", b"\r", b"\r\n", b"\xff"]), 0..40),
            cuts in prop::collection::vec(1_usize..6, 1..40),
        ) {
            let text = pieces.concat();
            let (mut lines, mut at, mut heard) = (Lines::default(), 0, Vec::new());
            let mut cuts = cuts.iter().cycle();
            while at < text.len() {
                let end = (at + cuts.next().unwrap()).min(text.len());
                heard.extend(lines.add(at as u64, &text[at..end]));
                at = end;
            }
            heard.extend(lines.end());
            let mut judged = Haystack::of(&text).between(0, text.len()).into_owned();
            if judged.last().is_some_and(|last| *last != b'\n') {
                judged.push(b'\n');
            }
            prop_assert_eq!(heard, judged);
        }
    }
}
