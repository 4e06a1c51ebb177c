//! The reasons for which a question has no answer.

use muster_core::query::spec::SpecError;
use muster_store::{Reader, StoreError};

/// The reason for which a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The question names what is not stored, or asks for what does not exist: one sentence, with what there is.
    #[error("{0}")]
    Unknown(String),
    /// The database cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SpecError> for Unanswered {
    fn from(error: SpecError) -> Self {
        Self::Unknown(error.0)
    }
}

impl Unanswered {
    pub(crate) fn unknown<T>(what: String) -> Result<T, Self> {
        Err(Self::Unknown(what))
    }
}

/// Returns the answer to every question about a database without a session.
pub fn nothing_stored(reader: &Reader) -> Unanswered {
    Unanswered::Unknown(format!(
        "no session is stored in {}: run checks with `muster -r`, or choose another database with --db",
        reader.database().display()
    ))
}
