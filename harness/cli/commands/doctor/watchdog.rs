//! Ends a process whose work does not end, from a thread of its own: a call into a file system that does not answer never returns.

use crate::exit;
use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Watches until it is dropped.
pub struct Watchdog {
    _is_over: Option<Sender<()>>,
}

impl Watchdog {
    /// Starts a watch: when `late` returns an exit code, whose reason it has printed, the process ends with it. Without a thread
    /// nothing is watched.
    pub fn start(late: impl Fn() -> Option<u8> + Send + 'static) -> Self {
        let (is_over, over) = mpsc::channel::<()>();
        let watch = move || {
            while over.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if let Some(code) = late() {
                    exit::at_once(code);
                }
            }
        };
        let started = thread::Builder::new().name("watchdog".into()).spawn(watch);
        Self { _is_over: started.ok().map(|_| is_over) }
    }
}
