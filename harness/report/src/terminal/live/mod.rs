//! Live views: what runs now, as a few lines at the bottom of a terminal. Pure: events or states and the time go in, lines that fit the
//! terminal come out; the caller draws them.
//!
//! ```text
//!  FAIL ior %fs=lustre @cpu+default: pattern 'Max Write' was not found      the last failures
//!  / hpl @gpu-service+default  running on gpu-17               2m10s/10m    what runs, the longest first
//!    ... and 34 more running
//!  eidf:gpu-service  ████████████▒▒▒▒░░░░░░░░   12/40  8 running  2 failed  a bar a partition
//!  total             ██████████▒▒░░░░░░░░░░░░   32/60  4m12s                slowest: hpl 12m
//! ```
//! `board` is the view of `-r`, `top` that of `muster top`; both are made of `lines` and `names`.

mod board;
mod lines;
mod names;
mod top;

pub use board::Board;
pub use top::Top;

use muster_core::job::workload::Clock;
use std::time::Duration;

/// So many running cases have a line at most, however high the terminal is.
const RUNNING: usize = 12;
/// A running case's line is no wider.
const WIDEST: usize = 120;
/// So many partitions have a bar at most.
const BARS: usize = 6;
/// Below this there is no room for a view.
const LEAST_COLUMNS: usize = 30;

/// The size of the terminal, and what it can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
    /// Blocks and dots of Unicode, not only ASCII.
    pub unicode: bool,
}

/// The clock of a state and its limit.
pub type Limit = (Clock, Option<Duration>);
