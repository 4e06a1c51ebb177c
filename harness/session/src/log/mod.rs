//! Logs on disk while they arrive, and the stdout they become.

pub(crate) mod collect;
pub(crate) mod keep_files;
pub(crate) mod spool;
pub(crate) mod tail;
pub(crate) mod text;
