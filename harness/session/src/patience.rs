//! Waiting for a server that may not answer.

use std::{pin::pin, time::Duration};
use tokio::time::timeout;

/// A user is told of a wait that takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for an answer, and calls `tell` once if that takes long.
pub async fn told<T>(tell: impl FnOnce(), answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    if let Ok(answer) = timeout(PATIENCE, &mut answer).await {
        return answer;
    }
    tell();
    answer.await
}
