//! The clock of an instance, which may be wrong: what its agent says is read by the clock of S3.

use crate::decide::seen::Said;
use muster_text::time::Timestamp;

/// An object is written so long after the time in it, and the time of either is that of a second.
const CLOSE: i64 = 5;

/// Seconds by which an instance is behind S3. `written`: when S3 got what the agent says. `known`: as it was before; small differences
/// do not change it, so that times stand still.
pub(crate) fn behind(said: &Said, written: Option<Timestamp>, known: i64) -> i64 {
    let Some(written) = written else { return known };
    let behind = written.seconds() - said.t;
    if (behind - known).abs() > CLOSE { behind } else { known }
}

impl Said {
    /// The same by a clock that is so far ahead of its own.
    pub(crate) fn by_clock(self, behind: i64) -> Self {
        let there = |at: i64| at.saturating_add(behind);
        Self { started: self.started.map(there), ended: self.ended.map(there), t: there(self.t), ..self }
    }
}
