//! The placeholders of a text.

use crate::expr::scan;
use std::ops::Range;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    Text(&'t str),
    /// `${{ expr }}`
    Placeholder {
        /// The expression, blanks around it left out.
        expr: &'t str,
        /// The expression's place in the text, in bytes.
        range: Range<usize>,
    },
}

/// A placeholder without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a placeholder `${{{{` is never closed")]
pub struct Unterminated {
    /// The byte of its `$`.
    pub at: usize,
}

/// Takes a text apart.
///
/// # Errors
/// The first placeholder that does not end.
pub fn split(text: &str) -> Result<Vec<Piece<'_>>, Unterminated> {
    const OPEN: &str = "${{";
    let mut pieces = Vec::new();
    let mut done = 0;
    while let Some(start) = text[done..].find(OPEN).map(|at| done + at) {
        if start > done {
            pieces.push(Piece::Text(&text[done..start]));
        }
        let from = start + OPEN.len();
        let end = scan::placeholder_end(&text[from..]).map(|end| from + end).ok_or(Unterminated { at: start })?;
        let inside = &text[from..end - 2];
        let expr = inside.trim();
        let first = from + (inside.len() - inside.trim_start().len()).min(inside.len() - expr.len());
        pieces.push(Piece::Placeholder { expr, range: first..first + expr.len() });
        done = end;
    }
    if done < text.len() {
        pieces.push(Piece::Text(&text[done..]));
    }
    Ok(pieces)
}

/// The placeholder, if there is nothing but blanks around it.
pub(super) fn lone<'p, 't>(pieces: &'p [Piece<'t>]) -> Option<(&'t str, &'p Range<usize>)> {
    let mut only = None;
    for piece in pieces {
        match piece {
            Piece::Text(text) if text.trim().is_empty() => {}
            Piece::Placeholder { expr, range } if only.is_none() => only = Some((*expr, range)),
            _ => return None,
        }
    }
    only
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_taken_apart_at_its_placeholders() {
        let show = |text: &str| match split(text) {
            Ok(pieces) => {
                let pieces = pieces.into_iter().map(|piece| match piece {
                    Piece::Text(text) => format!("{text:?}"),
                    Piece::Placeholder { expr, range } => {
                        assert_eq!(&text[range], expr);
                        format!("<{expr}>")
                    }
                });
                pieces.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("{error}, from byte {}", error.at),
        };
        let table = [
            ("", ""),
            ("plain $x ${y} {{ z }} $(w)", r#""plain $x ${y} {{ z }} $(w)""#),
            ("${{a}}", "<a>"),
            ("-n=${{ n }} -m ${{  m}}", r#""-n=" <n> " -m " <m>"#),
            ("${{ '}}' }}é${{ {'a': {'b': 1}}.a.b }}!", r#"<'}}'> "é" <{'a': {'b': 1}}.a.b> "!""#),
            ("${{ '${{' }}", "<'${{'>"),
            ("${{}}", "<>"),
            ("${{   }}", "<>"),
            ("x ${{ a", "a placeholder `${{` is never closed, from byte 2"),
            ("${{ a }} ${{ 'b }}", "a placeholder `${{` is never closed, from byte 9"),
        ];
        for (text, expected) in table {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_text(text in r#"(\$\{\{|\}\}|[ ab'"{}\\ré$]){0,20}"#) {
            if let Ok(pieces) = split(&text) {
                let mut at = 0;
                for piece in pieces {
                    match piece {
                        Piece::Text(piece) => {
                            prop_assert!(text[at..].starts_with(piece));
                            at += piece.len();
                        }
                        Piece::Placeholder { range, .. } => {
                            prop_assert!(range.start >= at + 3);
                            let rest = text[range.end..].trim_start();
                            prop_assert!(rest.starts_with("}}"));
                            at = text.len() - rest.len() + 2;
                        }
                    }
                }
                prop_assert_eq!(at, text.len());
            }
        }
    }
}
