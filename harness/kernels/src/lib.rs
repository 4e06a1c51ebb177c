//! The small programs behind the shipped checks, so that a bare machine can measure itself: `muster kernel triad`.
//!
//! A kernel takes options, writes lines of text and knows nothing of checks, sites or results: a check runs it as it
//! would run any benchmark and reads its text. They use no dependency but the option parser, and no instruction set
//! that they have not found on the machine.
//!
//! Not done here: judging. A kernel fails only if it could not measure, or if the machine computed something wrong.

// Counts and byte sizes become rates; all are far below 2^53.
#![allow(clippy::cast_precision_loss)]

mod exchange;
mod flops;
mod timing;
mod triad;

use std::{
    io::{self, Write},
    num::NonZero,
    thread,
};

/// The kernels, with their options.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Kernel {
    /// Memory and cache bandwidth: `a = b + s * c` on arrays, as in STREAM
    Triad(triad::Options),
    /// Floating-point speed: fused multiply-adds that stay in registers
    Flops(flops::Options),
    /// Throughput and latency between two threads through a pipe
    Pipe(exchange::Options),
    /// Throughput and latency through a TCP connection over the loopback interface
    Loopback(exchange::Options),
}

/// The reason why a kernel has no figure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arrays do not hold what they must.
    #[error("element {index} is {found} and must be {expected}: this machine computes or stores wrongly")]
    Wrong {
        /// The index of the wrong element.
        index: usize,
        found: f64,
        expected: f64,
    },
    /// Fewer or other bytes came out than went in.
    #[error("the other end received {found} bytes and must receive {expected}")]
    Lost { found: u64, expected: u64 },
    /// A thread of the kernel panicked.
    #[error("a thread of the kernel ended early")]
    Thread,
    /// A pipe, a socket or the standard output failed.
    #[error("cannot {action}")]
    Io {
        /// The operation that failed, a verb phrase.
        action: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Runs a kernel and writes its lines.
pub fn run(kernel: &Kernel, out: &mut dyn Write) -> Result<(), Error> {
    let text = match kernel {
        Kernel::Triad(options) => triad::run(options)?,
        Kernel::Flops(options) => flops::run(options)?,
        Kernel::Pipe(options) => exchange::run(options, "pipe", exchange::pipes)?,
        Kernel::Loopback(options) => exchange::run(options, "loopback", exchange::sockets)?,
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Error::Io { action: "write the figures", source })
}

/// A number of threads; 0 means all that this process may use.
fn threads(wanted: usize) -> usize {
    if wanted > 0 { wanted } else { thread::available_parallelism().map_or(1, NonZero::get) }
}
