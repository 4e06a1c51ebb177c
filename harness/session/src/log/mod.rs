//! Logs on disk while they arrive, and the stdout they become.

pub(crate) mod collect;
pub(crate) mod keep_files;
pub mod lines;
pub(crate) mod spool;
pub(crate) mod tail;
pub(crate) mod text;
