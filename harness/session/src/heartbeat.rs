//! The heartbeats of a session: a counter in its database that its owner increases as long as it lives.

use muster_core::{case::SessionId, decisions::liveness::HeartbeatTiming};
use muster_store::{Owner, Store, StoreError};
use std::time::Duration;
use tokio::time::sleep;

/// How often a session shows that it lives. In a debug build, `RFM_LIVENESS_LIMIT` sets another limit, in seconds, so that no test waits for minutes.
pub fn timing() -> HeartbeatTiming {
    let given = std::env::var("RFM_LIVENESS_LIMIT").ok().filter(|_| cfg!(debug_assertions));
    let limit = given.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs_f64);
    limit.map_or_else(HeartbeatTiming::default, HeartbeatTiming::with_limit)
}

/// Beats until another process has taken the session over. A database that cannot be written now is tried again.
pub async fn until_taken(store: Store, session: SessionId, owner: Owner, timing: HeartbeatTiming) {
    loop {
        sleep(timing.interval).await;
        match store.beat(&session, &owner).await {
            Ok(()) => {}
            Err(StoreError::Taken { .. }) => return,
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "the heartbeat is not stored"),
        }
    }
}
