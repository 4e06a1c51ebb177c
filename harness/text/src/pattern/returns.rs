//! Carriage returns: a pattern searches the text in which `\r\n` and every other `\r` are `\n`, without a copy of that text.
//!
//! In a text that has any, another form of the pattern searches. What matches a newline in the one matches `\r\n`, a `\r` that no `\n`
//! follows, or a `\n` that follows no `\r` in the other; nothing else matches a part of these.

use super::reach::holds;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};
use std::borrow::Cow;

/// A text to search.
#[derive(Debug, Clone, Copy)]
pub struct Haystack<'t> {
    pub bytes: &'t [u8],
    /// `false`: the text has no carriage return.
    pub has_returns: bool,
}

impl<'t> Haystack<'t> {
    /// A text that is looked through for carriage returns.
    pub fn of(bytes: &'t [u8]) -> Self {
        Self { bytes, has_returns: memchr::memchr(b'\r', bytes).is_some() }
    }

    /// Returns the text between two places, with newlines alone.
    pub fn between(self, start: usize, end: usize) -> Cow<'t, [u8]> {
        let text = &self.bytes[start..end];
        let Some(first) = memchr::memchr(b'\r', text).filter(|_| self.has_returns) else { return Cow::Borrowed(text) };
        let mut shown = text[..first].to_vec();
        let mut rest = &text[first..];
        while let Some(at) = memchr::memchr(b'\r', rest) {
            shown.extend_from_slice(&rest[..at]);
            shown.push(b'\n');
            rest = &rest[at + 1..];
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        shown.extend_from_slice(rest);
        Cow::Owned(shown)
    }

    /// The line that a place is in: its number, from 1, its start and its end.
    pub fn line_of(self, place: usize) -> (usize, usize, usize) {
        let (before, after) = self.bytes.split_at(place.min(self.bytes.len()));
        let ends = memchr::memchr2_iter(b'\r', b'\n', before).filter(|at| !self.is_within_newline(at + 1));
        let start = memchr::memrchr2(b'\r', b'\n', before).map_or(0, |at| at + 1);
        let end = memchr::memchr2(b'\r', b'\n', after).map_or(self.bytes.len(), |at| before.len() + at);
        (ends.count() + 1, start, end)
    }

    /// Whether a place is between a `\r` and its `\n`: there is no such place in the text with newlines alone.
    pub(super) fn is_within_newline(self, place: usize) -> bool {
        self.has_returns && place > 0 && self.bytes.get(place - 1..=place) == Some(b"\r\n")
    }
}

/// The form of a pattern for texts that have carriage returns.
pub(super) fn form(hir: &Hir) -> Hir {
    rewritten(hir, &mut 1)
}

/// `group` is the number of the next group.
fn rewritten(hir: &Hir, group: &mut u32) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            let ends_line = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let pieces = literal.0.chunk_by(|one, next| !ends_line(one) && !ends_line(next));
            let pieces = pieces.map(|piece| match piece {
                b"\n" => newline(),
                b"\r" => Hir::fail(),
                piece => Hir::literal(piece),
            });
            Hir::concat(pieces.collect())
        }
        HirKind::Class(class) => {
            let others = Hir::class(without_line_ends(class));
            if holds(class, '\n') { Hir::alternation(vec![newline(), others]) } else { others }
        }
        HirKind::Look(Look::StartLF) => Hir::look(Look::StartCRLF),
        HirKind::Look(Look::EndLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => {
            let Repetition { min, max, greedy, sub } = repetition;
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub: Box::new(rewritten(sub, group)) })
        }
        HirKind::Capture(capture) => {
            let Capture { index, name, sub } = capture;
            // A group that is repeated no times is parsed away, and would be missed in the count.
            let missing = (*group..*index).map(|index| {
                let unused = Capture { index, name: None, sub: Box::new(Hir::empty()) };
                Hir::alternation(vec![Hir::empty(), Hir::capture(unused)])
            });
            let mut parts: Vec<Hir> = missing.collect();
            *group = index + 1;
            parts.push(Hir::capture(Capture { index: *index, name: name.clone(), sub: Box::new(rewritten(sub, group)) }));
            Hir::concat(parts)
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(|part| rewritten(part, group)).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(|part| rewritten(part, group)).collect()),
    }
}

/// `\r\n`, `\r` or `\n`, never a part of the first: the two marks do not match in its middle.
fn newline() -> Hir {
    let alone = [vec![Hir::literal(*b"\r"), Hir::look(Look::StartCRLF)], vec![Hir::look(Look::EndCRLF), Hir::literal(*b"\n")]];
    Hir::alternation([Hir::literal(*b"\r\n")].into_iter().chain(alone.map(Hir::concat)).collect())
}

fn without_line_ends(class: &Class) -> Class {
    let mut class = class.clone();
    match &mut class {
        Class::Unicode(class) => {
            class.difference(&ClassUnicode::new(['\n', '\r'].map(|end| ClassUnicodeRange::new(end, end))));
        }
        Class::Bytes(class) => class.difference(&ClassBytes::new([b'\n', b'\r'].map(|end| ClassBytesRange::new(end, end)))),
    }
    class
}

/// The message about a pattern that needs a carriage return.
pub const NEVER_MATCHES: &str = "a part of the pattern never matches: no text has a carriage return";

/// Returns whether a pattern, or an alternative of it that is more than a line end, matches only text with a carriage return.
pub fn needs_return(pattern: &str) -> bool {
    super::reach::parse(pattern).is_ok_and(|hir| has_dead_part(&hir))
}

fn has_dead_part(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Alternation(parts) => {
            parts.iter().any(|part| has_dead_part(part) && !is_line_end(part)) || parts.iter().all(has_dead_part)
        }
        HirKind::Literal(literal) => literal.0.contains(&b'\r'),
        HirKind::Class(class) => {
            holds(class, '\r') && !holds(class, '\n') && Hir::class(without_line_ends(class)).properties().minimum_len().is_none()
        }
        HirKind::Repetition(repetition) => repetition.min > 0 && has_dead_part(&repetition.sub),
        HirKind::Capture(capture) => has_dead_part(&capture.sub),
        HirKind::Concat(parts) => parts.iter().any(has_dead_part),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

/// Of `(?:\r\n?|\n)`, the first alternative is no mistake.
fn is_line_end(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().all(|byte| b"\r\n".contains(byte)),
        HirKind::Class(_) => false,
        _ => hir.kind().subs().iter().all(is_line_end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_needs_a_carriage_return_is_found() {
        for pattern in [r"\r", r"a\r\n", r"[\r]", r"(a|b\r)c", r"x(?:\r)+", r"(?:\r|\r\n)", r"FAIL\x0d$", r"ok|(FAIL\r\n)"] {
            assert!(needs_return(pattern), "{pattern}");
        }
        for pattern in ["", r"a\r?\n", r"[\r\n]", r"(?:\r\n|\r|\n)", r"(?:\r\n?|\n)", r"[^\r\n]*", r"\s", r"a(\r)*$", r"\\r", "("]
        {
            assert!(!needs_return(pattern), "{pattern}");
        }
    }
}
