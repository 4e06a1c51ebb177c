//! `muster kernel ...`: a small program that measures this machine and prints figures for a check to read.

use crate::terminal::Terminal;
use muster_kernels::Kernel;

/// Runs a kernel. It exits with 1 if it could not measure, as a benchmark would.
pub fn kernel(kernel: &Kernel, terminal: Terminal) -> u8 {
    let mut text = Vec::new();
    match muster_kernels::run(kernel, &mut text) {
        Ok(()) => {
            terminal.print(&String::from_utf8_lossy(&text));
            0
        }
        Err(error) => {
            terminal.error(&anyhow::Error::new(error));
            1
        }
    }
}
