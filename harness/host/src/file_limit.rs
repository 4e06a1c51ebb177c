//! The limit of open files: raised for the connections of a session, and reset for the processes that it starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// More than this is not asked for.
const ENOUGH: u64 = 65_536;

/// The limit before it was raised.
static STARTED_WITH: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit as far as the hard one lets it, and returns what it is now.
pub fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let now = current.unwrap_or(u64::MAX);
    let wanted = maximum.unwrap_or(u64::MAX).min(ENOUGH);
    if now >= wanted {
        return now;
    }
    if setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_err() {
        return now;
    }
    let _ = STARTED_WITH.set(now);
    wanted
}

/// Gives a process that was just started the soft limit that this one was started with.
pub fn give_back(pid: Option<u32>) {
    #[cfg(target_os = "linux")]
    if let (Some(current), Some(pid)) = (started_with(), pid.and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))) {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // It may have ended already.
        let _ = rustix::process::prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(current), maximum });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = pid;
}

/// The soft limit that this process was started with; `None`: it still has it.
pub fn started_with() -> Option<u64> {
    STARTED_WITH.get().copied()
}
