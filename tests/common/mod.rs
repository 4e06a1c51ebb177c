//! What the tests on a real cluster and those without one have in common.

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

/// The steps of a case's life (`crash_points` of muster-session) at which a debug build can be killed or interrupted, in order.
pub(crate) const STEPS: [&str; 13] = [
    "planned",
    "intent-stored",
    "launch-started",
    "launched",
    "launch-stored",
    "seen",
    "running",
    "ended",
    "log-drained",
    "judged",
    "cleaned-up",
    "result-stored",
    "reported",
];

/// The two more of a case whose identifier is taken: of all, these are the steps that no other case comes by.
#[allow(dead_code)]
pub(crate) const REDRAW_STEPS: [&str; 2] = ["taken", "redrawn"];

/// Waits until something holds; fails the test after `limit`.
pub(crate) fn eventually(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < limit, "{what} did not happen within {limit:?}");
        sleep(Duration::from_millis(20));
    }
}

/// Gives a command that wraps another the environment that was set for that one.
pub(crate) fn copy_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}
