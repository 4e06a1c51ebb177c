//! The steps of a case's life between which the harness may be killed.
//!
//! After each of them the store, the stage folder and the scheduler together say what was done, so that `muster attach` goes on
//! and `muster sweep` leaves nothing. A debug build proves it: `RFM_CRASH_AT=launched` ends the process there as SIGKILL
//! does, `RFM_CRASH_AT=launched:3` when the third case gets there. In a release build this is nothing.

/// What was just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The identifier is drawn and the plan is made.
    Planned,
    /// The plan is in the store.
    IntentStored,
    /// The scheduler is about to be asked.
    LaunchBegun,
    /// The scheduler has answered.
    Launched,
    /// And that is queued for the store.
    LaunchStored,
    /// The first status has come.
    Seen,
    /// It runs.
    Running,
    /// It ended by itself.
    Ended,
    /// Its log is on disk.
    LogDrained,
    /// It is judged, and its files are kept.
    Judged,
    /// Nothing of it runs, and what is not kept is gone.
    CleanedUp,
    /// Its result is in the store.
    ResultStored,
    /// Everybody knows the result.
    Told,
}

/// A step is done.
#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: Step) {}

/// A step is done: the process ends here if it was told to.
#[cfg(debug_assertions)]
pub(crate) fn reached(step: Step) {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    };
    static CRASH_AT: LazyLock<Option<(String, u32)>> = LazyLock::new(|| {
        let wanted = std::env::var("RFM_CRASH_AT").ok()?;
        let (step, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
        Some((step.to_owned(), times.parse().ok()?))
    });
    static TIMES: AtomicU32 = AtomicU32::new(0);
    let Some((wanted, times)) = &*CRASH_AT else { return };
    let name = format!("{step:?}");
    if name.eq_ignore_ascii_case(&wanted.replace('-', "")) && TIMES.fetch_add(1, Ordering::SeqCst) + 1 == *times {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
