//! `muster check ...`: writing, laying out and looking at check files.

mod fmt;
mod lint;
mod new;

pub use fmt::fmt;
pub use lint::lint;
pub use new::{new, starter};

use crate::args::Cli;
use std::path::PathBuf;

/// The paths of a command: its own, else those of `-c`, else here.
fn paths(own: &[PathBuf], cli: &Cli) -> Vec<PathBuf> {
    [own, &cli.files.checkpath].into_iter().find(|paths| !paths.is_empty()).map_or_else(|| vec![".".into()], <[_]>::to_vec)
}
