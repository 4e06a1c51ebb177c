//! A line on stderr while a server does not answer: what is waited for, and how long that may take.

use crate::terminal::Terminal;
use std::{pin::pin, time::Duration};
use tokio::time::timeout;

/// What takes longer is told of, as before the launches of a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for an answer. If it takes long: `no answer yet from` and what `told` says, once.
pub async fn told<T>(terminal: Terminal, told: impl FnOnce() -> String, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    if let Ok(answer) = timeout(PATIENCE, &mut answer).await {
        return answer;
    }
    terminal.note(&format!("no answer yet from {}", told()));
    answer.await
}
