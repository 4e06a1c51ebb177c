//! The log of every container of a job, from its first line to its proven end.
//!
//! ```text
//! Observed -containers-> follow (one stream a container) -bytes-> reader (pure) -lines that are new-> Chunk
//!              ^                     |  cut, silence, EOF            |
//!              '---------------------'  asked again from ------------'  the second that is remembered
//! ```
//! The API cannot serve "everything after this byte": it knows whole seconds. So a stream that is resumed
//! repeats lines, and `reader` recognizes them. Rotated files cannot be read: the API never
//! serves. A container that writes more than the node keeps in one file (10 MiB by default) can lose lines at a rotation
//! that no client can see; a rotation that is seen is a gap, and a gap makes the case `invalid{logs}`.

mod container;
mod follow;
mod pace;
pub(crate) mod reader;
mod section;

pub(crate) use follow::collect;

#[cfg(test)]
mod tests;
