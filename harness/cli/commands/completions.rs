//! `muster completions SHELL`: commands, flags and their values.

use crate::{args, terminal::Terminal};
use clap_complete::Shell;

/// Prints the script that teaches a shell.
pub fn completions(shell: Shell, terminal: Terminal) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(), "muster", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    0
}
