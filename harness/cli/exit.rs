//! The end of the process before a command has returned its exit code.

use std::process;

/// Ends the process at once, from any thread: the main thread may be blocked in a write to a pipe that nobody reads, or on a file
/// system that does not answer, and the end of a runtime may wait for such a thread. The caller has printed the reason.
pub fn at_once(code: u8) -> ! {
    process::exit(code.into())
}
