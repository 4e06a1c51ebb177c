//! The last lines of a log, safe to print on a terminal.

use muster_core::{
    job::{scheduler::Exit, stdout::Stdout},
    result::LogEnd,
};

const LINES: usize = 10;
const BYTES: usize = 4 * 1024;

/// The last lines of the section that tells most: the first that ended badly, else the last that says anything.
pub(crate) fn log_tail(stdout: &Stdout) -> Option<String> {
    telling(stdout).map(|text| end(text, LINES, BYTES))
}

/// More of the end of that section, for the store.
pub(crate) fn log_end(stdout: &Stdout) -> Option<LogEnd> {
    let text = telling(stdout)?;
    Some(LogEnd { bytes: text.len() as u64, tail: end(text, usize::MAX, LogEnd::BYTES) })
}

fn telling(stdout: &Stdout) -> Option<&[u8]> {
    let bad = |exit: Option<Exit>| !matches!(exit, None | Some(Exit::Code(0)));
    let sections = stdout.sections();
    let says = |section: &&_| !stdout.section(section).is_empty();
    let section = sections.iter().filter(says).find(|section| bad(section.exit)).or_else(|| sections.iter().rfind(says))?;
    Some(stdout.section(section))
}

/// At most so many lines and bytes.
fn end(text: &[u8], most_lines: usize, most_bytes: usize) -> String {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = &text[text.len().saturating_sub(most_bytes)..];
    let lines = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = lines.map(|(at, _)| at + 1).nth(most_lines - 1).unwrap_or(0);
    let mut tail: String = String::from_utf8_lossy(&text[start..]).chars().map(harmless).collect();
    // A replaced character is longer than the byte that it replaces.
    let mut cut = tail.len().saturating_sub(most_bytes);
    while !tail.is_char_boundary(cut) {
        cut += 1;
    }
    tail.drain(..cut);
    tail
}

/// Control characters become their pictures, and what turns the direction of writing becomes a question mark.
fn harmless(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &[u8]) -> String {
        end(text, LINES, BYTES)
    }

    #[test]
    fn the_store_keeps_more_of_a_log_and_knows_its_length() {
        let long = [b"first\n".repeat(20_000), b"last\x1b\0\n".to_vec()].concat();
        let stored = end(&long, usize::MAX, LogEnd::BYTES);
        assert!(stored.ends_with("first\nlast\u{241b}\u{2400}"), "{}", &stored[stored.len() - 30..]);
        assert!((LogEnd::BYTES - 9..=LogEnd::BYTES).contains(&stored.len()), "{}", stored.len());
    }

    #[test]
    fn a_tail_has_ten_lines_and_four_kibibytes_at_most() {
        let twelve = (1..=12).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        assert_eq!(tail(twelve.as_bytes()).lines().next(), Some("line 3"));
        assert_eq!(tail(twelve.as_bytes()).lines().count(), 10);
        assert_eq!(tail(b""), "");
        assert_eq!(tail(b"one"), "one");
        assert_eq!(tail(b"one\n\n"), "one\n");
        assert_eq!(tail(&[b'x'; 10_000]).len(), BYTES);
        let binary = tail(&[0xff; 10_000]);
        assert!(binary.len() <= BYTES && binary.chars().all(|c| c == char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn a_tail_cannot_move_the_cursor() {
        assert_eq!(tail(b"\x1b[2Jgone\r\x07\x7f\xc2\x9b31m\ttab"), "\u{241b}[2Jgone\u{240d}\u{2407}\u{2421}\u{fffd}31m\ttab");
        assert_eq!(tail("a\u{202e}b".as_bytes()), "a\u{fffd}b");
    }
}
