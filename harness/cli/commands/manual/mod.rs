//! The program's texts about itself: the manual page and shell completions.

pub mod completions;
pub mod man;
