//! Colours, and the escaping of a job's bytes for the terminal.

use jiff::tz::TimeZone;
use muster_core::result::Grade;
use std::{borrow::Cow, fmt::Display};

/// The screen of the reader.
#[derive(Debug, Clone)]
pub struct Screen {
    pub paint: Paint,
    pub width: usize,
    /// The time zone of the reader.
    pub zone: TimeZone,
}

/// The choice of colours. Without them no escape sequence is written at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    pub color: bool,
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    /// Neither: expected, skipped, worth a look.
    Odd,
    Strong,
    /// Secondary text.
    Faint,
    /// The colour of the text around it.
    Plain,
}

impl From<Grade> for Tone {
    fn from(grade: Grade) -> Self {
        match grade {
            Grade::Good => Self::Good,
            Grade::Odd => Self::Odd,
            Grade::Bad => Self::Bad,
        }
    }
}

impl Paint {
    pub const OFF: Self = Self { color: false };
    pub const ON: Self = Self { color: true };

    /// The text in that tone.
    pub fn apply(self, tone: Tone, text: impl Display) -> String {
        let code = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Odd => 33,
            Tone::Strong => 1,
            Tone::Faint => 2,
            Tone::Plain => return text.to_string(),
        };
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// A heading in the middle of a line of `=`, as wide as the screen but at most 80 columns.
pub(crate) fn heading(title: &str, width: usize) -> String {
    format!("{:=^1$}", format!(" {title} "), width.min(80))
}

/// Words in lines of at most `width` characters; a longer word stays whole.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `LEAD: ITEM, ITEM, ...` in lines of at most `width` characters, broken between items; further lines are indented.
pub(crate) fn folded(lead: &str, items: &[String], width: usize) -> String {
    let mut text = format!("{lead}:");
    let mut column = text.chars().count();
    for (number, item) in items.iter().enumerate() {
        let comma = if number + 1 < items.len() { "," } else { "" };
        let length = item.chars().count() + comma.len();
        if column + 1 + length > width {
            text.push_str("\n ");
            column = 1;
        }
        text = text + " " + item + comma;
        column += 1 + length;
    }
    text + "\n"
}

/// Removes whatever could move a cursor, set a title, change a colour or reorder text: escape sequences, control
/// characters other than tab and newline, and Unicode's direction marks. A carriage return becomes a line break,
/// as a log reads best that way.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unwanted) {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\r' => {
                if !after.starts_with('\n') {
                    clean.push('\n');
                }
                after
            }
            '\x1b' => after_escape(after),
            '\u{9b}' => after_control_sequence(after),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => after_string(after),
            c if is_unwanted(c) => after,
            c => {
                clean.push(c);
                after
            }
        };
    }
    Cow::Owned(clean)
}

/// Sanitizes a text into a single line, for names, causes and cells.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match sanitize(text) {
        Cow::Borrowed(text) if !text.contains(['\n', '\t']) => Cow::Borrowed(text),
        clean => Cow::Owned(clean.trim().replace(['\n', '\t'], " ")),
    }
}

/// What [`sanitize`] removes.
pub(crate) fn is_unwanted(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What follows ESC and the sequence it begins (ECMA-48, 5.3 to 5.6 and 13.2).
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => after_control_sequence(chars.as_str()),
        Some(']' | 'P' | 'X' | '^' | '_') => after_string(chars.as_str()),
        Some(' '..='/') => {
            let text = text.trim_start_matches(|c| matches!(c, ' '..='/'));
            text.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(text)
        }
        Some('0'..='~') => chars.as_str(),
        _ => text,
    }
}

/// Parameters, intermediates, one final character.
fn after_control_sequence(text: &str) -> &str {
    let text = text.trim_start_matches(|c| matches!(c, ' '..='?'));
    text.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(text)
}

/// A window title or the like, up to its terminator. One that does not end in its line hides nothing: it stays text.
fn after_string(text: &str) -> &str {
    let line = text.split('\n').next().unwrap_or(text);
    let ends = ["\x07", "\x1b\\", "\u{9c}"].iter().filter_map(|end| line.find(end).map(|at| at + end.len()));
    ends.min().map_or(text, |end| &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_only() {
        let rows: [(&str, &[&str]); 4] = [
            ("", &[]),
            ("one two three", &["one two", "three"]),
            ("exactly8 x", &["exactly8", "x"]),
            ("a/very/long/path b", &["a/very/long/path", "b"]),
        ];
        for (text, lines) in rows {
            assert_eq!(wrapped(text, 8), lines, "{text}");
        }
    }

    #[test]
    fn a_list_is_broken_between_items_only() {
        let items = ["4 pass", "1 xfail", "1 skip"].map(String::from);
        assert_eq!(folded("6 cases", &items, 80), "6 cases: 4 pass, 1 xfail, 1 skip\n");
        assert_eq!(folded("6 cases", &items, 20), "6 cases: 4 pass,\n  1 xfail, 1 skip\n");
    }

    #[test]
    fn a_heading_is_never_wider_than_eighty_columns() {
        for (width, columns) in [(40, 40), (80, 80), (200, 80), (5, 8)] {
            assert_eq!(heading("REPORT", width).len(), columns);
        }
    }
}
