//! What the program says of itself: the manual page and shell completions.

pub mod completions;
pub mod man;
