//! An exit code that a command returns as an error.

use muster_session::runtime::SessionRuntime;

/// Ends the program with this exit code. The place that returns it has printed the reason.
#[derive(Debug, thiserror::Error)]
#[error("the program ends with exit code {0}")]
pub struct EarlyExit(pub u8);

/// Ends the runtime of a session. An early exit does not wait for its threads.
pub fn end_runtime(runtime: SessionRuntime, outcome: &anyhow::Result<u8>) {
    if outcome.as_ref().is_err_and(anyhow::Error::is::<EarlyExit>) {
        runtime.shutdown_background();
    }
}
