//! This machine's clock, as data.

use muster_core::time::Timestamp;

/// Now.
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_microsecond())
}
