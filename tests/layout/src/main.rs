//! Prints the figures of a workspace: that of the folder that is given, or of the current one.

use std::io::Write as _;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let figures = muster_layout::figures::figures(&folder.canonicalize()?)?;
    write!(std::io::stdout(), "{figures}")
}
