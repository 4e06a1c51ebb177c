//! Ctrl-C, TERM and HUP: the first ends the session in order, the second at once. What comes within a second of the first
//! belongs to it: `timeout` signals a process and then its group.

use crate::engine::Engine;
use std::{io, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};

const HANGUP: &str = "SIGHUP";
/// How long a request to end may take to arrive, in several signals.
const ONE_REQUEST: Duration = Duration::from_secs(1);
/// The sentence after the first signal.
pub const ONE_MORE: &str = "a second signal, after 1 s or more, ends the process within seconds";

/// Listens from the moment it is made: no signal after that ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where the parent asked for HUP to be ignored (`nohup`).
    hangup: Option<Signal>,
    /// When the first came.
    first: Option<Instant>,
}

impl Signals {
    /// Begins to listen. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        let ignored = is_ignored(SignalKind::hangup());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if ignored { None } else { Some(signal(SignalKind::hangup())?) },
            first: None,
        })
    }

    /// The next signal's name.
    pub async fn next(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let name = tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            _ = hangup => HANGUP,
        };
        self.first.get_or_insert_with(Instant::now);
        name
    }

    /// The first signal cancels `engine`; at the second this returns, and the caller ends the process at once. Dropped when the
    /// session ends before that.
    pub async fn supervise(&mut self, engine: &Engine) {
        let name = self.next().await;
        engine.cancel(format!("interrupted by {name}"));
        self.second().await;
    }

    /// Waits for the second signal. A HUP is never the second: a terminal that goes away sends several, and no user waits there any
    /// more.
    pub async fn second(&mut self) {
        let is_first = |signals: &Self| signals.first.is_some_and(|first| first.elapsed() < ONE_REQUEST);
        while self.next().await == HANGUP || is_first(self) {}
    }
}

/// Whether a signal is ignored by this process, as its parent wanted it. Known on Linux only; elsewhere it is taken over.
fn is_ignored(kind: SignalKind) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| in_ignored_mask(&status, kind.as_raw_value()))
}

fn in_ignored_mask(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(number - 1).ok().and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_nohup_ignores_stays_ignored() {
        let status = "Name:\tmuster\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n";
        assert!(in_ignored_mask(status, 1));
        assert!(!in_ignored_mask(status, 2));
        assert!(!in_ignored_mask("", 1));
    }
}
