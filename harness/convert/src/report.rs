//! The report of a conversion: what could not be carried over, and what else is worth knowing of the source.

use muster_text::secret::masked;
use std::fmt;

/// The weight of a line of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It is not in the result.
    Refused,
    /// It is the scheduler's or launcher's business, and not in the result.
    Dropped,
    /// The source itself is wrong there.
    Defect,
    /// It was carried over, but means something else or more now.
    Note,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    pub level: Level,
    /// The line as it stands.
    pub what: String,
    /// The reason why it was not carried over.
    pub why: String,
    /// A suggestion of what to write instead.
    pub instead: Option<String>,
}

impl Level {
    /// The level as it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Dropped => "dropped",
            Self::Defect => "defect",
            Self::Note => "note",
        }
    }

    /// Returns whether something is missing from the result.
    pub fn is_missing(self) -> bool {
        matches!(self, Self::Refused | Self::Dropped)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.level.as_str(), masked(&self.why))?;
        if let Some(instead) = &self.instead {
            write!(f, "; {instead}")?;
        }
        if self.what.is_empty() { Ok(()) } else { write!(f, "\n    {}", masked(&self.what)) }
    }
}
