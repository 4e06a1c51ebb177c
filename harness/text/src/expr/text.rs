//! The text that functions search, what carries it through an evaluation, and what a pattern captures of it.

use super::value::impl_val;
use crate::pattern::Haystack;
use cel::common::{traits::Zeroer, types::Type};
use compact_str::CompactString;
use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// Named sections of one buffer. A match never spans two of them.
#[derive(Clone)]
pub struct Text {
    buffer: Arc<dyn AsRef<[u8]> + Send + Sync>,
    sections: Arc<[Section]>,
}

struct Section {
    title: String,
    range: Range<usize>,
    /// Once it is known.
    has_returns: OnceLock<bool>,
}

impl Text {
    /// Sections are titles and ranges of bytes within the buffer; a range that reaches beyond it is cut.
    pub fn new(buffer: Arc<dyn AsRef<[u8]> + Send + Sync>, sections: impl IntoIterator<Item = (String, Range<usize>)>) -> Self {
        let end = (*buffer).as_ref().len();
        let cut = |range: Range<usize>| range.start.min(end)..range.end.min(end);
        let section = |(title, range)| Section { title, range: cut(range), has_returns: OnceLock::new() };
        Self { buffer, sections: sections.into_iter().map(section).collect() }
    }

    pub(crate) fn titles(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|section| section.title.as_str())
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = Haystack<'_>> {
        (0..self.sections.len()).map(|place| self.section(place))
    }

    /// One section; nothing if there are not so many. It is looked through for carriage returns once.
    pub fn section(&self, place: usize) -> Haystack<'_> {
        let Some(section) = self.sections.get(place) else { return Haystack::of(&[]) };
        let bytes = &(*self.buffer).as_ref()[section.range.clone()];
        Haystack { bytes, has_returns: *section.has_returns.get_or_init(|| Haystack::of(bytes).has_returns) }
    }

    /// Says of a section whether it has carriage returns, which a search has seen.
    pub fn set_has_returns(&self, place: usize, has_returns: bool) {
        let _ = self.sections.get(place).map(|section| section.has_returns.set(has_returns));
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sections.iter().map(|section| (&section.title, &section.range))).finish()
    }
}

/// The name of the argument that users do not write and cannot write: the text.
pub(crate) const TEXT: &str = "@text";

static TEXT_TYPE: Type = Type::new_unspecified_type("stdout");

impl_val!(Text, TEXT_TYPE);

/// What a pattern captured: the log's text, which is a number where it meets one. Most are short, and allocate nothing.
#[derive(Debug, Clone)]
pub(crate) struct Captured(CompactString);

impl Captured {
    /// Bytes that are not UTF-8 are replaced.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(str::from_utf8(bytes).map_or_else(|_| CompactString::from_utf8_lossy(bytes), CompactString::from))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

static CAPTURED_TYPE: Type = Type::new_unspecified_type("text");

impl_val!(Captured, CAPTURED_TYPE, {
    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }
});

impl Zeroer for Captured {
    fn is_zero_value(&self) -> bool {
        self.text().is_empty()
    }
}
