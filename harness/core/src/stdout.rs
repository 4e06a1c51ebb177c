//! The stdout contract: all sections of a job as one text.
//!
//! ```text
//! aotugiob                                    line 1: the identifier
//!                                             then for each section a blank line,
//! -------rfm-jobtest-aotugiob-6xdms-------    its name between seven dashes on each side
//! ...                                         and its log, ended by a newline
//! ```
//! Sections are sorted by role, index, creation time and name. Patterns are searched in each section by itself, so
//! a match never spans two and never sees these framing lines.

use crate::{case::Identifier, scheduler::Exit, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::Range, sync::Arc};

/// Where a section comes from and where it stands in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionOrigin {
    /// The pod, instance or host.
    pub name: String,
    /// The container, when a pod has several.
    pub container: Option<String>,
    /// Launchers before workers: the place of its role in the workload.
    pub role: u32,
    /// Its index in the role (a completion index, a rank).
    pub index: u32,
    /// When it was created.
    pub created: Timestamp,
    /// Where it ran.
    pub node: Option<String>,
}

impl SectionOrigin {
    /// `NAME`, or `NAME/CONTAINER`.
    pub fn title(&self) -> String {
        self.container.as_ref().map_or_else(|| self.name.clone(), |container| format!("{}/{container}", self.name))
    }

    /// The contract's order.
    pub fn key(&self) -> (u32, u32, Timestamp, &str, Option<&str>) {
        (self.role, self.index, self.created, &self.name, self.container.as_deref())
    }
}

/// The text between two headers, with what is known of it. Written to `pods.json`, one a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: SectionOrigin,
    /// First byte in the whole text.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Its lines, as far as counted.
    pub lines: Option<u64>,
    /// The first line's time.
    pub first: Option<Timestamp>,
    /// The last line's time.
    pub last: Option<Timestamp>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Why bytes are missing: empty means complete.
    pub gaps: Vec<String>,
}

/// The bytes of a whole stdout: a memory map, a vector, a static text.
pub type Text = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A finished job's assembled text.
#[derive(Clone)]
pub struct Stdout {
    text: Text,
    sections: Arc<[Section]>,
}

impl fmt::Debug for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdout").field("bytes", &self.bytes().len()).field("sections", &self.sections).finish_non_exhaustive()
    }
}

impl Stdout {
    /// A text and its sections, in order. Sections that reach beyond the text are cut to it.
    pub fn new(text: Text, sections: impl Into<Arc<[Section]>>) -> Self {
        Self { text, sections: sections.into() }
    }

    /// One section that is the whole of `text`: for tests and rehearsals.
    pub fn of(text: impl Into<Vec<u8>>) -> Self {
        let text: Vec<u8> = text.into();
        let section = Section {
            origin: SectionOrigin {
                name: "stdout".into(),
                container: None,
                role: 0,
                index: 0,
                created: Timestamp::default(),
                node: None,
            },
            offset: 0,
            bytes: text.len() as u64,
            lines: None,
            first: None,
            last: None,
            exit: None,
            gaps: Vec::new(),
        };
        Self::new(Arc::new(text), [section])
    }

    /// The whole text with its framing.
    pub fn bytes(&self) -> &[u8] {
        (*self.text).as_ref()
    }

    /// The sections in order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// One section's text.
    pub fn section(&self, section: &Section) -> &[u8] {
        let whole = self.bytes();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
        let range: Range<usize> = clamp(section.offset)..clamp(section.offset.saturating_add(section.bytes));
        &whole[range]
    }

    /// Every gap of every section, with its title.
    pub fn gaps(&self) -> impl Iterator<Item = (String, &str)> {
        self.sections.iter().flat_map(|s| s.gaps.iter().map(|why| (s.origin.title(), why.as_str())))
    }
}

/// Line 1.
pub fn first_line(identifier: &Identifier) -> String {
    format!("{identifier}\n")
}

/// The two lines before a section's text.
pub fn header(title: &str) -> String {
    format!("\n-------{title}-------\n")
}

/// Sorts sections into the contract's order.
pub fn order(sections: &mut [Section]) {
    sections.sort_by(|a, b| a.origin.key().cmp(&b.origin.key()));
}

/// One piece of an assembled stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// This text.
    Frame(String),
    /// The log of the section with this index, byte for byte.
    Log(usize),
}

/// What to write, one after the other, to assemble `sections` (in order, their `bytes` known). Each section's `offset`
/// is set to where its log will stand. A log without a final newline gets one, which is not counted as its own.
pub fn framing(identifier: &Identifier, sections: &mut [Section], ends_in_newline: impl Fn(&Section) -> bool) -> Vec<Piece> {
    let mut at = 0_u64;
    let mut pieces = Vec::with_capacity(2 * sections.len() + 1);
    let mut frame = first_line(identifier);
    for (index, section) in sections.iter_mut().enumerate() {
        frame.push_str(&header(&section.origin.title()));
        at += frame.len() as u64;
        pieces.push(Piece::Frame(std::mem::take(&mut frame)));
        section.offset = at;
        at += section.bytes;
        pieces.push(Piece::Log(index));
        if section.bytes > 0 && !ends_in_newline(section) {
            frame.push('\n');
        }
    }
    if !frame.is_empty() {
        pieces.push(Piece::Frame(frame));
    }
    pieces
}
