//! The signals between a session and its writer besides messages.

use std::{fmt, sync::OnceLock};
use tokio::sync::watch;

type Listener = Box<dyn Fn(String) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Line {
    /// Nothing is waited for any more.
    is_hurried: watch::Sender<bool>,
    listener: OnceLock<Listener>,
}

impl Line {
    pub(crate) fn hurry(&self) {
        self.is_hurried.send_replace(true);
    }

    pub(crate) fn is_hurried(&self) -> bool {
        *self.is_hurried.borrow()
    }

    pub(crate) async fn hurried(&self) {
        // The sender lives as long as `self`.
        let _ = self.is_hurried.subscribe().wait_for(|is_hurried| *is_hurried).await;
    }

    /// Only the first listener hears something.
    pub(crate) fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Tells the user. Without a listener it goes to the log.
    pub(crate) fn warn(&self, text: String) {
        if let Some(listener) = self.listener.get() {
            listener(text);
        } else {
            tracing::warn!("{text}");
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("is_hurried", &self.is_hurried()).finish_non_exhaustive()
    }
}
