//! The time of this machine.

use muster_text::time::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// This machine's wall clock.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}
