//! Logs on disk while they arrive, and the stdout they become.

pub(crate) mod collect;
pub(crate) mod keep_files;
mod lines;
pub(crate) mod map;
pub(crate) mod spool;
pub(crate) mod tail;
