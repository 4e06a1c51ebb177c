//! Ends of the program before a command has returned its exit code.

use std::process;

/// Ends the program with this exit code. The place that returns it has printed the reason.
#[derive(Debug, thiserror::Error)]
#[error("the program ends with exit code {0}")]
pub struct EarlyExit(pub u8);

/// Ends the process at once, from any thread: the main thread may be blocked in a write to a pipe that nobody reads, or on a file
/// system that does not answer.
pub fn at_once(code: u8) -> ! {
    process::exit(code.into())
}
