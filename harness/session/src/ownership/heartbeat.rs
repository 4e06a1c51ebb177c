//! The heartbeats of a session: a counter in its database that its owner increases as long as it lives.

use muster_core::{case::SessionId, decisions::liveness::HeartbeatTiming};
use muster_host::owner;
use muster_store::{Store, StoreError};
use std::time::Duration;
use tokio::{task::AbortHandle, time::sleep};

/// Returns the timing of heartbeats. In a debug build, `RFM_LIVENESS_LIMIT` sets another limit in seconds, for quick tests.
pub fn timing() -> HeartbeatTiming {
    let given = std::env::var("RFM_LIVENESS_LIMIT").ok().filter(|_| cfg!(debug_assertions));
    let limit = given.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs_f64);
    limit.map_or_else(HeartbeatTiming::default, HeartbeatTiming::with_limit)
}

/// Shows that this process owns a session, until it is dropped.
pub struct SignOfLife(AbortHandle);

impl SignOfLife {
    /// Begins. When another process has taken the session over, this ends, and `taken` runs: two processes that run the same cases
    /// would disturb each other. Must be called within a tokio runtime.
    pub fn start<T: Send + 'static>(store: &Store, session: &SessionId, taken: impl Future<Output = T> + Send + 'static) -> Self {
        let (store, session) = (store.clone(), session.clone());
        let beats = async move {
            until_taken(&store, &session).await;
            taken.await
        };
        Self(tokio::spawn(beats).abort_handle())
    }
}

impl Drop for SignOfLife {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Beats until another process has taken the session over. A database that cannot be written now is tried again.
async fn until_taken(store: &Store, session: &SessionId) {
    let (owner, HeartbeatTiming { interval, .. }) = (owner::this_owner(), timing());
    loop {
        sleep(interval).await;
        match store.beat(session, &owner).await {
            Ok(()) => {}
            Err(StoreError::Taken { .. }) => return,
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "the heartbeat is not stored"),
        }
    }
}
