//! Ends a process whose work does not end, from a thread of its own: a call into a file system that does not answer never returns.

use crate::exit;
use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

/// Watches until it is dropped.
pub struct Watchdog {
    _is_over: Option<Sender<()>>,
}

impl Watchdog {
    /// After `limit`, `late` says why, and the process ends with the code that it returns. Without a thread nothing is watched.
    pub fn start(limit: Duration, late: impl FnOnce() -> u8 + Send + 'static) -> Self {
        let (is_over, over) = mpsc::channel::<()>();
        let watch = move || {
            if over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                exit::at_once(late());
            }
        };
        let started = thread::Builder::new().name("watchdog".into()).spawn(watch);
        Self { _is_over: started.ok().map(|_| is_over) }
    }
}
