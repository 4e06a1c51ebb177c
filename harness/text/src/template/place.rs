//! The place of a part of a scalar in a file.

use crate::{
    diagnostic::{Diagnostic, Span},
    expr::ExprError,
    yaml::{Kind, Node, Style},
};
use std::ops::Range;

/// The diagnostic of a mistake in a scalar that is an expression itself, at the part that is wrong.
pub fn mistake(error: &ExprError, node: &Node) -> Diagnostic {
    let span = part(node, &error.at).unwrap_or(node.span);
    seen_through(node, diagnostic(error, error.message.as_str(), span))
}

/// The diagnostic of a mistake in the placeholder whose expression starts at a byte of the scalar, without the alias.
pub(super) fn mistake_in(error: &ExprError, expr: &str, start: usize, node: &Node) -> Diagnostic {
    match part(node, &(start + error.at.start..start + error.at.end)) {
        Some(span) => diagnostic(error, error.message.as_str(), span),
        None => diagnostic(error, format!("{}, in ${{{{ {expr} }}}}", error.message), node.span),
    }
}

/// Adds the alias through which the scalar was reached.
pub(super) fn seen_through(node: &Node, diagnostic: Diagnostic) -> Diagnostic {
    match node.via {
        Some(alias) => diagnostic.related(alias, "used here"),
        None => diagnostic,
    }
}

fn diagnostic(error: &ExprError, message: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic { missing: error.missing.clone(), ..Diagnostic::error(span, message) }.maybe_hint(error.hint.as_deref())
}

/// The place of a part of a scalar's text, unless its source has escapes, folds or indents in it.
pub(super) fn part(node: &Node, range: &Range<usize>) -> Option<Span> {
    let Kind::Scalar { text, style, .. } = &*node.kind else { return None };
    shifted(node.span, text, u32::from(*style == Style::Quoted), range)
}

/// A source that is as long as its text, quotes aside, is that text.
fn shifted(span: Span, text: &str, quotes: u32, range: &Range<usize>) -> Option<Span> {
    let source = span.end.checked_sub(span.start)?.checked_sub(2 * quotes)?;
    if source as usize != text.len() {
        return None;
    }
    // An end that came too early is shown at the last character there is.
    let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
    let start = if range.is_empty() { range.start.min(last) } else { range.start };
    let place = |at: usize| Some(span.start + quotes + u32::try_from(at).ok()?);
    Some(Span { file: span.file, start: place(start)?, end: place(range.end.max(start))? })
}
