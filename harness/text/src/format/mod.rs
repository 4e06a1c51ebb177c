//! One layout for check and site files: indentation, blanks, empty lines. Nothing that means something is touched.
//!
//! ```text
//! text -scan-> lines of tokens, each with its new indentation -lay-> text -compare-> the same tree and comments, or nothing
//! ```
//!
//! Order, quotes, line breaks and the words of comments are the author's. What is aligned in columns (values, comments at the
//! ends of lines) still does afterwards. No line is broken or joined.

mod lay;
mod scan;

use crate::{
    diagnostic::{Diagnostic, FileId},
    yaml::{self, Kind, Node},
};

/// The reason why a text was not formatted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("the file has mistakes")]
    Mistakes(Vec<Diagnostic>),
    /// The result would not have meant the same, or not have had the same comments. A fault of the formatter.
    #[error("the layout of this file is not understood: it is left as it is")]
    NotUnderstood,
}

/// Lays a file out.
///
/// # Errors
/// Nothing is laid out that could not be read again as it was.
pub fn format(file: FileId, text: &str) -> Result<String, FormatError> {
    let before = yaml::parse(file, text);
    if !before.diagnostics.is_empty() {
        return Err(FormatError::Mistakes(before.diagnostics));
    }
    let unix = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let lines = scan::lines(&unix).ok_or(FormatError::NotUnderstood)?;
    let formatted = lay::lay(lines);
    let after = yaml::parse(file, &formatted);
    let words = |text: &str| yaml::comments(text).map(|(words, _)| words.trim_end().to_owned()).collect::<Vec<_>>();
    let is_same = after.diagnostics.is_empty()
        && before.documents.len() == after.documents.len()
        && before.documents.iter().zip(&after.documents).all(|(before, after)| same(before, after))
        && words(&unix) == words(&formatted);
    if is_same { Ok(formatted) } else { Err(FormatError::NotUnderstood) }
}

/// Whether two trees are equal, positions aside.
fn same(one: &Node, other: &Node) -> bool {
    match (&*one.kind, &*other.kind) {
        (Kind::Scalar { text, style, tag }, Kind::Scalar { text: words, style: quotes, tag: mark }) => {
            (text, style, tag) == (words, quotes, mark)
        }
        (Kind::Seq(items), Kind::Seq(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(item, other)| same(item, other))
        }
        (Kind::Map(entries), Kind::Map(others)) => {
            let is_same = |((key, value), (name, other)): (&(Node, Node), &(Node, Node))| same(key, name) && same(value, other);
            entries.len() == others.len() && entries.iter().zip(others).all(is_same)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
