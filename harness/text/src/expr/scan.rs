//! Reading CEL text without parsing it: where strings and brackets end.
//!
//! A placeholder's end has to be found before its expression can be parsed, and an error's range is widened to a
//! closing bracket that the syntax tree does not record. Comments are not known here: an apostrophe in one opens a string.

use std::ops::Range;

/// The bytes of an expression outside its string literals.
pub(crate) struct Code<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Code<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }
}

impl Iterator for Code<'_> {
    type Item = (usize, u8);

    /// The next byte that is code. A literal that never closes swallows the rest.
    fn next(&mut self) -> Option<(usize, u8)> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if matches!(byte, b'"' | b'\'') {
                self.at = string_end(self.bytes, self.at);
                continue;
            }
            self.at += 1;
            return Some((self.at - 1, byte));
        }
        None
    }
}

/// The byte after the string literal whose first quote is at `start`, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let width = if bytes[start..].starts_with(&[quote; 3]) { 3 } else { 1 };
    let closing = [quote; 3];
    let raw = is_raw(&bytes[..start]);
    let mut at = start + width;
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(&closing[..width]) {
            return at + width;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Whether the word before a quote is the prefix of a raw literal: `r` or `br`, and not the end of a name.
fn is_raw(before: &[u8]) -> bool {
    let word = before.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    matches!(&before[before.len() - word..], [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R'])
}

/// Where the placeholder whose expression starts at the beginning of `text` ends: the byte after the first `}}`
/// outside strings and inner braces. `None`: it does not end.
pub(crate) fn placeholder_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in Code::new(text) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' if text.as_bytes().get(at + 1) == Some(&b'}') => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// The range from the bracket at `open` to the one that closes it, or to the end of the text.
pub(crate) fn bracketed(text: &str, open: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (at, byte) in Code::new(text).skip_while(|(at, _)| *at < open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth <= 1 => return open..at + 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    open..text.len()
}

/// How deep a parser has to descend: brackets within brackets, and the branches of `? :`.
pub(crate) fn nesting(text: &str) -> usize {
    let (mut open, mut deepest, mut branches) = (0_usize, 0, 0);
    for (_, byte) in Code::new(text) {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'?' => branches += 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest + branches
}

/// The byte at a line and column, both from 1, the column in characters.
pub(crate) fn offset(text: &str, (line, column): (isize, isize)) -> usize {
    let (line, column) = (usize::try_from(line - 1).unwrap_or(0), usize::try_from(column - 1).unwrap_or(0));
    let mut start = 0;
    for before in text.split_inclusive('\n').take(line) {
        start += before.len();
    }
    text[start..].char_indices().nth(column).map_or(text.len(), |(at, _)| start + at)
}

/// The name, number or sign that starts at a byte.
pub(crate) fn word_at(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = match rest.chars().next() {
        None => 0,
        Some(first) if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
        Some('\'' | '"') => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        Some('=') if rest.starts_with("==") => 2,
        Some(first) => first.len_utf8(),
    };
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_placeholder_ends_at_the_first_braces_outside_strings_and_maps() {
        let table = [
            (" a ? b : c }} tail", Some((" a ? b : c ", " tail"))),
            (r#" "}}" + x }}t"#, Some((r#" "}}" + x "#, "t"))),
            (" {'a': {'b': 1}}.a.b }}t", Some((" {'a': {'b': 1}}.a.b ", "t"))),
            (r" r'\' + '}' }}t", Some((r" r'\' + '}' ", "t"))),
            (r" '\\' + '}' }}t", Some((r" '\\' + '}' ", "t"))),
            (" '''}}''' }}t", Some((" '''}}''' ", "t"))),
            (" '''it's }}''' }}t", Some((" '''it's }}''' ", "t"))),
            (" 'open }}", None),
            (" open", None),
            (" {1: 2}", None),
            (r" f('\'}}') }}t", Some((r" f('\'}}') ", "t"))),
            (" {1: 2}}}t", Some((" {1: 2}", "t"))),
            (r" br'\}}' }}t", Some((r" br'\}}' ", "t"))),
            (r" for'x\'}}' }}t", Some((r" for'x\'}}' ", "t"))),
            (r" bar'x\'}}' }}t", Some((r" bar'x\'}}' ", "t"))),
            (" }} }} ", Some((" ", " }} "))),
            ("}}", Some(("", ""))),
            (" 'é}}' }}é", Some((" 'é}}' ", "é"))),
        ];
        for (text, expected) in table {
            let found = placeholder_end(text).map(|end| (&text[..end - 2], &text[end..]));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_bracket_closes_outside_strings() {
        for (text, open, expected) in
            [("f(a)(b)", 1, "(a)"), ("f(')', [1])", 1, "(')', [1])"), ("x[y[0]] + 1", 1, "[y[0]]"), ("f(a", 1, "(a")]
        {
            assert_eq!(&text[bracketed(text, open)], expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_scanned(text in r#"[ '"\\rb{}\[\]()?é]{0,40}"#) {
            if let Some(end) = placeholder_end(&text) {
                prop_assert!(text[..end].ends_with("}}"));
            }
            for open in 0..text.len() {
                prop_assert!(bracketed(&text, open).end <= text.len());
            }
            prop_assert!(nesting(&text) <= text.len());
        }
    }
}
