//! The text that functions search, and what carries it through an evaluation.

use super::value::impl_val;
use cel::common::types::Type;
use std::{fmt, ops::Range, sync::Arc};

/// Named sections of one buffer. A match never spans two of them.
#[derive(Clone)]
pub struct Text {
    buffer: Arc<dyn AsRef<[u8]> + Send + Sync>,
    sections: Arc<[(String, Range<usize>)]>,
}

impl Text {
    /// Sections are titles and ranges of bytes within the buffer; a range that reaches beyond it is cut.
    pub fn new(buffer: Arc<dyn AsRef<[u8]> + Send + Sync>, sections: impl IntoIterator<Item = (String, Range<usize>)>) -> Self {
        let end = (*buffer).as_ref().len();
        let cut = |range: Range<usize>| range.start.min(end)..range.end.min(end);
        let sections = sections.into_iter().map(|(title, range)| (title, cut(range))).collect();
        Self { buffer, sections }
    }

    pub(crate) fn titles(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|(title, _)| title.as_str())
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.sections.len()).map(|place| self.section(place))
    }

    /// The bytes of one section; nothing if there are not so many.
    pub(crate) fn section(&self, place: usize) -> &[u8] {
        self.sections.get(place).map_or(&[], |(_, range)| &(*self.buffer).as_ref()[range.clone()])
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&*self.sections).finish()
    }
}

/// The name of the argument that users do not write and cannot write: the text.
pub(crate) const TEXT: &str = "@text";

static TEXT_TYPE: Type = Type::new_unspecified_type("stdout");

impl_val!(Text, TEXT_TYPE);
