//! A line on stderr while a server does not answer: what is waited for, and how long that may take.

use crate::terminal::Terminal;
use muster_session::patience;

/// Waits for an answer. If it takes long: `no answer yet from` and what `told` says, once.
pub fn told<T>(terminal: Terminal, told: impl FnOnce() -> String, answer: impl Future<Output = T>) -> impl Future<Output = T> {
    patience::told(move || terminal.note(&format!("no answer yet from {}", told())), answer)
}
